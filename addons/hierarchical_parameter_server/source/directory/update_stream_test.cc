// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// A training process sends 10,000 rows per second through a folder; this
// process stores and serves them. No reader may see a torn row, or an older row
// after a newer one.

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "addons/hierarchical_parameter_server/database/database.h"
#include "addons/hierarchical_parameter_server/database/hash_map/hash_map.h"
#include "addons/hierarchical_parameter_server/database/testing/child_process.h"
#include "addons/hierarchical_parameter_server/source/directory/directory_source.h"
#include "addons/hierarchical_parameter_server/source/testing/made_updates.h"
#include "addons/hierarchical_parameter_server/source/update_receiver.h"
#include "gtest/gtest.h"

namespace hps {
namespace {

using Clock = std::chrono::steady_clock;

constexpr char kTag[] = "hps_et.m.t";
constexpr int kWidth = 32;
constexpr int64_t kKeys = 1000;
// 1,000 rows ten times per second.
constexpr int kVersionsASecond = 10;

int Seconds() {
  const char* found = std::getenv("HPS_UPDATE_SECONDS");
  return found == nullptr ? 2 : std::atoi(found);
}

int SendAll(const std::string& path, int num_versions) {
  std::unique_ptr<UpdateProducer> producer;
  if (!DirectoryProducer::Open(path, &producer).ok()) return 1;
  const std::vector<int64_t> keys = KeysFrom(0, kKeys);
  const Clock::time_point start = Clock::now();
  for (int version = 1; version <= num_versions; ++version) {
    std::this_thread::sleep_until(
        start + std::chrono::milliseconds(1000 / kVersionsASecond) * version);
    if (!producer
             ->Send(kTag, kWidth, keys,
                    SealedRows(keys, version, kWidth).data())
             .ok() ||
        !producer->Flush(10000).ok()) {
      return 2;
    }
  }
  return 0;
}

TEST(UpdateStreamTest, ReadersSeeWholeRowsThatGetNewer) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/updates";
  const int num_versions = Seconds() * kVersionsASecond;
  // Forks before this process has threads.
  ChildProcess trainer;
  ASSERT_TRUE(trainer.Fork([&] { return SendAll(path, num_versions); }));

  std::unique_ptr<Database> database;
  ASSERT_TRUE(HashMap::Make(HashMapOptions(), &database).ok());
  std::shared_ptr<Table> table;
  ASSERT_TRUE(database->OpenTable(kTag, kWidth, &table).ok());
  const std::vector<int64_t> keys = KeysFrom(0, kKeys);
  ev::Serial serial;
  ASSERT_TRUE(
      table->Insert(keys, SealedRows(keys, 0, kWidth).data(), &serial).ok());

  std::unique_ptr<UpdateProducer> makes_the_folder;
  ASSERT_TRUE(DirectoryProducer::Open(path, &makes_the_folder).ok());
  DirectorySourceOptions options;
  options.path = path;
  options.group = "hps.volatile";
  std::unique_ptr<UpdateSource> source;
  ASSERT_TRUE(DirectorySource::Open(options, &source).ok());
  UpdateReceiver receiver(
      std::move(source),
      [&](const UpdateBatch& batch) {
        ev::Serial on_this_thread;
        return table->Insert(batch.keys, batch.rows.data(), &on_this_thread);
      },
      ReceiverOptions());

  std::atomic<bool> stops{false};
  std::atomic<int64_t> torn{0}, older{0}, missing_rows{0}, reads{0};
  std::vector<std::thread> readers;
  for (int r = 0; r < 2; ++r) {
    readers.emplace_back([&] {
      ev::Serial on_this_thread;
      std::vector<float> rows(kKeys * kWidth);
      std::vector<int64_t> missing(kKeys);
      std::vector<int> newest(kKeys, 0);
      while (!stops.load()) {
        int64_t num_missing = 0;
        ASSERT_TRUE(table
                        ->Fetch(keys, Positions::All(kKeys), rows.data(),
                                missing.data(), &num_missing, &on_this_thread)
                        .ok());
        missing_rows += num_missing;
        for (int64_t k = 0; k < kKeys; ++k) {
          const int version = VersionOf(keys[k], &rows[k * kWidth], kWidth);
          if (version < 0) {
            ++torn;
          } else if (version < newest[k]) {
            ++older;
          } else {
            newest[k] = version;
          }
        }
        ++reads;
      }
    });
  }
  const Clock::time_point end =
      Clock::now() + std::chrono::seconds(Seconds() + 50);
  while (receiver.statistics().delivered_rows < kKeys * num_versions &&
         Clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_EQ(receiver.statistics().delivered_rows, kKeys * num_versions);
  EXPECT_EQ(trainer.Wait(), 0);
  stops = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(torn.load(), 0);
  EXPECT_EQ(older.load(), 0);
  EXPECT_EQ(missing_rows.load(), 0);
  EXPECT_GT(reads.load(), 0);
  EXPECT_EQ(receiver.statistics().failures, 0);
  std::vector<float> rows(kKeys * kWidth);
  std::vector<int64_t> missing(kKeys);
  int64_t num_missing = 0;
  ASSERT_TRUE(table
                  ->Fetch(keys, Positions::All(kKeys), rows.data(),
                          missing.data(), &num_missing, &serial)
                  .ok());
  EXPECT_EQ(rows, SealedRows(keys, num_versions, kWidth));
}

}  // namespace
}  // namespace hps
