// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Servers that are killed, restart, hang, lose rows or use TLS. A table must
// return right rows or a named error, within its time limit.

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "addons/hierarchical_parameter_server/database/redis/redis_database.h"
#include "addons/hierarchical_parameter_server/database/redis/redis_table.h"
#include "addons/hierarchical_parameter_server/database/testing/database_contract.h"
#include "addons/hierarchical_parameter_server/database/testing/redis_server.h"
#include "gtest/gtest.h"

namespace hps {

// Only the row helpers of the suite's header are used here.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(DatabaseContract);

namespace {

using Clock = std::chrono::steady_clock;

int64_t MsSince(Clock::time_point start) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() -
                                                               start)
      .count();
}

std::vector<int64_t> Keys(int64_t begin, int64_t end) {
  std::vector<int64_t> keys;
  for (int64_t key = begin; key < end; ++key) keys.push_back(key);
  return keys;
}

class RedisFailureTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string reason = NoRedisReason();
    if (!reason.empty()) GTEST_SKIP() << reason;
  }
  void Open(const std::vector<std::string>& addresses) {
    options_.addresses = addresses;
    const ev::Status status = RedisDatabase::Open(options_, &database_);
    ASSERT_TRUE(status.ok()) << status.message();
    OpenTable();
  }
  void OpenTable() {
    const ev::Status status =
        database_->OpenTable("hps_et.m.t", kWidth, &table_);
    ASSERT_TRUE(status.ok()) << status.message();
  }
  ev::Status Insert(const std::vector<int64_t>& keys, int version) {
    ev::Serial serial;
    return table_->Insert(keys, MadeRows(keys, version, kWidth).data(),
                          &serial);
  }
  // Rows that exist must be those of the version.
  ev::Status Fetch(const std::vector<int64_t>& keys, int version,
                   int64_t* num_missing) {
    ev::Serial serial;
    std::vector<float> rows(keys.size() * kWidth, -7.0f);
    std::vector<int64_t> missing(keys.size());
    const ev::Status status =
        table_->Fetch(keys, Positions::All(keys.size()), rows.data(),
                      missing.data(), num_missing, &serial);
    if (!status.ok()) return status;
    std::vector<float> expected = MadeRows(keys, version, kWidth);
    for (int64_t i = 0; i < *num_missing; ++i) {
      std::fill_n(expected.begin() + missing[i] * kWidth, kWidth, -7.0f);
    }
    EXPECT_EQ(rows, expected);
    return status;
  }
  void ExpectAll(const std::vector<int64_t>& keys, int version) {
    int64_t num_missing = -1;
    const ev::Status status = Fetch(keys, version, &num_missing);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(num_missing, 0);
  }

  static constexpr int kWidth = 8;
  RedisOptions options_;
  std::unique_ptr<Database> database_;
  std::shared_ptr<Table> table_;
};

TEST_F(RedisFailureTest, NoServerIsAnErrorInTime) {
  options_.addresses = {"127.0.0.1:" + std::to_string(FreePort())};
  options_.timeout_ms = 300;
  const Clock::time_point start = Clock::now();
  const ev::Status status = RedisDatabase::Open(options_, &database_);
  EXPECT_EQ(status.code(), ev::StatusCode::kUnavailable);
  EXPECT_NE(status.message().find(options_.addresses[0]), std::string::npos);
  EXPECT_NE(status.message().find("refused"), std::string::npos)
      << status.message();
  EXPECT_LT(MsSince(start), 5000);
}

TEST_F(RedisFailureTest, AKilledServerIsAnErrorInTimeThatNamesIt) {
  RedisServer server;
  ASSERT_TRUE(server.Start());
  options_.timeout_ms = 500;
  Open({server.address()});
  ASSERT_TRUE(Insert(Keys(0, 100), 1).ok());
  server.Kill();
  const Clock::time_point start = Clock::now();
  int64_t num_missing = 0;
  const ev::Status status = Fetch(Keys(0, 100), 1, &num_missing);
  EXPECT_EQ(status.code(), ev::StatusCode::kUnavailable);
  for (const std::string& word :
       {server.address(), std::string("hps_et.m.t"), std::string("500 ms")}) {
    EXPECT_NE(status.message().find(word), std::string::npos)
        << status.message();
  }
  EXPECT_GE(MsSince(start), 400);
  EXPECT_LT(MsSince(start), 5000);
}

TEST_F(RedisFailureTest, AFetchMayEndSoonerThanOtherCalls) {
  RedisServer server;
  ASSERT_TRUE(server.Start());
  options_.timeout_ms = 60000;
  options_.fetch_timeout_ms = 300;
  Open({server.address()});
  ASSERT_TRUE(Insert(Keys(0, 100), 1).ok());
  ExpectAll(Keys(0, 100), 1);
  EXPECT_TRUE(database_->Reach().ok());
  const auto expect_late = [&](const std::string& words) {
    const Clock::time_point start = Clock::now();
    int64_t num_missing = 0;
    const ev::Status status = Fetch(Keys(0, 100), 1, &num_missing);
    EXPECT_EQ(status.code(), ev::StatusCode::kUnavailable);
    for (const std::string& word : {server.address(), words}) {
      EXPECT_NE(status.message().find(word), std::string::npos)
          << status.message();
    }
    TableStatistics statistics;
    EXPECT_EQ(table_->Statistics(&statistics).code(),
              ev::StatusCode::kUnavailable);
    EXPECT_LT(MsSince(start), 20000);
  };
  server.process()->Stop();
  expect_late("timed out");
  server.process()->Continue();
  ExpectAll(Keys(0, 100), 1);
  server.Kill();
  expect_late("in 300 ms");
}

TEST_F(RedisFailureTest, AReplicaThatIsReadOnlyIsNamedInTheError) {
  RedisServer server;
  ASSERT_TRUE(server.Start());
  options_.timeout_ms = 700;
  Open({server.address()});
  ASSERT_TRUE(Insert(Keys(0, 100), 1).ok());
  // It keeps its rows until it reaches its new master, which does not exist.
  server.Call({"REPLICAOF", "127.0.0.1", std::to_string(FreePort())});
  ExpectAll(Keys(0, 100), 1);
  for (int call = 0; call < 5; ++call) {
    const ev::Status status = Insert(Keys(0, 100), 2);
    EXPECT_EQ(status.code(), ev::StatusCode::kUnavailable);
    for (const char* words : {"READONLY You can't write", "in 700 ms"}) {
      EXPECT_NE(status.message().find(words), std::string::npos)
          << status.message();
    }
    EXPECT_EQ(status.message().find("timed out"), std::string::npos)
        << status.message();
  }
  server.Call({"REPLICAOF", "NO", "ONE"});
  ASSERT_TRUE(Insert(Keys(0, 100), 2).ok());
  ExpectAll(Keys(0, 100), 2);
}

TEST_F(RedisFailureTest, APartitionHasMoreThan32BitsOfChanges) {
  RedisServer server;
  ASSERT_TRUE(server.Start());
  options_.num_partitions = 1;
  Open({server.address()});
  ASSERT_TRUE(Insert(Keys(0, 10), 1).ok());
  const std::string hash = "hps_et{hps_et.m.t/p0}v";
  const int64_t changes =
      std::stoll(server.Call({"HGET", hash, "n"}).text) | 0xFFFFFFF0;
  server.Call({"HSET", hash, "n", std::to_string(changes)});
  for (int version = 2; version < 40; ++version) {
    ASSERT_TRUE(Insert(Keys(0, 10), version).ok()) << version;
    ExpectAll(Keys(0, 10), version);
  }
  // A loss is noticed as before.
  server.Call({"UNLINK", hash});
  int64_t num_missing = 0;
  EXPECT_EQ(Fetch(Keys(0, 10), 1, &num_missing).code(),
            ev::StatusCode::kDataLoss);
}

TEST_F(RedisFailureTest, AServerThatIsGoneIsNotReached) {
  RedisServer server;
  ASSERT_TRUE(server.Start());
  options_.timeout_ms = 300;
  Open({server.address()});
  EXPECT_TRUE(database_->Reach().ok());
  server.Kill();
  const ev::Status status = database_->Reach();
  EXPECT_EQ(status.code(), ev::StatusCode::kUnavailable);
  EXPECT_NE(status.message().find(server.address()), std::string::npos)
      << status.message();
}

TEST_F(RedisFailureTest, AServerThatHangsIsAnErrorInTime) {
  RedisServer server;
  ASSERT_TRUE(server.Start());
  options_.timeout_ms = 300;
  options_.num_node_connections = 2;
  Open({server.address()});
  ASSERT_TRUE(Insert(Keys(0, 100), 1).ok());
  server.process()->Stop();
  const Clock::time_point start = Clock::now();
  std::vector<std::thread> threads;
  std::atomic<int> errors{0};
  for (int i = 0; i < 6; ++i) {  // more threads than connections
    threads.emplace_back([&] {
      int64_t num_missing = 0;
      const ev::Status status = Fetch(Keys(0, 100), 1, &num_missing);
      if (status.code() == ev::StatusCode::kUnavailable &&
          status.message().find("timed out") != std::string::npos) {
        ++errors;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(errors.load(), 6);
  EXPECT_LT(MsSince(start), 6000);
  server.process()->Continue();
  ExpectAll(Keys(0, 100), 1);
}

TEST_F(RedisFailureTest, AServerThatComesBackWithItsRowsIsWaitedFor) {
  RedisServer server({"--appendonly", "yes", "--appendfsync", "always"});
  ASSERT_TRUE(server.Start());
  options_.timeout_ms = 20000;
  Open({server.address()});
  ASSERT_TRUE(Insert(Keys(0, 1000), 1).ok());
  server.Kill();
  // A server ends with the thread that started it, so the reader runs in the
  // other thread.
  std::thread reader([&] { ExpectAll(Keys(0, 1000), 1); });
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_TRUE(server.Start());
  reader.join();
  ASSERT_TRUE(Insert(Keys(0, 1000), 2).ok());
  ExpectAll(Keys(0, 1000), 2);
}

TEST_F(RedisFailureTest, LostRowsAreNotTakenForMissingOnes) {
  RedisServer server;
  ASSERT_TRUE(server.Start());
  Open({server.address()});
  ASSERT_TRUE(Insert(Keys(0, 100), 1).ok());
  server.Kill();
  ASSERT_TRUE(server.Start());  // restarts empty
  int64_t num_missing = 0;
  ev::Status status = Fetch(Keys(0, 100), 1, &num_missing);
  EXPECT_EQ(status.code(), ev::StatusCode::kDataLoss);
  EXPECT_NE(status.message().find("hps_et.m.t"), std::string::npos);
  EXPECT_NE(status.message().find("lost rows"), std::string::npos);
  EXPECT_EQ(Insert(Keys(0, 10), 1).code(), ev::StatusCode::kDataLoss);
  EXPECT_EQ(server.Call({"DBSIZE"}).number, 0);  // nothing was left behind
  // After loading it again, it serves again.
  EXPECT_EQ(database_->DropTable("hps_et.m.t").code(),
            ev::StatusCode::kNotFound);
  OpenTable();
  ASSERT_TRUE(Insert(Keys(0, 100), 3).ok());
  ExpectAll(Keys(0, 100), 3);
}

TEST_F(RedisFailureTest, RowsOfAnOlderSnapshotAreNotTakenForNew) {
  RedisServer server;
  ASSERT_TRUE(server.Start());
  Open({server.address()});
  ASSERT_TRUE(Insert(Keys(0, 100), 1).ok());
  ASSERT_EQ(server.Call({"SAVE"}).text, "OK");
  ASSERT_TRUE(Insert(Keys(0, 100), 2).ok());
  ExpectAll(Keys(0, 100), 2);
  server.Kill();
  ASSERT_TRUE(server.Start());  // restarts with the rows of version 1
  ASSERT_GT(server.Call({"DBSIZE"}).number, 0);
  int64_t num_missing = 0;
  EXPECT_EQ(Fetch(Keys(0, 100), 2, &num_missing).code(),
            ev::StatusCode::kDataLoss);
  ASSERT_TRUE(database_->DropTable("hps_et.m.t").ok());
  OpenTable();
  ASSERT_TRUE(Insert(Keys(0, 100), 2).ok());
  ExpectAll(Keys(0, 100), 2);
}

TEST_F(RedisFailureTest, AHashThatTheServerDropsIsNoticed) {
  RedisServer server;
  ASSERT_TRUE(server.Start());
  Open({server.address()});
  ASSERT_TRUE(Insert(Keys(0, 100), 1).ok());
  // Simulates a server that evicts keys when it is short of memory.
  server.Call({"DEL", PartitionHash("hps_et.m.t", 2, 'v')});
  int64_t num_missing = 0;
  const ev::Status status = Fetch(Keys(0, 100), 1, &num_missing);
  EXPECT_EQ(status.code(), ev::StatusCode::kDataLoss);
  EXPECT_NE(status.message().find("partition 2"), std::string::npos)
      << status.message();
}

TEST_F(RedisFailureTest, AnInsertNoticesAHashThatTheServerHasDropped) {
  RedisServer server;
  ASSERT_TRUE(server.Start());
  const std::string hash = PartitionHash("hps_et.m.t", 2, 'v');
  Open({server.address()});
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(Insert(Keys(0, 100), 1).ok());
  server.Call({"DEL", hash});
  for (int i = 0; i < 3; ++i) {
    const ev::Status status = Insert(Keys(0, 100), 2);
    EXPECT_EQ(status.code(), ev::StatusCode::kDataLoss);
    EXPECT_NE(status.message().find("partition 2"), std::string::npos)
        << status.message();
    EXPECT_EQ(server.Call({"EXISTS", hash}).number, 0);
  }
}

TEST_F(RedisFailureTest, AnInsertNoticesOlderRowsHoweverOftenItIsTried) {
  RedisServer server;
  ASSERT_TRUE(server.Start());
  Open({server.address()});
  ASSERT_TRUE(Insert(Keys(0, 100), 1).ok());
  ASSERT_EQ(server.Call({"SAVE"}).text, "OK");
  ASSERT_TRUE(Insert(Keys(0, 100), 2).ok());
  server.Kill();
  ASSERT_TRUE(server.Start());  // a single insert was lost
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(Insert(Keys(0, 100), 3).code(), ev::StatusCode::kDataLoss);
  }
  int64_t num_missing = 0;
  EXPECT_EQ(Fetch(Keys(0, 100), 2, &num_missing).code(),
            ev::StatusCode::kDataLoss);
}

TEST_F(RedisFailureTest, OlderRowsByTheSameConnectionAreNoticedToo) {
  // A proxy in between may keep the connection open while the server restarts.
  RedisServer server;
  ASSERT_TRUE(server.Start());
  Open({server.address()});
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(Insert(Keys(0, 100), 1).ok());
  server.Call({"HINCRBY", PartitionHash("hps_et.m.t", 2, 'v'), "n", "-1"});
  for (int i = 0; i < 5; ++i) {
    const ev::Status status = Insert(Keys(0, 100), 2);
    EXPECT_EQ(status.code(), ev::StatusCode::kDataLoss);
    EXPECT_NE(status.message().find("partition 2"), std::string::npos)
        << status.message();
  }
}

TEST_F(RedisFailureTest, AnInsertIntoAnEmptiedCacheIsKept) {
  RedisServer server;
  ASSERT_TRUE(server.Start());
  options_.loss = RedisLoss::kEmptiesThePartition;
  Open({server.address()});
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(Insert(Keys(0, 100), 1).ok());
  server.Call({"FLUSHALL"});
  ASSERT_TRUE(Insert(Keys(0, 100), 2).ok());
  ExpectAll(Keys(0, 100), 2);
}

TEST_F(RedisFailureTest, RowsStoredIntoALostPartitionAreNoTable) {
  RedisServer server;
  ASSERT_TRUE(server.Start());
  const std::string hash = PartitionHash("hps_et.m.t", 2, 'v');
  for (const RedisLoss loss :
       {RedisLoss::kIsAnError, RedisLoss::kEmptiesThePartition}) {
    options_.loss = loss;
    Open({server.address()});
    ASSERT_TRUE(Insert(Keys(0, 100), 1).ok());
    // Simulates an insert by a process that has not yet noticed the loss.
    server.Call({"DEL", hash});
    server.Call({"HSET", hash, "12345678", "a row"});
    server.Call({"HINCRBY", hash, "n", "1"});
    std::unique_ptr<Database> fresh;
    ASSERT_TRUE(RedisDatabase::Open(options_, &fresh).ok());
    const ev::Status status = fresh->OpenTable("hps_et.m.t", kWidth, &table_);
    if (loss == RedisLoss::kIsAnError) {
      EXPECT_EQ(status.code(), ev::StatusCode::kDataLoss) << status.message();
      ASSERT_TRUE(database_->DropTable("hps_et.m.t").ok());
    } else {
      ASSERT_TRUE(status.ok()) << status.message();
      EXPECT_EQ(server.Call({"HLEN", hash}).number, 1);  // only n
      ASSERT_TRUE(Insert(Keys(0, 100), 2).ok());
      ExpectAll(Keys(0, 100), 2);
    }
  }
}

TEST_F(RedisFailureTest, InsertsCheckEachConnectionOnce) {
  RedisServer server;
  ASSERT_TRUE(server.Start());
  Open({server.address()});
  const auto asked = [&] {
    const std::string text = server.Call({"INFO", "commandstats"}).text;
    const std::string wanted = "cmdstat_hget:calls=";
    const size_t at = text.find(wanted);
    return at == std::string::npos ? 0 : std::atoi(&text[at + wanted.size()]);
  };
  ASSERT_TRUE(Insert(Keys(0, 100), 1).ok());
  const int first = asked();
  EXPECT_GT(first, 0);
  for (int version = 2; version < 10; ++version) {
    ASSERT_TRUE(Insert(Keys(0, 100), version).ok());
  }
  ExpectAll(Keys(0, 100), 9);
  EXPECT_EQ(asked(), first);
  server.Call({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
  ASSERT_TRUE(Insert(Keys(0, 100), 10).ok());
  EXPECT_EQ(asked(), first + options_.num_partitions);
  ExpectAll(Keys(0, 100), 10);
}

TEST_F(RedisFailureTest, ACacheThatLosesRowsIsEmptied) {
  RedisServer server;
  ASSERT_TRUE(server.Start());
  options_.loss = RedisLoss::kEmptiesThePartition;
  Open({server.address()});
  const std::shared_ptr<Table> first = table_;
  OpenTable();
  const std::shared_ptr<Table> second = table_;
  ASSERT_TRUE(Insert(Keys(0, 100), 1).ok());
  ASSERT_EQ(server.Call({"SAVE"}).text, "OK");
  ASSERT_TRUE(Insert(Keys(0, 100), 2).ok());
  for (const auto& table : {first, second}) {
    table_ = table;
    ExpectAll(Keys(0, 100), 2);
  }
  server.Kill();
  ASSERT_TRUE(server.Start());  // restarts with the rows of version 1
  for (const auto& table : {first, second}) {
    table_ = table;
    int64_t num_missing = 0;
    ASSERT_TRUE(Fetch(Keys(0, 100), 2, &num_missing).ok());
    EXPECT_EQ(num_missing, 100);
  }
  ASSERT_TRUE(Insert(Keys(0, 50), 3).ok());
  for (const auto& table : {first, second}) {
    table_ = table;
    ExpectAll(Keys(0, 50), 3);
    int64_t num_missing = 0;
    ASSERT_TRUE(Fetch(Keys(50, 100), 3, &num_missing).ok());
    EXPECT_EQ(num_missing, 50);
  }
}

// A writer and readers run while the server is killed and restarted.
TEST_F(RedisFailureTest, KilledAndStartedUnderLoadNoRowIsWrong) {
  RedisServer server({"--appendonly", "yes", "--appendfsync", "always"});
  ASSERT_TRUE(server.Start());
  options_.timeout_ms = 400;
  options_.connect_timeout_ms = 100;
  Open({server.address()});
  const std::vector<int64_t> keys = Keys(0, 256);
  ASSERT_TRUE(Insert(keys, 0).ok());
  std::atomic<bool> stops{false};
  // The last version stored, and the last one attempted.
  std::atomic<int> stored{0}, tried{0}, wrong{0}, errors{0}, unnamed{0};
  std::atomic<int64_t> good{0};
  const auto note = [&](const ev::Status& status) {
    ++errors;
    if (status.code() != ev::StatusCode::kUnavailable ||
        status.message().find(server.address()) == std::string::npos) {
      ++unnamed;
    }
  };
  std::thread writer([&] {
    for (int version = 1; !stops.load(); ++version) {
      tried = version;
      for (;;) {
        const ev::Status status = Insert(keys, version);
        if (status.ok()) break;
        note(status);
        if (stops.load()) return;
      }
      stored = version;
    }
  });
  std::vector<std::thread> readers;
  for (int i = 0; i < 2; ++i) {
    readers.emplace_back([&] {
      ev::Serial serial;
      std::vector<float> rows(keys.size() * kWidth);
      std::vector<int64_t> missing(keys.size());
      while (!stops.load()) {
        int64_t num_missing = 0;
        const int least = stored.load();
        const ev::Status status =
            table_->Fetch(keys, Positions::All(keys.size()), rows.data(),
                          missing.data(), &num_missing, &serial);
        const int most = tried.load();
        if (!status.ok()) {
          note(status);
          continue;
        }
        wrong += static_cast<int>(num_missing);
        for (size_t k = 0; k < keys.size(); ++k) {
          const float* row = &rows[k * kWidth];
          const int version = static_cast<int>(
              (row[0] - MadeRow(keys[k], 0, 1)[0]) * 4.0f + 0.5f);
          const std::vector<float> whole = MadeRow(keys[k], version, kWidth);
          if (version < least || version > most ||
              !std::equal(whole.begin(), whole.end(), row)) {
            ++wrong;
          }
        }
        ++good;
      }
    });
  }
  for (int round = 0; round < 4; ++round) {
    const int64_t before = good.load();
    const Clock::time_point start = Clock::now();
    while (good.load() < before + 20 && MsSince(start) < 20000) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    EXPECT_GE(good.load(), before + 20);
    server.Kill();
    // Long enough in odd rounds that some calls time out.
    std::this_thread::sleep_for(
        std::chrono::milliseconds(round % 2 == 0 ? 50 : 900));
    EXPECT_TRUE(server.Start());
  }
  stops = true;
  writer.join();
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(wrong.load(), 0);
  EXPECT_EQ(unnamed.load(), 0);
  EXPECT_GT(errors.load(), 0);
}

TEST_F(RedisFailureTest, ANodeOfAClusterThatIsKilledAndComesBack) {
  RedisCluster cluster;
  ASSERT_TRUE(cluster.Start());
  options_.timeout_ms = 700;
  Open(cluster.addresses());
  ASSERT_TRUE(Insert(Keys(0, 1000), 1).ok());
  ExpectAll(Keys(0, 1000), 1);
  // It has no files, so it restarts empty.
  cluster.node(1)->Kill();
  int64_t num_missing = 0;
  const ev::Status status = Fetch(Keys(0, 1000), 1, &num_missing);
  EXPECT_EQ(status.code(), ev::StatusCode::kUnavailable);
  EXPECT_NE(status.message().find("127.0.0.1:"), std::string::npos)
      << status.message();
  ASSERT_TRUE(cluster.node(1)->Start());
  ASSERT_TRUE(cluster.WaitUntilWhole());
  EXPECT_EQ(Fetch(Keys(0, 1000), 1, &num_missing).code(),
            ev::StatusCode::kDataLoss);
  // The loss is also detected on opening, on whichever node the list of tables
  // was.
  std::shared_ptr<Table> again;
  EXPECT_EQ(database_->OpenTable("hps_et.m.t", kWidth, &again).code(),
            ev::StatusCode::kDataLoss);
  ASSERT_TRUE(database_->DropTable("hps_et.m.t").ok());
  OpenTable();
  EXPECT_EQ(Fetch(Keys(0, 1000), 1, &num_missing).code(), ev::StatusCode::kOk);
  EXPECT_EQ(num_missing, 1000);
  ASSERT_TRUE(Insert(Keys(0, 1000), 2).ok());
  ExpectAll(Keys(0, 1000), 2);
}

class RedisTlsTest : public RedisFailureTest {
 protected:
  void SetUp() override {
    RedisFailureTest::SetUp();
    if (!HasProgram("openssl")) GTEST_SKIP() << "there is no openssl";
    MakeCertificates();
    server_ = std::make_unique<RedisServer>(std::vector<std::string>{
        "--tls-port", std::to_string(tls_port_), "--tls-cert-file",
        File("server.crt"), "--tls-key-file", File("server.key"),
        "--tls-ca-cert-file", File("ca.crt"), "--tls-auth-clients", "yes"});
    ASSERT_TRUE(server_->Start());
    if (server_->Call({"CONFIG", "GET", "tls-port"}).elements.empty()) {
      GTEST_SKIP() << "this redis-server has no TLS";
    }
    options_.addresses = {"127.0.0.1:" + std::to_string(tls_port_)};
    options_.timeout_ms = 3000;
    options_.tls.enabled = true;
    options_.tls.ca_certificate = File("ca.crt");
    options_.tls.client_certificate = File("client.crt");
    options_.tls.client_key = File("client.key");
    options_.tls.server_name = "redis.localhost";
  }
  std::string File(const std::string& name) const {
    return folder_.path() + "/" + name;
  }
  void MakeCertificates() {
    const auto run = [&](const std::string& command) {
      const std::string line =
          "cd " + folder_.path() + " && openssl " + command + " >>log 2>&1";
      ASSERT_EQ(std::system(line.c_str()), 0) << line;
    };
    const std::string key =
        "-newkey ec -pkeyopt ec_paramgen_curve:P-256 "
        "-nodes ";
    run("req -x509 " + key +
        "-keyout ca.key -out ca.crt -days 2 -subj /CN=authority");
    for (const char* name : {"server", "client"}) {
      run("req " + key + "-keyout " + name + ".key -out " + name +
          ".csr -subj /CN=redis.localhost");
      run(std::string("x509 -req -in ") + name +
          ".csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 -out " + name +
          ".crt");
    }
    run("req -x509 " + key +
        "-keyout other.key -out other.crt -days 2 -subj /CN=other");
  }
  ev::Status TryOpen() { return RedisDatabase::Open(options_, &database_); }

  const TemporaryFolder folder_;
  const int tls_port_ = FreePort();
  std::unique_ptr<RedisServer> server_;
};

TEST_F(RedisTlsTest, RowsGoThroughTls) {
  Open(options_.addresses);
  const std::vector<int64_t> keys = Keys(0, 20000);
  ASSERT_TRUE(Insert(keys, 1).ok());
  ExpectAll(keys, 1);
  // With an empty name, any name in the certificate is accepted.
  options_.tls.server_name.clear();
  Open(options_.addresses);
  ExpectAll(keys, 1);
}

TEST_F(RedisTlsTest, AnUntrustedCertificateIsAnError) {
  options_.tls.server_name = "another.name";
  ev::Status status = TryOpen();
  EXPECT_EQ(status.code(), ev::StatusCode::kFailedPrecondition);
  EXPECT_NE(status.message().find("tls_server_name_identification"),
            std::string::npos)
      << status.message();
  options_.tls.server_name = "redis.localhost";
  options_.tls.ca_certificate = File("other.crt");
  EXPECT_EQ(TryOpen().code(), ev::StatusCode::kFailedPrecondition);
  options_.tls.ca_certificate = File("ca.crt");
  // The server requires a client certificate of its authority.
  options_.tls.client_certificate.clear();
  options_.tls.client_key.clear();
  options_.timeout_ms = 300;
  EXPECT_FALSE(TryOpen().ok());
}

TEST_F(RedisTlsTest, FilesThatCannotBeReadAreNamed) {
  const TlsOptions good = options_.tls;
  options_.tls.ca_certificate = File("nothing.crt");
  EXPECT_NE(TryOpen().message().find("nothing.crt"), std::string::npos);
  options_.tls = good;
  options_.tls.client_key = File("other.key");
  const ev::Status status = TryOpen();
  EXPECT_EQ(status.code(), ev::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("other.key"), std::string::npos)
      << status.message();
}

TEST_F(RedisTlsTest, AServerWithoutTlsIsAnErrorInTime) {
  options_.addresses = {server_->address()};
  options_.timeout_ms = 300;
  const Clock::time_point start = Clock::now();
  EXPECT_FALSE(TryOpen().ok());
  EXPECT_LT(MsSince(start), 5000);
}

}  // namespace
}  // namespace hps
