// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Tests the server with databases and update sources in other programs: Redis,
// RocksDB, a folder of updates, Kafka.

#include <stdlib.h>
#include <sys/stat.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "addons/hierarchical_parameter_server/database/testing/child_process.h"
#include "addons/hierarchical_parameter_server/database/testing/redis_server.h"
#include "addons/hierarchical_parameter_server/server/parameter_server.h"
#include "addons/hierarchical_parameter_server/server/warnings.h"
#include "addons/hierarchical_parameter_server/source/directory/directory_source.h"
#include "addons/hierarchical_parameter_server/source/kafka/kafka_producer.h"
#include "addons/hierarchical_parameter_server/source/testing/kafka_mock.h"
#include "addons/hierarchical_parameter_server/source/testing/made_updates.h"
#include "gtest/gtest.h"

namespace hps {
namespace {

constexpr int kWidth = 4;
constexpr char kTag[] = "hps_et.m.t";

std::string NoRocksDbReason() {
  Config config;
  config.persistent_db.path = "there/is/no/such/folder";
  MadeDatabase made;
  const ev::Status status = MakeDatabase("rocks_db", config, &made);
  return status.code() == ev::StatusCode::kFailedPrecondition ? status.message()
                                                              : "";
}

class TiersTest : public ::testing::Test {
 protected:
  void SetUp() override { WriteTable(0, 1000, 0); }
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
  ev::Status TryServe(const std::string& more) {
    server_.reset();
    const std::string text =
        "{\"models\": [{\"model\": \"m\", \"sparse_files\": [\"t\"], "
        "\"embedding_table_names\": [\"t\"], "
        "\"embedding_vecsize_per_table\": [4], "
        "\"maxnum_catfeature_query_per_table_per_sample\": [10], "
        "\"default_value_for_each_table\": [-1], "
        "\"deployed_device_list\": [0], \"max_batch_size\": 1024}], " +
        more + "}";
    Config config;
    EV_RETURN_IF_ERROR(
        ParseConfig(text, "ps.json", folder_.path(), DatabaseTypes(), &config));
    return ParameterServer::Make(config, &serial_, &server_);
  }
  void Serve(const std::string& more) {
    const ev::Status status = TryServe(more);
    ASSERT_TRUE(status.ok()) << status.message();
  }
  ev::Status LookUp(const std::vector<int64_t>& keys, float* rows) {
    std::shared_ptr<ServedTable> table;
    EV_RETURN_IF_ERROR(server_->Find("m", 0, kWidth, &table));
    return table->Lookup(ev::Span<const int64_t>(keys), rows, &serial_);
  }
  // Counts the keys whose row does not have this version.
  int64_t NumOther(const std::vector<int64_t>& keys, int version) {
    std::shared_ptr<ServedTable> table;
    std::vector<float> rows(keys.size() * kWidth, -7.0f);
    ev::Status status = server_->Find("m", 0, kWidth, &table);
    EXPECT_TRUE(status.ok()) << status.message();
    status =
        table->Lookup(ev::Span<const int64_t>(keys), rows.data(), &serial_);
    EXPECT_TRUE(status.ok()) << status.message();
    int64_t num_other = 0;
    for (size_t i = 0; i < keys.size(); ++i) {
      num_other += VersionOf(keys[i], &rows[i * kWidth], kWidth) != version;
    }
    return num_other;
  }
  void ExpectSoon(const std::vector<int64_t>& keys, int version) {
    int64_t num_other = -1;
    for (int i = 0; i < 3000; ++i) {
      num_other = NumOther(keys, version);
      if (num_other == 0) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    FAIL() << num_other << " keys have no row of version " << version << "; "
           << server_->MetricsJson();
  }
  // A row is visible before it is counted.
  void ExpectDelivered(int num_rows) {
    const std::string text =
        "\"delivered_rows\": " + std::to_string(num_rows) + ",";
    for (int i = 0; i < 1000; ++i) {
      if (server_->MetricsJson().find(text) != std::string::npos) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    FAIL() << server_->MetricsJson();
  }
  std::string Redis(const std::string& more = "") {
    return "\"volatile_db\": {\"type\": \"redis_cluster\", \"address\": \"" +
           redis_->address() + "\"" + more + "}";
  }
  void StartRedis() {
    redis_ = std::make_unique<RedisServer>();
    ASSERT_TRUE(redis_->Start());
  }
  std::string RocksDb(const std::string& more = "") {
    return "\"persistent_db\": {\"type\": \"rocks_db\", \"path\": \"" +
           folder_.path() + "/store\", \"num_threads\": 2" + more + "}";
  }
  std::string Directory() {
    return "\"update_source\": {\"type\": \"directory\", \"path\": \"" +
           updates_ + "\", \"poll_timeout_ms\": 20}";
  }
  void Send(const std::vector<int64_t>& keys, int version) {
    std::unique_ptr<UpdateProducer> producer;
    ASSERT_TRUE(DirectoryProducer::Open(updates_, &producer).ok());
    ASSERT_TRUE(
        producer
            ->Send(kTag, kWidth, keys, SealedRows(keys, version, kWidth).data())
            .ok());
    ASSERT_TRUE(producer->Flush(1000).ok());
  }

  const TemporaryFolder folder_;
  const std::string updates_ = folder_.path() + "/updates";
  ev::Serial serial_;
  std::unique_ptr<RedisServer> redis_;
  std::unique_ptr<ParameterServer> server_;
};

TEST_F(TiersTest, RedisServesAndRefillsWhatItHasLost) {
  const std::string reason = NoRedisReason();
  if (!reason.empty()) GTEST_SKIP() << reason;
  StartRedis();
  Serve(Redis());
  EXPECT_EQ(NumOther(KeysFrom(0, 1000), 0), 0);
  redis_->Kill();
  ASSERT_TRUE(redis_->Start());  // restarts empty
  std::shared_ptr<ServedTable> table;
  ASSERT_TRUE(server_->Find("m", 0, kWidth, &table).ok());
  std::vector<float> rows(kWidth);
  const std::vector<int64_t> keys = {1};
  EXPECT_EQ(table->Lookup(ev::Span<const int64_t>(keys), rows.data(), &serial_)
                .code(),
            ev::StatusCode::kDataLoss);
  ASSERT_TRUE(server_->ReloadModel("m", &serial_).ok());
  EXPECT_EQ(NumOther(KeysFrom(0, 1000), 0), 0);
}

TEST_F(TiersTest, RedisAboveRocksDbMayLoseItsRows) {
  std::string reason = NoRedisReason();
  if (reason.empty()) reason = NoRocksDbReason();
  if (!reason.empty()) GTEST_SKIP() << reason;
  StartRedis();
  Serve(Redis(", \"initial_cache_rate\": 0.5, \"cache_missed_embeddings\": "
              "true") +
        ", " + RocksDb());
  EXPECT_EQ(NumOther(KeysFrom(0, 1000), 0), 0);
  redis_->Kill();
  ASSERT_TRUE(redis_->Start());  // restarts empty
  for (int i = 0; i < 3; ++i) EXPECT_EQ(NumOther(KeysFrom(0, 1000), 0), 0);
  server_->elevator()->Drain();
  EXPECT_GT(redis_->Call({"DBSIZE"}).number, 0);
  EXPECT_EQ(NumOther(KeysFrom(0, 1000), 0), 0);
}

// Two lookups fail because Redis is gone; later ones skip it.
TEST_F(TiersTest, ATierThatIsAwayIsAnErrorAtOnce) {
  const std::string reason = NoRedisReason();
  if (!reason.empty()) GTEST_SKIP() << reason;
  StartRedis();
  Serve(
      Redis(", \"lookup_timeout_ms\": 100, \"breaker_failures\": 2, "
            "\"breaker_pause_ms\": 3600000"));
  EXPECT_EQ(NumOther(KeysFrom(0, 1000), 0), 0);
  redis_->Kill();
  TakeWarnings();
  std::vector<float> rows(kWidth);
  std::string message;
  for (int i = 0; i < 50; ++i) {
    const ev::Status status = LookUp({1}, rows.data());
    EXPECT_EQ(status.code(), ev::StatusCode::kUnavailable);
    message = status.message();
  }
  for (const std::string& word :
       {std::string("volatile_db redis_cluster is unavailable"),
        redis_->address()}) {
    EXPECT_NE(message.find(word), std::string::npos) << message;
  }
  EXPECT_EQ(TakeWarnings().size(), 1u);
  const std::string metrics = server_->MetricsJson();
  for (const char* part :
       {"\"failed\": 50,", "\"unavailable\": 0,", "\"away\": true",
        "\"failures\": 2,", "\"skipped\": 48,", "\"volatile\": {\"error\": "}) {
    EXPECT_NE(metrics.find(part), std::string::npos) << part << metrics;
  }
}

TEST_F(TiersTest, ATierThatIsAwayIsSkippedAndTriedAgain) {
  const std::string reason = NoRedisReason();
  if (!reason.empty()) GTEST_SKIP() << reason;
  redis_ = std::make_unique<RedisServer>(std::vector<std::string>{
      "--appendonly", "yes", "--appendfsync", "always"});
  ASSERT_TRUE(redis_->Start());
  Serve(
      Redis(", \"lookup_timeout_ms\": 100, \"breaker_failures\": 1, "
            "\"breaker_pause_ms\": 200, \"on_unavailable\": \"skip\""));
  redis_->Kill();
  std::vector<float> rows(3 * kWidth);
  for (int i = 0; i < 10; ++i) {
    const ev::Status status = LookUp({1, 5000, 2}, rows.data());
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(rows, std::vector<float>(3 * kWidth, -1.0f));
  }
  std::shared_ptr<ServedTable> table;
  ASSERT_TRUE(server_->Find("m", 0, kWidth, &table).ok());
  EXPECT_EQ(table->served().unavailable, 30);
  EXPECT_EQ(table->served().defaults, 0);
  EXPECT_EQ(table->served().failed, 0);
  ASSERT_TRUE(redis_->Start());  // restarts with its rows
  ExpectSoon(KeysFrom(0, 1000), 0);
  EXPECT_NE(server_->HealthJson().find("\"away\": false"), std::string::npos);
}

// Rows of the persistent tier are returned; the volatile tier has newer ones
// for some.
TEST_F(TiersTest, ATierThatIsAwayLeavesTheOneBelow) {
  const std::string reason = NoRedisReason();
  if (!reason.empty()) GTEST_SKIP() << reason;
  StartRedis();
  Serve(Redis(", \"lookup_timeout_ms\": 100, \"on_unavailable\": \"skip\", "
              "\"cache_missed_embeddings\": true") +
        ", \"persistent_db\": {\"type\": \"mapped_files\"}");
  redis_->Kill();
  for (int i = 0; i < 5; ++i) EXPECT_EQ(NumOther(KeysFrom(0, 1000), 0), 0);
  std::vector<float> row(kWidth);
  ASSERT_TRUE(LookUp({5000}, row.data()).ok());
  std::shared_ptr<ServedTable> table;
  ASSERT_TRUE(server_->Find("m", 0, kWidth, &table).ok());
  EXPECT_EQ(table->served().from_persistent, 5000);
  EXPECT_EQ(table->served().unavailable, 1);
}

TEST_F(TiersTest, TiersAreReachedWithoutAServer) {
  Config config;
  std::string what = "x";
  EXPECT_TRUE(ReachDatabase(config.volatile_db.type, config, &what).ok());
  EXPECT_EQ(what, "");
  EXPECT_TRUE(ReachDatabase("mapped_files", config, &what).ok());
  EXPECT_EQ(what, "");
  if (NoRocksDbReason().empty()) {
    const auto reach = [&] { return ReachDatabase("rocks_db", config, &what); };
    PersistentConfig& store = config.persistent_db;
    store.path = folder_.path() + "/store";
    EXPECT_TRUE(reach().ok());  // it can be created
    EXPECT_EQ(what, "rocks_db " + store.path);
    store.read_only = true;
    EXPECT_EQ(reach().code(), ev::StatusCode::kNotFound);
    Serve("\"volatile_db\": {\"type\": \"disabled\"}, " + RocksDb());
    EXPECT_TRUE(reach().ok());  // while the server uses it
    store.path = folder_.path() + "/none/store";
    store.read_only = false;
    EXPECT_EQ(reach().code(), ev::StatusCode::kFailedPrecondition);
  }
  if (!NoRedisReason().empty()) return;
  StartRedis();
  VolatileConfig& memory = config.volatile_db;
  memory.type = "redis";
  memory.redis.address = redis_->address();
  memory.redis.timeout_ms = 300;
  const auto reach = [&] { return ReachDatabase("redis", config, &what); };
  EXPECT_TRUE(reach().ok());
  EXPECT_EQ(what, "redis " + redis_->address());
  redis_->Kill();
  EXPECT_EQ(reach().code(), ev::StatusCode::kUnavailable);
}

TEST_F(TiersTest, RocksDbIsServedReadOnlyWithoutBeingFilled) {
  const std::string reason = NoRocksDbReason();
  if (!reason.empty()) GTEST_SKIP() << reason;
  const std::string off = "\"volatile_db\": {\"type\": \"disabled\"}, ";
  Serve(off + RocksDb());
  ASSERT_TRUE(server_
                  ->Update(kTag, kWidth, KeysFrom(5, 6),
                           SealedRow(5, 3, kWidth).data(), false, true)
                  .ok());
  Serve(off + RocksDb(", \"read_only\": true"));
  EXPECT_EQ(NumOther({5}, 3), 0);
  EXPECT_EQ(NumOther({6}, 0), 0);
  EXPECT_FALSE(server_
                   ->Update(kTag, kWidth, KeysFrom(5, 6),
                            SealedRow(5, 4, kWidth).data(), false, true)
                   .ok());
}

TEST_F(TiersTest, UpdatesFromAFolderComeAgainWithAFreshServer) {
  Send(KeysFrom(0, 10), 1);
  const std::string config =
      "\"volatile_db\": {\"type\": \"hash_map\"}, " + Directory();
  Serve(config);
  ExpectSoon(KeysFrom(0, 10), 1);
  Send(KeysFrom(5, 15), 2);
  Send(KeysFrom(2000, 2010), 2);  // new rows
  ExpectSoon(KeysFrom(5, 15), 2);
  ExpectSoon(KeysFrom(2000, 2010), 2);
  EXPECT_EQ(NumOther(KeysFrom(15, 1000), 0), 0);
  // After filling from its files, it reads all updates again.
  Serve(config);
  ExpectSoon(KeysFrom(0, 5), 1);
  ExpectSoon(KeysFrom(5, 15), 2);
  ExpectDelivered(30);
}

TEST_F(TiersTest, AStoreThatIsNotFilledGoesOnWhereItWas) {
  const std::string reason = NoRocksDbReason();
  if (!reason.empty()) GTEST_SKIP() << reason;
  const std::string off = "\"volatile_db\": {\"type\": \"disabled\"}, ";
  Serve(off + RocksDb());
  const std::string config = off +
                             RocksDb(", \"initialize_after_startup\": false") +
                             ", " + Directory();
  Send(KeysFrom(0, 10), 1);
  Serve(config);
  ExpectSoon(KeysFrom(0, 10), 1);
  Serve(config);
  EXPECT_EQ(NumOther(KeysFrom(0, 10), 1), 0);
  Send(KeysFrom(5, 15), 2);
  ExpectSoon(KeysFrom(5, 15), 2);
  ExpectDelivered(10);
}

TEST_F(TiersTest, AStoreThatIsFilledAgainReadsUpdatesThatItHadCommitted) {
  const std::string reason = NoRocksDbReason();
  if (!reason.empty()) GTEST_SKIP() << reason;
  const std::string off = "\"volatile_db\": {\"type\": \"disabled\"}, ";
  Serve(off + RocksDb());
  Send(KeysFrom(0, 10), 1);
  Serve(off + RocksDb(", \"initialize_after_startup\": false") + ", " +
        Directory());
  ExpectSoon(KeysFrom(0, 10), 1);
  WriteTable(0, 1000, 2);
  Serve(off + RocksDb() + ", " + Directory());
  ExpectSoon(KeysFrom(0, 10), 1);
  ExpectDelivered(10);
  EXPECT_EQ(NumOther(KeysFrom(10, 1000), 2), 0);
}

class ReloadTest : public TiersTest,
                   public ::testing::WithParamInterface<bool> {
 protected:
  // A database that outlives a model.
  bool IsRedis() const { return GetParam(); }
  std::string Reason() const {
    return IsRedis() ? NoRedisReason() : NoRocksDbReason();
  }
  std::string One() {
    if (IsRedis() && redis_ == nullptr) StartRedis();
    return IsRedis()
               ? Redis()
               : "\"volatile_db\": {\"type\": \"disabled\"}, " + RocksDb();
  }
  void Push(const std::vector<int64_t>& keys, int version) {
    ASSERT_TRUE(server_
                    ->Update(kTag, kWidth, keys,
                             SealedRows(keys, version, kWidth).data(), true,
                             true)
                    .ok());
  }
  void Reload() {
    const ev::Status status = server_->ReloadModel("m", &serial_);
    ASSERT_TRUE(status.ok()) << status.message();
  }
  int64_t NumRows() {
    std::shared_ptr<ServedTable> table;
    EXPECT_TRUE(server_->Find("m", 0, kWidth, &table).ok());
    int64_t rows = -1;
    EXPECT_TRUE(
        (IsRedis() ? table->above() : table->below())->Count(&rows).ok());
    return rows;
  }
};

TEST_P(ReloadTest, LeavesTheRowsOfTheFilesAndNoOthers) {
  if (!Reason().empty()) GTEST_SKIP() << Reason();
  Serve(One());
  Push(KeysFrom(5000, 5010), 7);
  Push(KeysFrom(600, 610), 7);
  EXPECT_EQ(NumOther(KeysFrom(5000, 5010), 7), 0);
  WriteTable(500, 1500, 1);
  // Rows in both the old and the new files are always available.
  std::atomic<bool> is_done{false};
  std::atomic<int64_t> wrong{0}, lookups{0};
  std::shared_ptr<ServedTable> table;
  ASSERT_TRUE(server_->Find("m", 0, kWidth, &table).ok());
  std::thread reader([&] {
    const std::vector<int64_t> keys = KeysFrom(700, 1000);
    std::vector<float> rows(keys.size() * kWidth);
    ev::Serial serial;
    while (!is_done.load()) {
      if (!table->Lookup(ev::Span<const int64_t>(keys), rows.data(), &serial)
               .ok()) {
        ++wrong;
      }
      for (size_t i = 0; i < keys.size(); ++i) {
        const int version = VersionOf(keys[i], &rows[i * kWidth], kWidth);
        wrong += version != 0 && version != 1;
      }
      ++lookups;
    }
  });
  Reload();
  while (lookups.load() < 3) std::this_thread::yield();
  is_done = true;
  reader.join();
  EXPECT_EQ(wrong.load(), 0);
  EXPECT_EQ(NumOther(KeysFrom(500, 1500), 1), 0);
  EXPECT_EQ(NumOther(KeysFrom(0, 500), 0), 500);
  EXPECT_EQ(NumOther(KeysFrom(5000, 5010), 7), 10);
  EXPECT_EQ(NumRows(), 1000);
}

TEST_P(ReloadTest, RowsThatAnUpdateSourceMayHaveSentStay) {
  if (!Reason().empty()) GTEST_SKIP() << Reason();
  Send(KeysFrom(990, 1010), 1);
  Serve(One() + ", " + Directory());
  ExpectSoon(KeysFrom(990, 1010), 1);
  WriteTable(500, 1000, 2);
  Reload();
  EXPECT_EQ(NumOther(KeysFrom(500, 1000), 2), 0);
  EXPECT_EQ(NumOther(KeysFrom(1000, 1010), 1), 0);
  // The source does not feed this model.
  const std::string filter = ", \"update_filters\": [\"other\"]";
  Serve((IsRedis() ? Redis(filter)
                   : "\"volatile_db\": {\"type\": \"disabled\"}, " +
                         RocksDb(filter)) +
        ", " + Directory());
  Reload();
  EXPECT_EQ(NumOther(KeysFrom(1000, 1010), 1), 10);
  EXPECT_EQ(NumRows(), 500);
}

TEST_P(ReloadTest, FilesThatDoNotFitChangeNothing) {
  if (!Reason().empty()) GTEST_SKIP() << Reason();
  Serve(One());
  std::ofstream(folder_.path() + "/t/key", std::ios::binary | std::ios::app)
      << "more";
  EXPECT_EQ(server_->ReloadModel("m", &serial_).code(),
            ev::StatusCode::kInvalidArgument);
  EXPECT_EQ(NumOther(KeysFrom(0, 1000), 0), 0);
  EXPECT_EQ(NumRows(), 1000);
}

INSTANTIATE_TEST_SUITE_P(RedisAndRocksDb, ReloadTest, ::testing::Bool(),
                         [](const ::testing::TestParamInfo<bool>& is_redis) {
                           return is_redis.param ? "Redis" : "RocksDb";
                         });

TEST_F(TiersTest, AReloadLeavesNoOldRowsInATierThatHasAPart) {
  std::string reason = NoRedisReason();
  if (reason.empty()) reason = NoRocksDbReason();
  if (!reason.empty()) GTEST_SKIP() << reason;
  StartRedis();
  for (const std::string& source : {std::string(), ", " + Directory()}) {
    mkdir(updates_.c_str(), 0755);
    WriteTable(0, 1000, 0);
    Serve(Redis(", \"initial_cache_rate\": 0.3, \"cache_missed_embeddings\": "
                "true") +
          ", " + RocksDb() + source);
    ASSERT_TRUE(server_->ReloadModel("m", &serial_).ok());
    EXPECT_EQ(NumOther(KeysFrom(0, 1000), 0), 0);
    server_->elevator()->Drain();
    std::shared_ptr<ServedTable> table;
    ASSERT_TRUE(server_->Find("m", 0, kWidth, &table).ok());
    int64_t rows = 0;
    ASSERT_TRUE(table->above()->Count(&rows).ok());
    EXPECT_EQ(rows, 1000);  // all of them were elevated
    WriteTable(0, 900, 1);
    ASSERT_TRUE(server_->ReloadModel("m", &serial_).ok());
    EXPECT_EQ(NumOther(KeysFrom(0, 900), 1), 0) << source;
    if (source.empty()) {
      EXPECT_EQ(NumOther(KeysFrom(900, 1000), 0), 100);
    }
  }
}

TEST_F(TiersTest, AStartLeavesNoOldRowsInATierThatHasAPart) {
  std::string reason = NoRedisReason();
  if (reason.empty()) reason = NoRocksDbReason();
  if (!reason.empty()) GTEST_SKIP() << reason;
  StartRedis();
  const std::string config =
      Redis(
          ", \"initial_cache_rate\": 0.3, \"cache_missed_embeddings\": "
          "true") +
      ", " + RocksDb();
  Serve(config);
  EXPECT_EQ(NumOther(KeysFrom(0, 1000), 0), 0);
  server_->elevator()->Drain();
  WriteTable(0, 1000, 1);
  Serve(config);
  EXPECT_EQ(NumOther(KeysFrom(0, 1000), 1), 0);
}

TEST_F(TiersTest, UpdatesFromKafkaArriveInBothTiers) {
  std::string reason = KafkaMock::SkipReason();
  if (reason.empty()) reason = NoRocksDbReason();
  if (!reason.empty()) GTEST_SKIP() << reason;
  KafkaMock mock(1);
  mock.CreateTopic(kTag, 2);
  Serve("\"volatile_db\": {\"type\": \"hash_map\"}, " + RocksDb() +
        ", \"update_source\": {\"type\": \"kafka_message_queue\", "
        "\"brokers\": \"" +
        mock.brokers() + "\"}");
  KafkaProducerOptions options;
  options.brokers = mock.brokers();
  std::unique_ptr<UpdateProducer> producer;
  ASSERT_TRUE(KafkaProducer::Open(options, &producer).ok());
  const std::vector<int64_t> keys = KeysFrom(0, 100);
  ASSERT_TRUE(
      producer->Send(kTag, kWidth, keys, SealedRows(keys, 1, kWidth).data())
          .ok());
  ASSERT_TRUE(producer->Flush(20000).ok());
  ExpectSoon(keys, 1);
  // The persistent tier only.
  std::shared_ptr<ServedTable> table;
  ASSERT_TRUE(server_->Find("m", 0, kWidth, &table).ok());
  std::vector<float> rows(keys.size() * kWidth);
  std::vector<int64_t> missing(keys.size());
  int64_t num_missing = -1;
  ASSERT_TRUE(table->below()
                  ->Fetch(keys, Positions::All(100), rows.data(),
                          missing.data(), &num_missing, &serial_)
                  .ok());
  EXPECT_EQ(rows, SealedRows(keys, 1, kWidth));
}

// Servers that share a Redis: one that joins must not bring back old rows.
TEST_F(TiersTest, AJoiningServerReplaysNothingIntoASharedRedis) {
  std::string reason = KafkaMock::SkipReason();
  if (reason.empty()) reason = NoRedisReason();
  if (!reason.empty()) GTEST_SKIP() << reason;
  StartRedis();
  WriteTable(0, 1000, 0);
  const std::vector<int64_t> keys = KeysFrom(0, 100);
  for (const bool uses_kafka : {true, false}) {
    std::string source;
    std::unique_ptr<KafkaMock> mock;
    std::unique_ptr<UpdateProducer> producer;
    if (uses_kafka) {
      mock = std::make_unique<KafkaMock>(1);
      mock->CreateTopic(kTag, 2);
      source = "\"type\": \"kafka_message_queue\", \"brokers\": \"" +
               mock->brokers() + "\"";
      KafkaProducerOptions options;
      options.brokers = mock->brokers();
      ASSERT_TRUE(KafkaProducer::Open(options, &producer).ok());
    } else {
      const std::string path = folder_.path() + "/updates";
      source = "\"type\": \"directory\", \"path\": \"" + path + "\"";
      ASSERT_TRUE(DirectoryProducer::Open(path, &producer).ok());
    }
    const std::string config =
        Redis("") + ", \"update_source\": {" + source + "}";
    const auto send = [&](int version) {
      ASSERT_TRUE(producer
                      ->Send(kTag, kWidth, keys,
                             SealedRows(keys, version, kWidth).data())
                      .ok());
      ASSERT_TRUE(producer->Flush(20000).ok());
    };
    // Other files than those that the table was filled from last.
    WriteTable(0, 1000, uses_kafka ? 0 : 4);
    Serve(config);
    for (int version = 1; version <= 3; ++version) {
      send(version);
      ExpectSoon(keys, version);
    }
    std::unique_ptr<ParameterServer> first = std::move(server_);
    std::atomic<bool> stop{false};
    std::atomic<int> old{0};
    std::shared_ptr<ServedTable> table;
    ASSERT_TRUE(first->Find("m", 0, kWidth, &table).ok());
    std::thread reader([&] {
      ev::Serial serial;
      const std::vector<float> newest = SealedRows(keys, 3, kWidth);
      while (!stop) {
        std::vector<float> rows(keys.size() * kWidth);
        std::vector<int64_t> missing(keys.size());
        int64_t count = 0;
        if (!table->above()
                 ->Fetch(keys, Positions::All(100), rows.data(), missing.data(),
                         &count, &serial)
                 .ok() ||
            rows != newest) {
          ++old;
        }
      }
    });
    // The mark is stored when the source is idle.
    std::this_thread::sleep_for(std::chrono::seconds(2));
    for (int joins = 0; joins < 2; ++joins) {
      Serve(config);
      std::this_thread::sleep_for(std::chrono::seconds(4));
    }
    stop = true;
    reader.join();
    EXPECT_EQ(old.load(), 0) << uses_kafka;
    send(5);
    ExpectSoon(keys, 5);
    // After a filling from other files all updates are applied to them.
    WriteTable(0, 1000, 6);
    Serve(config);
    ExpectSoon(keys, 5);
    EXPECT_EQ(NumOther(KeysFrom(100, 900), 6), 0);
    server_.reset();
  }
}

TEST(UpdateReadersTest, OneReaderForBothTiersOrOneForEach) {
  Config config;
  config.volatile_db.type = "hash_map";
  config.persistent_db.type = "rocks_db";
  config.persistent_db.path = "/a/store";
  config.persistent_db.initialize_after_startup = false;
  std::vector<UpdateReader> readers = UpdateReadersOf(config, "host", "1");
  ASSERT_EQ(readers.size(), 1u);
  EXPECT_TRUE(readers[0].tiers.to_volatile && readers[0].tiers.to_persistent);
  EXPECT_EQ(readers[0].group, "hps.persistent.host_a_store.from_start");
  // The volatile tier is filled with older rows.
  EXPECT_FALSE(readers[0].commits);
  config.volatile_db.initialize_after_startup = false;
  readers = UpdateReadersOf(config, "host", "1");
  EXPECT_EQ(readers[0].group, "hps.persistent.host_a_store");
  EXPECT_TRUE(readers[0].commits);
  config.volatile_db.update_filters = {"m"};
  readers = UpdateReadersOf(config, "host", "1");
  ASSERT_EQ(readers.size(), 2u);
  EXPECT_EQ(readers[1].group, "hps.volatile.host.1.from_start");
  EXPECT_FALSE(readers[1].commits);
  config.volatile_db.type = "redis_cluster";
  readers = UpdateReadersOf(config, "host", "1");
  EXPECT_EQ(readers[1].group, "hps.volatile");
  EXPECT_TRUE(readers[1].commits);
  config.persistent_db.read_only = true;
  EXPECT_EQ(UpdateReadersOf(config, "host", "1").size(), 1u);
}

}  // namespace
}  // namespace hps
