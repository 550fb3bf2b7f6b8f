// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Tests threads, order, wrong guesses and errors, with computed data.

#include "addons/hugectr/reader/batch_reader.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace hugectr {
namespace {

// Size of sample n, which a format would have to read.
int64_t BytesOf(int64_t n) { return n % 11 == 7 ? 3 : 2; }

// Sample n has label n. A place where no sample begins gives an error or wrong
// labels, as in a real file.
class MadeSource : public Source {
 public:
  enum Guessing { kNever, kByTwo, kRightly };

  MadeSource(int64_t samples, Guessing guessing, int64_t bad = -1)
      : samples_(samples), guessing_(guessing), bad_(bad) {
    layout_.label_dim = 1;
    begins_.push_back(0);
    for (int64_t n = 0; n < samples; ++n) {
      begins_.push_back(begins_.back() + BytesOf(n));
    }
  }

  const Layout& layout() const override { return layout_; }
  int64_t samples() const override { return samples_; }
  Place Begin() const override { return Place(); }
  std::unique_ptr<Worker> MakeWorker() override;

  ev::Status Walk(const Place& place, const Span& span, Place* end) const {
    int64_t record = place.record, byte = place.byte;
    for (int64_t i = 0; i < span.count; ++i) {
      if (record == samples_) record = byte = 0;
      if (begins_[record] != byte) return ev::InvalidArgument("no begin");
      if (record == bad_) return ev::InvalidArgument("bad sample");
      byte += BytesOf(record++);
    }
    *end = Place{0, record, byte};
    return ev::Status::OK();
  }

  Layout layout_;
  const int64_t samples_;
  const Guessing guessing_;
  const int64_t bad_;
  std::vector<int64_t> begins_;
  std::atomic<int> scans_{0}, again_{0};
};

class MadeWorker : public Worker {
 public:
  explicit MadeWorker(MadeSource* source) : source_(source) {}

  bool Guess(const Place& place, const Span& span, Place* end) override {
    if (source_->guessing_ == MadeSource::kNever) return false;
    int64_t record = place.record, byte = place.byte;
    for (int64_t i = 0; i < span.count; ++i) {
      if (record == source_->samples_) record = byte = 0;
      byte += source_->guessing_ == MadeSource::kRightly ? BytesOf(record) : 2;
      ++record;
    }
    *end = Place{0, record, byte};
    return true;
  }

  ev::Status Read(const Place& place, const Span& span, Batch* batch,
                  Place* end) override {
    const ev::Status status = source_->Walk(place, span, end);
    if (!status.ok()) ++source_->again_;
    if (status.ok()) Label(place, span, batch);
    return status;
  }

  ev::Status Scan(const Place& place, const Span& span, Place* end) override {
    ++source_->scans_;
    scanned_ = place;
    return source_->Walk(place, span, end);
  }

  void Fill(const Span& span, Batch* batch) override {
    std::this_thread::yield();
    Label(scanned_, span, batch);
  }

  ev::Status CheckEnd(const Place& place) override {
    return source_->begins_.back() == place.byte
               ? ev::Status::OK()
               : ev::InvalidArgument("more follows");
  }

 private:
  void Label(const Place& place, const Span& span, Batch* batch) {
    for (int64_t i = span.low; i < span.high; ++i) {
      batch->labels.as<float>()[i - span.low] =
          (place.record + i) % source_->samples_;
    }
  }

  MadeSource* const source_;
  Place scanned_;
};

std::unique_ptr<Worker> MadeSource::MakeWorker() {
  return std::unique_ptr<Worker>(new MadeWorker(this));
}

ReaderOptions Options(int64_t batch_size, int64_t threads, bool repeat) {
  ReaderOptions options;
  options.batch_size = batch_size;
  options.threads = threads;
  options.repeat = repeat;
  return options;
}

// Sets *labels to those of the next batch; empty at the end.
ev::Status Take(BatchReader* reader, std::vector<int64_t>* labels) {
  labels->clear();
  BatchReader::Result result = BatchReader::Result::kNotYet;
  BatchPool::Owned batch;
  while (result == BatchReader::Result::kNotYet) {
    EV_RETURN_IF_ERROR(reader->Next(1000, &result, &batch));
  }
  if (result == BatchReader::Result::kEnd) return ev::Status::OK();
  for (int64_t n = 0; n < batch->size; ++n) {
    labels->push_back(batch->labels.as<float>()[n]);
  }
  return ev::Status::OK();
}

class BatchReaderTest
    : public testing::TestWithParam<std::tuple<MadeSource::Guessing, int>> {};

TEST_P(BatchReaderTest, GivesEverySampleOnceInOrder) {
  const auto [guessing, threads] = GetParam();
  for (int64_t batch_size : {1, 7, 64, 1000}) {
    BatchReader reader(std::make_unique<MadeSource>(500, guessing),
                       Options(batch_size, threads, false));
    std::vector<int64_t> labels;
    int64_t next = 0;
    for (;;) {
      ASSERT_TRUE(Take(&reader, &labels).ok());
      if (labels.empty()) break;
      ASSERT_EQ(labels.size(), std::min<int64_t>(batch_size, 500 - next));
      for (int64_t label : labels) ASSERT_EQ(label, next++);
    }
    EXPECT_EQ(next, 500);
    ASSERT_TRUE(Take(&reader, &labels).ok());
    EXPECT_TRUE(labels.empty());
  }
}

TEST_P(BatchReaderTest, RepeatsInTheMidstOfABatch) {
  const auto [guessing, threads] = GetParam();
  BatchReader reader(std::make_unique<MadeSource>(50, guessing),
                     Options(16, threads, true));
  std::vector<int64_t> labels;
  int64_t next = 0;
  for (int k = 0; k < 300; ++k) {
    ASSERT_TRUE(Take(&reader, &labels).ok());
    ASSERT_EQ(labels.size(), 16);
    for (int64_t label : labels) ASSERT_EQ(label, next++ % 50);
  }
}

TEST_P(BatchReaderTest, RanksShareEachBatch) {
  const auto [guessing, threads] = GetParam();
  for (int64_t rank = 0; rank < 3; ++rank) {
    ReaderOptions options = Options(16, threads, false);
    options.rank = rank;
    options.ranks = 3;
    BatchReader reader(std::make_unique<MadeSource>(50, guessing), options);
    std::vector<int64_t> labels;
    // The last batch has 2 samples, and the third rank gets none of them.
    const std::vector<std::vector<int64_t>> first = {
        {0, 16, 32, 48}, {6, 22, 38, 49}, {11, 27, 43, 50}};
    const std::vector<std::vector<size_t>> sizes = {
        {6, 6, 6, 1}, {5, 5, 5, 1}, {5, 5, 5, 0}};
    for (int k = 0; k < 4; ++k) {
      ASSERT_TRUE(Take(&reader, &labels).ok());
      ASSERT_EQ(labels.size(), sizes[rank][k]);
      for (size_t i = 0; i < labels.size(); ++i) {
        ASSERT_EQ(labels[i], first[rank][k] + i);
      }
    }
  }
}

TEST_P(BatchReaderTest, AnErrorComesBehindTheBatchesBeforeIt) {
  const auto [guessing, threads] = GetParam();
  BatchReader reader(std::make_unique<MadeSource>(500, guessing, /*bad=*/205),
                     Options(10, threads, true));
  std::vector<int64_t> labels;
  for (int k = 0; k < 20; ++k) {
    ASSERT_TRUE(Take(&reader, &labels).ok());
    ASSERT_EQ(labels[0], 10 * k);
  }
  for (int k = 0; k < 3; ++k) {
    EXPECT_EQ(Take(&reader, &labels).message(), "bad sample");
  }
}

TEST_P(BatchReaderTest, EndsWhileThreadsAreAhead) {
  const auto [guessing, threads] = GetParam();
  for (int taken : {0, 1, 9}) {
    BatchReader reader(std::make_unique<MadeSource>(5000, guessing),
                       Options(10, threads, true));
    std::vector<int64_t> labels;
    for (int k = 0; k < taken; ++k) ASSERT_TRUE(Take(&reader, &labels).ok());
  }
}

INSTANTIATE_TEST_SUITE_P(All, BatchReaderTest,
                         testing::Combine(testing::Values(MadeSource::kNever,
                                                          MadeSource::kByTwo,
                                                          MadeSource::kRightly),
                                          testing::Values(1, 2, 5)));

TEST(BatchReaderTest, ReadsAheadAsFarAsItMay) {
  auto source = std::make_unique<MadeSource>(500, MadeSource::kNever);
  MadeSource* made = source.get();
  ReaderOptions options = Options(10, 2, true);
  options.depth = 3;
  BatchReader reader(std::move(source), options);
  while (reader.ready() < 5) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(reader.ready(), 5);
  EXPECT_EQ(made->scans_.load(), 5);
  std::vector<int64_t> labels;
  ASSERT_TRUE(Take(&reader, &labels).ok());
  while (reader.ready() < 5) std::this_thread::yield();
  EXPECT_EQ(made->scans_.load(), 6);
}

TEST(BatchReaderTest, BatchesOutliveTheirReader) {
  BatchPool::Owned batch;
  {
    BatchReader reader(std::make_unique<MadeSource>(50, MadeSource::kRightly),
                       Options(10, 2, false));
    BatchReader::Result result = BatchReader::Result::kNotYet;
    while (result == BatchReader::Result::kNotYet) {
      ASSERT_TRUE(reader.Next(1000, &result, &batch).ok());
    }
  }
  EXPECT_EQ(batch->labels.as<float>()[9], 9);
}

TEST(BatchReaderTest, DataWithoutSamples) {
  std::vector<int64_t> labels;
  BatchReader once(std::make_unique<MadeSource>(0, MadeSource::kNever),
                   Options(10, 2, false));
  ASSERT_TRUE(Take(&once, &labels).ok());
  EXPECT_TRUE(labels.empty());
  BatchReader forever(std::make_unique<MadeSource>(0, MadeSource::kNever),
                      Options(10, 2, true));
  EXPECT_EQ(Take(&forever, &labels).message(),
            "the data to repeat has no samples");
}

TEST(BatchReaderTest, MemoryServesAgain) {
  Layout layout;
  layout.label_dim = 3;
  auto pool = std::make_shared<BatchPool>(layout);
  const Batch* first = pool->Take(10, 10).get();
  BatchPool::Owned again = pool->Take(5, 10);
  EXPECT_EQ(again.get(), first);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(again->labels.as<float>()) % 64, 0);
  EXPECT_NE(pool->Take(5, 10).get(), first);
}

}  // namespace
}  // namespace hugectr
