// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Runs the database contract on a real server and on a cluster of three. Also
// tests what is specific to Redis: partitions, moving slots, limits, passwords.

#include "addons/hierarchical_parameter_server/database/redis/redis_database.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "addons/hierarchical_parameter_server/database/redis/redis_table.h"
#include "addons/hierarchical_parameter_server/database/testing/database_contract.h"
#include "addons/hierarchical_parameter_server/database/testing/redis_server.h"
#include "gtest/gtest.h"

namespace hps {
namespace {

struct SingleUnderTest {
  std::string SkipReason() { return NoRedisReason(); }
  Database* database() {
    if (made_ == nullptr) {
      EXPECT_TRUE(server_.Start());
      RedisOptions options;
      options.addresses = {server_.address()};
      const ev::Status status = RedisDatabase::Open(options, &made_);
      EXPECT_TRUE(status.ok()) << status.message();
    }
    return made_.get();
  }
  RedisServer server_;
  std::unique_ptr<Database> made_;
};

// Small batches, so that a call sends many commands.
struct ClusterUnderTest {
  std::string SkipReason() { return NoRedisReason(); }
  Database* database() {
    if (made_ == nullptr) {
      // Shared, because three servers take seconds to form a cluster.
      static RedisCluster* const cluster = [] {
        auto started = new RedisCluster();
        EXPECT_TRUE(started->Start());
        return started;
      }();
      for (int i = 0; i < 3; ++i) cluster->node(i)->Call({"FLUSHALL"});
      RedisOptions options;
      options.addresses = cluster->addresses();
      options.max_batch_size = 100;
      options.num_node_connections = 2;
      const ev::Status status = RedisDatabase::Open(options, &made_);
      EXPECT_TRUE(status.ok()) << status.message();
    }
    return made_.get();
  }
  std::unique_ptr<Database> made_;
};

INSTANTIATE_TYPED_TEST_SUITE_P(Single, DatabaseContract, SingleUnderTest);
INSTANTIATE_TYPED_TEST_SUITE_P(Cluster, DatabaseContract, ClusterUnderTest);

std::vector<int64_t> Keys(int64_t begin, int64_t end) {
  std::vector<int64_t> keys;
  for (int64_t key = begin; key < end; ++key) keys.push_back(key);
  return keys;
}

class RedisDatabaseTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string reason = NoRedisReason();
    if (!reason.empty()) GTEST_SKIP() << reason;
  }
  void Start(std::vector<std::string> arguments = {}) {
    server_ = std::make_unique<RedisServer>(std::move(arguments));
    ASSERT_TRUE(server_->Start());
    options_.addresses = {server_->address()};
  }
  ev::Status TryOpen() { return RedisDatabase::Open(options_, &database_); }
  void Open() {
    const ev::Status status = TryOpen();
    ASSERT_TRUE(status.ok()) << status.message();
  }
  std::shared_ptr<Table> OpenTable(int width) {
    std::shared_ptr<Table> table;
    const ev::Status status = database_->OpenTable("hps_et.m.t", width, &table);
    EXPECT_TRUE(status.ok()) << status.message();
    return table;
  }
  ev::Status Insert(Table* table, const std::vector<int64_t>& keys,
                    int version) {
    ev::Serial serial;
    return table->Insert(keys, MadeRows(keys, version, table->width()).data(),
                         &serial);
  }
  ev::Status Fetch(Table* table, const std::vector<int64_t>& keys,
                   std::vector<float>* rows, std::vector<int64_t>* missing) {
    ev::Serial serial;
    rows->assign(keys.size() * table->width(), -7.0f);
    missing->assign(keys.size(), -1);
    int64_t count = 0;
    const ev::Status status =
        table->Fetch(keys, Positions::All(keys.size()), rows->data(),
                     missing->data(), &count, &serial);
    missing->resize(count);
    return status;
  }
  void ExpectRows(Table* table, const std::vector<int64_t>& keys, int version) {
    std::vector<float> rows;
    std::vector<int64_t> missing;
    const ev::Status status = Fetch(table, keys, &rows, &missing);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_TRUE(missing.empty());
    EXPECT_EQ(rows, MadeRows(keys, version, table->width()));
  }
  int64_t Count(Table* table) {
    int64_t rows = -1;
    EXPECT_TRUE(table->Count(&rows).ok());
    return rows;
  }

  std::unique_ptr<RedisServer> server_;
  RedisOptions options_;
  std::unique_ptr<Database> database_;
};

TEST_F(RedisDatabaseTest, RowsLieInHashesOfPartitions) {
  options_.num_partitions = 3;
  Start();
  Open();
  const std::shared_ptr<Table> table = OpenTable(2);
  ASSERT_TRUE(Insert(table.get(), Keys(0, 100), 1).ok());
  int64_t rows = 0;
  std::set<std::string> names;
  for (const RespReply& name : server_->Call({"KEYS", "*"}).elements) {
    names.insert(name.text);
  }
  EXPECT_EQ(names, (std::set<std::string>{
                       "hps_et{hps_et.m.t/p0}v", "hps_et{hps_et.m.t/p1}v",
                       "hps_et{hps_et.m.t/p2}v", "hps_tables"}));
  for (int i = 0; i < 3; ++i) {
    rows +=
        server_->Call({"HLEN", PartitionHash("hps_et.m.t", i, 'v')}).number - 1;
  }
  EXPECT_EQ(rows, 100);
  const int64_t key = 7;
  const std::string field(reinterpret_cast<const char*>(&key), sizeof(key));
  const std::vector<float> row = MadeRow(7, 1, 2);
  const std::string bytes(reinterpret_cast<const char*>(row.data()), 8);
  int found = 0;
  for (int i = 0; i < 3; ++i) {
    found += server_->Call({"HGET", PartitionHash("hps_et.m.t", i, 'v'), field})
                 .text == bytes;
  }
  EXPECT_EQ(found, 1);
}

TEST_F(RedisDatabaseTest, AnotherNumberOfPartitionsIsAnError) {
  Start();
  Open();
  ASSERT_TRUE(Insert(OpenTable(2).get(), {1}, 0).ok());
  options_.num_partitions = 5;
  Open();
  std::shared_ptr<Table> table;
  const ev::Status status = database_->OpenTable("hps_et.m.t", 2, &table);
  EXPECT_EQ(status.code(), ev::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("num_partitions: the table was stored with 8"
                                  ", got 5"),
            std::string::npos)
      << status.message();
}

TEST_F(RedisDatabaseTest, OptionsOutOfRangeAreErrors) {
  Start();
  const RedisOptions good = options_;
  const auto expect_error = [&](const std::string& key) {
    const ev::Status status = TryOpen();
    EXPECT_EQ(status.code(), ev::StatusCode::kInvalidArgument) << key;
    EXPECT_NE(status.message().find(key), std::string::npos)
        << status.message();
    options_ = good;
  };
  options_.max_batch_size = 262144;
  expect_error("max_batch_size");
  options_.num_partitions = 0;
  expect_error("num_partitions");
  options_.overflow_resolution_target = 1.5;
  expect_error("overflow_resolution_target");
  options_.addresses = {};
  expect_error("address");
  for (const char* address : {"here", ":7000", "host:", "host:70000",
                              "::1:7000", "[]:7000", "unix:"}) {
    options_.addresses = {address};
    expect_error(address);
  }
  // Several servers that are not a cluster.
  options_.addresses = {server_->address(), "127.0.0.1:1"};
  EXPECT_EQ(TryOpen().code(), ev::StatusCode::kFailedPrecondition);
}

TEST_F(RedisDatabaseTest, AUnixSocketServesToo) {
  Start();
  options_.addresses = {server_->unix_address()};
  Open();
  const std::shared_ptr<Table> table = OpenTable(4);
  ASSERT_TRUE(Insert(table.get(), Keys(0, 50), 1).ok());
  ExpectRows(table.get(), Keys(0, 50), 1);
}

TEST_F(RedisDatabaseTest, APasswordIsGivenOrReadFromAFileOrTheEnvironment) {
  Start({"--requirepass", "secret", "--user", "reader", "on", ">other", "~*",
         "+@all"});
  EXPECT_EQ(TryOpen().code(), ev::StatusCode::kFailedPrecondition);
  options_.password = "wrong";
  const ev::Status status = TryOpen();
  EXPECT_EQ(status.code(), ev::StatusCode::kFailedPrecondition);
  EXPECT_NE(status.message().find("WRONGPASS"), std::string::npos)
      << status.message();
  EXPECT_EQ(status.message().find("wrong\""), std::string::npos);
  options_.password = "secret";
  Open();
  ASSERT_TRUE(Insert(OpenTable(2).get(), {3}, 0).ok());
  options_.password.clear();
  options_.password_file = server_->folder() + "/password";
  EXPECT_EQ(TryOpen().code(), ev::StatusCode::kInvalidArgument);
  std::ofstream(options_.password_file) << "secret\n";
  Open();
  ExpectRows(OpenTable(2).get(), {3}, 0);
  options_.password_file.clear();
  options_.user_name = "reader";
  options_.password_env = "HPS_TEST_PASSWORD";
  unsetenv("HPS_TEST_PASSWORD");
  EXPECT_EQ(TryOpen().code(), ev::StatusCode::kInvalidArgument);
  setenv("HPS_TEST_PASSWORD", "other", 1);
  Open();
  ExpectRows(OpenTable(2).get(), {3}, 0);
}

TEST_F(RedisDatabaseTest, RandomRowsGoWhenAPartitionIsFull) {
  options_.num_partitions = 2;
  options_.overflow_margin = 100;
  Start();
  Open();
  const std::shared_ptr<Table> table = OpenTable(2);
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(Insert(table.get(), Keys(i * 50, i * 50 + 50), i).ok());
    ASSERT_LE(Count(table.get()), 200);
  }
  EXPECT_GT(Count(table.get()), 2 * 80 - 1);
  TableStatistics statistics;
  ASSERT_TRUE(table->Statistics(&statistics).ok());
  EXPECT_EQ(statistics.inserted, 500);
  EXPECT_EQ(statistics.inserted - statistics.evicted, statistics.rows);
  EXPECT_TRUE(database_->capabilities().may_evict);
}

TEST_F(RedisDatabaseTest, TheRowsThatWereUsedLongestAgoGo) {
  options_.num_partitions = 1;
  options_.overflow_margin = 100;
  options_.overflow_policy = RedisOverflow::kEvictOldest;
  Start();
  Open();
  const std::shared_ptr<Table> table = OpenTable(2);
  const auto next_millisecond = [] {
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
  };
  ASSERT_TRUE(Insert(table.get(), Keys(0, 100), 1).ok());
  next_millisecond();
  ExpectRows(table.get(), Keys(0, 50), 1);
  next_millisecond();
  ASSERT_TRUE(Insert(table.get(), {1000}, 1).ok());
  // 80 are left: the 21 evicted rows are among those never fetched.
  EXPECT_EQ(Count(table.get()), 80);
  ExpectRows(table.get(), Keys(0, 50), 1);
  ExpectRows(table.get(), {1000}, 1);
}

TEST_F(RedisDatabaseTest, TheRowsThatWereUsedLeastGo) {
  options_.num_partitions = 1;
  options_.overflow_margin = 100;
  options_.overflow_policy = RedisOverflow::kEvictLeastUsed;
  Start();
  Open();
  const std::shared_ptr<Table> table = OpenTable(2);
  ASSERT_TRUE(Insert(table.get(), Keys(0, 100), 1).ok());
  ExpectRows(table.get(), Keys(30, 100), 1);
  ASSERT_TRUE(Insert(table.get(), {1000}, 1).ok());
  EXPECT_EQ(Count(table.get()), 80);
  ExpectRows(table.get(), Keys(30, 100), 1);
}

TEST_F(RedisDatabaseTest, ARowOfAnotherSizeIsAnErrorAndNoRow) {
  options_.num_partitions = 1;
  Start();
  Open();
  const std::shared_ptr<Table> table = OpenTable(2);
  ASSERT_TRUE(Insert(table.get(), Keys(0, 5), 1).ok());
  const int64_t key = 3;
  server_->Call({"HSET", "hps_et{hps_et.m.t/p0}v",
                 std::string(reinterpret_cast<const char*>(&key), 8), "abc"});
  std::vector<float> rows;
  std::vector<int64_t> missing;
  const ev::Status status = Fetch(table.get(), Keys(0, 5), &rows, &missing);
  EXPECT_EQ(status.code(), ev::StatusCode::kDataLoss);
  EXPECT_NE(status.message().find("key 3 has 3 bytes"), std::string::npos)
      << status.message();
  ExpectRows(table.get(), {0, 1, 2, 4}, 1);
}

TEST_F(RedisDatabaseTest, AServerOutOfMemoryIsAnError) {
  Start({"--maxmemory", "4mb", "--maxmemory-policy", "noeviction"});
  Open();
  const std::shared_ptr<Table> table = OpenTable(64);
  ev::Status status;
  for (int i = 0; i < 100 && status.ok(); ++i) {
    status = Insert(table.get(), Keys(i * 1000, i * 1000 + 1000), 0);
  }
  EXPECT_EQ(status.code(), ev::StatusCode::kResourceExhausted);
  EXPECT_NE(status.message().find("hps_et.m.t"), std::string::npos);
}

// Rows move to another node without the table's knowledge.
TEST(RedisClusterTest, SlotsThatMoveAreFollowed) {
  const std::string reason = NoRedisReason();
  if (!reason.empty()) GTEST_SKIP() << reason;
  RedisCluster cluster;
  ASSERT_TRUE(cluster.Start());
  RedisOptions options;
  options.addresses = cluster.addresses();
  std::unique_ptr<Database> database;
  ASSERT_TRUE(RedisDatabase::Open(options, &database).ok());
  std::shared_ptr<Table> table;
  ASSERT_TRUE(database->OpenTable("hps_et.m.t", 4, &table).ok());
  const std::vector<int64_t> keys = Keys(0, 1000);
  ev::Serial serial;
  ASSERT_TRUE(table->Insert(keys, MadeRows(keys, 1, 4).data(), &serial).ok());
  const auto expect_rows = [&](int version) {
    std::vector<float> rows(4000);
    std::vector<int64_t> missing(1000);
    int64_t count = -1;
    const ev::Status status =
        table->Fetch(keys, Positions::All(1000), rows.data(), missing.data(),
                     &count, &serial);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(count, 0);
    EXPECT_EQ(rows, MadeRows(keys, version, 4));
  };
  const std::string hash = PartitionHash("hps_et.m.t", 0, 'v');
  const int slot = SlotOf(hash);
  EXPECT_EQ(cluster.node(0)->Call({"CLUSTER", "KEYSLOT", hash}).number, slot);
  int from = 0;
  while (slot >= (from + 1) * 16384 / 3) ++from;
  const int to = (from + 1) % 3;
  const std::string number = std::to_string(slot);
  const auto id_of = [&](int node) {
    return cluster.node(node)->Call({"CLUSTER", "MYID"}).text;
  };
  const std::string to_id = id_of(to);
  ASSERT_EQ(cluster.node(to)
                ->Call({"CLUSTER", "SETSLOT", number, "IMPORTING", id_of(from)})
                .text,
            "OK");
  ASSERT_EQ(cluster.node(from)
                ->Call({"CLUSTER", "SETSLOT", number, "MIGRATING", to_id})
                .text,
            "OK");
  expect_rows(1);
  ASSERT_EQ(
      cluster.node(from)
          ->Call({"MIGRATE", "127.0.0.1",
                  std::to_string(cluster.node(to)->port()), hash, "0", "5000"})
          .text,
      "OK");
  expect_rows(1);  // ASK
  ASSERT_TRUE(table->Insert(keys, MadeRows(keys, 2, 4).data(), &serial).ok());
  expect_rows(2);
  for (const int node : {to, from}) {
    ASSERT_EQ(cluster.node(node)
                  ->Call({"CLUSTER", "SETSLOT", number, "NODE", to_id})
                  .text,
              "OK");
  }
  expect_rows(2);  // MOVED
  ASSERT_TRUE(table->Insert(keys, MadeRows(keys, 3, 4).data(), &serial).ok());
  expect_rows(3);
  // A client that connects later reads the new place at once.
  std::unique_ptr<Database> later;
  ASSERT_TRUE(RedisDatabase::Open(options, &later).ok());
  ASSERT_TRUE(later->OpenTable("hps_et.m.t", 4, &table).ok());
  expect_rows(3);
}

}  // namespace
}  // namespace hps
