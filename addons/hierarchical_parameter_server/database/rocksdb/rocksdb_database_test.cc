// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Runs the database contract on a real RocksDB, and reopens stores: after a
// kill, read-only, with another width.

#include "addons/hierarchical_parameter_server/database/rocksdb/rocksdb_database.h"

#include <memory>
#include <string>
#include <vector>

#include "addons/hierarchical_parameter_server/database/testing/child_process.h"
#include "addons/hierarchical_parameter_server/database/testing/database_contract.h"
#include "gtest/gtest.h"

namespace hps {
namespace {

std::string NoRocksDbReason() {
  const RocksDbLibrary* library = nullptr;
  return RocksDbLibrary::Get(&library).message();
}

struct RocksDbUnderTest {
  std::string SkipReason() { return NoRocksDbReason(); }
  Database* database() {
    if (made_ == nullptr) {
      RocksDbOptions options;
      options.path = folder_.path() + "/store";
      options.num_threads = 2;
      options.max_batch_size = 1000;
      const ev::Status status = RocksDbDatabase::Open(options, &made_);
      EXPECT_TRUE(status.ok()) << status.message();
    }
    return made_.get();
  }
  TemporaryFolder folder_;
  std::unique_ptr<Database> made_;
};

INSTANTIATE_TYPED_TEST_SUITE_P(RocksDb, DatabaseContract, RocksDbUnderTest);

class RocksDbDatabaseTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string reason = NoRocksDbReason();
    if (!reason.empty()) GTEST_SKIP() << reason;
    options_.path = folder_.path() + "/store";
    options_.num_threads = 2;
  }
  void Close() {
    table_.reset();
    database_.reset();
  }
  void Open() {
    Close();
    const ev::Status status = RocksDbDatabase::Open(options_, &database_);
    ASSERT_TRUE(status.ok()) << status.message();
  }
  ev::Status OpenTable(RowFormat format) {
    return database_->OpenTable("hps_et.m.t", format, &table_);
  }
  ev::Status Insert(const std::vector<int64_t>& keys, int version) {
    ev::Serial serial;
    return table_->Insert(keys, MadeRows(keys, version, table_->width()).data(),
                          &serial);
  }
  void ExpectRows(const std::vector<int64_t>& keys, int version) {
    ev::Serial serial;
    std::vector<float> rows(keys.size() * table_->width());
    std::vector<int64_t> missing(keys.size());
    int64_t num_missing = -1;
    const ev::Status status =
        table_->Fetch(keys, Positions::All(keys.size()), rows.data(),
                      missing.data(), &num_missing, &serial);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(num_missing, 0);
    EXPECT_EQ(rows, MadeRows(keys, version, table_->width()));
  }

  const TemporaryFolder folder_;
  RocksDbOptions options_;
  std::unique_ptr<Database> database_;
  std::shared_ptr<Table> table_;
};

TEST_F(RocksDbDatabaseTest, RowsSurviveReopening) {
  Open();
  ASSERT_TRUE(OpenTable(4).ok());
  ASSERT_TRUE(Insert({1, 2, kLargestKey, kSmallestKey}, 1).ok());
  Open();
  std::vector<TableInfo> tables;
  ASSERT_TRUE(database_->ListTables(&tables).ok());
  ASSERT_EQ(tables.size(), 1u);
  EXPECT_EQ(tables[0].format, RowFormat(4));
  ASSERT_TRUE(OpenTable(4).ok());
  ExpectRows({1, 2, kLargestKey, kSmallestKey}, 1);
  TableStatistics statistics;
  ASSERT_TRUE(table_->Statistics(&statistics).ok());
  EXPECT_EQ(statistics.rows, 4);
}

TEST_F(RocksDbDatabaseTest, AnotherWidthIsAnErrorThatNamesBoth) {
  Open();
  ASSERT_TRUE(OpenTable(4).ok());
  ASSERT_TRUE(Insert({1}, 1).ok());
  Open();
  const ev::Status status = OpenTable(8);
  EXPECT_EQ(status.code(), ev::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("rows of 4 floats, expected 8"),
            std::string::npos)
      << status.message();
}

TEST_F(RocksDbDatabaseTest, TheFormatOutlivesTheProcess) {
  const RowFormat packed(7, RowType::kUint8);
  Open();
  ASSERT_TRUE(OpenTable(packed).ok());
  ASSERT_TRUE(Insert({1}, 1).ok());
  Open();
  EXPECT_EQ(OpenTable(packed.width()).code(), ev::StatusCode::kInvalidArgument);
  ASSERT_TRUE(OpenTable(packed).ok());
  ExpectRows({1}, 1);
}

TEST_F(RocksDbDatabaseTest, ReadOnlyReadsAndRefusesToWrite) {
  options_.read_only = true;
  EXPECT_EQ(RocksDbDatabase::Open(options_, &database_).code(),
            ev::StatusCode::kNotFound);
  options_.read_only = false;
  Open();
  ASSERT_TRUE(OpenTable(4).ok());
  ASSERT_TRUE(Insert({1, 2}, 1).ok());
  options_.read_only = true;
  Open();
  EXPECT_TRUE(database_->capabilities().read_only);
  ASSERT_TRUE(OpenTable(4).ok());
  ExpectRows({1, 2}, 1);
  for (const ev::Status& status :
       {Insert({3}, 1), table_->Remove(std::vector<int64_t>{1}, nullptr),
        database_->DropTable("hps_et.m.t")}) {
    EXPECT_EQ(status.code(), ev::StatusCode::kFailedPrecondition);
    EXPECT_NE(status.message().find("read_only"), std::string::npos);
  }
  EXPECT_EQ(database_->OpenTable("hps_et.m.other", 4, &table_).code(),
            ev::StatusCode::kNotFound);
  // Two processes may read at once.
  std::unique_ptr<Database> second;
  EXPECT_TRUE(RocksDbDatabase::Open(options_, &second).ok());
}

TEST_F(RocksDbDatabaseTest, TwoWritersAreAnError) {
  Open();
  std::unique_ptr<Database> second;
  const ev::Status status = RocksDbDatabase::Open(options_, &second);
  EXPECT_EQ(status.code(), ev::StatusCode::kInternal);
  EXPECT_NE(status.message().find(options_.path), std::string::npos);
}

TEST_F(RocksDbDatabaseTest, ATableOutlivesItsDatabaseAndADropEndsIt) {
  Open();
  ASSERT_TRUE(OpenTable(4).ok());
  ASSERT_TRUE(Insert({1}, 1).ok());
  ASSERT_TRUE(database_->DropTable("hps_et.m.t").ok());
  int64_t rows = 0;
  EXPECT_EQ(table_->Count(&rows).code(), ev::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Insert({1}, 1).code(), ev::StatusCode::kFailedPrecondition);
  ASSERT_TRUE(OpenTable(6).ok());
  ASSERT_TRUE(Insert({1}, 2).ok());
  database_.reset();
  ExpectRows({1}, 2);
  Open();
  ASSERT_TRUE(OpenTable(6).ok());
  ExpectRows({1}, 2);
}

TEST_F(RocksDbDatabaseTest, AStoreWithoutWidthsTakesThatOfItsRows) {
  {
    std::shared_ptr<RocksDbStore> store;
    ASSERT_TRUE(RocksDbStore::Open(options_, &store).ok());
    RocksDbLibrary::Family* family = nullptr;
    ASSERT_TRUE(store->CreateFamily("hps_et.m.t", &family).ok());
    RocksDbTable table(store, family, "hps_et.m.t", 3);
    ev::Serial serial;
    const std::vector<int64_t> keys = {5};
    ASSERT_TRUE(table.Insert(keys, MadeRows(keys, 1, 3).data(), &serial).ok());
    // An empty family, and a family of another program.
    ASSERT_TRUE(store->CreateFamily("hps_et.m.u", &family).ok());
    store->library().family_destroy(family);
    ASSERT_TRUE(store->CreateFamily("other", &family).ok());
    store->library().family_destroy(family);
  }
  Open();
  EXPECT_EQ(OpenTable(4).code(), ev::StatusCode::kInvalidArgument);
  ASSERT_TRUE(OpenTable(3).ok());
  ExpectRows({5}, 1);
  ASSERT_TRUE(database_->OpenTable("hps_et.m.u", 7, &table_).ok());
}

TEST_F(RocksDbDatabaseTest, ARowOfAnotherSizeIsAnErrorThatNamesTheKey) {
  Open();
  ASSERT_TRUE(OpenTable(4).ok());
  ASSERT_TRUE(Insert({1}, 1).ok());
  Close();
  {
    std::shared_ptr<RocksDbStore> store;
    ASSERT_TRUE(RocksDbStore::Open(options_, &store).ok());
    const int64_t key = 2;
    char* error = nullptr;
    store->library().put(
        store->db(), store->writes(), store->families()->at("hps_et.m.t"),
        reinterpret_cast<const char*>(&key), 8, "abc", 3, &error);
    ASSERT_EQ(error, nullptr);
  }
  Open();
  ASSERT_TRUE(OpenTable(4).ok());
  ev::Serial serial;
  const std::vector<int64_t> keys = {1, 2};
  std::vector<float> rows(8);
  std::vector<int64_t> missing(2);
  int64_t num_missing = 0;
  const ev::Status status =
      table_->Fetch(keys, Positions::All(2), rows.data(), missing.data(),
                    &num_missing, &serial);
  EXPECT_EQ(status.code(), ev::StatusCode::kDataLoss);
  EXPECT_NE(status.message().find("key 2 has 3 bytes"), std::string::npos)
      << status.message();
}

TEST_F(RocksDbDatabaseTest, OptionsOutOfRangeAreErrors) {
  options_.num_threads = 0;
  EXPECT_NE(RocksDbDatabase::Open(options_, &database_)
                .message()
                .find("num_threads: expected 1 to 1024, got 0"),
            std::string::npos);
  options_.num_threads = 1;
  options_.path = folder_.path() + "/no/such/folder";
  EXPECT_EQ(RocksDbDatabase::Open(options_, &database_).code(),
            ev::StatusCode::kInternal);
  options_.path.clear();
  EXPECT_EQ(RocksDbDatabase::Open(options_, &database_).code(),
            ev::StatusCode::kInvalidArgument);
}

TEST_F(RocksDbDatabaseTest, AFetchEndsInTime) {
  Open();
  ASSERT_TRUE(OpenTable(32).ok());
  std::vector<int64_t> keys;
  for (int64_t key = 0; key < 200000; ++key) keys.push_back(key);
  ASSERT_TRUE(Insert(keys, 1).ok());
  options_.fetch_timeout_ms = 1;
  Open();  // after reopening, the rows are only in files
  ASSERT_TRUE(OpenTable(32).ok());
  ev::Serial serial;
  std::vector<float> rows(keys.size() * 32);
  std::vector<int64_t> missing(keys.size());
  int64_t num_missing = 0;
  const ev::Status status =
      table_->Fetch(keys, Positions::All(keys.size()), rows.data(),
                    missing.data(), &num_missing, &serial);
  EXPECT_EQ(status.code(), ev::StatusCode::kUnavailable) << status.message();
  EXPECT_NE(status.message().find("lookup_timeout_ms is 1"), std::string::npos)
      << status.message();
  options_.fetch_timeout_ms = 60000;
  Open();
  ASSERT_TRUE(OpenTable(32).ok());
  ExpectRows(keys, 1);
}

}  // namespace
}  // namespace hps
