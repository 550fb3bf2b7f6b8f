// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/storage/dram/row_store.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <random>
#include <thread>
#include <unordered_set>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/engine/base/pages.h"
#include "kernels/engine/storage/dram/row_layout.h"

namespace ev {
namespace {

// A sanitizer adds memory of its own and slows everything down.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kResidentIsOurs = false;
constexpr int kScale = 1;
#else
constexpr bool kResidentIsOurs = true;
constexpr int kScale = 8;
#endif

std::vector<RowHandle> AllocateRows(RowStore* store, int64_t n) {
  std::vector<RowHandle> handles(n);
  for (RowHandle& handle : handles) {
    const Status status = store->Allocate(&handle);
    EXPECT_TRUE(status.ok()) << status.message();
  }
  return handles;
}

void FillRow(RowStore* store, RowHandle handle, float seed) {
  float* row = store->Row(handle);
  for (int64_t i = 0; i < store->floats_per_row(); ++i) {
    row[i] = seed + static_cast<float>(i);
  }
}

int64_t ResidentBytes() {
  int64_t size = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> size >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

TEST(RowLayoutTest, RowsTouchAsFewLinesAsTheyCan) {
  EXPECT_EQ(RowStride(1), 4u);
  EXPECT_EQ(RowStride(3), 16u);
  EXPECT_EQ(RowStride(8), 32u);
  EXPECT_EQ(RowStride(16), 64u);
  EXPECT_EQ(RowStride(20), 80u);
  EXPECT_EQ(RowStride(24), 96u);
  EXPECT_EQ(RowStride(28), 128u);
  EXPECT_EQ(RowStride(32), 128u);
  EXPECT_EQ(RowStride(64), 256u);
  for (int64_t floats = 1; floats < 600; ++floats) {
    const size_t bytes = floats * sizeof(float), stride = RowStride(floats);
    EXPECT_GE(stride, bytes);
    EXPECT_LE(stride, bytes + std::min<size_t>(bytes / 3, 64));
    EXPECT_EQ(stride % 4, 0u);
    const size_t slab = stride << SlabRowsLog2(stride);
    EXPECT_GE(slab, kHugePage);
    EXPECT_LT(slab, std::max<size_t>(32 * kHugePage, 2 * stride));
  }
}

TEST(RowStoreTest, RowsAreApartAndStay) {
  for (int64_t floats : {1, 3, 16, 17, 128, 1000}) {
    RowStore store(floats, true);
    const auto handles = AllocateRows(&store, 3000);
    EXPECT_EQ(store.live_rows(), 3000);
    for (size_t i = 0; i < handles.size(); ++i) {
      FillRow(&store, handles[i], static_cast<float>(i));
      EXPECT_EQ(store.Meta(handles[i])->frequency, 0u);
      EXPECT_EQ(store.Meta(handles[i])->version_plus1, 0u);
      store.Meta(handles[i])->frequency = static_cast<uint32_t>(i);
    }
    AllocateRows(&store, 100000 / floats);
    for (size_t i = 0; i < handles.size(); ++i) {
      const float* row = store.Row(handles[i]);
      for (int64_t f = 0; f < floats; ++f) {
        ASSERT_EQ(row[f], static_cast<float>(i) + static_cast<float>(f));
      }
      ASSERT_EQ(store.Meta(handles[i])->frequency, i);
    }
    const std::unordered_set<RowHandle> distinct(handles.begin(),
                                                 handles.end());
    EXPECT_EQ(distinct.size(), handles.size());
  }
}

TEST(RowStoreTest, HandlesAscendSoThatRowsAreDense) {
  RowStore store(16, false);
  const auto handles = AllocateRows(&store, 100000);
  EXPECT_EQ(*std::max_element(handles.begin(), handles.end()), 99999u);
  EXPECT_TRUE(std::is_sorted(handles.begin(), handles.end()));
  EXPECT_EQ(store.Meta(5), nullptr);
}

TEST(RowStoreTest, SmallTablesAreSmall) {
  const int64_t before = ResidentBytes();
  std::vector<std::unique_ptr<RowStore>> stores;
  for (int i = 0; i < 500; ++i) {
    stores.emplace_back(new RowStore(16, true));
    EXPECT_LE(stores.back()->bytes(), 4096);
    for (RowHandle handle : AllocateRows(stores.back().get(), 10)) {
      FillRow(stores.back().get(), handle, 1);
      stores.back()->Meta(handle)->frequency = 1;
    }
    EXPECT_LE(stores.back()->bytes(), 16384);
  }
  if (kResidentIsOurs) {
    EXPECT_LE(ResidentBytes() - before, 500 * 20000);
  }
}

TEST(RowStoreTest, FreedRowsAreGivenOutAgainWithoutTheirMeta) {
  RowStore store(16, true);
  auto handles = AllocateRows(&store, 1000);
  for (RowHandle handle : handles) {
    *store.Meta(handle) = RowMeta{7, 8, 9};
  }
  const int64_t bytes = store.bytes();
  std::vector<RowHandle> some(handles.begin() + 100, handles.begin() + 400);
  store.Free(some);
  EXPECT_EQ(store.live_rows(), 700);
  auto again = AllocateRows(&store, 300);
  EXPECT_EQ(store.live_rows(), 1000);
  EXPECT_LE(store.bytes(), bytes + 8192);
  for (RowHandle handle : again) {
    EXPECT_EQ(store.Meta(handle)->frequency, 0u);
    EXPECT_EQ(store.Meta(handle)->version_plus1, 0u);
    EXPECT_EQ(store.Meta(handle)->call, 0u);
  }
  std::unordered_set<RowHandle> live(handles.begin(), handles.begin() + 100);
  live.insert(handles.begin() + 400, handles.end());
  for (RowHandle handle : again) EXPECT_TRUE(live.insert(handle).second);
}

TEST(RowStoreTest, ErasedMemoryReallyGoesBack) {
  RowStore store(64, true);
  const int64_t before = ResidentBytes();
  const int64_t kRows = 50000 * kScale;  // 100 MB
  auto handles = AllocateRows(&store, kRows);
  for (RowHandle handle : handles) FillRow(&store, handle, 1);
  const int64_t full = ResidentBytes();
  if (kResidentIsOurs) {
    EXPECT_GE(full - before, kRows * 256);
  }
  EXPECT_LE(store.bytes(), kRows * 256 * 11 / 10 + (4 << 20));
  EXPECT_GE(store.bytes(), kRows * 256);
  // The first half row by row, each alone in a slab; the rest at once.
  store.Free(Span<const RowHandle>(handles.data(), kRows / 2));
  if (kResidentIsOurs) {
    EXPECT_LE(ResidentBytes(), full - kRows * 256 * 4 / 10);
  }
  EXPECT_LE(store.bytes(), kRows * 256 * 6 / 10 + (4 << 20));
  store.Free(Span<const RowHandle>(handles.data() + kRows / 2, kRows / 2));
  if (kResidentIsOurs) {
    EXPECT_LE(ResidentBytes(), before + kRows * 256 / 10);
  }
  EXPECT_LE(store.bytes(), kRows * 256 / 50);
  EXPECT_EQ(store.live_rows(), 0);
  // The same handles are reused before any new one.
  handles = AllocateRows(&store, kRows);
  EXPECT_EQ(*std::max_element(handles.begin(), handles.end()),
            static_cast<RowHandle>(kRows - 1));
  for (RowHandle handle : handles) {
    ASSERT_EQ(store.Meta(handle)->frequency, 0u);
    FillRow(&store, handle, 2);
  }
  store.Clear();
  EXPECT_EQ(store.live_rows(), 0);
  if (kResidentIsOurs) {
    EXPECT_LE(ResidentBytes(), before + kRows * 256 / 10);
  }
  AllocateRows(&store, 10);
  EXPECT_EQ(store.live_rows(), 10);
}

// Compares handles and contents with a model.
TEST(RowStoreTest, RandomAllocateFreeRelayout) {
  std::mt19937 random(3);
  for (int round = 0; round < 3; ++round) {
    RowStore store(round == 0 ? 300 : 5, round != 1);
    std::vector<std::pair<RowHandle, float>> live;
    float next = 0;
    for (int step = 0; step < 20 + 5 * kScale; ++step) {
      if (random() % 3 != 0) {
        const int n = static_cast<int>(random() % 3000);
        for (RowHandle handle : AllocateRows(&store, n)) {
          FillRow(&store, handle, next);
          live.emplace_back(handle, next++);
        }
      } else {
        std::shuffle(live.begin(), live.end(), random);
        const size_t n =
            random() % 4 == 0 ? live.size() : random() % (live.size() + 1);
        std::vector<RowHandle> freed;
        for (size_t i = live.size() - n; i < live.size(); ++i) {
          freed.push_back(live[i].first);
        }
        live.resize(live.size() - n);
        store.Free(freed);
      }
      if (step % 10 == 9) {
        const int64_t was = store.floats_per_row();
        const int64_t now = 1 + static_cast<int64_t>(random() % 400);
        int64_t filled = 0;
        const Status status = store.Relayout(now, [&](float* row) {
          ++filled;
          for (int64_t f = was; f < now; ++f) {
            row[f] = row[0] + static_cast<float>(f);
          }
        });
        ASSERT_TRUE(status.ok()) << status.message();
        ASSERT_EQ(filled, static_cast<int64_t>(live.size()));
      }
      ASSERT_EQ(store.live_rows(), static_cast<int64_t>(live.size()));
      std::unordered_set<RowHandle> distinct;
      for (const auto& row : live) {
        ASSERT_TRUE(distinct.insert(row.first).second);
        for (int64_t f = 0; f < store.floats_per_row(); ++f) {
          ASSERT_EQ(store.Row(row.first)[f],
                    row.second + static_cast<float>(f));
        }
      }
    }
  }
}

TEST(RowStoreTest, RelayoutHoldsOneSlabTwiceAtMost) {
  RowStore store(64, false);
  const int64_t kRows = 25000 * kScale;  // 51 MB
  for (RowHandle handle : AllocateRows(&store, kRows)) {
    FillRow(&store, handle, static_cast<float>(handle));
  }
  const int64_t before = ResidentBytes();
  int64_t most = 0, seen = 0;
  ASSERT_TRUE(store
                  .Relayout(128,
                            [&](float* row) {
                              std::fill(row + 64, row + 128, 9.0f);
                              if (++seen % 1000 == 0) {
                                most = std::max(most, ResidentBytes());
                              }
                            })
                  .ok());
  EXPECT_EQ(seen, kRows);
  // In the end twice the size, but never a complete old copy in addition.
  if (kResidentIsOurs) {
    EXPECT_LE(most - before, kRows * 256 + (16 << 20));
  }
  EXPECT_EQ(store.Row(17777)[3], 17780.0f);
  EXPECT_EQ(store.Row(17777)[127], 9.0f);
}

std::atomic<int64_t> memory_left{0};
bool TakeMemory(size_t bytes) {
  return memory_left.fetch_sub(static_cast<int64_t>(bytes)) >=
         static_cast<int64_t>(bytes);
}

TEST(RowStoreTest, WithoutMemoryNothingBreaks) {
  RowStore store(64, true);
  memory_left = 20 << 20;
  SetAllocationHookForTesting(&TakeMemory);
  std::vector<RowHandle> handles;
  Status status;
  for (;;) {
    RowHandle handle;
    status = store.Allocate(&handle);
    if (!status.ok()) break;
    handles.push_back(handle);
    FillRow(&store, handle, static_cast<float>(handle));
  }
  memory_left = 0;
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_NE(status.message().find("64 floats"), std::string::npos);
  EXPECT_GT(handles.size(), 50000u);
  EXPECT_EQ(store.live_rows(), static_cast<int64_t>(handles.size()));
  // Widening fails without a partial effect.
  memory_left = 8 << 20;
  status = store.Relayout(128, [](float*) { FAIL() << "nothing is touched"; });
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(store.floats_per_row(), 64);
  for (RowHandle handle : handles) {
    ASSERT_EQ(store.Row(handle)[63], static_cast<float>(handle) + 63);
  }
  // Freed rows can be reused without memory.
  store.Free(Span<const RowHandle>(handles.data(), 10));
  AllocateRows(&store, 10);
  SetAllocationHookForTesting(nullptr);
  AllocateRows(&store, 1);
  ASSERT_TRUE(store.Relayout(128, [](float*) {}).ok());
  EXPECT_EQ(store.Row(handles[100])[63], static_cast<float>(handles[100]) + 63);
}

TEST(RowStoreTest, ThreadsAllocateDistinctRows) {
  RowStore store(4, true);
  constexpr int kThreads = 4, kRows = 50000;
  std::vector<std::vector<RowHandle>> handles(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kRows; ++i) {
        RowHandle handle;
        ASSERT_TRUE(store.Allocate(&handle).ok());
        FillRow(&store, handle, static_cast<float>(t));
        store.Meta(handle)->frequency = t;
        handles[t].push_back(handle);
        if (i % 1000 == 0) {
          ASSERT_GT(store.bytes(), 0);
          ASSERT_GT(store.live_rows(), i);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::unordered_set<RowHandle> distinct;
  for (int t = 0; t < kThreads; ++t) {
    for (RowHandle handle : handles[t]) {
      ASSERT_TRUE(distinct.insert(handle).second);
      ASSERT_EQ(store.Row(handle)[0], static_cast<float>(t));
      ASSERT_EQ(store.Meta(handle)->frequency, static_cast<uint32_t>(t));
    }
  }
  EXPECT_EQ(store.live_rows(), kThreads * kRows);
}

}  // namespace
}  // namespace ev
