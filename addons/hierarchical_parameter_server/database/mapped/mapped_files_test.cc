// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/hierarchical_parameter_server/database/mapped/mapped_files.h"

#include <sys/stat.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "addons/hierarchical_parameter_server/database/testing/database_contract.h"
#include "gtest/gtest.h"
#include "kernels/engine/testing/thread_pool.h"

namespace hps {
namespace {

struct MappedUnderTest {
  std::string SkipReason() { return ""; }
  Database* database() { return &files; }
  MappedFiles files{"multi_process_hash_map", false};
};
INSTANTIATE_TYPED_TEST_SUITE_P(Mapped, DatabaseContract, MappedUnderTest);

std::string WriteTable(const std::vector<int64_t>& keys, int version,
                       int width) {
  std::string folder = ::testing::TempDir() + "/tableXXXXXX";
  EXPECT_NE(mkdtemp(&folder[0]), nullptr);
  const std::vector<float> rows = MadeRows(keys, version, width);
  std::ofstream(folder + "/key", std::ios::binary)
      .write(reinterpret_cast<const char*>(keys.data()), keys.size() * 8);
  std::ofstream(folder + "/emb_vector", std::ios::binary)
      .write(reinterpret_cast<const char*>(rows.data()), rows.size() * 4);
  return folder;
}

class MappedFilesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(files_.OpenTable("hps_et.m.t", kWidth, &table_).ok());
  }
  void Attach(const std::string& folder) {
    std::string note;
    const ev::Status status =
        files_.Attach("hps_et.m.t", folder, KeyBits::k64, &note);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(note, "");
  }
  // versions[i] < 0: keys[i] must be missing.
  void Expect(const std::vector<int64_t>& keys,
              const std::vector<int>& versions, ev::Parallel* parallel) {
    std::vector<float> rows(keys.size() * kWidth, -7.0f), expected;
    std::vector<int64_t> missing(keys.size()), absent;
    for (size_t i = 0; i < keys.size(); ++i) {
      const std::vector<float> row =
          versions[i] < 0 ? std::vector<float>(kWidth, -7.0f)
                          : MadeRow(keys[i], versions[i], kWidth);
      expected.insert(expected.end(), row.begin(), row.end());
      if (versions[i] < 0) absent.push_back(i);
    }
    int64_t count = -1;
    ASSERT_TRUE(table_
                    ->Fetch(keys, Positions::All(keys.size()), rows.data(),
                            missing.data(), &count, parallel)
                    .ok());
    missing.resize(count);
    EXPECT_EQ(missing, absent);
    EXPECT_EQ(rows, expected);
  }
  int64_t Count() {
    int64_t rows = -1;
    EXPECT_TRUE(table_->Count(&rows).ok());
    return rows;
  }
  static constexpr int kWidth = 3;
  MappedFiles files_{"multi_process_hash_map", false};
  std::shared_ptr<Table> table_;
  ev::Serial serial_;
};
constexpr int MappedFilesTest::kWidth;

TEST_F(MappedFilesTest, RowsOfTheFilesAreServed) {
  Attach(WriteTable({5, -1, INT64_MAX, 0}, 1, kWidth));
  Expect({0, 6, INT64_MAX, -1, 5, 5}, {1, -1, 1, 1, 1, 1}, &serial_);
  EXPECT_EQ(Count(), 4);
  std::vector<int64_t> keys;
  for (int64_t i = 0; i < 30000; ++i) keys.push_back(3 * i);
  Attach(WriteTable(keys, 2, kWidth));
  ev::testing::ThreadPool pool(3);
  std::vector<int64_t> wanted;
  std::vector<int> versions;
  for (int64_t i = 0; i < 30000; ++i) {
    wanted.push_back(i);
    versions.push_back(i % 3 == 0 ? 2 : -1);
  }
  Expect(wanted, versions, &pool);
}

TEST_F(MappedFilesTest, StoredAndRemovedRowsOverrideTheFiles) {
  Attach(WriteTable({1, 2, 3, 4}, 1, kWidth));
  const std::vector<int64_t> stored = {2, 9};
  const std::vector<float> rows = MadeRows(stored, 5, kWidth);
  ASSERT_TRUE(table_->Insert(stored, rows.data(), &serial_).ok());
  Expect({1, 2, 3, 9, 10}, {1, 5, 1, 5, -1}, &serial_);
  EXPECT_EQ(Count(), 5);
  int64_t removed = -1;
  const std::vector<int64_t> gone = {2, 3, 10, 9};
  ASSERT_TRUE(table_->Remove(gone, &removed).ok());
  EXPECT_EQ(removed, 3);
  Expect({1, 2, 3, 4, 9}, {1, -1, -1, 1, -1}, &serial_);
  ASSERT_TRUE(table_->Insert(stored, rows.data(), &serial_).ok());
  Expect({1, 2, 3, 4, 9}, {1, 5, -1, 1, 5}, &serial_);
  EXPECT_EQ(Count(), 4);
  std::set<int64_t> seen;
  ASSERT_TRUE(table_
                  ->ForEach([&](ev::Span<const int64_t> keys, const float*) {
                    for (const int64_t key : keys) {
                      EXPECT_TRUE(seen.insert(key).second) << key;
                    }
                    return ev::Status::OK();
                  })
                  .ok());
  EXPECT_EQ(seen, (std::set<int64_t>{1, 2, 4, 9}));
  // New files replace all rows.
  Attach(WriteTable({3}, 7, kWidth));
  Expect({1, 2, 3, 9}, {-1, -1, 7, -1}, &serial_);
  EXPECT_EQ(Count(), 1);
}

TEST_F(MappedFilesTest, AReplacedRowOfTheFilesIsAlwaysFound) {
  std::vector<int64_t> keys;
  for (int64_t i = 0; i < 4000; ++i) keys.push_back(i);
  for (int round = 0; round < 5; ++round) {
    Attach(WriteTable(keys, 1, kWidth));
    std::atomic<bool> stop{false};
    std::atomic<int64_t> absent{0}, read{0};
    std::thread reader([&] {
      ev::Serial serial;
      std::vector<float> rows(keys.size() * kWidth);
      std::vector<int64_t> missing(keys.size());
      while (!stop) {
        int64_t count = 0;
        table_->Fetch(keys, Positions::All(keys.size()), rows.data(),
                      missing.data(), &count, &serial);
        absent += count;
        ++read;
      }
    });
    for (int64_t first = 0; first < 4000; first += 50) {
      const std::vector<int64_t> some(keys.begin() + first,
                                      keys.begin() + first + 50);
      const std::vector<float> rows = MadeRows(some, 2, kWidth);
      ASSERT_TRUE(table_->Insert(some, rows.data(), &serial_).ok());
    }
    while (read.load() < 3) std::this_thread::yield();
    stop = true;
    reader.join();
    EXPECT_EQ(absent.load(), 0);
  }
}

TEST_F(MappedFilesTest, AnIndexThatIsDamagedWhileServedIsAnError) {
  const std::string folder = WriteTable({1, 2, 3}, 1, kWidth);
  Attach(folder);
  Expect({1, 2, 9}, {1, 1, -1}, &serial_);
  std::fstream(folder + "/hps_index",
               std::ios::in | std::ios::out | std::ios::binary)
      .seekp(128)
      .write(std::string(64, '\xff').data(), 64);
  const std::vector<int64_t> keys = {1, 2, 9};
  std::vector<float> rows(3 * kWidth);
  std::vector<int64_t> missing(3);
  int64_t count = 0;
  for (const ev::Status& status :
       {table_->Fetch(keys, Positions::All(3), rows.data(), missing.data(),
                      &count, &serial_),
        table_->Insert(keys, rows.data(), &serial_),
        table_->Remove(keys, nullptr)}) {
    EXPECT_EQ(status.code(), ev::StatusCode::kDataLoss);
    EXPECT_NE(status.message().find(folder), std::string::npos);
  }
  ASSERT_EQ(remove((folder + "/hps_index").c_str()), 0);
  Attach(folder);
  Expect({1, 2, 9}, {1, 1, -1}, &serial_);
}

TEST_F(MappedFilesTest, FilesThatDoNotFitChangeNothing) {
  Attach(WriteTable({1}, 1, kWidth));
  const std::string other = WriteTable({1, 2}, 1, kWidth + 1);
  std::string note;
  EXPECT_EQ(files_.Attach("hps_et.m.t", other, KeyBits::k64, &note).code(),
            ev::StatusCode::kInvalidArgument);
  Expect({1, 2}, {1, -1}, &serial_);
  EXPECT_EQ(files_.Attach("hps_et.m.none", other, KeyBits::k64, &note).code(),
            ev::StatusCode::kNotFound);
}

}  // namespace
}  // namespace hps
