// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/storage/ssd/tiered_rows.h"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace ev {
namespace {

constexpr int64_t kDim = 4;

std::atomic<bool> disk_full{false};
bool HasSpace(int64_t) { return !disk_full; }

struct Variant {
  CacheStrategy strategy;
  bool direct, in_thread;
};

class TieredRowsTest : public ::testing::TestWithParam<Variant> {
 protected:
  using Row = std::vector<float>;

  void SetUp() override {
    disk_full = false;
    RowFile::SetSpaceHookForTesting(&HasSpace);
    for (int64_t i = 0; i < 8 * kDim; ++i) defaults_.push_back(0.5f * i);
    const Status made = Make(64 * (kDim * sizeof(float) + 20));
    if (!made.ok() && GetParam().direct) GTEST_SKIP() << made.message();
    ASSERT_TRUE(made.ok()) << made.message();
  }
  void TearDown() override { RowFile::SetSpaceHookForTesting(nullptr); }

  Status Make(int64_t memory_bytes) {
    const std::string path =
        ::testing::TempDir() + "/tiered-" + std::to_string(getpid());
    TieredRowsOptions options;
    EV_RETURN_IF_ERROR(RowDirectory::Open(path, "v", &options.directory));
    options.dim = kDim;
    options.default_rows = defaults_;
    options.memory_bytes = memory_bytes;
    options.strategy = GetParam().strategy;
    options.direct = GetParam().direct;
    options.compacts_in_thread = GetParam().in_thread;
    return TieredRows::Create(options, &rows_);
  }

  // Calls use(i, row) for each of the handles.
  template <typename Body>
  Status With(const std::vector<RowHandle>& handles, bool writes,
              const Body& use) {
    std::vector<float*> rows(handles.size());
    std::vector<TieredRows::CacheSlot> cache_slots(handles.size());
    TieredRows::Holding holding;
    for (size_t done = 0; done < handles.size();) {
      size_t held = 0;
      EV_RETURN_IF_ERROR(rows_->Hold(
          Span<const RowHandle>(handles.data() + done, handles.size() - done),
          false, rows.data(), cache_slots.data(), &held, &holding));
      EXPECT_GT(held, 0);
      if (writes) {
        rows_->Wrote(
            Span<const TieredRows::CacheSlot>(cache_slots.data(), held));
      }
      for (size_t i = 0; i < held; ++i) use(done + i, rows[i]);
      holding.Release();
      done += held;
    }
    rows_->Compact();
    return Status::OK();
  }
  Row FreshRow(int64_t default_row, const std::vector<float>& initial) {
    Row row(defaults_.begin() + default_row * kDim,
            defaults_.begin() + (default_row + 1) * kDim);
    for (const float value : initial) row.insert(row.end(), kDim, value);
    return row;
  }

  std::vector<float> defaults_;
  std::unique_ptr<TieredRows> rows_;
};

INSTANTIATE_TEST_SUITE_P(
    All, TieredRowsTest,
    ::testing::Values(Variant{CacheStrategy::kLfu, false, true},
                      Variant{CacheStrategy::kLru, false, false},
                      Variant{CacheStrategy::kLfu, true, false},
                      Variant{CacheStrategy::kFifo, false, false}));

TEST_P(TieredRowsTest, RandomOperationsAgainstAModel) {
  std::mt19937_64 random(5);
  std::map<RowHandle, Row> model;
  std::vector<float> initial;
  for (int step = 0; step < 4000; ++step) {
    std::vector<RowHandle> handles;
    std::vector<RowHandle> known;
    const size_t n = random() % 150;
    for (size_t i = 0; i < n; ++i) {
      const RowHandle h = static_cast<RowHandle>(random() % 3000);
      (model.count(h) != 0 ? known : handles).push_back(h);
    }
    switch (random() % 8) {
      case 0:
      case 1:
        for (const RowHandle h : handles) {
          if (model.count(h) != 0) continue;
          const int64_t source = random() % 8;
          ASSERT_TRUE(rows_->NewRow(h, source).ok());
          model[h] = FreshRow(source, initial);
        }
        break;
      case 2: {
        if (random() % 4 != 0) break;
        std::sort(known.begin(), known.end());
        known.erase(std::unique(known.begin(), known.end()), known.end());
        rows_->Forget(known);
        for (const RowHandle h : known) model.erase(h);
        break;
      }
      case 3:
        if (random() % 200 == 0 && initial.size() < 3) {
          initial.push_back(0.25f * initial.size());
          if (initial.size() == 2) initial[0] = 9.0f;
          ASSERT_TRUE(rows_->SetSlots(FullSlots(kDim, initial)).ok());
          for (auto& entry : model) {
            entry.second.insert(entry.second.end(), kDim, initial.back());
          }
        }
        if (random() % 100 == 0) {
          ASSERT_TRUE(rows_->Flush().ok());
        }
        break;
      case 4: {
        std::vector<float> values(known.size() * kDim, -1.0f);
        const int64_t column = random() % (1 + initial.size());
        ASSERT_TRUE(
            rows_->Copy(known, column * kDim, kDim, values.data()).ok());
        for (size_t i = 0; i < known.size(); ++i) {
          for (int64_t c = 0; c < kDim; ++c) {
            ASSERT_EQ(values[i * kDim + c], model[known[i]][column * kDim + c]);
          }
        }
        break;
      }
      default: {
        if (known.size() > 2) known[1] = kNoRow;
        const bool writes = random() % 2 == 0;
        ASSERT_TRUE(With(known, writes, [&](size_t i, float* row) {
                      if (known[i] == kNoRow) {
                        ASSERT_EQ(row, nullptr);
                        return;
                      }
                      Row& expected = model[known[i]];
                      ASSERT_EQ(Row(row, row + expected.size()), expected)
                          << "step " << step;
                      if (!writes) return;
                      const size_t c = random() % expected.size();
                      expected[c] = row[c] = random() % 1000;
                    }).ok());
      }
    }
    if (HasFatalFailure()) return;
    if (step == 3000) {
      rows_->Clear();
      model.clear();
    }
  }
  const TieredRowsStats stats = rows_->stats();
  EXPECT_GT(stats.misses, 1000);
  EXPECT_GT(stats.evicted_rows, 1000);
  EXPECT_LE(stats.memory_rows, rows_->capacity());
}

TEST_P(TieredRowsTest, RowsThatAreNotMadeTakeNothing) {
  for (RowHandle h = 0; h < 10000; ++h) {
    ASSERT_TRUE(rows_->NewRow(h, h % 8).ok());
  }
  EXPECT_EQ(rows_->stats().memory_rows, 0);
  EXPECT_EQ(rows_->stats().file_rows, 0);
  EXPECT_FALSE(rows_->IsStored(7));
}

TEST_P(TieredRowsTest, AHandleWithoutARowIsAnError) {
  for (RowHandle h = 0; h < 5; ++h) ASSERT_TRUE(rows_->NewRow(h, 0).ok());
  const std::vector<RowHandle> handles = {0, 1, 7, 2};
  Status status = With(handles, true, [](size_t, float*) {});
  EXPECT_EQ(status.code(), StatusCode::kInternal);
  EXPECT_EQ(status.message(), "handle 7 has no row");
  std::vector<float> values(handles.size());
  status = rows_->Copy(handles, 0, 1, values.data());
  EXPECT_EQ(status.code(), StatusCode::kInternal);
  EXPECT_EQ(status.message(), "handle 7 has no row");
  // No row is held any more: all of them may go to the file.
  ASSERT_TRUE(rows_->Flush().ok());
  EXPECT_EQ(rows_->stats().memory_rows, 0);
  // The forgotten row was in the file, the next one in memory.
  rows_->Forget(std::vector<RowHandle>{1});
  ASSERT_TRUE(With({2, 3}, true, [](size_t, float*) {}).ok());
  rows_->Forget(std::vector<RowHandle>{2});
  for (const RowHandle gone : {1, 2}) {
    EXPECT_EQ(With({gone}, true, [](size_t, float*) {}).message(),
              "handle " + std::to_string(gone) + " has no row");
  }
}

TEST_P(TieredRowsTest, TheFileStaysWithinBounds) {
  const int64_t count = 20000;
  std::vector<RowHandle> handles;
  for (RowHandle h = 0; h < count; ++h) {
    ASSERT_TRUE(rows_->NewRow(h, 0).ok());
    handles.push_back(h);
  }
  std::mt19937_64 random(1);
  for (int round = 0; round < 30; ++round) {
    std::shuffle(handles.begin(), handles.end(), random);
    const size_t some = round == 0 ? count : 4000;
    ASSERT_TRUE(With({handles.begin(), handles.begin() + some}, true,
                     [&](size_t i, float* row) {
                       row[1] = handles[i];
                       row[0] += 1.0f;
                     })
                    .ok());
  }
  ASSERT_TRUE(rows_->Flush().ok());
  // The thread may lag behind.
  for (int tries = 0; tries < 500; ++tries) {
    rows_->Compact();
    const TieredRowsStats stats = rows_->stats();
    // A row that is being moved counts twice.
    if (stats.file_bytes < 3 * count * 40 && stats.file_rows == count) break;
    usleep(10000);
  }
  const TieredRowsStats stats = rows_->stats();
  EXPECT_GT(stats.compacted_rows, 0);
  EXPECT_EQ(stats.file_rows, count);
  EXPECT_LT(stats.file_bytes, 3 * count * 40);
  ASSERT_TRUE(With(handles, false, [&](size_t i, float* row) {
                ASSERT_EQ(row[1], handles[i]);
              }).ok());
}

TEST_P(TieredRowsTest, FifoEvictsRowsInTheirOrder) {
  if (GetParam().strategy != CacheStrategy::kFifo) {
    GTEST_SKIP() << "the variant's strategy is another";
  }
  const int64_t size = rows_->capacity(), half = size / 2;
  const auto use = [&](int64_t begin, int64_t end) {
    const int64_t before = rows_->stats().misses;
    for (int64_t h = begin; h < end; ++h) {
      EXPECT_TRUE(
          With({static_cast<RowHandle>(h)}, true, [](size_t, float*) {}).ok());
    }
    return rows_->stats().misses - before;
  };
  for (RowHandle h = 0; h < 4 * size; ++h) {
    ASSERT_TRUE(rows_->NewRow(h, 0).ok());
  }
  // The rows now in memory came last; the older half of them is used often.
  use(0, 3 * size);
  for (int i = 0; i < 5; ++i)
    EXPECT_LE(use(2 * size, 2 * size + half), half / 8);
  // The same number of other rows arrives, and that half leaves nevertheless.
  use(3 * size, 3 * size + half);
  EXPECT_LE(use(2 * size + half, 3 * size), half / 8);
  EXPECT_GE(use(2 * size, 2 * size + half), half - half / 8);
}

TEST_P(TieredRowsTest, RowsThatAreUsedOftenStay) {
  if (GetParam().strategy == CacheStrategy::kFifo) {
    GTEST_SKIP() << "with FIFO a use keeps no row (FifoEvictsRowsInTheirOrder)";
  }
  ASSERT_TRUE(Make(500 * 32).ok());
  const int64_t hot = rows_->capacity() / 4, count = 20000;
  for (RowHandle h = 0; h < count; ++h) ASSERT_TRUE(rows_->NewRow(h, 0).ok());
  std::mt19937_64 random(3);
  const auto step = [&] {
    std::vector<RowHandle> handles;
    for (int i = 0; i < 40; ++i) {
      handles.push_back(static_cast<RowHandle>(random() % hot));
      handles.push_back(static_cast<RowHandle>(random() % count));
    }
    ASSERT_TRUE(With(handles, true, [](size_t, float*) {}).ok());
  };
  for (int i = 0; i < 300; ++i) step();
  int64_t in_memory = 0;
  for (RowHandle h = 0; h < hot; ++h) in_memory += !rows_->IsStored(h);
  EXPECT_GE(in_memory, hot * 9 / 10);
  const TieredRowsStats before = rows_->stats();
  for (int i = 0; i < 300; ++i) step();
  const TieredRowsStats after = rows_->stats();
  const double missed =
      double(after.misses - before.misses) /
      (after.hits + after.misses - before.hits - before.misses);
  EXPECT_LT(missed, 0.55);  // the cold half, and a little more
}

// A range of handles of which only the last rows are in memory, filling it. The
// first rows must be able to take their cache slots.
TEST_P(TieredRowsTest, RowsThatCameFirstNeedNotWaitForThoseBehind) {
  const RowHandle capacity = static_cast<RowHandle>(rows_->capacity());
  std::vector<RowHandle> handles;
  for (RowHandle h = 0; h < 2 * capacity; ++h) {
    ASSERT_TRUE(rows_->NewRow(h, 0).ok());
    handles.push_back(h);
  }
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(With(handles, true, [&](size_t i, float* row) {
                  ASSERT_EQ(row[0], round == 0 ? defaults_[0] : handles[i]);
                  row[0] = handles[i];
                }).ok());
  }
}

TEST_P(TieredRowsTest, KeptRowsStayAndLeaveRoomForOthers) {
  const size_t half = rows_->capacity() / 2;
  std::vector<RowHandle> handles;
  for (RowHandle h = 0; h < 1000; ++h) {
    ASSERT_TRUE(rows_->NewRow(h, 0).ok());
    handles.push_back(h);
  }
  ASSERT_TRUE(
      With(handles, true, [](size_t i, float* row) { row[0] = i; }).ok());
  std::vector<RowHandle> some(handles.begin() + 100,
                              handles.begin() + 100 + half);
  some[3] = kNoRow;
  const float nothing = 0;
  std::vector<const float*> rows(half, &nothing);
  TieredRows::Holding kept, more;
  bool all = false;
  ASSERT_TRUE(rows_->Keep(some, rows.data(), &all, &kept).ok());
  ASSERT_TRUE(all);
  EXPECT_EQ(rows[3], &nothing);
  // One more exceeds the limit, and other calls go on.
  const float* row = nullptr;
  ASSERT_TRUE(rows_->Keep({&handles[0], 1}, &row, &all, &more).ok());
  EXPECT_FALSE(all);
  EXPECT_EQ(row, nullptr);
  ASSERT_TRUE(With(handles, true, [](size_t i, float* written) {
                ASSERT_EQ(written[0], i);
                written[0] = i + 0.5f;
              }).ok());
  for (size_t i = 0; i < half; ++i) {
    if (i == 3) continue;
    EXPECT_EQ(rows[i][0], some[i] + 0.5f);
    EXPECT_FALSE(rows_->IsStored(some[i]));
  }
  kept.Release();
  ASSERT_TRUE(rows_->Keep({&handles[0], 1}, &row, &all, &more).ok());
  EXPECT_TRUE(all);
  EXPECT_EQ(row[0], 0.5f);
  more.Release();
  // A failed read keeps nothing.
  ASSERT_TRUE(rows_->Flush().ok());
  ASSERT_EQ(truncate(rows_->file_name().c_str(), 8192), 0);
  EXPECT_EQ(rows_->Keep(some, rows.data(), &all, &kept).code(),
            StatusCode::kDataLoss);
  ASSERT_TRUE(rows_->Keep({&handles[0], 1}, &row, &all, &more).ok() || !all);
  rows_->Clear();
}

TEST_P(TieredRowsTest, ADiskThatIsFullLosesNothing) {
  std::vector<RowHandle> handles;
  for (RowHandle h = 0; h < 5000; ++h) {
    ASSERT_TRUE(rows_->NewRow(h, 0).ok());
    handles.push_back(h);
  }
  std::vector<float> expected(5000, 0.0f);
  const auto add = [&] {
    return With(handles, true, [&](size_t i, float* row) {
      expected[i] += i;
      row[0] += i;
    });
  };
  ASSERT_TRUE(add().ok());
  disk_full = true;
  Status status;
  for (int round = 0; round < 50 && status.ok(); ++round) status = add();
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_NE(status.message().find(rows_->file_name()), std::string::npos);
  // Rows in memory can be used, and rows in the file can be read.
  std::vector<float> values(5000);
  ASSERT_TRUE(rows_->Copy(handles, 0, 1, values.data()).ok());
  EXPECT_EQ(values, expected);
  EXPECT_EQ(rows_->Reserve(1000000).code(), StatusCode::kResourceExhausted);
  disk_full = false;
  ASSERT_TRUE(rows_->Reserve(1000).ok());
  rows_->Unreserve(1000);
  ASSERT_TRUE(add().ok());
  ASSERT_TRUE(rows_->Copy(handles, 0, 1, values.data()).ok());
  EXPECT_EQ(values, expected);
}

TEST_P(TieredRowsTest, CompactionLeavesReservedRoomAlone) {
  if (GetParam().in_thread) {
    GTEST_SKIP() << "the variant compacts in a thread";
  }
  std::vector<float> expected(5000, 0.0f);
  const auto add = [&](RowHandle h) {
    float* row = nullptr;
    TieredRows::CacheSlot cache_slot = TieredRows::kNoCacheSlot;
    size_t held = 0;
    TieredRows::Holding holding;
    EV_RETURN_IF_ERROR(
        rows_->Hold({&h, 1}, false, &row, &cache_slot, &held, &holding));
    rows_->Wrote({&cache_slot, 1});
    row[0] += h;
    expected[h] += h;
    return Status::OK();
  };
  // Dead records in all segments, without a call of Compact.
  std::mt19937_64 random(1);
  std::vector<RowHandle> handles;
  for (RowHandle h = 0; h < 5000; ++h) {
    ASSERT_TRUE(rows_->NewRow(h, 0).ok());
    handles.push_back(h);
    ASSERT_TRUE(add(h).ok());
  }
  for (int i = 0; i < 20000; ++i) ASSERT_TRUE(add(random() % 5000).ok());
  // All room of the file is reserved, and the disk is full.
  ASSERT_TRUE(rows_->Reserve(1000).ok());
  disk_full = true;
  Status status;
  while (status.ok()) status = add(random() % 5000);
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  rows_->Compact();
  EXPECT_EQ(rows_->stats().compacted_rows, 0);
  rows_->Unreserve(1000);
  rows_->Compact();
  EXPECT_GT(rows_->stats().compacted_rows, 0);
  std::vector<float> values(5000);
  ASSERT_TRUE(rows_->Copy(handles, 0, 1, values.data()).ok());
  EXPECT_EQ(values, expected);
}

TEST_P(TieredRowsTest, ADamagedRecordIsNeverARow) {
  std::vector<RowHandle> handles;
  for (RowHandle h = 0; h < 2000; ++h) {
    ASSERT_TRUE(rows_->NewRow(h, 1).ok());
    handles.push_back(h);
  }
  ASSERT_TRUE(
      With(handles, true, [](size_t i, float* row) { row[0] = i; }).ok());
  ASSERT_TRUE(rows_->Flush().ok());
  const int fd = open(rows_->file_name().c_str(), O_RDWR);
  std::vector<char> zeros(4096, 'x');
  ASSERT_EQ(pwrite(fd, zeros.data(), 4096, 3 * 4096), 4096);
  close(fd);
  int64_t damaged = 0;
  for (const RowHandle h : handles) {
    const Status status =
        With({h}, false, [&](size_t, float* row) { ASSERT_EQ(row[0], h); });
    if (status.ok()) continue;
    ++damaged;
    EXPECT_EQ(status.code(), StatusCode::kDataLoss);
    EXPECT_NE(status.message().find(rows_->file_name()), std::string::npos);
  }
  EXPECT_GT(damaged, 50);
  EXPECT_LT(damaged, 150);
  // Also an error when all are read at once; the others are intact.
  EXPECT_EQ(With(handles, false, [](size_t, float*) {}).code(),
            StatusCode::kDataLoss);
  EXPECT_TRUE(With({1999}, true, [](size_t, float*) {}).ok());
}

TEST_P(TieredRowsTest, ManyThreads) {
  ASSERT_TRUE(Make(300 * 32).ok());
  constexpr int kThreads = 4;
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  constexpr int kSteps = 150;
#else
  constexpr int kSteps = 1500;
#endif
  const RowHandle count = 4000;
  for (RowHandle h = 0; h < count; ++h) ASSERT_TRUE(rows_->NewRow(h, 0).ok());
  std::atomic<bool> failed{false};
  std::vector<std::vector<int>> added(kThreads, std::vector<int>(count, 0));
  const auto work = [&](int t) {
    std::mt19937_64 random(t);
    for (int s = 0; s < kSteps && !failed; ++s) {
      std::vector<RowHandle> mine, any;
      for (int i = 0; i < 100; ++i) {
        const RowHandle h = static_cast<RowHandle>(random() % count);
        any.push_back(h);
        if (static_cast<int>(h % kThreads) == t) mine.push_back(h);
      }
      // Each thread writes its own rows and reads the rows of all.
      const Status wrote = With(mine, true, [&](size_t i, float* row) {
        float value;
        __atomic_load(&row[2], &value, __ATOMIC_RELAXED);
        value += 1.0f;
        __atomic_store(&row[2], &value, __ATOMIC_RELAXED);
        __atomic_store(&row[3], &value, __ATOMIC_RELAXED);
        ++added[t][mine[i]];
      });
      const Status read = With(any, false, [&](size_t i, float* row) {
        float value;
        __atomic_load(&row[0], &value, __ATOMIC_RELAXED);
        if (value != 0.0f) failed = true;
      });
      if (!wrote.ok() || !read.ok()) failed = true;
    }
  };
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) threads.emplace_back(work, t);
  for (std::thread& thread : threads) thread.join();
  ASSERT_FALSE(failed);
  std::vector<RowHandle> all;
  for (RowHandle h = 0; h < count; ++h) all.push_back(h);
  ASSERT_TRUE(With(all, false, [&](size_t i, float* row) {
                ASSERT_EQ(row[2], defaults_[2] + added[i % kThreads][i]);
                if (added[i % kThreads][i] > 0) {
                  ASSERT_EQ(row[3], row[2]);
                }
              }).ok());
  EXPECT_GT(rows_->stats().misses, 1000);
}

// The floats of each row encode its handle. Some threads hold rows and others
// keep rows, while all other rows are evicted and loaded. Every row must stay
// in its place until it is released.
TEST_P(TieredRowsTest, HeldRowsStayWhereTheyAre) {
  ASSERT_TRUE(Make(200 * 36).ok());
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  constexpr int kSteps = 100;
#else
  constexpr int kSteps = 1500;
#endif
  constexpr RowHandle kRows = 1000;
  std::vector<RowHandle> all;
  for (RowHandle h = 0; h < kRows; ++h) {
    ASSERT_TRUE(rows_->NewRow(h, 0).ok());
    all.push_back(h);
  }
  ASSERT_TRUE(With(all, true, [](size_t h, float* row) { row[0] = h; }).ok());
  std::atomic<int> wrong{0}, refused{0}, kept{0};
  const auto handles = [](std::mt19937_64* random, size_t count) {
    std::vector<RowHandle> some;
    // All threads use some of the rows all the time.
    for (size_t i = 0; i < count; ++i) {
      const RowHandle range = i % 4 == 0 ? 20 : kRows;
      some.push_back(static_cast<RowHandle>((*random)() % range));
    }
    return some;
  };
  const auto hold = [&](int t) {
    std::mt19937_64 random(t);
    for (int s = 0; s < kSteps; ++s) {
      const std::vector<RowHandle> some = handles(&random, 30);
      const Status status = With(some, t % 2 == 0, [&](size_t i, float* row) {
        if (row[0] != some[i]) ++wrong;
        if (i % 8 == 0) sched_yield();
        if (row[0] != some[i]) ++wrong;
      });
      if (!status.ok()) ++wrong;
    }
  };
  const auto keep = [&](int t) {
    std::mt19937_64 random(t);
    for (int s = 0; s < kSteps; ++s) {
      const std::vector<RowHandle> some = handles(&random, 25);
      std::vector<const float*> rows(some.size());
      std::vector<float> copies(some.size());
      TieredRows::Holding holding;
      bool is_kept = false;
      if (!rows_->Keep(some, rows.data(), &is_kept, &holding).ok()) ++wrong;
      ++(is_kept ? kept : refused);
      for (int again = 0; is_kept && again < 3; ++again) {
        for (size_t i = 0; i < some.size(); ++i) {
          if (rows[i][0] != some[i]) ++wrong;
        }
        sched_yield();
      }
      if (!rows_->Copy(some, 0, 1, copies.data()).ok()) ++wrong;
      for (size_t i = 0; i < some.size(); ++i) {
        if (copies[i] != some[i]) ++wrong;
      }
    }
  };
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back(hold, t);
    threads.emplace_back(keep, 10 + t);
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong.load(), 0);
  EXPECT_GT(kept.load(), 0);
  EXPECT_GT(rows_->stats().misses, kSteps);
}

}  // namespace
}  // namespace ev
