// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Test fixture: a cache under test and the tiers below it.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_CACHE_TESTING_DEVICE_CACHE_FIXTURE_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_CACHE_TESTING_DEVICE_CACHE_FIXTURE_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "addons/hierarchical_parameter_server/cache/device_cache.h"
#include "addons/hierarchical_parameter_server/cache/make_device_cache.h"
#include "gtest/gtest.h"
#include "kernels/engine/base/parallel.h"
#include "kernels/engine/testing/skip_without_gpu.h"

namespace hps {

constexpr float kDefault = -3.5f;

// Makes a row from key and version; its last float is a checksum.
inline std::vector<float> MadeRow(int64_t key, int version, int width) {
  std::vector<float> row(width);
  float sum = 0;
  for (int i = 0; i + 1 < width; ++i) {
    row[i] = static_cast<float>(static_cast<uint64_t>(key) % 4093) +
             0.25f * static_cast<float>(version % 64) + 8192.0f * (i % 5);
    sum += row[i];
  }
  row[width - 1] = sum;
  return row;
}

// Stands for the tiers below the cache: some keys, each with a version.
struct Below {
  std::mutex mu;
  std::unordered_map<int64_t, int> versions;
  int width;  // numbers of a row
  RowType type = RowType::kFloat32;
  RowFormat format() const { return RowFormat(width, type); }
  // Writes MadeRow as a stored row.
  void Pack(int64_t key, int version, float* to) const {
    std::vector<float> row = MadeRow(key, version, width);
    // float16 holds all of its sums.
    if (format().is_packed()) {
      for (float& x : row) x /= 256;
    }
    EXPECT_TRUE(
        PackRows(format(), ev::Span<const int64_t>(&key, 1), row.data(), to)
            .ok());
  }
  // Reads a stored row and returns true, or returns false with kDefault.
  bool Read(int64_t key, float* to) {
    std::lock_guard<std::mutex> lock(mu);
    const auto found = versions.find(key);
    if (found == versions.end()) {
      const std::vector<float> row(width, kDefault);
      EXPECT_TRUE(
          PackRows(format(), ev::Span<const int64_t>(&key, 1), row.data(), to)
              .ok());
      return false;
    }
    Pack(key, found->second, to);
    return true;
  }
};

class DeviceCacheTest : public ::testing::Test {
 protected:
  void SetUp() override { EV_SKIP_WITHOUT_GPU(MakeDeviceCache(&cache_)); }
  std::shared_ptr<CacheTable> Open(RowFormat format, int64_t capacity,
                                   bool evicts = true,
                                   const std::string& tag = "hps_et.m.t",
                                   CachePolicy policy = CachePolicy::kLru) {
    CacheTableOptions options;
    options.tag = tag;
    options.format = format;
    options.capacity = capacity;
    options.evicts = evicts;
    options.policy = policy;
    options.max_keys = 1 << 16;
    std::shared_ptr<CacheTable> table;
    const ev::Status status = cache_->OpenTable(options, &table);
    EXPECT_TRUE(status.ok()) << status.message();
    return table;
  }
  static void Ok(const ev::Status& status) {
    ASSERT_TRUE(status.ok()) << status.message();
  }
  // Fills the misses of a lookup as the server does.
  static ev::Status FillMisses(CacheLookup* lookup, Below* below) {
    ev::Serial serial;
    const ev::Span<const int64_t> keys = lookup->missing_keys();
    for (size_t begin = 0; begin < keys.size();) {
      const int64_t count =
          std::min<int64_t>(lookup->max_fill(), keys.size() - begin);
      float* room = nullptr;
      EV_RETURN_IF_ERROR(lookup->Stage(count, &room));
      std::vector<int64_t> unknown;
      for (int64_t i = 0; i < count; ++i) {
        if (!below->Read(keys[begin + i], room + i * below->format().width())) {
          unknown.push_back(i);
        }
      }
      EV_RETURN_IF_ERROR(lookup->Fill(count, unknown, &serial));
      begin += count;
    }
    return lookup->Finish();
  }
  static std::vector<float> LookUp(CacheTable* table, Below* below,
                                   const std::vector<int64_t>& keys,
                                   int64_t* misses = nullptr) {
    std::vector<float> rows(keys.size() * below->width, -7.0f);
    CacheBatch batch;
    batch.ids = keys.data();
    batch.count = static_cast<int64_t>(keys.size());
    batch.rows = rows.data();
    std::unique_ptr<CacheLookup> lookup;
    ev::Status status = table->Lookup(batch, &lookup);
    EXPECT_TRUE(status.ok()) << status.message();
    if (!status.ok()) return rows;
    if (misses != nullptr) *misses = lookup->missing().size();
    status = FillMisses(lookup.get(), below);
    EXPECT_TRUE(status.ok()) << status.message();
    return rows;
  }
  static std::vector<float> Expected(Below* below,
                                     const std::vector<int64_t>& keys) {
    std::vector<float> rows(keys.size() * below->width);
    for (size_t i = 0; i < keys.size(); ++i) {
      std::vector<float> stored(below->format().width());
      below->Read(keys[i], stored.data());
      UnpackRow(below->format(), stored.data(), rows.data() + i * below->width);
    }
    return rows;
  }
  static void Give(Below* below, const std::vector<int64_t>& keys,
                   int version) {
    std::lock_guard<std::mutex> lock(below->mu);
    for (const int64_t key : keys) below->versions[key] = version;
  }
  // Updates the tiers first, then the cache.
  static void Update(CacheTable* table, Below* below,
                     const std::vector<int64_t>& keys, int version) {
    Give(below, keys, version);
    const int stored = below->format().width();
    std::vector<float> rows(keys.size() * stored);
    for (size_t i = 0; i < keys.size(); ++i) {
      below->Pack(keys[i], version, rows.data() + i * stored);
    }
    Ok(table->Refresh(keys, rows.data()));
  }
  static CacheStatistics StatisticsOf(CacheTable* table) {
    CacheStatistics statistics;
    Ok(table->Statistics(&statistics));
    return statistics;
  }
  static std::vector<int64_t> Range(int64_t first, int64_t count) {
    std::vector<int64_t> keys(count);
    for (int64_t i = 0; i < count; ++i) keys[i] = first + i;
    return keys;
  }

  std::shared_ptr<DeviceCache> cache_;
};

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_CACHE_TESTING_DEVICE_CACHE_FIXTURE_H_
