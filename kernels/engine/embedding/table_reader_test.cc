// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/embedding/table_reader.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/engine/embedding/frozen_rows.h"
#include "kernels/engine/embedding/table_tensors.h"
#include "kernels/engine/embedding/update/row_update.h"
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

struct Contents {
  std::vector<int64_t> keys, versions, frequencies;
  std::vector<std::vector<float>> columns;
};

// Compares bit by bit, NaNs included.
bool operator==(const Contents& a, const Contents& b) {
  const auto same = [](const std::vector<float>& x,
                       const std::vector<float>& y) {
    return x.size() == y.size() &&
           std::memcmp(x.data(), y.data(), x.size() * sizeof(float)) == 0;
  };
  return a.keys == b.keys && a.versions == b.versions &&
         a.frequencies == b.frequencies &&
         std::equal(a.columns.begin(), a.columns.end(), b.columns.begin(),
                    b.columns.end(), same);
}

template <typename T>
void Append(Span<const T> piece, std::vector<T>* to) {
  to->insert(to->end(), piece.begin(), piece.end());
}

// Reads all rows. after_piece: called after each piece.
Status ReadAll(
    TableReader* reader, Contents* contents,
    const std::function<void()>& after_piece = [] {}) {
  return reader->Rows([&](const RowPiece& piece) {
    contents->columns.resize(piece.columns.size());
    Append(piece.keys, &contents->keys);
    Append(piece.numbers[kVersion], &contents->versions);
    Append(piece.numbers[kFrequency], &contents->frequencies);
    for (size_t c = 0; c < piece.columns.size(); ++c) {
      EXPECT_EQ(piece.columns[c].size() % piece.keys.size(), 0u);
      Append(piece.columns[c], &contents->columns[c]);
    }
    after_piece();
    return Status::OK();
  });
}

// Runs it on another thread, and waits for that.
void Elsewhere(const std::function<void()>& body) { std::thread(body).join(); }

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

  // Pieces of some rows.
  static TableReader::Limits Short() {
    TableReader::Limits limits;
    limits.piece_bytes = 400;
    return limits;
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

  // A fused update of all columns.
  Status Update(const Keys& keys, int64_t step) {
    const std::vector<float> grads(keys.size() * kDim, 0.5f + step);
    UpdateInput input;
    input.table = &table_;
    input.keys = keys;
    input.grads = grads.data();
    return ApplyRule("Adagrad", std::vector<float>{0.1f},
                     std::vector<UpdateInput>{input},
                     std::vector<Slots>{{{"m", 0.5f}}}, step, nullptr);
  }

  Contents Now() {
    Contents contents;
    std::unique_ptr<TableReader> reader;
    EXPECT_TRUE(TableReader::Open(&table_, Slots{{"m", 0.5f}}, &reader).ok());
    EXPECT_TRUE(ReadAll(reader.get(), &contents).ok());
    return contents;
  }

  static Keys Range(int64_t begin, int64_t end) {
    Keys keys;
    for (int64_t key = begin; key < end; ++key) keys.push_back(key);
    return keys;
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
  ASSERT_EQ(reader->tensors().size(), 1u);  // its values are float32
  const TableTensor& defaults = reader->tensors()[0];
  EXPECT_EQ(defaults.shape, (std::vector<int64_t>{1, 2}));
  const float expected[] = {7.0f, 8.0f};
  ASSERT_EQ(defaults.bytes.size(), sizeof(expected));
  EXPECT_EQ(std::memcmp(defaults.bytes.data(), expected, sizeof(expected)), 0);
  Keys keys;
  for (int time = 0; time < 2; ++time) {
    keys.clear();
    ASSERT_OK(reader->Keys([&](Span<const int64_t> piece) {
      Append(piece, &keys);
      return Status::OK();
    }));
    EXPECT_EQ(keys, (Keys{1000, 5, -1}));
  }
  Contents contents;
  ASSERT_OK(ReadAll(reader.get(), &contents));
  EXPECT_EQ(contents.keys, (Keys{1000, 5, -1}));
  ASSERT_EQ(contents.columns.size(), 3u);
  EXPECT_EQ(contents.columns[0], (std::vector<float>{1000, 4, 5, 3, -1, 3}));
  EXPECT_EQ(contents.columns[1],
            (std::vector<float>{-1000, -4, -5, -3, 1, -3}));
  EXPECT_EQ(contents.columns[2], (std::vector<float>(6, 2.0f)));
  EXPECT_EQ(contents.versions, (Keys{4, 3, 3}));
  EXPECT_EQ(contents.frequencies, (Keys{2, 1, 1}));
  EXPECT_EQ(reader->partition_begins()[1], 1);
  EXPECT_EQ(reader->partition_begins()[999], 2);
  EXPECT_EQ(reader->partition_begins()[1000], 3);
  EXPECT_EQ(reader->num_filtered(), 0);
  EXPECT_EQ(ReadAll(reader.get(), &contents).code(),
            StatusCode::kFailedPrecondition);
}

TEST_F(TableReaderTest, SlotsWithOneNumberPerRowAreReadAsOfOneMoment) {
  const Slots slots = {{"a@row", 0.5f}, {"m", 2.0f}};
  const Keys keys = Range(0, 300);
  ASSERT_OK(table_.EnsureSlots(slots, nullptr));
  const auto update = [&] {
    const std::vector<float> grads(keys.size() * kDim, 3.0f);
    UpdateInput input;
    input.table = &table_;
    input.keys = keys;
    input.grads = grads.data();
    return ApplyRule("RowWiseAdagrad", std::vector<float>{0.1f, 0.0f},
                     std::vector<UpdateInput>{input},
                     std::vector<Slots>{{{"a@row", 0.5f}}}, 1, nullptr);
  };
  ASSERT_OK(update());
  std::unique_ptr<TableReader> reader;
  ASSERT_OK(TableReader::Open(&table_, slots, &reader, Short()));
  Contents contents;
  bool updated = false;
  ASSERT_OK(ReadAll(reader.get(), &contents, [&] {
    if (updated) return;
    updated = true;
    Elsewhere([&] { EXPECT_TRUE(update().ok()); });
  }));
  EXPECT_EQ(contents.columns[1], std::vector<float>(300, 9.5f));
  EXPECT_EQ(contents.columns[2], std::vector<float>(600, 2.0f));
  reader.reset();
  Contents later;
  ASSERT_OK(TableReader::Open(&table_, slots, &reader));
  ASSERT_OK(ReadAll(reader.get(), &later));
  EXPECT_EQ(later.columns[1], std::vector<float>(300, 18.5f));
  EXPECT_NE(later.columns[0], contents.columns[0]);
}

TEST_F(TableReaderTest, ReadsAnEmptyTable) {
  std::unique_ptr<TableReader> reader;
  ASSERT_OK(TableReader::Open(table_, {}, &reader));
  int calls = 0;
  ASSERT_OK(reader->Keys([&](Span<const int64_t>) {
    ++calls;
    return Status::OK();
  }));
  Contents contents;
  ASSERT_OK(ReadAll(reader.get(), &contents, [&] { ++calls; }));
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
  // Neither table is frozen.
  ASSERT_OK(Write(&table_, {1}, 1));
  ASSERT_OK(other.Initialize(std::vector<float>(kDim), 1));

  ASSERT_OK(TableReader::Open(table_, {}, &reader));
  EXPECT_EQ(reader
                ->Rows([](const RowPiece&) {
                  return InvalidArgument("the disk is full");
                })
                .message(),
            "the disk is full");
}

TEST_F(TableReaderTest, LookupsAndUpdatesGoOnAndRemovalsWait) {
  ASSERT_OK(Write(&table_, {1, 2, 3}, 1));
  std::unique_ptr<TableReader> reader;
  ASSERT_OK(TableReader::Open(table_, std::vector<std::string>{"m"}, &reader));
  std::atomic<int> changes{0};
  std::vector<std::thread> threads;
  threads.emplace_back([&] {
    table_.Erase(Keys{2});
    ++changes;
  });
  threads.emplace_back([&] {
    int64_t evicted;
    EXPECT_TRUE(table_.EvictStale(500, 400, &evicted).ok());
    ++changes;
  });
  threads.emplace_back([&] {
    EXPECT_TRUE(table_.EnsureSlots(Slots{{"new", 0.0f}}, nullptr).ok());
    ++changes;
  });
  // Calls of other threads overtake the threads that wait, however long they
  // wait.
  for (int64_t step = 2; step < 50; ++step) {
    Elsewhere([&] {
      EXPECT_TRUE(Write(&table_, {1, 9}, step).ok());
      std::vector<float> rows(2 * kDim);
      EXPECT_TRUE(table_.Gather(Keys{1, 2}, rows.data(), nullptr).ok());
      EXPECT_EQ(rows, (std::vector<float>{1, float(step), 2, 1}));
    });
  }
  EXPECT_EQ(changes, 0);
  Contents contents;
  ASSERT_OK(ReadAll(reader.get(), &contents));
  EXPECT_EQ(contents.keys, (Keys{1, 2, 3}));
  EXPECT_EQ(contents.columns[0], (std::vector<float>{1, 1, 2, 1, 3, 1}));
  EXPECT_EQ(contents.columns[1], (std::vector<float>{-1, -1, -2, -1, -3, -1}));
  EXPECT_EQ(contents.versions, (Keys{1, 1, 1}));
  EXPECT_EQ(contents.frequencies, (Keys{1, 1, 1}));
  EXPECT_EQ(changes, 0);
  reader.reset();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(changes, 3);
}

TEST_F(TableReaderTest, ReadsOneMomentWhileTrainingGoesOn) {
  ASSERT_OK(Write(&table_, Range(-300, 300), 1));
  ASSERT_OK(Update(Range(-50, 200), 2));
  const Contents expected = Now();
  std::unique_ptr<TableReader> reader;
  ASSERT_OK(TableReader::Open(&table_, Slots{{"m", 0.5f}}, &reader, Short()));
  Contents contents;
  int64_t step = 2;
  std::mt19937_64 random(7);
  const auto train = [&] {
    // Existing rows, read and unread, and new ones.
    Keys keys;
    for (int i = 0; i < 30; ++i) {
      keys.push_back(static_cast<int64_t>(random() % 900) - 450);
    }
    keys.push_back(10000 + step);
    std::sort(keys.begin(), keys.end());
    keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
    ++step;
    Elsewhere([&] {
      EXPECT_TRUE(
          (step % 2 == 0 ? Write(&table_, keys, step) : Update(keys, step))
              .ok());
    });
  };
  train();
  ASSERT_OK(ReadAll(reader.get(), &contents, train));
  EXPECT_GT(step, 20);
  EXPECT_TRUE(contents == expected);
  reader.reset();
  // Nothing was lost.
  EXPECT_GT(table_.size(), 600 + step - 5);
  EXPECT_FALSE(Now() == expected);
}

TEST_F(TableReaderTest, TrainsToTheSameRowsAsWithoutAReader) {
  const auto train = [&](int64_t step) {
    Elsewhere([&] {
      EXPECT_TRUE(
          Update(Range(step * 13 % 100, step * 13 % 100 + 90), step).ok());
    });
  };
  int64_t step = 1;
  ASSERT_OK(Write(&table_, Range(0, 150), step));
  std::unique_ptr<TableReader> reader;
  ASSERT_OK(TableReader::Open(&table_, Slots{{"m", 0.5f}}, &reader, Short()));
  Contents contents;
  ASSERT_OK(ReadAll(reader.get(), &contents, [&] { train(++step); }));
  reader.reset();
  const Contents with = Now();
  const int64_t last = step;
  ASSERT_OK(table_.Initialize(std::vector<float>{7.0f, 8.0f}, 1));
  ASSERT_OK(Write(&table_, Range(0, 150), 1));
  for (step = 2; step <= last; ++step) train(step);
  EXPECT_TRUE(Now() == with);
}

TEST_F(TableReaderTest, UpdatesWaitWhenTooManyRowsAreKeptAside) {
  ASSERT_OK(Write(&table_, Range(0, 500), 1));
  const Contents expected = Now();
  TableReader::Limits limits = Short();
  limits.kept_bytes = 10 * 72;  // some rows
  std::unique_ptr<TableReader> reader;
  ASSERT_OK(TableReader::Open(&table_, Slots{{"m", 0.5f}}, &reader, limits));
  std::atomic<int> done{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      EXPECT_TRUE((t == 0 ? Write(&table_, Range(0, 600), 2)
                          : Update(Range(200, 700), 2))
                      .ok());
      ++done;
    });
  }
  const FrozenRows& rows = *table_.impl()->frozen_rows[0];
  const auto wait = [&] {
    while (rows.waiting() == 0) std::this_thread::yield();
  };
  wait();
  // Lookups go on.
  Elsewhere([&] {
    std::vector<float> row(kDim);
    EXPECT_TRUE(table_.Gather(Keys{499}, row.data(), nullptr).ok());
    EXPECT_EQ(row, (std::vector<float>{499, 1}));
  });
  Contents contents;
  size_t pieces = 0;
  ASSERT_OK(ReadAll(reader.get(), &contents, [&] {
    // Neither finishes before nearly all rows have been read.
    if (contents.keys.size() < 450) {
      EXPECT_EQ(done, 0);
      wait();
    }
    ++pieces;
  }));
  EXPECT_GT(pieces, 10u);
  EXPECT_TRUE(contents == expected);
  // All rows have been read, so nothing has to wait.
  for (std::thread& thread : threads) thread.join();
  reader.reset();
  EXPECT_EQ(table_.size(), 700);
  EXPECT_EQ(Now().versions, Keys(700, 2));
}

TEST_F(TableReaderTest, UpdatesThatWaitGoOnWhenTheReaderIsGone) {
  ASSERT_OK(Write(&table_, Range(0, 100), 1));
  TableReader::Limits limits = Short();
  limits.kept_bytes = 0;
  std::unique_ptr<TableReader> reader;
  ASSERT_OK(TableReader::Open(&table_, Slots{{"m", 0.5f}}, &reader, limits));
  std::thread update(
      [&] { EXPECT_TRUE(Write(&table_, Range(0, 100), 2).ok()); });
  while (table_.impl()->frozen_rows[0]->waiting() == 0) {
    std::this_thread::yield();
  }
  EXPECT_EQ(reader
                ->Rows([](const RowPiece&) {
                  return InvalidArgument("the disk is full");
                })
                .message(),
            "the disk is full");
  reader.reset();
  update.join();
  EXPECT_EQ(Now().versions, Keys(100, 2));
}

TEST_F(TableReaderTest, TwoReadersHaveTheirOwnMoments) {
  ASSERT_OK(Write(&table_, {1, 2, 3}, 1));
  std::unique_ptr<TableReader> one, two;
  Contents first, second;
  ASSERT_OK(TableReader::Open(table_, std::vector<std::string>{"m"}, &one));
  Elsewhere([&] {
    EXPECT_TRUE(Write(&table_, {1, 4}, 2).ok());
    EXPECT_TRUE(
        TableReader::Open(table_, std::vector<std::string>{"m"}, &two).ok());
  });
  Elsewhere([&] { EXPECT_TRUE(Write(&table_, {1, 2, 4, 5}, 3).ok()); });
  Elsewhere([&] {
    EXPECT_TRUE(ReadAll(two.get(), &second).ok());
    two.reset();
  });
  Elsewhere([&] { EXPECT_TRUE(Write(&table_, {3}, 4).ok()); });
  ASSERT_OK(ReadAll(one.get(), &first));
  EXPECT_EQ(first.keys, (Keys{1, 2, 3}));
  EXPECT_EQ(first.versions, (Keys{1, 1, 1}));
  EXPECT_EQ(second.keys, (Keys{1, 2, 3, 4}));
  EXPECT_EQ(second.versions, (Keys{2, 1, 1, 2}));
  EXPECT_EQ(second.columns[1],
            (std::vector<float>{-1, -2, -2, -1, -3, -1, -4, -2}));
}

TEST_F(TableReaderTest, ATableOfTooManyRowsStaysFrozen) {
  ASSERT_OK(Write(&table_, {1, 2, 3}, 1));
  TableReader::Limits limits;
  limits.most_rows = 2;
  std::unique_ptr<TableReader> reader;
  ASSERT_OK(TableReader::Open(table_, std::vector<std::string>{"m"}, &reader,
                              limits));
  std::atomic<bool> done{false};
  std::thread update([&] {
    EXPECT_TRUE(Write(&table_, {1, 9}, 2).ok());
    done = true;
  });
  Contents contents;
  ASSERT_OK(ReadAll(reader.get(), &contents,
                    [&] { EXPECT_TRUE(table_.impl()->frozen_rows.empty()); }));
  EXPECT_EQ(contents.versions, (Keys{1, 1, 1}));
  EXPECT_EQ(contents.columns[1], (std::vector<float>{-1, -1, -2, -1, -3, -1}));
  EXPECT_FALSE(done);
  reader.reset();
  update.join();
}

TEST_F(TableReaderTest, ADeltaHasWhatChangedWhileTheTableWasRead) {
  ASSERT_OK(Write(&table_, Range(0, 100), 1));
  int64_t cut;
  ASSERT_OK(table_.CutChanges(&cut));
  std::unique_ptr<TableReader> reader;
  ASSERT_OK(TableReader::Open(&table_, Slots{{"m", 0.5f}}, &reader, Short()));
  Contents contents;
  Keys touched;
  ASSERT_OK(ReadAll(reader.get(), &contents, [&] {
    // A row that has been read, one that has not, and a new one.
    const int64_t n = contents.keys.size();
    const Keys keys = {n - 1, 101 + n};
    touched.insert(touched.end(), keys.begin(), keys.end());
    Elsewhere([&] { EXPECT_TRUE(Write(&table_, keys, 2).ok()); });
    if (n >= 90) return;
    touched.push_back(n + 8);
    Elsewhere([&] { EXPECT_TRUE(Update({n + 8}, 2).ok()); });
  }));
  reader.reset();
  EXPECT_EQ(contents.versions, Keys(100, 1));
  TableDelta delta;
  ASSERT_OK(table_.ExportChanges(cut, std::vector<std::string>{"m"}, &delta));
  std::sort(touched.begin(), touched.end());
  touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
  EXPECT_EQ(delta.changed.keys, touched);
  EXPECT_EQ(delta.changed.versions, Keys(touched.size(), 2));
  EXPECT_FALSE(delta.replaces);
}

TEST_F(TableReaderTest, ATableThatIsFullEvictsWhenTheReaderIsGone) {
  TableOptions options = Options();
  options.capacity.max_rows = 100;
  testing::PutUnderTest(&options);
  EmbeddingTable table(options);
  ASSERT_OK(table.Initialize(std::vector<float>{7.0f, 8.0f}, 1));
  ASSERT_OK(Write(&table, Range(0, 100), 1));
  std::unique_ptr<TableReader> reader;
  ASSERT_OK(TableReader::Open(&table, Slots{{"m", 0.5f}}, &reader, Short()));
  std::thread update(
      [&] { EXPECT_TRUE(Write(&table, Range(90, 120), 2).ok()); });
  while (table.size() < 120) std::this_thread::yield();
  // Updates without new keys go on.
  Elsewhere([&] {
    std::vector<float> row(kDim);
    EXPECT_TRUE(table.Gather(Keys{0}, row.data(), nullptr).ok());
    EXPECT_EQ(row, (std::vector<float>{0, 1}));
  });
  Contents contents;
  ASSERT_OK(ReadAll(reader.get(), &contents));
  EXPECT_EQ(contents.keys, Range(0, 100));
  EXPECT_EQ(contents.versions, Keys(100, 1));
  EXPECT_EQ(table.size(), 120);
  reader.reset();
  update.join();
  EXPECT_EQ(table.size(), 100);
}

TEST_F(TableReaderTest, RowsBelongTogetherWhileOthersWrite) {
  ASSERT_OK(Write(&table_, {0}, 1));
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
    TableReader::Limits limits = Short();
    limits.kept_bytes = time % 2 == 0 ? 20000 : 1 << 20;
    std::unique_ptr<TableReader> reader;
    const Status opened =
        TableReader::Open(&table_, Slots{{"m", 0.5f}}, &reader, limits);
    EXPECT_TRUE(opened.ok());
    Contents contents;
    EXPECT_TRUE(ReadAll(reader.get(), &contents).ok());
    const std::vector<float>& values = contents.columns[0];
    const std::vector<float>& m = contents.columns[1];
    for (size_t i = 0; i < contents.keys.size(); ++i) {
      EXPECT_EQ(values[2 * i], contents.keys[i]);
      EXPECT_EQ(values[2 * i + 1], contents.versions[i]);
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
  // The update waits while the filter is read, and goes on while the rows are
  // read.
  std::atomic<bool> done{false};
  std::thread update([&] {
    std::vector<int32_t> others;
    EXPECT_TRUE(
        table.Admit(Keys{5, 9, -1}, Keys{9, 1, 1}.data(), 7, &others).ok());
    done = true;
  });
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
  ASSERT_OK(reader->FilteredNumbers(kVersion, into(&versions)));
  ASSERT_OK(reader->FilteredNumbers(kFrequency, into(&counts)));
  EXPECT_EQ(keys, (Keys{1000, 5, -1}));
  EXPECT_EQ(versions, (Keys{6, 6, 6}));
  EXPECT_EQ(counts, (Keys{2, 1, 1}));
  EXPECT_EQ(reader->filtered_partition_begins()[1], 1);
  EXPECT_EQ(reader->filtered_partition_begins()[1000], 3);
  EXPECT_FALSE(done);
  Contents contents;
  ASSERT_OK(ReadAll(reader.get(), &contents, [&] { update.join(); }));
  EXPECT_TRUE(done);
  EXPECT_EQ(contents.keys, (Keys{8}));
  EXPECT_EQ(reader->FilteredKeys(into(&keys)).code(),
            StatusCode::kFailedPrecondition);
  reader.reset();
  EXPECT_EQ(table.size(), 2);
}

}  // namespace
}  // namespace ev
