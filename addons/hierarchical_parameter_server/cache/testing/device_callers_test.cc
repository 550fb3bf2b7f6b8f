// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Tests that every cache passes with a framework's device tensors and with
// concurrent callers.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "addons/hierarchical_parameter_server/cache/testing/device_cache_fixture.h"
#include "gtest/gtest.h"
#include "kernels/engine/testing/stream_under_test.h"

namespace hps {
namespace {

// Uses ids and rows on the device, with a stream that runs late.
class DeviceTensorsTest : public DeviceCacheTest {
 protected:
  void SetUp() override {
    DeviceCacheTest::SetUp();
    if (!IsSkipped()) stream_ = ev::testing::StreamUnderTest::Make();
  }
  // Returns the bytes as floats, the type that the stream copies.
  template <typename T>
  static std::vector<float> AsFloats(const std::vector<T>& from) {
    std::vector<float> floats((from.size() * sizeof(T) + 3) / 4 + 1);
    if (!from.empty()) {
      std::memcpy(floats.data(), from.data(), from.size() * sizeof(T));
    }
    return floats;
  }
  // Looks up with ids and rows on the device or on the host.
  template <typename Id>
  void Check(CacheTable* table, Below* below, const std::vector<Id>& ids,
             bool ids_on_device, bool rows_on_device, int64_t want_misses) {
    const ev::DeviceStream stream = stream_->stream();
    const int64_t floats = static_cast<int64_t>(ids.size()) * below->width;
    const std::vector<float> given = AsFloats(ids);
    std::vector<float> rows(floats + 1, -7.0f);
    CacheBatch batch;
    batch.ids = ids.data();
    if (ids_on_device) {
      float* const device_block = stream_->Allocate(given.size());
      stream_->Fill(given, device_block);
      batch.ids = device_block;
    }
    batch.count = static_cast<int64_t>(ids.size());
    batch.long_ids = sizeof(Id) == 8;
    batch.ids_on_device = ids_on_device;
    batch.rows = rows_on_device ? stream_->Allocate(floats + 1) : rows.data();
    batch.rows_on_device = rows_on_device;
    batch.stream = &stream;
    std::unique_ptr<CacheLookup> lookup;
    Ok(table->Lookup(batch, &lookup));
    EXPECT_EQ(lookup->missing().size(), want_misses);
    Ok(FillMisses(lookup.get(), below));
    lookup.reset();
    if (rows_on_device) {
      rows = stream_->Read(batch.rows, floats);
    } else {
      rows.resize(floats);
    }
    EXPECT_EQ(rows, Expected(below, {ids.begin(), ids.end()}));
  }

  std::unique_ptr<ev::testing::StreamUnderTest> stream_;
};

TEST_F(DeviceTensorsTest, IdsAndRowsInEitherMemory) {
  for (const RowFormat& format :
       {RowFormat(3), RowFormat(16), RowFormat(3, RowType::kFloat16),
        RowFormat(16, RowType::kFloat16), RowFormat(7, RowType::kUint8),
        RowFormat(16, RowType::kUint8)}) {
    Below below{{}, {}, format.dim, format.type};
    const std::vector<int64_t> ids = Range(0, 555);
    Give(&below, Range(0, 500), 1);
    for (const bool device_ids : {false, true}) {
      for (const bool device_rows : {false, true}) {
        auto table = Open(format, 1000);
        for (const int64_t misses : {555, 55}) {
          Check(table.get(), &below, ids, device_ids, device_rows, misses);
        }
        Check(table.get(), &below, std::vector<int32_t>{3, -1, 499}, device_ids,
              device_rows, 1);
        Check(table.get(), &below, std::vector<int64_t>(), device_ids,
              device_rows, 0);
        table->Drop();
        Check(table.get(), &below, ids, device_ids, device_rows, 555);
      }
    }
  }
}

TEST_F(DeviceTensorsTest, AStreamIsNeeded) {
  auto table = Open(4, 1000);
  float* const device_block = stream_->Allocate(100);
  CacheBatch batch;
  batch.ids = device_block;
  batch.count = 5;
  batch.ids_on_device = true;
  batch.rows = device_block + 20;
  batch.rows_on_device = true;
  std::unique_ptr<CacheLookup> lookup;
  const ev::Status status = table->Lookup(batch, &lookup);
  EXPECT_EQ(status.code(), ev::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("hps_et.m.t"), std::string::npos);
}

// Lookups during updates: every row is whole, and never older than the cached
// row when the lookup began.
class PolicyTest : public DeviceCacheTest,
                   public ::testing::WithParamInterface<CachePolicy> {};
INSTANTIATE_TEST_SUITE_P(Both, PolicyTest,
                         ::testing::Values(CachePolicy::kLru,
                                           CachePolicy::kLfu));

TEST_P(PolicyTest, UpdatesBesideLookups) {
  constexpr int kWidth = 32, kKeys = 600;
  Below below{{}, {}, kWidth};
  auto table = Open(kWidth, 300, true, "hps_et.m.t", GetParam());
  Give(&below, Range(0, kKeys), 0);
  std::vector<std::atomic<int>> done(kKeys);
  for (auto& version : done) version = 0;
  std::atomic<bool> stop{false};
  std::thread updates([&] {
    std::mt19937 random(1);
    for (int version = 1; version < 60; ++version) {
      std::vector<int64_t> keys;
      for (int i = 0; i < 100; ++i) keys.push_back(random() % kKeys);
      Update(table.get(), &below, keys, version);
      for (const int64_t key : keys) done[key] = version;
    }
    stop = true;
  });
  std::vector<std::thread> threads;
  std::atomic<int64_t> wrong{0}, looked{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(10 + t);
      do {
        std::vector<int64_t> keys(200);
        for (int64_t& key : keys) {
          key = random() % (random() % 2 == 0 ? kKeys : kKeys / 10);
        }
        std::vector<int> least;
        for (const int64_t key : keys) least.push_back(done[key]);
        const std::vector<float> rows = LookUp(table.get(), &below, keys);
        for (size_t i = 0; i < keys.size(); ++i) {
          const float* const row = rows.data() + i * kWidth;
          // Version encoded in the first float, if the row is whole.
          const float fraction = row[0] - keys[i] % 4093;
          const int version = static_cast<int>(fraction * 4 + 0.5f);
          const std::vector<float> whole = MadeRow(keys[i], version, kWidth);
          if (!std::equal(whole.begin(), whole.end(), row) ||
              version < least[i]) {
            ++wrong;
          }
        }
        looked += static_cast<int64_t>(keys.size());
      } while (!stop);
    });
  }
  updates.join();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(looked, 0);
  EXPECT_EQ(LookUp(table.get(), &below, Range(0, kKeys)),
            Expected(&below, Range(0, kKeys)));
}

// Many callers; one of them drops the table at the end.
TEST_F(DeviceCacheTest, SixtyFourCallers) {
  Below below{{}, {}, 8};
  auto table = Open(8, 500);
  Give(&below, Range(0, 2000), 1);
  std::atomic<int64_t> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 64; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      for (int step = 0; step < 12; ++step) {
        std::vector<int64_t> keys(1 + random() % 300);
        for (int64_t& key : keys) key = random() % 2500;
        wrong += LookUp(table.get(), &below, keys) != Expected(&below, keys);
        if (t == 63 && step == 8) table->Drop();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace hps
