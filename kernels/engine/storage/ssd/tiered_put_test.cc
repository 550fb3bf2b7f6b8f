// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Tiered rows below another cache: rows are copied, put back and discarded.

#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/engine/storage/ssd/tiered_rows.h"

namespace ev {
namespace {

#define ASSERT_OK(expression)                             \
  do {                                                    \
    const Status ev_status_ = (expression);               \
    ASSERT_TRUE(ev_status_.ok()) << ev_status_.message(); \
  } while (0)

constexpr int64_t kDim = 4;

std::atomic<bool> disk_full{false};
bool HasSpace(int64_t) { return !disk_full; }

// A row's contents and rank.
struct Row {
  std::vector<float> floats;
  uint32_t rank = 0;
};

class TieredPutTest : public ::testing::Test {
 protected:
  void SetUp() override {
    disk_full = false;
    RowFile::SetSpaceHookForTesting(&HasSpace);
    Make(64, true);
  }
  void TearDown() override { RowFile::SetSpaceHookForTesting(nullptr); }

  void Make(int64_t cache_slots, bool in_thread) {
    rows_.reset();
    const std::string path =
        ::testing::TempDir() + "/put-" + std::to_string(getpid());
    TieredRowsOptions options;
    ASSERT_OK(RowDirectory::Open(path, "v", &options.directory));
    options.dim = kDim;
    static const std::vector<float> defaults(kDim, 0.5f);
    options.default_rows = defaults;
    options.memory_bytes = cache_slots * (kDim * sizeof(float) + 20);
    options.compacts_in_thread = in_thread;
    options.ranks = ranks_ = std::make_shared<UseRanks>(CacheStrategy::kLfu);
    ASSERT_OK(TieredRows::Create(options, &rows_));
  }

  void MakeNew(RowHandle begin, RowHandle end) {
    for (RowHandle h = begin; h < end; ++h) ASSERT_OK(rows_->NewRow(h, 0));
  }

  // Puts row h as [h, h, ...] + value, with rank 1000 * h.
  Status PutNumbers(const std::vector<RowHandle>& handles, float value,
                    size_t* done, int64_t width = kDim) {
    std::vector<float> floats;
    std::vector<uint32_t> ranks;
    for (const RowHandle h : handles) {
      floats.insert(floats.end(), width, static_cast<float>(h) + value);
      ranks.push_back(1000 * h);
    }
    return rows_->Put(handles, false, floats.data(), ranks.data(), done);
  }

  static std::vector<RowHandle> Range(RowHandle begin, RowHandle end) {
    std::vector<RowHandle> handles;
    for (RowHandle h = begin; h < end; ++h) handles.push_back(h);
    return handles;
  }

  void ExpectNumbers(const std::vector<RowHandle>& handles, float value) {
    std::vector<float> floats(handles.size() * kDim);
    std::vector<uint32_t> ranks(handles.size());
    ASSERT_OK(rows_->CopyWhole(handles, floats.data(), ranks.data()));
    for (size_t i = 0; i < handles.size(); ++i) {
      for (int64_t j = 0; j < kDim; ++j) {
        ASSERT_EQ(floats[i * kDim + j], static_cast<float>(handles[i]) + value)
            << handles[i];
      }
    }
  }

  std::shared_ptr<UseRanks> ranks_;
  std::unique_ptr<TieredRows> rows_;
};

TEST_F(TieredPutTest, RandomOperationsAgainstAModel) {
  for (const bool in_thread : {true, false}) {
    ASSERT_NO_FATAL_FAILURE(Make(64, in_thread));
    std::mt19937_64 random(5);
    std::map<RowHandle, Row> stored;  // the others are fresh
    MakeNew(0, 600);
    for (int step = 0; step < 3000; ++step) {
      std::map<RowHandle, bool> some;
      for (size_t n = random() % 100; n > 0; --n) some[random() % 600];
      std::vector<RowHandle> put, take;
      for (const auto& one : some) {
        const RowHandle h = one.first;
        if (!stored.count(h)) {
          put.push_back(h);
        } else if (random() % 2 == 0) {
          take.push_back(h);
        }
      }
      // Rows whose newest contents the cache above gives back.
      std::vector<float> floats;
      std::vector<uint32_t> ranks;
      for (const RowHandle h : put) {
        Row row;
        for (int64_t j = 0; j < kDim; ++j) {
          row.floats.push_back(static_cast<float>(random() % 100000));
        }
        row.rank = static_cast<uint32_t>(random() % 100000);
        floats.insert(floats.end(), row.floats.begin(), row.floats.end());
        ranks.push_back(row.rank);
        stored[h] = row;
      }
      size_t done = 0;
      ASSERT_OK(rows_->Put(put, false, floats.data(), ranks.data(), &done));
      ASSERT_EQ(done, put.size());
      // Rows that it copies. Some return unchanged, the others are discarded.
      floats.resize(take.size() * kDim);
      ranks.resize(take.size());
      ASSERT_OK(rows_->CopyWhole(take, floats.data(), ranks.data()));
      std::vector<RowHandle> changed, unchanged;
      std::vector<float> back;
      std::vector<uint32_t> back_ranks;
      for (size_t i = 0; i < take.size(); ++i) {
        const Row& row = stored[take[i]];
        for (int64_t j = 0; j < kDim; ++j) {
          ASSERT_EQ(floats[i * kDim + j], row.floats[j]) << take[i];
        }
        // Fades while the row is in memory.
        ASSERT_LE(ranks[i], row.rank);
        if (random() % 2 == 0) {
          changed.push_back(take[i]);
        } else if (!rows_->IsInMemory(take[i])) {
          unchanged.push_back(take[i]);
          back.insert(back.end(), row.floats.begin(), row.floats.end());
          back_ranks.push_back(row.rank);
        }
      }
      rows_->Discard(changed);
      for (const RowHandle h : changed) stored.erase(h);
      ASSERT_OK(
          rows_->Put(unchanged, false, back.data(), back_ranks.data(), &done));
      rows_->Compact();
      const TieredRowsStats stats = rows_->stats();
      ASSERT_LE(stats.memory_rows, 64);
    }
    const TieredRowsStats stats = rows_->stats();
    EXPECT_GT(stats.hits, 1000);
    EXPECT_GT(stats.misses, 1000);
    EXPECT_GT(stats.written_bytes, 0);
    std::vector<RowHandle> all;
    for (const auto& one : stored) all.push_back(one.first);
    std::vector<float> floats(all.size() * kDim);
    ASSERT_OK(rows_->Copy(all, 0, kDim, floats.data()));
    for (size_t i = 0; i < all.size(); ++i) {
      ASSERT_EQ(floats[i * kDim + 1], stored[all[i]].floats[1]);
    }
  }
}

TEST_F(TieredPutTest, ARowFromTheFileIsNotWrittenAgain) {
  MakeNew(0, 1000);
  size_t done = 0;
  ASSERT_OK(PutNumbers(Range(0, 1000), 0.25f, &done));
  ASSERT_OK(rows_->Flush());
  const int64_t written = rows_->stats().written_bytes;
  EXPECT_EQ(rows_->stats().memory_rows, 0);
  for (int round = 0; round < 3; ++round) {
    for (RowHandle begin = 0; begin < 1000; begin += 50) {
      const std::vector<RowHandle> handles = Range(begin, begin + 50);
      for (const RowHandle h : handles) EXPECT_FALSE(rows_->IsInMemory(h));
      ASSERT_OK(PutNumbers(handles, 0.25f, &done));
      for (const RowHandle h : handles) EXPECT_TRUE(rows_->IsInMemory(h));
    }
  }
  ExpectNumbers(Range(0, 1000), 0.25f);
  ASSERT_OK(rows_->Flush());
  EXPECT_EQ(rows_->stats().written_bytes, written);
  EXPECT_EQ(rows_->stats().file_rows, 1000);
}

TEST_F(TieredPutTest, ARankIsKeptInMemoryAndInTheFile) {
  MakeNew(0, 3);
  size_t done = 0;
  ASSERT_OK(PutNumbers(Range(0, 3), 0, &done));
  rows_->SetRank(2, 777);
  std::vector<float> floats(3 * kDim);
  std::vector<uint32_t> ranks(3);
  ASSERT_OK(rows_->CopyWhole(Range(0, 3), floats.data(), ranks.data()));
  EXPECT_EQ(ranks, (std::vector<uint32_t>{0, 1000, 777}));
  ASSERT_OK(rows_->Flush());
  rows_->SetRank(2, 5);  // in the file: no-op
  ASSERT_OK(rows_->CopyWhole(Range(0, 3), floats.data(), ranks.data()));
  EXPECT_EQ(ranks, (std::vector<uint32_t>{0, 1000, 777}));
}

TEST_F(TieredPutTest, TheRowWithTheLowestRankLeaves) {
  MakeNew(0, 128);
  size_t done = 0;
  std::vector<float> floats(kDim, 1);
  for (RowHandle h = 0; h < 128; ++h) {
    const uint32_t rank = h % 2 == 0 ? 900000 : 10;
    ASSERT_OK(rows_->Put({&h, 1}, false, floats.data(), &rank, &done));
  }
  int hot = 0;
  for (RowHandle h = 0; h < 128; h += 2) hot += rows_->IsInMemory(h);
  EXPECT_GT(hot, 40);
}

TEST_F(TieredPutTest, DiscardedRowsTakeNoRoom) {
  MakeNew(0, 1000);
  size_t done = 0;
  ASSERT_OK(PutNumbers(Range(0, 1000), 0, &done));
  EXPECT_GT(rows_->stats().file_rows, 0);
  rows_->Discard(Range(0, 1000));
  EXPECT_EQ(rows_->stats().file_rows, 0);
  EXPECT_EQ(rows_->stats().memory_rows, 0);
  rows_->Discard(Range(0, 1000));  // fresh rows: no-op
  EXPECT_EQ(rows_->stats().memory_rows, 0);
  ASSERT_OK(PutNumbers(Range(0, 1000), 3, &done));
  ExpectNumbers(Range(0, 1000), 3);
}

TEST_F(TieredPutTest, ARowInMemoryStaysAndGetsTheRank) {
  MakeNew(0, 2);
  size_t done = 0;
  ASSERT_OK(PutNumbers(Range(0, 2), 0, &done));
  std::vector<float> floats(2 * kDim);
  floats[kDim] = 1;
  std::vector<uint32_t> ranks = {5, 6};
  ASSERT_OK(rows_->Put(Range(0, 2), false, floats.data(), ranks.data(), &done));
  EXPECT_EQ(done, 2u);
  EXPECT_EQ(rows_->stats().memory_rows, 2);
  ASSERT_OK(rows_->CopyWhole(Range(0, 2), floats.data(), ranks.data()));
  EXPECT_EQ(ranks, (std::vector<uint32_t>{5, 6}));
  ExpectNumbers(Range(0, 2), 0);
}

TEST_F(TieredPutTest, AHandleWithoutARowIsAnError) {
  MakeNew(0, 2);
  size_t done = 0;
  EXPECT_EQ(PutNumbers({0, 1, 7, 8}, 5, &done).message(),
            "handle 7 has no row");
  EXPECT_EQ(done, 2u);
  EXPECT_EQ(rows_->stats().memory_rows, 2);
  ExpectNumbers(Range(0, 2), 5);
}

TEST_F(TieredPutTest, AFullDiskLosesNothing) {
  MakeNew(0, 5000);
  size_t done = 0;
  disk_full = true;
  Status status;
  RowHandle next = 0;
  while (status.ok()) {
    status = PutNumbers(Range(next, next + 10), 0, &done);
    next += static_cast<RowHandle>(done);
  }
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_GE(next, 64u);
  ExpectNumbers(Range(0, next), 0);
  disk_full = false;
  ASSERT_OK(PutNumbers(Range(next, 5000), 0, &done));
  ExpectNumbers(Range(0, 5000), 0);
}

TEST_F(TieredPutTest, AReservationIsRoomForPutsOnAFullDisk) {
  MakeNew(0, 4000);
  size_t done = 0;
  ASSERT_OK(PutNumbers(Range(0, 64), 0, &done));
  ASSERT_OK(rows_->ReservePut(3000));
  disk_full = true;
  std::vector<float> floats(3000 * kDim, 1);
  std::vector<uint32_t> ranks(3000);
  ASSERT_OK(rows_->Put(Range(64, 3064), /*is_reserved=*/true, floats.data(),
                       ranks.data(), &done));
  rows_->Unreserve(3000);
}

TEST_F(TieredPutTest, RemovedSlotsLeaveRowsAsTheyWere) {
  MakeNew(0, 500);
  size_t done = 0;
  ASSERT_OK(PutNumbers(Range(0, 500), 0, &done));
  ASSERT_OK(rows_->SetSlots(FullSlots(kDim, std::vector<float>{7, 8})));
  ASSERT_OK(rows_->RemoveSlots(2));
  ExpectNumbers(Range(0, 500), 0);
  rows_->Discard(Range(0, 100));
  ASSERT_OK(PutNumbers(Range(0, 100), 9, &done));
  ExpectNumbers(Range(0, 100), 9);
  // Another value for the slot that was removed.
  ASSERT_OK(rows_->SetSlots(FullSlots(kDim, std::vector<float>{3})));
  std::vector<float> floats(500 * 2 * kDim);
  ASSERT_OK(rows_->Copy(Range(0, 500), 0, 2 * kDim, floats.data()));
  EXPECT_EQ(floats[2 * kDim * 499 + kDim], 3);
  EXPECT_EQ(floats[2 * kDim * 499], 499);
}

TEST_F(TieredPutTest, ManyThreadsMoveTheirRows) {
  constexpr RowHandle kEach = 200;
  MakeNew(0, 4 * kEach);
  std::vector<std::thread> threads;
  std::atomic<bool> failed{false};
  for (RowHandle t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937_64 random(t);
      std::vector<float> value(kEach, -1);  // -1: discarded
      for (int step = 0; step < 400; ++step) {
        std::vector<RowHandle> put, taken;
        std::vector<float> floats;
        for (RowHandle k = 0; k < kEach; ++k) {
          if (random() % 8 != 0) continue;
          if (value[k] >= 0) {
            taken.push_back(t * kEach + k);
            continue;
          }
          value[k] = static_cast<float>(random() % 1000);
          put.push_back(t * kEach + k);
          floats.insert(floats.end(), kDim, value[k]);
        }
        const std::vector<uint32_t> ranks(put.size(), 2048);
        size_t done = 0;
        if (!rows_->Put(put, false, floats.data(), ranks.data(), &done).ok()) {
          failed = true;
        }
        std::vector<float> got(taken.size() * kDim);
        std::vector<uint32_t> got_ranks(taken.size());
        if (!rows_->CopyWhole(taken, got.data(), got_ranks.data()).ok()) {
          failed = true;
        }
        for (size_t i = 0; i < taken.size(); ++i) {
          float* const expected = &value[taken[i] - t * kEach];
          if (got[i * kDim] != *expected || got[i * kDim + 3] != *expected) {
            failed = true;
          }
          *expected = -1;
        }
        rows_->Discard(taken);
        rows_->Compact();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(failed);
  EXPECT_GT(rows_->stats().misses, 0);
}

}  // namespace
}  // namespace ev
