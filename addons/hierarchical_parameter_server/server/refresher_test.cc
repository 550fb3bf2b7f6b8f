// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Tests refresh_interval: caches that follow databases written by others. The
// cache is the stand-in; the other writer is a second server or a table's own
// tier.

#include <sys/stat.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "addons/hierarchical_parameter_server/cache/testing/host_device_cache.h"
#include "addons/hierarchical_parameter_server/database/testing/child_process.h"
#include "addons/hierarchical_parameter_server/database/testing/redis_server.h"
#include "addons/hierarchical_parameter_server/server/parameter_server.h"
#include "addons/hierarchical_parameter_server/source/testing/made_updates.h"
#include "gtest/gtest.h"

namespace hps {
namespace {

constexpr int kWidth = 4;
constexpr char kTag[] = "hps_et.m.t";
constexpr char kOften[] = ", \"gpucacheper\": 0.5, \"refresh_interval\": 0.01";

// Waits until `what` is true, for at most half a minute.
template <typename What>
bool Soon(const What& what) {
  for (int i = 0; i < 3000; ++i) {
    if (what()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

class RefresherTest : public ::testing::Test {
 protected:
  void SetUp() override {
    WriteTable(0, 1000, 0);
    ASSERT_EQ(HostDeviceCacheBytes(), 0);
  }
  void TearDown() override {
    server_.reset();
    EXPECT_EQ(HostDeviceCacheBytes(), 0) << "a cache outlives its server";
  }
  void WriteTable(int64_t begin, int64_t end, int version) {
    const std::string table = folder_.path() + "/t";
    mkdir(table.c_str(), 0755);
    const std::vector<int64_t> keys = KeysFrom(begin, end);
    const std::vector<float> rows = SealedRows(keys, version, kWidth);
    std::ofstream(table + "/key", std::ios::binary)
        .write(reinterpret_cast<const char*>(keys.data()), keys.size() * 8);
    std::ofstream(table + "/emb_vector", std::ios::binary)
        .write(reinterpret_cast<const char*>(rows.data()), rows.size() * 4);
  }
  std::unique_ptr<ParameterServer> Serve(const std::string& of_model,
                                         const std::string& more = "") {
    const std::string text =
        "{\"models\": [{\"model\": \"m\", \"sparse_files\": [\"t\"], "
        "\"embedding_table_names\": [\"t\"], "
        "\"embedding_vecsize_per_table\": [4], "
        "\"maxnum_catfeature_query_per_table_per_sample\": [10], "
        "\"default_value_for_each_table\": [-1], "
        "\"deployed_device_list\": [0], \"max_batch_size\": 1024" +
        of_model + "}]" + more + "}";
    Config config;
    std::unique_ptr<ParameterServer> server;
    ev::Status status =
        ParseConfig(text, "ps.json", folder_.path(), DatabaseTypes(), &config);
    EXPECT_TRUE(status.ok()) << status.message();
    status = ParameterServer::Make(config, &serial_, &server);
    EXPECT_TRUE(status.ok()) << status.message();
    return server;
  }
  static std::shared_ptr<ServedTable> TableOf(ParameterServer* server) {
    std::shared_ptr<ServedTable> table;
    const ev::Status status = server->Find("m", 0, kWidth, &table);
    EXPECT_TRUE(status.ok()) << status.message();
    return table;
  }
  // Counts the keys whose row does not have this version. Version -1 is the
  // default value.
  int64_t NumOther(ServedTable* table, const std::vector<int64_t>& keys,
                   int version) {
    std::vector<float> rows(keys.size() * kWidth, -7.0f);
    ev::Serial serial;
    const ev::Status status =
        table->Lookup(ev::Span<const int64_t>(keys), rows.data(), &serial);
    EXPECT_TRUE(status.ok()) << status.message();
    int64_t num_other = 0;
    for (size_t i = 0; i < keys.size(); ++i) {
      const float* const row = &rows[i * kWidth];
      num_other += version == -1 ? row[0] != -1.0f || row[1] != -1.0f
                                 : VersionOf(keys[i], row, kWidth) != version;
    }
    return num_other;
  }
  // Changes rows in the tier without informing the cache.
  void Store(Table* below, const std::vector<int64_t>& keys, int version) {
    const ev::Status status =
        below->Insert(keys, SealedRows(keys, version, kWidth).data(), &serial_);
    ASSERT_TRUE(status.ok()) << status.message();
  }
  static std::string AllNotes(const ParameterServer& server) {
    std::string all;
    for (const std::string& note : server.notes()) all += note + "\n";
    return all;
  }

  const TemporaryFolder folder_;
  ev::Serial serial_;
  std::unique_ptr<ParameterServer> server_;
};

TEST_F(RefresherTest, RowsChangedInATierBecomeVisible) {
  for (const char* of_model :
       {kOften,
        ", \"use_static_table\": true, \"refresh_interval\": 0.01, "
        "\"refresh_delay\": 0.05",
        ", \"gpucacheper\": 0.3, \"refresh_interval\": 0.01, "
        "\"embedding_cache_policy\": \"lfu\""}) {
    server_ = Serve(of_model);
    const std::shared_ptr<ServedTable> table = TableOf(server_.get());
    const std::vector<int64_t> keys = KeysFrom(100, 300);
    EXPECT_EQ(NumOther(table.get(), keys, 0), 0);
    for (const int version : {1, 2}) {
      Store(table->above().get(), keys, version);
      EXPECT_TRUE(Soon([&] {
        return NumOther(table.get(), keys, version) == 0;
      })) << server_->MetricsJson();
    }
    // Rows removed from the tier become missing.
    int64_t removed = 0;
    ASSERT_TRUE(table->above()->Remove(keys, &removed).ok());
    EXPECT_EQ(removed, 200);
    EXPECT_TRUE(Soon([&] { return NumOther(table.get(), keys, -1) == 0; }))
        << of_model;
    EXPECT_TRUE(Soon([&] { return table->refreshed().walks > 0; }));
    EXPECT_GT(table->refreshed().rows, 0);
    EXPECT_EQ(table->refreshed().failures, 0);
    EXPECT_NE(server_->MetricsJson().find("\"refresh\": {\"walks\": "),
              std::string::npos);
    EXPECT_EQ(AllNotes(*server_), "");
    server_.reset();
  }
}

TEST_F(RefresherTest, WithoutAnIntervalOrBeforeTheDelayRowsStay) {
  for (const char* of_model :
       {", \"gpucacheper\": 0.5",
        ", \"gpucacheper\": 0.5, \"refresh_interval\": 100000",
        ", \"gpucacheper\": 0.5, \"refresh_interval\": 0.001, "
        "\"refresh_delay\": 100000"}) {
    server_ = Serve(of_model);
    const std::shared_ptr<ServedTable> table = TableOf(server_.get());
    const std::vector<int64_t> keys = KeysFrom(100, 300);
    EXPECT_EQ(NumOther(table.get(), keys, 0), 0);
    Store(table->above().get(), keys, 1);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    EXPECT_EQ(NumOther(table.get(), keys, 0), 0);
    EXPECT_EQ(table->refreshed().walks, 0);
    const bool refreshes = server_->config().models[0].refresh_interval > 0;
    EXPECT_EQ(
        server_->MetricsJson().find("\"refresh\": null") == std::string::npos,
        refreshes);
    // The server stops at once, however long the interval is.
    const auto begin = std::chrono::steady_clock::now();
    server_.reset();
    EXPECT_LT(std::chrono::steady_clock::now() - begin,
              std::chrono::seconds(20));
  }
}

TEST_F(RefresherTest, ModelsComeAreReloadedAndGo) {
  server_ = Serve(kOften);
  const std::vector<int64_t> keys = KeysFrom(0, 200);
  EXPECT_EQ(NumOther(TableOf(server_.get()).get(), keys, 0), 0);
  WriteTable(0, 1000, 3);
  ASSERT_TRUE(server_->ReloadModel("m", &serial_).ok());
  std::shared_ptr<ServedTable> table = TableOf(server_.get());
  EXPECT_EQ(NumOther(table.get(), keys, 3), 0);
  Store(table->above().get(), keys, 4);
  EXPECT_TRUE(Soon([&] { return NumOther(table.get(), keys, 4) == 0; }));
  table.reset();
  const ModelConfig model = server_->config().models[0];
  ASSERT_TRUE(server_->RemoveModel("m").ok());
  // Walks do not keep a cache alive.
  EXPECT_TRUE(Soon([] { return HostDeviceCacheBytes() == 0; }));
  ASSERT_TRUE(server_->AddModel(model, &serial_).ok());
  table = TableOf(server_.get());
  EXPECT_EQ(NumOther(table.get(), keys, 3), 0);
  Store(table->above().get(), keys, 5);
  EXPECT_TRUE(Soon([&] { return NumOther(table.get(), keys, 5) == 0; }));
  // A dropped cache is no longer walked.
  table->cache()->Drop();
  Store(table->above().get(), keys, 6);
  EXPECT_EQ(NumOther(table.get(), keys, 6), 0);
}

// Updates of this process run during walks that never pause. An update is
// visible at once and stays.
TEST_F(RefresherTest, UpdatesBesideWalksAreNeverUndone) {
  server_ = Serve(", \"gpucacheper\": 0.5, \"refresh_interval\": 0.000001",
                  ", \"volatile_db\": {\"num_partitions\": 2}");
  const std::shared_ptr<ServedTable> table = TableOf(server_.get());
  const std::vector<int64_t> keys = KeysFrom(0, 400);
  std::atomic<int> done{0};
  std::atomic<bool> stop{false};
  std::atomic<int64_t> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&] {
      ev::Serial serial;
      std::vector<float> rows(keys.size() * kWidth);
      while (!stop) {
        const int least = done;
        wrong +=
            !table->Lookup(ev::Span<const int64_t>(keys), rows.data(), &serial)
                 .ok();
        for (size_t i = 0; i < keys.size(); ++i) {
          // a torn row has no version
          wrong += VersionOf(keys[i], &rows[i * kWidth], kWidth) < least;
        }
      }
    });
  }
  for (int version = 1; version < 200; ++version) {
    const ev::Status status =
        server_->Update(kTag, kWidth, keys,
                        SealedRows(keys, version, kWidth).data(), true, true);
    ASSERT_TRUE(status.ok()) << status.message();
    done = version;
  }
  EXPECT_TRUE(Soon([&] { return table->refreshed().walks >= 20; }));
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(NumOther(table.get(), keys, 199), 0);
}

std::string RedisAt(const RedisServer& redis, const std::string& more) {
  return ", \"volatile_db\": {\"type\": \"redis\", \"address\": \"" +
         redis.address() + "\", \"timeout_ms\": 500" + more + "}";
}

TEST_F(RefresherTest, RowsStoredByAnotherServerBecomeVisible) {
  const std::string reason = NoRedisReason();
  if (!reason.empty()) GTEST_SKIP() << reason;
  RedisServer redis;
  ASSERT_TRUE(redis.Start());
  std::unique_ptr<ParameterServer> writer =
      Serve(", \"gpucache\": false", RedisAt(redis, ""));
  server_ =
      Serve(kOften, RedisAt(redis, ", \"initialize_after_startup\": false"));
  EXPECT_EQ(AllNotes(*server_), "");
  const std::shared_ptr<ServedTable> table = TableOf(server_.get());
  const std::vector<int64_t> keys = KeysFrom(0, 500);
  EXPECT_EQ(NumOther(table.get(), keys, 0), 0);
  ASSERT_TRUE(writer
                  ->Update(kTag, kWidth, keys,
                           SealedRows(keys, 7, kWidth).data(), true, true)
                  .ok());
  EXPECT_TRUE(Soon([&] { return NumOther(table.get(), keys, 7) == 0; }))
      << server_->MetricsJson();
  // Without the database the rows stay, and the failure is counted.
  redis.Kill();
  EXPECT_TRUE(Soon([&] { return table->refreshed().failures > 0; }));
  EXPECT_NE(table->refreshed().last_failure, "");
  const int64_t rows = table->served().from_cache;
  const std::vector<int64_t> some = KeysFrom(10, 20);
  std::vector<float> read(some.size() * kWidth);
  ASSERT_TRUE(
      table->Lookup(ev::Span<const int64_t>(some), read.data(), &serial_).ok());
  EXPECT_EQ(table->served().from_cache, rows + 10);
  // The database returns with other rows.
  ASSERT_TRUE(redis.Start());
  WriteTable(0, 1000, 8);
  writer = Serve(", \"gpucache\": false", RedisAt(redis, ""));
  ASSERT_TRUE(server_->ReloadModel("m", &serial_).ok());
  const std::shared_ptr<ServedTable> reloaded = TableOf(server_.get());
  EXPECT_EQ(NumOther(reloaded.get(), keys, 8), 0);
  ASSERT_TRUE(writer
                  ->Update(kTag, kWidth, keys,
                           SealedRows(keys, 9, kWidth).data(), true, true)
                  .ok());
  EXPECT_TRUE(Soon([&] { return NumOther(reloaded.get(), keys, 9) == 0; }));
}

// Without an interval, a note warns that such rows stay.
TEST_F(RefresherTest, ASharedDatabaseIsNoted) {
  const std::string reason = NoRedisReason();
  if (!reason.empty()) GTEST_SKIP() << reason;
  RedisServer redis;
  ASSERT_TRUE(redis.Start());
  server_ = Serve(", \"gpucacheper\": 0.5", RedisAt(redis, ""));
  EXPECT_NE(
      AllNotes(*server_).find("set refresh_interval to read them periodically"),
      std::string::npos);
}

// Rows of the lower tier are returned meanwhile, but not cached, since the
// unavailable tier may have newer ones.
TEST_F(RefresherTest, NoRowIsCachedWhileATierIsSkipped) {
  const std::string reason = NoRedisReason();
  if (!reason.empty()) GTEST_SKIP() << reason;
  RedisServer redis({"--appendonly", "yes", "--appendfsync", "always"});
  ASSERT_TRUE(redis.Start());
  server_ =
      Serve(", \"gpucacheper\": 0.5, \"refresh_interval\": 0.01",
            ", \"persistent_db\": {\"type\": \"mapped_files\"}, "
            "\"volatile_db\": {\"type\": \"redis\", \"address\": \"" +
                redis.address() +
                "\", \"lookup_timeout_ms\": 100, \"breaker_failures\": 1, "
                "\"breaker_pause_ms\": 200, \"on_unavailable\": \"skip\"}");
  const std::shared_ptr<ServedTable> table = TableOf(server_.get());
  const std::vector<int64_t> keys = KeysFrom(0, 200),
                             others = KeysFrom(200, 300);
  Store(table->above().get(), KeysFrom(0, 300), 1);
  EXPECT_TRUE(Soon([&] { return NumOther(table.get(), keys, 1) == 0; }));
  redis.Kill();
  // A refresh must not take the lower tier's rows for new ones either.
  const int64_t before = table->refreshed().failures;
  EXPECT_TRUE(Soon([&] { return table->refreshed().failures > before + 2; }));
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(NumOther(table.get(), keys, 1), 0);    // cached
    EXPECT_EQ(NumOther(table.get(), others, 0), 0);  // not cached
    EXPECT_EQ(NumOther(table.get(), {5000}, -1), 0);
  }
  EXPECT_EQ(table->served().unavailable, 3);
  CacheStatistics statistics;
  ASSERT_TRUE(table->cache()->Statistics(&statistics).ok());
  EXPECT_EQ(statistics.rows, 200);
  ASSERT_TRUE(redis.Start());  // restarts with its rows
  EXPECT_TRUE(Soon([&] { return NumOther(table.get(), others, 1) == 0; }));
}

}  // namespace
}  // namespace hps
