// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Tests that rows survive when the device is short of memory or fails, that
// held rows are not evicted, and that they do not make other calls wait
// forever.

#include "kernels/engine/rows/hbm_dram_ssd/device_cache.h"

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/engine/embedding/embedding_table.h"
#include "kernels/engine/embedding/update/row_update.h"
#include "kernels/engine/optimizer/row_rule.h"
#include "kernels/engine/rows/gpu_row_home.h"
#include "kernels/engine/rows/hbm_dram_ssd/memory_host_rows.h"
#include "kernels/engine/testing/host_device_rows.h"
#include "kernels/engine/testing/storage_under_test.h"

namespace ev {
namespace {

#define ASSERT_OK(expression)                             \
  do {                                                    \
    const Status ev_status_ = (expression);               \
    ASSERT_TRUE(ev_status_.ok()) << ev_status_.message(); \
  } while (0)

constexpr int64_t kDim = 2;
constexpr int64_t kCacheSlots = 64;

std::unique_ptr<RowHome> MakeRows(int64_t cache_slots) {
  static const std::vector<float> defaults = {1, 2, 3, 4};
  RowHomeOptions options;
  options.dim = kDim;
  options.default_rows = defaults;
  options.memory_bytes = cache_slots * kDim * sizeof(float);
  std::unique_ptr<RowHome> rows;
  const Status status = MakeRowsAboveMemory(options, &rows);
  EXPECT_TRUE(status.ok()) << status.message();
  return rows;
}

std::vector<RowHandle> Range(RowHandle begin, RowHandle end) {
  std::vector<RowHandle> handles;
  for (RowHandle h = begin; h < end; ++h) handles.push_back(h);
  return handles;
}

void MakeNew(RowHome* rows, const std::vector<RowHandle>& handles) {
  for (const RowHandle h : handles) ASSERT_OK(rows->NewRow(h, h % 2));
}

Status ReadOnce(RowHome* rows, const std::vector<RowHandle>& handles,
                float* out) {
  const int column = 0;
  return rows->ReadColumnsOnce(handles, Span<const int>(&column, 1),
                               Span<float* const>(&out, 1));
}

class DeviceCacheTest : public ::testing::Test {
 protected:
  void TearDown() override { testing::LimitHostDeviceRows(-1); }
};

// Cache slots of rows, for a step that reads or writes them.
struct Placed {
  explicit Placed(const std::vector<RowHandle>& handles)
      : rows(handles), gpu_handles(handles.size()) {}
  Status Place(RowHome* home, bool writes = false) {
    return home->gpu()->PlaceRows(rows, writes, gpu_handles.data(), &hold,
                                  &is_placed);
  }
  std::vector<RowHandle> rows, gpu_handles;
  std::unique_ptr<RowHold> hold;
  bool is_placed = false;
};

TEST_F(DeviceCacheTest, CacheSlotsAreRowsOfTheDevice) {
  const auto rows = MakeRows(kCacheSlots);
  MakeNew(rows.get(), Range(0, 200));
  Placed placed({150, AbsentAs(1), 3, kNoRow});
  ASSERT_OK(placed.Place(rows.get(), /*writes=*/true));
  ASSERT_TRUE(placed.is_placed);
  EXPECT_EQ(placed.gpu_handles[1], AbsentAs(1));
  EXPECT_EQ(placed.gpu_handles[3], kNoRow);
  // The rows have what a step writes to their cache slots.
  auto* const device = static_cast<GpuRowHome*>(rows->gpu()->placed_rows());
  const std::vector<RowHandle> cache_slots = {placed.gpu_handles[0],
                                              placed.gpu_handles[2]};
  const std::vector<float> values = {7, 8, 9, 10};
  ASSERT_OK(device->Write(cache_slots, 0, values.data()));
  placed.hold.reset();
  ASSERT_OK(rows->tiers()->Prefetch(Range(4, 4 + kCacheSlots)));
  std::vector<float> out(200 * kDim);
  ASSERT_OK(ReadOnce(rows.get(), Range(0, 200), out.data()));
  EXPECT_EQ(out[300], 7);
  EXPECT_EQ(out[301], 8);
  EXPECT_EQ(out[6], 9);
  EXPECT_EQ(out[7], 10);
}

TEST_F(DeviceCacheTest, WhileAllCacheSlotsAreHeldReadsGoOn) {
  const auto rows = MakeRows(kCacheSlots);
  MakeNew(rows.get(), Range(0, 200));
  Placed first(Range(0, kCacheSlots));
  ASSERT_OK(first.Place(rows.get()));
  ASSERT_TRUE(first.is_placed);
  // On the same thread, which must not wait for itself.
  for (const bool writes : {false, true}) {
    Placed second(Range(100, 140));
    ASSERT_OK(second.Place(rows.get(), writes));
    EXPECT_FALSE(second.is_placed);
    EXPECT_EQ(second.hold, nullptr);
  }
  std::vector<float> out(200 * kDim);
  ASSERT_OK(rows->Read(Range(0, 200), 0, out.data()));
  EXPECT_EQ(out[1], 2);
  EXPECT_EQ(out[399], 4);
  ASSERT_OK(rows->tiers()->Prefetch(Range(0, 200)));
  first.hold.reset();
  EXPECT_EQ(rows->tiers()->tier_stats().memory_rows, kCacheSlots);
}

TEST_F(DeviceCacheTest, WritesWaitForACacheSlotUntilRowsAreReleased) {
  const auto rows = MakeRows(kCacheSlots);
  MakeNew(rows.get(), Range(0, 200));
  Placed holder(Range(0, kCacheSlots));
  ASSERT_OK(holder.Place(rows.get()));
  ASSERT_TRUE(holder.is_placed);
  std::thread writer([&] {
    const std::vector<RowHandle> handles = Range(100, 200);
    const std::vector<float> values(handles.size() * kDim, 9.0f);
    const Status status = rows->Write(handles, 0, values.data());
    EXPECT_TRUE(status.ok()) << status.message();
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  holder.hold.reset();
  writer.join();
  std::vector<float> out(200 * kDim);
  ASSERT_OK(ReadOnce(rows.get(), Range(0, 200), out.data()));
  EXPECT_EQ(out[198], 3);
  for (size_t i = 200; i < 400; ++i) ASSERT_EQ(out[i], 9);
}

TEST_F(DeviceCacheTest, MoreDistinctRowsThanCacheSlots) {
  const auto rows = MakeRows(kCacheSlots);
  MakeNew(rows.get(), Range(0, 1000));
  Placed placed(Range(0, 1000));
  ASSERT_OK(placed.Place(rows.get(), /*writes=*/true));
  EXPECT_FALSE(placed.is_placed);
  const std::vector<RowHandle> handles = Range(0, 1000);
  std::unique_ptr<const RowRule> rule;
  const std::vector<float> hyper = {1.0f};
  ASSERT_OK(MakeRowRule("SGD", hyper, &rule));
  std::vector<float> grads;
  for (int32_t i = 0; i < 1000; ++i) {
    grads.insert(grads.end(), kDim, static_cast<float>(i));
  }
  ASSERT_OK(rows->Reserve(1000));
  ASSERT_OK(rows->Apply(*rule, handles, {}, grads.data()));
  rows->Unreserve(1000);
  std::vector<float> out(1000 * kDim);
  ASSERT_OK(ReadOnce(rows.get(), handles, out.data()));
  for (size_t i = 0; i < 1000; ++i) {
    ASSERT_EQ(out[2 * i], (i % 2 == 0 ? 1 : 3) - static_cast<float>(i));
  }
}

TEST_F(DeviceCacheTest, AHandleWithoutARowIsAnError) {
  const auto rows = MakeRows(kCacheSlots);
  MakeNew(rows.get(), Range(0, 5));
  const std::vector<RowHandle> handles = {0, 1, 7, 2};
  std::vector<float> values(handles.size() * kDim);
  for (const Status& status : {rows->Read(handles, 0, values.data()),
                               ReadOnce(rows.get(), handles, values.data()),
                               rows->tiers()->Prefetch(handles),
                               rows->Write(handles, 0, values.data())}) {
    EXPECT_EQ(status.code(), StatusCode::kInternal);
    EXPECT_EQ(status.message(), "handle 7 has no row");
  }
  std::vector<double> squares(handles.size());
  EXPECT_EQ(rows->SquaredNorms(handles, squares.data()).message(),
            "handle 7 has no row");
  // No row is held any more: all of them can be evicted.
  ASSERT_OK(rows->Relayout(FullSlots(kDim, std::vector<float>{0.5f})));
  ASSERT_OK(rows->Read(Range(0, 4), 1, values.data()));
  EXPECT_EQ(values[0], 0.5f);
  // The forgotten rows were in CPU memory or on the device.
  rows->Forget(Range(3, 5));
  for (const RowHandle gone : {3, 4}) {
    EXPECT_EQ(rows->Read(Range(gone, gone + 1), 0, values.data()).message(),
              "handle " + std::to_string(gone) + " has no row");
  }
}

TEST_F(DeviceCacheTest, RowsThatAreNotTrainedTakeNoMemory) {
  const auto rows = MakeRows(kCacheSlots);
  const int64_t before = testing::LiveHostDeviceRows();
  MakeNew(rows.get(), Range(0, 5000));
  std::vector<float> out(5000 * kDim);
  ASSERT_OK(ReadOnce(rows.get(), Range(0, 5000), out.data()));
  EXPECT_EQ(testing::LiveHostDeviceRows(), before);
  // Rows that are only read are never in CPU memory.
  ASSERT_OK(rows->Read(Range(0, 5000), 0, out.data()));
  EXPECT_EQ(testing::LiveHostDeviceRows(), before + kCacheSlots);
  EXPECT_EQ(rows->tiers()->tier_stats().stored_rows, 0);
  EXPECT_EQ(rows->tiers()->tier_stats().written_bytes, 0);
}

TEST_F(DeviceCacheTest, SomeCacheSlotsAreFreedAheadOfNeed) {
  const int64_t cache_slots = 640;
  const auto rows = MakeRows(cache_slots);
  MakeNew(rows.get(), Range(0, 4000));
  const std::vector<float> values(4000 * kDim, 9.0f);
  for (RowHandle begin = 0; begin < 4000; begin += 100) {
    ASSERT_OK(rows->Write(Range(begin, begin + 100), 0, values.data()));
  }
  // Freed by the thread: the writes have ended.
  int64_t in_use = cache_slots;
  for (int k = 0; k < 500 && in_use > cache_slots - 40; ++k) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    in_use = rows->tiers()->tier_stats().memory_rows;
  }
  EXPECT_LE(in_use, cache_slots - 40);
  EXPECT_EQ(rows->tiers()->tier_stats().stored_rows + in_use, 4000);
}

TableOptions Options() {
  TableOptions options;
  options.name = "user";
  options.dim = kDim;
  options.storage = RowStorage::kHbmDramSsd;
  options.path = testing::FreshDirectory();
  options.memory_bytes = 200 * kDim * sizeof(float);
  options.second_memory_bytes = 1 << 20;
  return options;
}

Status Train(EmbeddingTable* table, int64_t begin, int64_t end) {
  std::vector<int64_t> keys;
  for (int64_t key = begin; key < end; ++key) keys.push_back(key);
  const std::vector<float> ones(keys.size() * kDim, 1.0f);
  UpdateInput update;
  update.table = table;
  update.keys = keys;
  update.grads = ones.data();
  return ApplyRule("SGD", std::vector<float>{1.0f},
                   std::vector<UpdateInput>{update},
                   std::vector<std::vector<SlotSpec>>(1), 0, nullptr);
}

TEST_F(DeviceCacheTest, ADeviceWithLessMemoryThanTheBudgetIsAnError) {
  EmbeddingTable table(Options());
  ASSERT_OK(table.Initialize(std::vector<float>{5, 5}, 1));
  ASSERT_OK(Train(&table, 0, 80));
  testing::LimitHostDeviceRows(testing::LiveHostDeviceRows() + 10);
  const Status status = Train(&table, 0, 150);
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_NE(status.message().find("rows are all it has"), std::string::npos)
      << status.message();
  EXPECT_NE(status.message().find("table 'user'"), std::string::npos);
  // Nothing has changed, and the existing rows can be used.
  EXPECT_EQ(table.size(), 80);
  std::vector<int64_t> keys;
  for (int64_t key = 0; key < 150; ++key) keys.push_back(key);
  std::vector<float> values(keys.size() * kDim);
  ASSERT_OK(table.Gather(keys, values.data(), nullptr));
  for (size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(values[i], i < 160 ? 4 : 5) << i;
  }
  testing::LimitHostDeviceRows(-1);
  ASSERT_OK(Train(&table, 0, 150));
  ASSERT_OK(table.Gather(keys, values.data(), nullptr));
  for (size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(values[i], i < 160 ? 3 : 4) << i;
  }
}

TEST_F(DeviceCacheTest, ADeviceWithoutAnyMemoryIsAnErrorForWritesOnly) {
  const auto rows = MakeRows(kCacheSlots);
  MakeNew(rows.get(), Range(0, 100));
  testing::LimitHostDeviceRows(testing::LiveHostDeviceRows());
  std::vector<float> out(100 * kDim);
  ASSERT_OK(rows->Read(Range(0, 100), 0, out.data()));
  EXPECT_EQ(out[0], 1);
  EXPECT_EQ(rows->Write(Range(0, 100), 0, out.data()).code(),
            StatusCode::kResourceExhausted);
  testing::LimitHostDeviceRows(-1);
  ASSERT_OK(rows->Write(Range(0, 100), 0, out.data()));
}

TEST_F(DeviceCacheTest, ItsRowsLeaveTheDeviceWithIt) {
  const int64_t before = testing::LiveHostDeviceRows();
  {
    EmbeddingTable table(Options());
    ASSERT_OK(table.Initialize(std::vector<float>{5, 5}, 1));
    ASSERT_OK(Train(&table, 0, 5000));
    EXPECT_EQ(testing::LiveHostDeviceRows(), before + 200);
    ASSERT_OK(table.Clear());
    EXPECT_EQ(testing::LiveHostDeviceRows(), before);
    ASSERT_OK(Train(&table, 0, 5000));
  }
  EXPECT_EQ(testing::LiveHostDeviceRows(), before);
}

}  // namespace
}  // namespace ev
