// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/embedding/table_reader.h"

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/engine/testing/storage_under_test.h"
#include "kernels/engine/testing/thread_pool.h"

namespace ev {
namespace {

#define ASSERT_OK(expression)                             \
  do {                                                    \
    const Status ev_status_ = (expression);               \
    ASSERT_TRUE(ev_status_.ok()) << ev_status_.message(); \
  } while (0)

constexpr int64_t kDim = 2;
using Slots = std::vector<SlotSpec>;
using Keys = std::vector<int64_t>;

class TableReaderTest : public ::testing::Test {
 protected:
  TableReaderTest() : table_(Options()) {}

  void SetUp() override {
    ASSERT_OK(table_.Initialize(std::vector<float>{7.0f, 8.0f}, 1));
  }

  static TableOptions Options() {
    TableOptions options;
    options.name = "t";
    options.dim = kDim;
    testing::PutUnderTest(&options);
    options.record_frequency = options.record_version = true;
    return options;
  }

  // Value (key, step) and slot m (-key, -step).
  Status Write(EmbeddingTable* table, const Keys& keys, int64_t step) {
    std::vector<float> values, slot;
    for (const int64_t key : keys) {
      values.push_back(static_cast<float>(key));
      values.push_back(static_cast<float>(step));
      slot.push_back(static_cast<float>(-key));
      slot.push_back(static_cast<float>(-step));
    }
    return table->WriteRows(keys, Slots{{"m", 0.5f}}, values.data(),
                            std::vector<const float*>{slot.data()}, nullptr,
                            step, nullptr);
  }

  template <typename T>
  static TableReader::Visit<T> Into(std::vector<T>* column) {
    return [column](Span<const T> piece) {
      column->insert(column->end(), piece.begin(), piece.end());
      return Status::OK();
    };
  }

  EmbeddingTable table_;
};

TEST_F(TableReaderTest, GivesEveryColumnInTheOrderOfTheKeys) {
  ASSERT_OK(Write(&table_, {5, 1000, -1}, 3));
  ASSERT_OK(Write(&table_, {1000}, 4));
  std::unique_ptr<TableReader> reader;
  ASSERT_OK(
      TableReader::Open(&table_, Slots{{"m", 0.5f}, {"new", 2.0f}}, &reader));
  EXPECT_EQ(reader->num_keys(), 3);
  EXPECT_EQ(reader->default_rows(), (std::vector<float>{7.0f, 8.0f}));
  std::vector<int64_t> keys, versions, frequencies;
  std::vector<float> values, m, made;
  ASSERT_OK(reader->Keys(Into(&keys)));
  ASSERT_OK(reader->Rows(0, Into(&values)));
  ASSERT_OK(reader->Rows(1, Into(&m)));
  ASSERT_OK(reader->Rows(2, Into(&made)));
  ASSERT_OK(reader->Versions(Into(&versions)));
  ASSERT_OK(reader->Frequencies(Into(&frequencies)));
  EXPECT_EQ(keys, (Keys{1000, 5, -1}));
  EXPECT_EQ(values, (std::vector<float>{1000, 4, 5, 3, -1, 3}));
  EXPECT_EQ(m, (std::vector<float>{-1000, -4, -5, -3, 1, -3}));
  EXPECT_EQ(made, (std::vector<float>(6, 2.0f)));
  EXPECT_EQ(versions, (Keys{4, 3, 3}));
  EXPECT_EQ(frequencies, (Keys{2, 1, 1}));
  EXPECT_EQ(reader->partition_begins()[1], 1);
  EXPECT_EQ(reader->partition_begins()[999], 2);
  EXPECT_EQ(reader->partition_begins()[1000], 3);
  EXPECT_EQ(reader->num_filtered(), 0);
}

TEST_F(TableReaderTest, OfAnEmptyTable) {
  std::unique_ptr<TableReader> reader;
  ASSERT_OK(TableReader::Open(table_, {}, &reader));
  int calls = 0;
  ASSERT_OK(reader->Keys([&](Span<const int64_t>) {
    ++calls;
    return Status::OK();
  }));
  EXPECT_EQ(reader->num_keys(), 0);
  EXPECT_EQ(calls, 0);
}

TEST_F(TableReaderTest, ErrorsLeaveTheTableAsItWas) {
  std::unique_ptr<TableReader> reader;
  EXPECT_EQ(
      TableReader::Open(table_, std::vector<std::string>{"m"}, &reader).code(),
      StatusCode::kNotFound);
  EXPECT_EQ(reader, nullptr);
  EmbeddingTable other(Options());
  EXPECT_EQ(TableReader::Open(other, {}, &reader).code(),
            StatusCode::kFailedPrecondition);
  // Neither is frozen.
  ASSERT_OK(Write(&table_, {1}, 1));
  ASSERT_OK(other.Initialize(std::vector<float>(kDim), 1));

  ASSERT_OK(TableReader::Open(table_, {}, &reader));
  EXPECT_EQ(reader
                ->Rows(0,
                       [](Span<const float>) {
                         return InvalidArgument("the disk is full");
                       })
                .message(),
            "the disk is full");
}

TEST_F(TableReaderTest, LookupsGoOnAndUpdatesWait) {
  ASSERT_OK(Write(&table_, {1, 2, 3}, 1));
  std::unique_ptr<TableReader> reader;
  ASSERT_OK(TableReader::Open(table_, std::vector<std::string>{"m"}, &reader));
  std::atomic<int> changes{0};
  std::vector<std::thread> threads;
  threads.emplace_back([&] {
    EXPECT_TRUE(Write(&table_, {1, 9}, 2).ok());
    ++changes;
  });
  threads.emplace_back([&] {
    table_.Erase(Keys{2});
    ++changes;
  });
  threads.emplace_back([&] {
    int64_t evicted;
    EXPECT_TRUE(table_.EvictStale(50, 40, &evicted).ok());
    ++changes;
  });
  // Lookups of other threads pass those who wait, however long that takes.
  for (int time = 0; time < 50; ++time) {
    std::async(std::launch::async, [&] {
      std::vector<float> rows(2 * kDim);
      EXPECT_TRUE(table_.Gather(Keys{1, 2}, rows.data(), nullptr).ok());
      EXPECT_EQ(rows, (std::vector<float>{1, 1, 2, 1}));
    }).get();
  }
  EXPECT_EQ(changes, 0);
  std::vector<int64_t> keys;
  std::vector<float> values, m;
  ASSERT_OK(reader->Keys(Into(&keys)));
  ASSERT_OK(reader->Rows(0, Into(&values)));
  ASSERT_OK(reader->Rows(1, Into(&m)));
  EXPECT_EQ(keys, (Keys{1, 2, 3}));
  EXPECT_EQ(values, (std::vector<float>{1, 1, 2, 1, 3, 1}));
  EXPECT_EQ(m, (std::vector<float>{-1, -1, -2, -1, -3, -1}));
  reader.reset();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(changes, 3);
}

TEST_F(TableReaderTest, TwoReadersAtOnce) {
  ASSERT_OK(Write(&table_, {1, 2, 3}, 1));
  std::unique_ptr<TableReader> one, two;
  ASSERT_OK(TableReader::Open(table_, {}, &one));
  std::thread([&] {
    EXPECT_TRUE(TableReader::Open(table_, {}, &two).ok());
    two.reset();
  }).join();
  std::vector<float> values;
  ASSERT_OK(one->Rows(0, Into(&values)));
  EXPECT_EQ(values.size(), 6u);
}

TEST_F(TableReaderTest, RowsBelongTogetherWhileOthersWrite) {
  std::atomic<bool> stop{false};
  std::vector<std::thread> writers;
  for (int w = 0; w < 2; ++w) {
    writers.emplace_back([&, w] {
      for (int64_t step = 1; !stop; ++step) {
        Keys keys;
        for (int64_t k = 0; k < 200; ++k) keys.push_back(k * 7 + step % 50 + w);
        EXPECT_TRUE(Write(&table_, keys, step % 1000).ok());
      }
    });
  }
  for (int time = 0; time < 50; ++time) {
    std::unique_ptr<TableReader> reader;
    const Status opened =
        TableReader::Open(&table_, Slots{{"m", 0.5f}}, &reader);
    EXPECT_TRUE(opened.ok());
    std::vector<int64_t> keys, versions;
    std::vector<float> values, m;
    EXPECT_TRUE(reader->Keys(Into(&keys)).ok());
    EXPECT_TRUE(reader->Versions(Into(&versions)).ok());
    EXPECT_TRUE(reader->Rows(0, Into(&values)).ok());
    std::this_thread::yield();
    EXPECT_TRUE(reader->Rows(1, Into(&m)).ok());
    EXPECT_EQ(values.size(), keys.size() * kDim);
    for (size_t i = 0; i < keys.size(); ++i) {
      EXPECT_EQ(values[2 * i], keys[i]);
      EXPECT_EQ(values[2 * i + 1], versions[i]);
      EXPECT_EQ(m[2 * i], -values[2 * i]);
      EXPECT_EQ(m[2 * i + 1], -values[2 * i + 1]);
    }
  }
  stop = true;
  for (std::thread& writer : writers) writer.join();
}

TEST(TableReaderFilterTest, KeysThatAreCountedComeInTheSameOrder) {
  TableOptions options;
  options.name = "t";
  options.dim = 1;
  options.record_version = true;
  options.admission.filter = AdmissionOptions::Filter::kCounter;
  options.admission.threshold = 3;
  EmbeddingTable table(options);
  ASSERT_OK(table.Initialize(std::vector<float>{0.0f}, 1));
  std::vector<int32_t> admitted;
  ASSERT_OK(
      table.Admit(Keys{5, 1000, -1, 8}, Keys{1, 2, 1, 3}.data(), 6, &admitted));
  std::unique_ptr<TableReader> reader;
  ASSERT_OK(TableReader::Open(table, {}, &reader));
  EXPECT_EQ(reader->num_keys(), 1);
  EXPECT_EQ(reader->num_filtered(), 3);
  std::vector<int64_t> keys, versions, counts;
  const auto into = [](std::vector<int64_t>* column) {
    return [column](Span<const int64_t> piece) {
      column->insert(column->end(), piece.begin(), piece.end());
      return Status::OK();
    };
  };
  ASSERT_OK(reader->FilteredKeys(into(&keys)));
  ASSERT_OK(reader->FilteredVersions(into(&versions)));
  ASSERT_OK(reader->FilteredFrequencies(into(&counts)));
  EXPECT_EQ(keys, (Keys{1000, 5, -1}));
  EXPECT_EQ(versions, (Keys{6, 6, 6}));
  EXPECT_EQ(counts, (Keys{2, 1, 1}));
  EXPECT_EQ(reader->filtered_partition_begins()[1], 1);
  EXPECT_EQ(reader->filtered_partition_begins()[1000], 3);
}

}  // namespace
}  // namespace ev
