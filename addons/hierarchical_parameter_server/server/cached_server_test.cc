// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Tests the server with a cache, the stand-in for a GPU's.

#include <stdlib.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "addons/hierarchical_parameter_server/cache/testing/host_device_cache.h"
#include "addons/hierarchical_parameter_server/server/parameter_server.h"
#include "gtest/gtest.h"
#include "kernels/engine/testing/host_device_memory.h"

namespace hps {
namespace {

constexpr int kWidth = 8;
constexpr int64_t kRows = 5000;
constexpr float kDefault = 0.5f;

float Value(int64_t key, int version, int column) {
  return static_cast<float>(static_cast<uint64_t>(key) % 9973) +
         0.25f * version + 8192.0f * (column % 5);
}

class CachedServerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string made = ::testing::TempDir() + "/cachedXXXXXX";
    ASSERT_NE(mkdtemp(&made[0]), nullptr);
    folder_ = made;
    WriteTable("a", 1);
    WriteTable("b", 2);
    ASSERT_EQ(HostDeviceCacheBytes(), 0);
  }
  void TearDown() override {
    server_.reset();
    SetHostDeviceCacheBytes(-1);
    SetHostDeviceIsGone(false);
    EXPECT_EQ(HostDeviceCacheBytes(), 0) << "a cache outlives its server";
  }
  void WriteTable(const std::string& name, int version) {
    const std::string folder = folder_ + "/" + name;
    mkdir(folder.c_str(), 0755);
    std::vector<int64_t> keys;
    std::vector<float> rows;
    for (int64_t key = 0; key < kRows; ++key) {
      keys.push_back(key - 100);
      for (int c = 0; c < kWidth; ++c) {
        rows.push_back(Value(key - 100, version, c));
      }
    }
    WriteFile(folder + "/key", keys.data(), keys.size() * 8);
    WriteFile(folder + "/emb_vector", rows.data(), rows.size() * 4);
  }
  // Replaces a table's file of float32 rows by one of packed rows.
  void Pack(const std::string& name, int version, RowType type) {
    std::vector<int64_t> keys;
    for (int64_t key = 0; key < kRows; ++key) keys.push_back(key - 100);
    const RowFormat format(kWidth, type);
    std::vector<float> stored(keys.size() * format.width());
    ASSERT_TRUE(
        PackRows(format, keys, Rows(keys, version).data(), stored.data()).ok());
    const std::string vectors = folder_ + "/" + name + "/emb_vector";
    WriteFile(vectors + "_" + RowTypeName(type), stored.data(),
              stored.size() * 4);
    remove(vectors.c_str());
  }
  static void WriteFile(const std::string& path, const void* data,
                        size_t bytes) {
    remove(path.c_str());
    std::ofstream(path, std::ios::binary)
        .write(static_cast<const char*>(data), bytes);
  }
  // Serves model m with the tables a and b.
  ev::Status TryServe(const std::string& of_model, const std::string& more = "",
                      bool long_keys = true) {
    Config config;
    EV_RETURN_IF_ERROR(ParseConfig(
        "{\"supportlonglong\": " + std::string(long_keys ? "true" : "false") +
            ", \"models\": [{\"model\": \"m\", \"sparse_files\": [\"a\", "
            "\"b\"], \"embedding_vecsize_per_table\": [8, 8], "
            "\"maxnum_catfeature_query_per_table_per_sample\": [4, 4], "
            "\"default_value_for_each_table\": [0.5, 0.5], "
            "\"deployed_device_list\": [0], \"max_batch_size\": 1024" +
            of_model + "}]" + more + "}",
        "ps.json", folder_, DatabaseTypes(), &config));
    return ParameterServer::Make(config, &serial_, &server_);
  }
  void Serve(const std::string& of_model, const std::string& more = "",
             bool long_keys = true) {
    const ev::Status status = TryServe(of_model, more, long_keys);
    ASSERT_TRUE(status.ok()) << status.message();
  }
  std::shared_ptr<ServedTable> Table(int number) {
    std::shared_ptr<ServedTable> table;
    const ev::Status status = server_->Find("m", number, kWidth, &table);
    EXPECT_TRUE(status.ok()) << status.message();
    return table;
  }
  template <typename Id>
  std::vector<float> Lookup(ServedTable* table, const std::vector<Id>& keys) {
    std::vector<float> rows(keys.size() * kWidth, -7.0f);
    const ev::Status status =
        table->Lookup(ev::Span<const Id>(keys), rows.data(), &serial_);
    EXPECT_TRUE(status.ok()) << status.message();
    return rows;
  }
  template <typename Id>
  static std::vector<float> Expected(const std::vector<Id>& keys, int version) {
    std::vector<float> rows;
    for (const int64_t key : keys) {
      for (int c = 0; c < kWidth; ++c) {
        rows.push_back(key >= -100 && key < kRows - 100 ? Value(key, version, c)
                                                        : kDefault);
      }
    }
    return rows;
  }
  // Draws small keys more often than large ones, and some that no tier has.
  template <typename Id = int64_t>
  static std::vector<Id> Skewed(std::mt19937* random, int count) {
    std::vector<Id> keys;
    for (int i = 0; i < count; ++i) {
      const double u = ((*random)() % 100000) / 100000.0;
      keys.push_back(static_cast<Id>(u * u * u * (kRows + 300)) - 150);
    }
    return keys;
  }
  static CacheStatistics StatisticsOf(ServedTable* table) {
    CacheStatistics statistics;
    EXPECT_TRUE(table->cache()->Statistics(&statistics).ok());
    return statistics;
  }
  static std::vector<float> Rows(const std::vector<int64_t>& keys,
                                 int version) {
    std::vector<float> rows;
    for (const int64_t key : keys) {
      for (int c = 0; c < kWidth; ++c) rows.push_back(Value(key, version, c));
    }
    return rows;
  }
  std::string AllNotes() {
    std::string all;
    for (const std::string& note : server_->notes()) all += note + "\n";
    return all;
  }

  std::string folder_;
  ev::Serial serial_;
  std::unique_ptr<ParameterServer> server_;
};

const char* const kTiers[] = {
    "",
    ", \"volatile_db\": {\"type\": \"multi_process_hash_map\"}",
    ", \"volatile_db\": {\"type\": \"none\"}, "
    "\"persistent_db\": {\"type\": \"mapped_files\"}",
    ", \"volatile_db\": {\"initial_cache_rate\": 0.1, \"num_partitions\": 2, "
    "\"cache_missed_embeddings\": true, \"overflow_margin\": 300}, "
    "\"persistent_db\": {\"type\": \"mapped_files\"}",
};

TEST_F(CachedServerTest, ParityUnderCachesOfAllSizes) {
  for (const char* tiers : kTiers) {
    for (const char* share : {"0.01", "0.1", "1.0"}) {
      Serve(", \"gpucacheper\": " + std::string(share), tiers);
      std::mt19937 random(3);
      for (int step = 0; step < 20; ++step) {
        const std::vector<int64_t> keys = Skewed(&random, 777);
        for (const int t : {0, 1}) {
          ASSERT_EQ(Lookup(Table(t).get(), keys), Expected(keys, t + 1))
              << tiers << share;
        }
      }
      const CacheStatistics statistics = StatisticsOf(Table(0).get());
      const Served served = Table(0)->served();
      EXPECT_EQ(served.from_cache, statistics.hits);
      EXPECT_EQ(served.keys, 20 * 777);
      EXPECT_EQ(served.from_cache + served.from_volatile +
                    served.from_persistent + served.defaults,
                served.keys);
      EXPECT_GT(served.defaults, 0);
      EXPECT_EQ(statistics.evicted > 0, std::string(share) != "1.0");
      if (std::string(share) == "1.0") {
        EXPECT_EQ(statistics.rows, kRows);
        EXPECT_EQ(served.from_volatile + served.from_persistent, 0);
      }
      EXPECT_EQ(server_->notes(), std::vector<std::string>());
      server_.reset();
    }
  }
}

// Rounds each row as a table of that type does.
std::vector<float> Rounded(RowType type, std::vector<float> rows) {
  const RowFormat format(kWidth, type);
  const int64_t count = rows.size() / kWidth;
  const std::vector<int64_t> keys(count);
  std::vector<float> stored(count * format.width());
  EXPECT_TRUE(PackRows(format, keys, rows.data(), stored.data()).ok());
  ev::Serial serial;
  UnpackRows(format, count, stored.data(), rows.data(), &serial);
  return rows;
}

TEST_F(CachedServerTest, PackedRowsInEveryTier) {
  for (const RowType type : {RowType::kFloat16, RowType::kUint8}) {
    const std::string name = std::string("\"") + RowTypeName(type) + "\"";
    const std::string types = ", \"row_type_per_table\": [" + name + ", " +
                              name + "], \"gpucacheper\": 0.05, \"gpucache\": ";
    for (const char* const tiers : {kTiers[0], kTiers[1], kTiers[3]}) {
      // Rows are served as the files have them, or rounded when they are read.
      const bool is_mapped = tiers != kTiers[0];
      if (is_mapped) {
        const ev::Status status = TryServe(types + "false", tiers);
        EXPECT_EQ(status.code(), ev::StatusCode::kInvalidArgument);
        EXPECT_NE(status.message().find("/a', which is served from its files: "
                                        "it has rows of 8 floats, expected 8 "
                                        "numbers of type "),
                  std::string::npos)
            << status.message();
        Pack("a", 1, type);
        Pack("b", 2, type);
      }
      for (const bool cached : {false, true}) {
        SCOPED_TRACE(types + tiers + (cached ? " cached" : ""));
        Serve(types + (cached ? "true" : "false"), tiers);
        std::mt19937 random(3);
        for (int step = 0; step < 10; ++step) {
          const std::vector<int64_t> keys = Skewed(&random, 777);
          ASSERT_EQ(Lookup(Table(1).get(), keys),
                    Rounded(type, Expected(keys, 2)));
        }
        const std::vector<int64_t> keys = {5, 99999};
        std::vector<float> rows = Rows(keys, 3);
        rows[kWidth] = std::nanf("");
        const auto update = [&] {
          return server_->Update("hps_et.m.sparse_embedding2", kWidth, keys,
                                 rows.data(), true, true);
        };
        const ev::Status status = update();
        EXPECT_EQ(status.code(), ev::StatusCode::kInvalidArgument);
        EXPECT_NE(status.message().find("table hps_et.m.sparse_embedding2, "
                                        "key 99999: expected a row of finite"),
                  std::string::npos)
            << status.message();
        EXPECT_EQ(Lookup(Table(1).get(), keys),
                  Rounded(type, Expected(keys, 2)));
        rows = Rows(keys, 3);
        ASSERT_TRUE(update().ok());
        EXPECT_EQ(Lookup(Table(1).get(), keys), Rounded(type, rows));
        server_.reset();
      }
      WriteTable("a", 1);
      WriteTable("b", 2);
      for (const char* table : {"a", "b"}) {
        remove((folder_ + "/" + table + "/emb_vector_" + RowTypeName(type))
                   .c_str());
      }
    }
  }
}

TEST_F(CachedServerTest, ThePlanHasTheFilesOfPackedRows) {
  const auto plan = [&](const std::string& tiers,
                        std::vector<std::string>* problems) {
    Config config;
    const ev::Status status = ParseConfig(
        "{\"models\": [{\"model\": \"m\", \"sparse_files\": [\"a\"], "
        "\"embedding_vecsize_per_table\": [8], \"row_type_per_table\": "
        "[\"uint8\"], \"maxnum_catfeature_query_per_table_per_sample\": [4], "
        "\"default_value_for_each_table\": [0.5], \"deployed_device_list\": "
        "[0], \"max_batch_size\": 1024}]" +
            tiers + "}",
        "ps.json", folder_, DatabaseTypes(), &config);
    EXPECT_TRUE(status.ok()) << status.message();
    return PlanJson(config, problems);
  };
  for (const RowType type : {RowType::kFloat32, RowType::kUint8}) {
    if (type == RowType::kUint8) Pack("a", 1, type);
    const int64_t row_bytes = type == RowType::kUint8 ? 12 : 32;
    for (const char* const tiers : kTiers) {
      std::vector<std::string> problems;
      const std::string json = plan(tiers, &problems);
      if (type == RowType::kFloat32 && tiers != kTiers[0]) {
        ASSERT_EQ(problems.size(), 1u) << tiers;
        EXPECT_NE(problems[0].find("/a': it has rows of 8 floats, expected 8 "
                                   "numbers of type uint8"),
                  std::string::npos)
            << problems[0];
        continue;
      }
      EXPECT_EQ(problems, std::vector<std::string>()) << tiers;
      for (const auto& field :
           {std::make_pair("file_bytes", kRows * (8 + row_bytes)),
            std::make_pair("lookup_bytes", int64_t{4096} * (32 + 12 + 16))}) {
        EXPECT_NE(json.find("\"" + std::string(field.first) +
                            "\": " + std::to_string(field.second)),
                  std::string::npos)
            << tiers << json;
      }
    }
  }
}

TEST_F(CachedServerTest, AFolderOfPackedRowsNeedsTheirType) {
  Pack("a", 1, RowType::kUint8);
  const ev::Status status = TryServe("");
  EXPECT_EQ(status.code(), ev::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("expected float32 rows in the file "
                                  "emb_vector, got emb_vector_uint8; add "
                                  "row_type_per_table with uint8"),
            std::string::npos)
      << status.message();
  Serve(", \"row_type_per_table\": [\"uint8\", \"float32\"]");
}

TEST_F(CachedServerTest, ThePolicyIsTheModels) {
  const std::string share = ", \"gpucacheper\": 0.02";
  for (const bool lfu : {false, true}) {
    const std::string name = lfu ? "\"lfu\"" : "\"lru\"";
    Serve(share + (lfu ? ", \"embedding_cache_policy\": \"lfu\"" : ""));
    EXPECT_EQ(Table(1)->cache()->options().policy,
              lfu ? CachePolicy::kLfu : CachePolicy::kLru);
    std::mt19937 random(3);
    for (int step = 0; step < 20; ++step) {
      const std::vector<int64_t> keys = Skewed(&random, 777);
      ASSERT_EQ(Lookup(Table(0).get(), keys), Expected(keys, 1));
    }
    EXPECT_GT(StatisticsOf(Table(0).get()).evicted, 0);
    std::vector<std::string> problems;
    EXPECT_NE(PlanJson(server_->config(), &problems)
                  .find("\"cache_policy\": " + name),
              std::string::npos);
    EXPECT_NE(server_->MetricsJson().find("\"policy\": " + name),
              std::string::npos);
    server_.reset();
  }
  // A cache without eviction has no policy.
  Serve(", \"use_static_table\": true");
  std::vector<std::string> problems;
  EXPECT_NE(
      PlanJson(server_->config(), &problems).find("\"cache_policy\": \"none\""),
      std::string::npos);
  EXPECT_NE(server_->MetricsJson().find("\"policy\": \"none\""),
            std::string::npos);
}

TEST_F(CachedServerTest, KeysOf32Bits) {
  Serve(", \"gpucacheper\": 0.1", "", false);
  std::mt19937 random(3);
  for (int step = 0; step < 5; ++step) {
    const std::vector<int32_t> keys = Skewed<int32_t>(&random, 500);
    EXPECT_EQ(Lookup(Table(0).get(), keys), Expected(keys, 1));
  }
  EXPECT_GT(Table(0)->served().from_cache, 0);
}

TEST_F(CachedServerTest, UpdatesWriteThrough) {
  for (const char* tiers : kTiers) {
    Serve(", \"gpucacheper\": 0.1", tiers);
    const std::vector<int64_t> keys = {5, 6, 7, 200};
    Lookup(Table(0).get(), std::vector<int64_t>{5, 6});
    ev::Status status = server_->Update("hps_et.m.sparse_embedding1", kWidth,
                                        keys, Rows(keys, 9).data(), true, true);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(StatisticsOf(Table(0).get()).refreshed, 2);
    EXPECT_EQ(Lookup(Table(0).get(), keys), Rows(keys, 9)) << tiers;
    EXPECT_EQ(Lookup(Table(1).get(), keys), Expected(keys, 2)) << tiers;
    // A key that no tier had is visible at once.
    const std::vector<int64_t> fresh = {1000000};
    EXPECT_EQ(Lookup(Table(0).get(), fresh), Expected(fresh, 1));
    status = server_->Update("hps_et.m.sparse_embedding1", kWidth, fresh,
                             Rows(fresh, 9).data(), true, true);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(Lookup(Table(0).get(), fresh), Rows(fresh, 9));
    server_.reset();
  }
}

// An update of the lower tier alone is hidden where the upper tier has a row.
// The cache must not show it before the tiers do.
TEST_F(CachedServerTest, AnUpdateBelowShowsWhenTheTiersShowIt) {
  for (const bool cached : {true, false}) {
    Serve(std::string(", \"gpucache\": ") + (cached ? "true" : "false"),
          ", \"persistent_db\": {\"type\": \"mapped_files\"}");
    const std::vector<int64_t> keys = {5, 6};
    Lookup(Table(0).get(), keys);
    for (const bool above : {false, true}) {
      const int version = above ? 8 : 7;
      const ev::Status status =
          server_->Update("hps_et.m.sparse_embedding1", kWidth, keys,
                          Rows(keys, version).data(), above, !above);
      ASSERT_TRUE(status.ok()) << status.message();
      EXPECT_EQ(Lookup(Table(0).get(), keys), Rows(keys, above ? 8 : 1));
    }
    EXPECT_EQ(Table(0)->cache() != nullptr, cached);
    server_.reset();
  }
}

TEST_F(CachedServerTest, ReloadAndRemoveEmptyTheCache) {
  Serve(", \"gpucacheper\": 0.2");
  const std::vector<int64_t> keys = {5, 6, 7};
  const std::shared_ptr<ServedTable> before = Table(0);
  Lookup(before.get(), keys);
  const int64_t bytes = HostDeviceCacheBytes();
  EXPECT_GT(bytes, 0);
  WriteTable("a", 6);
  ASSERT_TRUE(server_->ReloadModel("m", &serial_).ok());
  EXPECT_EQ(Lookup(Table(0).get(), keys), Expected(keys, 6));
  EXPECT_EQ(StatisticsOf(Table(0).get()).hits, 0);
  EXPECT_EQ(Lookup(before.get(), keys), Expected(keys, 1));
  ASSERT_TRUE(server_->RemoveModel("m").ok());
}

TEST_F(CachedServerTest, AReloadWithoutRoomForTwoCachesFreesTheOldOnes) {
  Serve(", \"gpucache\": true, \"gpucacheper\": 0.2");
  const std::vector<int64_t> keys = {5, 6, 7};
  const std::shared_ptr<ServedTable> before = Table(0);
  Lookup(before.get(), keys);
  const int64_t bytes = HostDeviceCacheBytes();
  SetHostDeviceCacheBytes(bytes);
  WriteTable("a", 6);
  ASSERT_TRUE(server_->ReloadModel("m", &serial_).ok());
  EXPECT_EQ(HostDeviceCacheBytes(), bytes);
  EXPECT_EQ(Lookup(Table(0).get(), keys), Expected(keys, 6));
  EXPECT_EQ(Lookup(before.get(), keys), Expected(keys, 1));
  // If the reload fails, the old model loses only its caches.
  SetHostDeviceCacheBytes(bytes / 2);
  const ev::Status status = server_->ReloadModel("m", &serial_);
  EXPECT_EQ(status.code(), ev::StatusCode::kResourceExhausted);
  EXPECT_NE(status.message().find("table 'sparse_embedding"),
            std::string::npos);
  EXPECT_EQ(Lookup(Table(0).get(), keys), Expected(keys, 6));
  EXPECT_NE(AllNotes().find("has no cache any more"), std::string::npos);
}

TEST_F(CachedServerTest, ADroppedCacheIsUnusedAndUpdatesGoOn) {
  Serve(", \"gpucacheper\": 0.5");
  const std::shared_ptr<ServedTable> table = Table(0);
  const std::vector<int64_t> keys = {5, 6, 7};
  Lookup(table.get(), keys);
  ASSERT_TRUE(table->cache()->holds_rows());
  table->cache()->Drop();
  EXPECT_FALSE(table->cache()->holds_rows());
  const int64_t misses = StatisticsOf(table.get()).misses;
  const std::vector<float> row(kWidth, 3.5f);
  const std::vector<int64_t> key = {6};
  ASSERT_TRUE(table->Update(key, row.data(), true, true).ok());
  EXPECT_EQ(Lookup(table.get(), key), row);
  EXPECT_EQ(StatisticsOf(table.get()).misses, misses);
}

TEST_F(CachedServerTest, ARepeatedNoteIsStoredOnce) {
  SetHostDeviceCacheBytes(int64_t{1} << 30);
  Serve(", \"gpucacheper\": 0.5");
  SetHostDeviceCacheBytes(HostDeviceCacheBytes() / 4);
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(server_->ReloadModel("m", &serial_).ok());
  }
  EXPECT_EQ(server_->notes().size(), 1u);
}

TEST_F(CachedServerTest, AFullDeviceIsAnErrorIfACacheIsRequired) {
  SetHostDeviceCacheBytes(1000);
  const ev::Status status = TryServe(", \"gpucache\": true");
  EXPECT_EQ(status.code(), ev::StatusCode::kResourceExhausted);
  EXPECT_NE(status.message().find("gpucacheper"), std::string::npos);
  EXPECT_EQ(HostDeviceCacheBytes(), 0);
  // Without a key that describes a cache, none is created.
  Serve("");
  EXPECT_EQ(AllNotes(), "");
  const std::vector<int64_t> keys = {5, 6, 7};
  EXPECT_EQ(Lookup(Table(0).get(), keys), Expected(keys, 1));
  EXPECT_EQ(Table(0)->cache(), nullptr);
}

TEST_F(CachedServerTest, WithoutADeviceOneNoteIsStored) {
  SetHostDeviceIsGone(true);
  Serve(", \"gpucache\": true");
  ASSERT_TRUE(server_->ReloadModel("m", &serial_).ok());
  EXPECT_EQ(AllNotes(),
            "gpucache: the test device is gone; the cache is left out, and "
            "rows are looked up in host memory\n");
  const std::vector<int64_t> keys = {5, 6, 7};
  EXPECT_EQ(Lookup(Table(0).get(), keys), Expected(keys, 1));
  CacheBatch batch;
  batch.count = 1;
  EXPECT_EQ(Table(0)->LookupOnDevice(batch, &serial_).code(),
            ev::StatusCode::kFailedPrecondition);
  server_.reset();
  // No note if the cache is disabled.
  Serve(", \"gpucache\": false");
  EXPECT_EQ(AllNotes(), "");
}

TEST_F(CachedServerTest, RowsAreCachedAtTheStart) {
  const auto rows = [&](const std::string& of_model) {
    Serve(of_model);
    const int64_t rows = StatisticsOf(Table(1).get()).rows;
    std::vector<int64_t> keys;
    for (int64_t key = -100; key < 0; ++key) keys.push_back(key);
    EXPECT_EQ(Lookup(Table(1).get(), keys), Expected(keys, 2));
    server_.reset();
    return rows;
  };
  EXPECT_EQ(rows(", \"gpucacheper\": 0.5"), 0);
  EXPECT_EQ(rows(", \"gpucacheper\": 1.0"), kRows);
  EXPECT_EQ(rows(", \"embedding_cache_type\": \"static\""), kRows);
  EXPECT_EQ(rows(", \"use_static_table\": true"), kRows);
  EXPECT_EQ(rows(", \"gpucacheper\": 0.5, "
                 "\"cache_refresh_percentage_per_iteration\": 0.2"),
            kRows / 2);
  EXPECT_EQ(rows(", \"gpucacheper\": 0.5, \"init_ec\": false, "
                 "\"cache_refresh_percentage_per_iteration\": 0.2"),
            0);
}

TEST_F(CachedServerTest, ExactBelowTheHitRateThresholdImmediateAboveIt) {
  Serve(", \"gpucacheper\": 0.5, \"hit_rate_threshold\": 0.5");
  const auto table = Table(0);
  const auto drain = [&] { server_->caches()->background()->Drain(); };
  std::vector<int64_t> keys;
  for (int64_t key = 0; key < 100; ++key) keys.push_back(key);
  EXPECT_EQ(Lookup(table.get(), keys), Expected(keys, 1));  // nothing hits
  for (int64_t key = 100; key < 150; ++key) keys.push_back(key);
  std::vector<float> want = Expected(keys, 1);
  std::fill(want.begin() + 100 * kWidth, want.end(), kDefault);
  EXPECT_EQ(Lookup(table.get(), keys), want);
  EXPECT_EQ(table->served().late, 50);
  drain();
  EXPECT_EQ(Lookup(table.get(), keys), Expected(keys, 1));
  EXPECT_EQ(table->served().late, 50);
  // A key that no tier has is not cached either.
  keys.push_back(1000000);
  Lookup(table.get(), keys);
  drain();
  EXPECT_EQ(StatisticsOf(table.get()).rows, 150);
}

TEST_F(CachedServerTest, IdsAndRowsOnTheDevice) {
  for (const char* of_model :
       {", \"gpucacheper\": 0.1", ", \"gpucache\": false"}) {
    Serve(of_model);
    std::mt19937 random(3);
    ev::testing::HostStream stream;
    const ev::DeviceStream given = stream.stream();
    for (int step = 0; step < 5; ++step) {
      const std::vector<int64_t> keys = Skewed(&random, 444);
      auto* const ids = static_cast<int64_t*>(
          ev::testing::AllocateHostDeviceMemory(keys.size() * 8));
      auto* const rows = static_cast<float*>(
          ev::testing::AllocateHostDeviceMemory(keys.size() * kWidth * 4));
      stream.Give([&] {
        std::copy(keys.begin(), keys.end(), ev::testing::Reach(ids));
      });
      CacheBatch batch;
      batch.ids = ids;
      batch.count = 444;
      batch.ids_on_device = batch.rows_on_device = true;
      batch.rows = rows;
      batch.stream = &given;
      const ev::Status status = Table(0)->LookupOnDevice(batch, &serial_);
      ASSERT_TRUE(status.ok()) << status.message();
      stream.Wait();
      const float* const reached = ev::testing::Reach(rows);
      EXPECT_EQ(std::vector<float>(reached, reached + 444 * kWidth),
                Expected(keys, 1));
      ev::testing::FreeHostDeviceMemory(ids);
      ev::testing::FreeHostDeviceMemory(rows);
    }
    EXPECT_EQ(Table(0)->served().from_cache > 0, Table(0)->cache() != nullptr);
    CacheBatch many;
    many.count = 4097;
    EXPECT_EQ(Table(0)->LookupOnDevice(many, &serial_).code(),
              ev::StatusCode::kInvalidArgument);
    server_.reset();
  }
}

TEST_F(CachedServerTest, DeviceBytesArePredicted) {
  for (const char* share : {"0.01", "0.3", "1.0"}) {
    const std::string of_model = ", \"gpucacheper\": " + std::string(share);
    Serve(of_model);
    std::vector<std::string> problems;
    const std::string plan = PlanJson(server_->config(), &problems);
    const size_t at = plan.rfind("\"device_bytes\": ");
    ASSERT_NE(at, std::string::npos);
    const double foretold = std::stod(plan.substr(at + 16));
    EXPECT_NEAR(HostDeviceCacheBytes() / foretold, 1.0, 0.05) << share;
    EXPECT_NE(server_->MetricsJson().find("\"cache\": {\"rows\": "),
              std::string::npos);
    server_.reset();
  }
}

// Lookups during updates: each row is whole and never older than its last
// update.
TEST_F(CachedServerTest, UpdatesBesideLookups) {
  Serve(", \"gpucacheper\": 0.02");
  const auto table = Table(0);
  std::atomic<int> done{1};
  std::atomic<int64_t> wrong{0};
  std::thread updates([&] {
    for (int version = 2; version < 60; ++version) {
      std::vector<int64_t> keys;
      for (int64_t key = 0; key < 200; ++key) keys.push_back(key);
      ev::Serial serial;
      wrong += !server_
                    ->Update(table->tag(), kWidth, keys,
                             Rows(keys, version).data(), true, true)
                    .ok();
      done = version;
    }
    done = 1000;
  });
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      int least;
      while ((least = done) < 1000) {
        std::vector<int64_t> keys(150);
        for (int64_t& key : keys) key = random() % 200;
        const std::vector<float> rows = Lookup(table.get(), keys);
        for (size_t i = 0; i < keys.size(); ++i) {
          const float* const row = rows.data() + i * kWidth;
          const int version = static_cast<int>((row[0] - keys[i]) * 4 + 0.5f);
          const std::vector<float> whole = Rows({keys[i]}, version);
          wrong +=
              version < least || !std::equal(whole.begin(), whole.end(), row);
        }
      }
    });
  }
  updates.join();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace hps
