// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include <cstdlib>
#include <memory>

#include "addons/hierarchical_parameter_server/database/rocksdb/rocksdb_database.h"
#include "gtest/gtest.h"

namespace hps {
namespace {

TEST(RocksDbLibraryTest, AMissingLibraryIsAnErrorThatNamesItsPackage) {
  setenv("HPS_ROCKSDB_LIBRARY", "libnothing.so", 1);
  RocksDbOptions options;
  options.path = "store";
  std::unique_ptr<Database> database;
  const ev::Status status = RocksDbDatabase::Open(options, &database);
  EXPECT_EQ(status.code(), ev::StatusCode::kFailedPrecondition);
  for (const char* word : {"rocks_db", "librocksdb-dev", "libnothing.so"}) {
    EXPECT_NE(status.message().find(word), std::string::npos)
        << status.message();
  }
}

}  // namespace
}  // namespace hps
