// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Kills a process that stores rows. In a program of its own, because the test
// forks and none of the library's threads may exist then.

#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "addons/hierarchical_parameter_server/database/rocksdb/rocksdb_database.h"
#include "addons/hierarchical_parameter_server/database/testing/child_process.h"
#include "addons/hierarchical_parameter_server/database/testing/database_contract.h"
#include "gtest/gtest.h"

namespace hps {

// Only the row helpers of the suite's header are used here.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(DatabaseContract);

namespace {

// A child process stores versions and reports each one stored. After a kill at
// any moment the store has that version's rows or newer ones, whole.
TEST(RocksDbKillTest, StoredRowsSurviveAKill) {
  {
    const RocksDbLibrary* library = nullptr;
    const ev::Status loaded = RocksDbLibrary::Get(&library);
    if (!loaded.ok()) GTEST_SKIP() << loaded.message();
  }
  constexpr int kWidth = 16;
  const TemporaryFolder folder;
  RocksDbOptions options;
  options.path = folder.path() + "/store";
  options.num_threads = 2;
  std::vector<int64_t> keys;
  for (int64_t key = 0; key < 200; ++key) keys.push_back(key * 7);
  int version = 0;
  for (int round = 0; round < 3; ++round) {
    int pipe_ends[2];
    ASSERT_EQ(pipe(pipe_ends), 0);
    ChildProcess child;
    ASSERT_TRUE(child.Fork([&] {
      std::unique_ptr<Database> database;
      std::shared_ptr<Table> table;
      if (!RocksDbDatabase::Open(options, &database).ok()) return 1;
      if (!database->OpenTable("hps_et.m.t", kWidth, &table).ok()) return 2;
      ev::Serial serial;
      for (int next = version + 1;; ++next) {
        if (!table->Insert(keys, MadeRows(keys, next, kWidth).data(), &serial)
                 .ok()) {
          return 3;
        }
        if (write(pipe_ends[1], &next, sizeof(next)) != sizeof(next)) return 4;
      }
    }));
    close(pipe_ends[1]);
    const int wanted = version + 20;
    while (version < wanted) {
      ASSERT_EQ(read(pipe_ends[0], &version, sizeof(version)),
                static_cast<ssize_t>(sizeof(version)));
    }
    child.Kill();
    // Reads what the child reported before it was killed.
    int reported = 0;
    while (read(pipe_ends[0], &reported, sizeof(reported)) ==
           sizeof(reported)) {
      version = reported;
    }
    close(pipe_ends[0]);
    // Reads in another process: the library's threads would not survive the
    // next fork of this one.
    ChildProcess reader;
    ASSERT_TRUE(reader.Fork([&] {
      std::unique_ptr<Database> database;
      std::shared_ptr<Table> table;
      if (!RocksDbDatabase::Open(options, &database).ok()) return 1;
      if (!database->OpenTable("hps_et.m.t", kWidth, &table).ok()) return 2;
      ev::Serial serial;
      std::vector<float> rows(keys.size() * kWidth);
      std::vector<int64_t> missing(keys.size());
      int64_t num_missing = -1;
      if (!table
               ->Fetch(keys, Positions::All(keys.size()), rows.data(),
                       missing.data(), &num_missing, &serial)
               .ok() ||
          num_missing != 0) {
        return 3;
      }
      // One batch, so it is stored as a whole.
      for (const int candidate : {version, version + 1}) {
        if (rows == MadeRows(keys, candidate, kWidth)) return 0;
      }
      return 4;
    }));
    ASSERT_EQ(reader.Wait(), 0);
    ++version;  // the killed process may have stored it
  }
}

}  // namespace
}  // namespace hps
