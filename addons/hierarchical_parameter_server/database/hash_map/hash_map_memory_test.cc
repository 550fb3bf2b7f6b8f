// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Memory of tables with many rows, filled by one thread.

#include <cstdint>
#include <memory>
#include <vector>

#include "addons/hierarchical_parameter_server/database/hash_map/hash_map.h"
#include "addons/hierarchical_parameter_server/database/testing/database_contract.h"
#include "gtest/gtest.h"

namespace hps {

// Only the row helpers of the suite are used here; hash_map_test runs it.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(DatabaseContract);

namespace {

std::unique_ptr<Database> MakeMap(const HashMapOptions& options) {
  std::unique_ptr<Database> database;
  const ev::Status status = HashMap::Make(options, &database);
  EXPECT_TRUE(status.ok()) << status.message();
  return database;
}

std::shared_ptr<Table> Open(Database* database, int width) {
  std::shared_ptr<Table> table;
  EXPECT_TRUE(database->OpenTable("hps_et.m.t", width, &table).ok());
  return table;
}

std::vector<int64_t> Keys(int64_t first, int64_t count) {
  std::vector<int64_t> keys;
  for (int64_t i = 0; i < count; ++i) keys.push_back(first + i);
  return keys;
}

// Acceptance test 11: at most 1.2 * (8 + 4 * width) bytes of memory per row,
// whether the table was reserved or has grown.
TEST(HashMapMemoryTest, StoresRowsCompactly) {
  for (const int width : {1, 16, 128}) {
    for (const bool reserve : {false, true}) {
      const auto database = MakeMap(HashMapOptions());
      const auto table = Open(database.get(), width);
      const int64_t total = width == 128 ? 200000 : 400000;
      if (reserve) {
        ASSERT_TRUE(table->Reserve(total).ok());
      }
      ev::Serial serial;
      for (int64_t first = 0; first < total; first += 4000) {
        const std::vector<int64_t> keys = Keys(first * 31, 4000);
        const std::vector<float> rows(keys.size() * width, 1.0f);
        ASSERT_TRUE(table->Insert(keys, rows.data(), &serial).ok());
        TableStatistics statistics;
        ASSERT_TRUE(table->Statistics(&statistics).ok());
        if (reserve ? first + 4000 < total : first < 40000) continue;
        ASSERT_LE(static_cast<double>(statistics.host_bytes) / statistics.rows,
                  1.2 * (8 + 4 * width))
            << "width " << width << ", rows " << statistics.rows;
      }
    }
  }
}

TEST(HashMapMemoryTest, SegmentsThatBecomeLongAreSplit) {
  HashMapOptions options;
  options.num_partitions = 1;
  const auto database = MakeMap(options);
  const auto table = Open(database.get(), 512);  // 2 KiB per row, 60 MB in all
  ev::Serial serial;
  for (int64_t first = 0; first < 30000; first += 1000) {
    const std::vector<int64_t> keys = Keys(first, 1000);
    const std::vector<float> rows = MadeRows(keys, 2, 512);
    ASSERT_TRUE(table->Insert(keys, rows.data(), &serial).ok());
  }
  for (int64_t key = 0; key < 30000; key += 37) {
    std::vector<float> row(512);
    int64_t missing = -1, count = -1;
    const std::vector<int64_t> keys = {key};
    ASSERT_TRUE(table
                    ->Fetch(keys, Positions::All(1), row.data(), &missing,
                            &count, &serial)
                    .ok());
    ASSERT_EQ(count, 0);
    ASSERT_EQ(row, MadeRow(key, 2, 512));
  }
}

}  // namespace
}  // namespace hps
