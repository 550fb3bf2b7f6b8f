// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The tests that every database must pass. A database's test provides a type
// that creates one:
//
//   struct HashMapUnderTest {
//     std::string SkipReason();   // why this machine cannot run it, or ""
//     Database* database();       // empty at first; lives as long as this
//   };
//   INSTANTIATE_TYPED_TEST_SUITE_P(HashMap, DatabaseContract,
//   HashMapUnderTest);

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_TESTING_DATABASE_CONTRACT_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_TESTING_DATABASE_CONTRACT_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "addons/hierarchical_parameter_server/database/database.h"
#include "gtest/gtest.h"
#include "kernels/engine/base/parallel.h"

namespace hps {

constexpr int64_t kSmallestKey = std::numeric_limits<int64_t>::min();
constexpr int64_t kLargestKey = std::numeric_limits<int64_t>::max();

// Makes a row that depends on key and version in every float, so that a mixture
// of two versions is detected.
inline std::vector<float> MadeRow(int64_t key, int version, int width) {
  std::vector<float> row(width);
  for (int i = 0; i < width; ++i) {
    row[i] = static_cast<float>(static_cast<uint64_t>(key) % 9973) +
             0.25f * static_cast<float>(version) + 16384.0f * (i % 7);
  }
  return row;
}

inline std::vector<float> MadeRows(const std::vector<int64_t>& keys,
                                   int version, int width) {
  std::vector<float> rows;
  for (const int64_t key : keys) {
    const std::vector<float> row = MadeRow(key, version, width);
    rows.insert(rows.end(), row.begin(), row.end());
  }
  return rows;
}

template <typename UnderTest>
class DatabaseContract : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string reason = under_test_.SkipReason();
    if (!reason.empty()) GTEST_SKIP() << reason;
  }
  Database* database() { return under_test_.database(); }
  std::shared_ptr<Table> Open(const std::string& tag, RowFormat format) {
    std::shared_ptr<Table> table;
    const ev::Status status = database()->OpenTable(tag, format, &table);
    EXPECT_TRUE(status.ok()) << status.message();
    return table;
  }
  void Insert(Table* table, const std::vector<int64_t>& keys, int version) {
    ev::Serial serial;
    const std::vector<float> rows = MadeRows(keys, version, table->width());
    const ev::Status status = table->Insert(keys, rows.data(), &serial);
    ASSERT_TRUE(status.ok()) << status.message();
  }
  // Fetches all keys; rows that are missing keep -7.
  void Fetch(Table* table, const std::vector<int64_t>& keys,
             std::vector<float>* rows, std::vector<int64_t>* missing) {
    ev::Serial serial;
    rows->assign(keys.size() * table->width(), -7.0f);
    missing->assign(keys.size(), -1);
    int64_t count = -1;
    const ev::Status status =
        table->Fetch(keys, Positions::All(keys.size()), rows->data(),
                     missing->data(), &count, &serial);
    ASSERT_TRUE(status.ok()) << status.message();
    missing->resize(count);
  }
  int64_t Count(Table* table) {
    int64_t rows = -1;
    const ev::Status status = table->Count(&rows);
    EXPECT_TRUE(status.ok()) << status.message();
    return rows;
  }

  UnderTest under_test_;
};
TYPED_TEST_SUITE_P(DatabaseContract);

TYPED_TEST_P(DatabaseContract, AnEmptyTableMissesEverything) {
  auto table = this->Open("hps_et.m.t", 4);
  std::vector<float> rows;
  std::vector<int64_t> missing;
  this->Fetch(table.get(), {5, kLargestKey, -1}, &rows, &missing);
  EXPECT_EQ(missing, (std::vector<int64_t>{0, 1, 2}));
  EXPECT_EQ(rows, std::vector<float>(12, -7.0f));
  EXPECT_EQ(this->Count(table.get()), 0);
  this->Fetch(table.get(), {}, &rows, &missing);
  EXPECT_TRUE(missing.empty());
}

TYPED_TEST_P(DatabaseContract, EveryInt64IsAKey) {
  auto table = this->Open("hps_et.m.t", 3);
  const std::vector<int64_t> keys = {
      kLargestKey,      kSmallestKey,     -1, 0, 1, kLargestKey - 1, -2,
      kSmallestKey + 1, int64_t{1} << 32, 77};
  std::vector<float> rows;
  std::vector<int64_t> missing;
  for (size_t i = 0; i < keys.size(); ++i) {  // Adds one key at a time.
    this->Insert(table.get(), {keys[i]}, 0);
    this->Fetch(table.get(), keys, &rows, &missing);
    ASSERT_EQ(missing.size(), keys.size() - i - 1);
    for (size_t k = 0; k < keys.size(); ++k) {
      const std::vector<float> got(&rows[3 * k], &rows[3 * k] + 3);
      EXPECT_EQ(got,
                k <= i ? MadeRow(keys[k], 0, 3) : std::vector<float>(3, -7.0f));
    }
  }
  EXPECT_EQ(this->Count(table.get()), static_cast<int64_t>(keys.size()));
}

TYPED_TEST_P(DatabaseContract, RowsAreReplacedAndTheLastOfARepeatedKeyStays) {
  auto table = this->Open("hps_et.m.t", 5);
  ev::Serial serial;
  std::vector<float> rows = MadeRow(9, 1, 5);
  for (int version = 2; version <= 3; ++version) {
    const std::vector<float> row = MadeRow(9, version, 5);
    rows.insert(rows.end(), row.begin(), row.end());
  }
  const std::vector<int64_t> keys = {9, 9, 9};
  ASSERT_TRUE(table->Insert(keys, rows.data(), &serial).ok());
  std::vector<int64_t> missing;
  this->Fetch(table.get(), {9, 9}, &rows, &missing);
  EXPECT_TRUE(missing.empty());
  EXPECT_EQ(rows, MadeRows({9, 9}, 3, 5));
  EXPECT_EQ(this->Count(table.get()), 1);
  this->Insert(table.get(), {9}, 4);
  this->Fetch(table.get(), {9}, &rows, &missing);
  EXPECT_EQ(rows, MadeRow(9, 4, 5));
}

TYPED_TEST_P(DatabaseContract, OnlyWantedPositionsAreFetched) {
  auto table = this->Open("hps_et.m.t", 2);
  this->Insert(table.get(), {1, 2, 3, 4}, 0);
  const std::vector<int64_t> keys = {1, 50, 2, 60, 3, 70, 4, 1};
  std::vector<int64_t> wanted = {1, 2, 5, 7};
  std::vector<float> rows(16, -7.0f);
  ev::Serial serial;
  int64_t count = -1;
  // The list of missing positions overwrites the list of positions to fetch.
  ASSERT_TRUE(table
                  ->Fetch(keys, Positions::Of(wanted), rows.data(),
                          wanted.data(), &count, &serial)
                  .ok());
  ASSERT_EQ(count, 2);
  EXPECT_EQ(wanted[0], 1);
  EXPECT_EQ(wanted[1], 5);
  for (int64_t p = 0; p < 8; ++p) {
    const std::vector<float> got(&rows[2 * p], &rows[2 * p] + 2);
    EXPECT_EQ(got, p == 2 || p == 7 ? MadeRow(keys[p], 0, 2)
                                    : std::vector<float>(2, -7.0f));
  }
}

TYPED_TEST_P(DatabaseContract, ManyRowsAreFoundAgainAndSeenByAWalk) {
  auto table = this->Open("hps_et.m.t", 8);
  std::vector<int64_t> keys;
  for (int64_t i = 0; i < 20000; ++i) keys.push_back(i * i * 7919 - 1000000);
  this->Insert(table.get(), keys, 1);
  std::vector<float> rows;
  std::vector<int64_t> missing;
  this->Fetch(table.get(), keys, &rows, &missing);
  EXPECT_TRUE(missing.empty());
  EXPECT_EQ(rows, MadeRows(keys, 1, 8));
  EXPECT_EQ(this->Count(table.get()), 20000);

  std::map<int64_t, int> seen;
  bool right = true;
  ASSERT_TRUE(
      table
          ->ForEach([&](ev::Span<const int64_t> some, const float* their) {
            for (size_t i = 0; i < some.size(); ++i) {
              ++seen[some[i]];
              const std::vector<float> row(their + i * 8, their + (i + 1) * 8);
              right = right && row == MadeRow(some[i], 1, 8);
            }
            return ev::Status::OK();
          })
          .ok());
  EXPECT_TRUE(right);
  EXPECT_EQ(seen.size(), keys.size());
  for (const auto& entry : seen) ASSERT_EQ(entry.second, 1);
  const ev::Status stopped =
      table->ForEach([](ev::Span<const int64_t>, const float*) {
        return ev::OutOfRange("enough");
      });
  EXPECT_EQ(stopped.message(), "enough");
}

TYPED_TEST_P(DatabaseContract, RowsAreRemoved) {
  auto table = this->Open("hps_et.m.t", 4);
  std::vector<int64_t> keys;
  for (int64_t i = 0; i < 3000; ++i) keys.push_back(i);
  this->Insert(table.get(), keys, 0);
  int64_t removed = -1;
  std::vector<int64_t> odd;
  for (int64_t i = 1; i < 3000; i += 2) odd.push_back(i);
  odd.push_back(999999);
  ASSERT_TRUE(table->Remove(odd, &removed).ok());
  EXPECT_EQ(removed, 1500);
  ASSERT_TRUE(table->Remove(odd, nullptr).ok());
  std::vector<float> rows;
  std::vector<int64_t> missing;
  this->Fetch(table.get(), keys, &rows, &missing);
  ASSERT_EQ(missing.size(), 1500u);
  for (size_t i = 0; i < missing.size(); ++i) ASSERT_EQ(missing[i], 2 * i + 1);
  for (int64_t i = 0; i < 3000; i += 2) {
    const std::vector<float> got(&rows[4 * i], &rows[4 * i] + 4);
    ASSERT_EQ(got, MadeRow(i, 0, 4));
  }
  EXPECT_EQ(this->Count(table.get()), 1500);
}

TYPED_TEST_P(DatabaseContract, TablesAreApart) {
  auto a = this->Open("hps_et.m.a", 2);
  auto b = this->Open("hps_et.m.b", RowFormat(6, RowType::kUint8));
  this->Insert(a.get(), {1, 2}, 0);
  this->Insert(b.get(), {2, 3}, 1);
  std::vector<float> rows;
  std::vector<int64_t> missing;
  this->Fetch(a.get(), {1, 2, 3}, &rows, &missing);
  EXPECT_EQ(missing, (std::vector<int64_t>{2}));
  this->Fetch(b.get(), {1, 2, 3}, &rows, &missing);
  EXPECT_EQ(missing, (std::vector<int64_t>{0}));
  std::vector<TableInfo> tables;
  ASSERT_TRUE(this->database()->ListTables(&tables).ok());
  ASSERT_EQ(tables.size(), 2u);
  EXPECT_EQ(tables[0].tag, "hps_et.m.a");
  EXPECT_EQ(tables[0].format, RowFormat(2));
  EXPECT_EQ(tables[1].format, RowFormat(6, RowType::kUint8));
  // Opens the same table twice.
  auto again = this->Open("hps_et.m.a", 2);
  EXPECT_EQ(this->Count(again.get()), 2);
  ASSERT_TRUE(this->database()->DropTable("hps_et.m.a").ok());
  EXPECT_EQ(this->database()->DropTable("hps_et.m.a").code(),
            ev::StatusCode::kNotFound);
  ASSERT_TRUE(this->database()->ListTables(&tables).ok());
  EXPECT_EQ(tables.size(), 1u);
  // A new table with the same tag is empty and may have another width.
  auto fresh = this->Open("hps_et.m.a", 3);
  EXPECT_EQ(this->Count(fresh.get()), 0);
  EXPECT_EQ(this->Count(b.get()), 2);
}

TYPED_TEST_P(DatabaseContract, BadTagsAndWidthsAreErrors) {
  std::shared_ptr<Table> table;
  Database* const database = this->database();
  for (const int width : {0, -1, kMaxWidth + 1}) {
    const ev::Status status = database->OpenTable("hps_et.m.t", width, &table);
    EXPECT_EQ(status.code(), ev::StatusCode::kInvalidArgument);
    EXPECT_NE(status.message().find(std::to_string(width)), std::string::npos);
  }
  for (const char* tag : {"", "t", "hps_et.m", "hps_et..t", "hps_et.m.",
                          "hps_et.m.t.u", "hps_et.m.{t}", "hps_et.m m.t"}) {
    EXPECT_EQ(database->OpenTable(tag, 4, &table).code(),
              ev::StatusCode::kInvalidArgument)
        << tag;
  }
  table = this->Open("hps_et.m.t", 4);
  // The last one has stored rows of 4 words too.
  for (const RowFormat& format :
       {RowFormat(5), RowFormat(12, RowType::kUint8)}) {
    const ev::Status status = database->OpenTable("hps_et.m.t", format, &table);
    EXPECT_EQ(status.code(), ev::StatusCode::kInvalidArgument);
    for (const std::string& part :
         {std::string("hps_et.m.t"), std::string("rows of 4 floats, expected "),
          Describe(format)}) {
      EXPECT_NE(status.message().find(part), std::string::npos)
          << status.message();
    }
  }
  EXPECT_TRUE(database->OpenTable("hps_et.m.t", 4, &table).ok());
}

TYPED_TEST_P(DatabaseContract, NoRowIsTornWhileItIsReplaced) {
  constexpr int kWidth = 64, kKeys = 64, kReaders = 3;
  auto table = this->Open("hps_et.m.t", kWidth);
  std::vector<int64_t> keys;
  for (int64_t i = 0; i < kKeys; ++i) keys.push_back(i * 1000003);
  this->Insert(table.get(), keys, 0);
  std::atomic<bool> stop{false};
  std::atomic<int> torn{0}, absent{0}, failed{0};
  std::atomic<int64_t> read{0};
  std::vector<std::thread> readers;
  for (int r = 0; r < kReaders; ++r) {
    readers.emplace_back([&] {
      ev::Serial serial;
      std::vector<float> rows(kKeys * kWidth);
      std::vector<int64_t> missing(kKeys);
      while (!stop.load()) {
        int64_t count = 0;
        if (!table
                 ->Fetch(keys, Positions::All(kKeys), rows.data(),
                         missing.data(), &count, &serial)
                 .ok()) {
          ++failed;
          break;
        }
        absent += static_cast<int>(count);
        for (int64_t k = 0; k < kKeys; ++k) {
          const float* row = &rows[k * kWidth];
          const int version = static_cast<int>(
              (row[0] - MadeRow(keys[k], 0, 1)[0]) * 4.0f + 0.5f);
          const std::vector<float> whole = MadeRow(keys[k], version, kWidth);
          if (!std::equal(whole.begin(), whole.end(), row)) ++torn;
        }
        ++read;
      }
    });
  }
  // Runs until every reader has read about ten times.
  for (int version = 1; version < 50 || read.load() < 10 * kReaders;
       ++version) {
    if (failed.load() > 0 || version > 100000) break;
    this->Insert(table.get(), keys, version % 500);
  }
  stop = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(torn.load(), 0);
  EXPECT_EQ(absent.load(), 0);
  EXPECT_EQ(failed.load(), 0);
  EXPECT_GT(read.load(), 0);
}

TYPED_TEST_P(DatabaseContract, ManyThreadsInsertFetchAndRemove) {
  constexpr int kThreads = 4, kWidth = 4, kRounds = 20;
  auto table = this->Open("hps_et.m.t", kWidth);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      ev::Serial serial;
      std::vector<int64_t> keys;
      for (int64_t i = 0; i < 500; ++i) keys.push_back(i * kThreads + t);
      std::vector<float> rows(keys.size() * kWidth);
      std::vector<int64_t> missing(keys.size());
      for (int round = 0; round < kRounds; ++round) {
        const std::vector<float> stored = MadeRows(keys, round, kWidth);
        int64_t count = -1, removed = -1;
        if (!table->Insert(keys, stored.data(), &serial).ok()) ++wrong;
        if (!table
                 ->Fetch(keys, Positions::All(keys.size()), rows.data(),
                         missing.data(), &count, &serial)
                 .ok() ||
            count != 0 || rows != stored) {
          ++wrong;
        }
        if (round + 1 < kRounds &&
            (!table->Remove(keys, &removed).ok() || removed != 500)) {
          ++wrong;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong.load(), 0);
  EXPECT_EQ(this->Count(table.get()), 500 * kThreads);
}

REGISTER_TYPED_TEST_SUITE_P(DatabaseContract, AnEmptyTableMissesEverything,
                            EveryInt64IsAKey,
                            RowsAreReplacedAndTheLastOfARepeatedKeyStays,
                            OnlyWantedPositionsAreFetched,
                            ManyRowsAreFoundAgainAndSeenByAWalk, RowsAreRemoved,
                            TablesAreApart, BadTagsAndWidthsAreErrors,
                            NoRowIsTornWhileItIsReplaced,
                            ManyThreadsInsertFetchAndRemove);

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_TESTING_DATABASE_CONTRACT_H_
