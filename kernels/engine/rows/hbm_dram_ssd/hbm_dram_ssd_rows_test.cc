// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Tests of what only a table in GPU memory, CPU memory and a file can do: where
// its rows are, the limit of CPU memory, and failures of the disk. The tests of
// ../hbm_dram and of every table run on it as well.

#include "kernels/engine/rows/hbm_dram_ssd/hbm_dram_ssd_rows.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/engine/embedding/embedding_table.h"
#include "kernels/engine/embedding/lookup/pooled_lookup.h"
#include "kernels/engine/embedding/lookup/presence.h"
#include "kernels/engine/embedding/table_reader.h"
#include "kernels/engine/embedding/update/row_update.h"
#include "kernels/engine/rows/gpu_compute.h"
#include "kernels/engine/storage/ssd/row_file.h"
#include "kernels/engine/testing/erased.h"
#include "kernels/engine/testing/host_device_rows.h"
#include "kernels/engine/testing/storage_under_test.h"
#include "kernels/engine/testing/thread_pool.h"

namespace ev {
namespace {

#define ASSERT_OK(expression)                             \
  do {                                                    \
    const Status ev_status_ = (expression);               \
    ASSERT_TRUE(ev_status_.ok()) << ev_status_.message(); \
  } while (0)

constexpr int64_t kDim = 8;
constexpr int64_t kDeviceSlots = 64;
constexpr int64_t kMemorySlots = 100;

std::atomic<bool> disk_full{false};
bool HasSpace(int64_t) { return !disk_full; }

TableOptions Options(const std::string& name,
                     int64_t memory_slots = kMemorySlots) {
  TableOptions options;
  options.name = name;
  options.dim = kDim;
  options.storage = RowStorage::kHbmDramSsd;
  options.path = testing::FreshDirectory();
  options.memory_bytes = kDeviceSlots * kDim * sizeof(float);
  // A cache slot takes 20 bytes in addition to its row.
  options.second_memory_bytes = memory_slots * (kDim * sizeof(float) + 20);
  return options;
}

std::shared_ptr<EmbeddingTable> MakeTable(const TableOptions& options) {
  auto table = std::make_shared<EmbeddingTable>(options);
  const Status status = table->Initialize(std::vector<float>(kDim, 5), 1);
  EXPECT_TRUE(status.ok()) << status.message();
  return table;
}

std::vector<int64_t> Range(int64_t begin, int64_t end) {
  std::vector<int64_t> keys;
  for (int64_t key = begin; key < end; ++key) keys.push_back(key);
  return keys;
}

// Subtracts 1 from each value.
Status Train(EmbeddingTable* table, const std::vector<int64_t>& keys,
             int64_t step = 0) {
  const std::vector<float> ones(keys.size() * kDim, 1.0f);
  UpdateInput update;
  update.table = table;
  update.keys = keys;
  update.grads = ones.data();
  return ApplyRule("SGD", std::vector<float>{1.0f},
                   std::vector<UpdateInput>{update},
                   std::vector<std::vector<SlotSpec>>(1), step, nullptr);
}

// Returns the number of keys in each tier: 0, 1, 2.
std::vector<int64_t> Tiers(const EmbeddingTable& table,
                           const std::vector<int64_t>& keys) {
  std::vector<int32_t> tiers(keys.size());
  EXPECT_TRUE(FindTiers(table, keys, tiers.data()).ok());
  std::vector<int64_t> counts(3);
  for (const int32_t tier : tiers) {
    if (tier >= 0) ++counts[tier];
  }
  return counts;
}

// Looks keys up, one per sample.
Status LookUp(EmbeddingTable* table, const std::vector<int64_t>& keys,
              std::vector<float>* pooled) {
  std::vector<int64_t> splits = Range(0, keys.size() + 1);
  PooledInput in;
  in.table = table;
  in.batch_size = in.num_ids = keys.size();
  in.ids64 = keys.data();
  in.row_splits = splits.data();
  pooled->resize(keys.size() * kDim);
  std::vector<float*> outputs = {pooled->data()};
  std::shared_ptr<const LookupPlan> plan;
  return PooledForward({&in, 1}, {}, outputs, nullptr, &plan);
}

class HbmDramSsdRowsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    disk_full = false;
    RowFile::SetSpaceHookForTesting(&HasSpace);
  }
  void TearDown() override { RowFile::SetSpaceHookForTesting(nullptr); }

  void ExpectValues(const EmbeddingTable& table,
                    const std::vector<int64_t>& keys, float value) {
    std::vector<float> values(keys.size() * kDim);
    ASSERT_OK(table.Gather(keys, values.data(), nullptr));
    for (size_t i = 0; i < values.size(); ++i) {
      ASSERT_EQ(values[i], value) << keys[i / kDim];
    }
  }
  void ExpectPooled(EmbeddingTable* table, const std::vector<int64_t>& keys,
                    float value) {
    std::vector<float> pooled;
    ASSERT_OK(LookUp(table, keys, &pooled));
    for (const float got : pooled) ASSERT_EQ(got, value);
  }
};

TEST_F(HbmDramSsdRowsTest, EveryRowIsInOneTier) {
  const auto table = MakeTable(Options("v"));
  const std::vector<int64_t> keys = Range(0, 3000);
  for (int64_t step = 0; step < 4; ++step) {
    ASSERT_OK(Train(table.get(), keys, step));
  }
  const std::vector<int64_t> tiers = Tiers(*table, keys);
  EXPECT_EQ(tiers[0] + tiers[1] + tiers[2], 3000);
  EXPECT_GT(tiers[0], kDeviceSlots / 2);
  EXPECT_GT(tiers[1], kMemorySlots / 2);
  EXPECT_GT(tiers[2], 2500);
  // A row that a thread is moving counts twice.
  TierStats stats, below;
  for (int wait = 0; wait < 1000; ++wait) {
    stats = table->tier_stats();
    below = table->tier_stats_below();
    if (stats.memory_rows + stats.stored_rows + below.stored_rows == 3000) {
      break;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_EQ(stats.memory_rows + stats.stored_rows + below.stored_rows, 3000);
  EXPECT_LE(stats.memory_rows, kDeviceSlots);
  EXPECT_EQ(stats.stored_rows, below.memory_rows);
  EXPECT_EQ(below.memory_rows, kMemorySlots);
  EXPECT_GT(below.stored_bytes, 2500 * kDim * 4);
  EXPECT_GT(below.misses, 5000);
  EXPECT_GT(below.written_bytes, 5000 * kDim * 4);
  EXPECT_EQ(table->size(), 3000);
  ExpectValues(*table, keys, 1);
  // Rows and cache slots in CPU memory, row states of both caches, buffers of
  // the file.
  EXPECT_LT(table->stats().row_bytes,
            kMemorySlots * (kDim * 4 + 20) + (8 << 20));
}

TEST_F(HbmDramSsdRowsTest, CpuMemoryHoldsAtMostTheConfiguredRows) {
  for (const int64_t cache_slots : {0, 1, 2, 5}) {
    const auto table = MakeTable(Options("v", cache_slots));
    for (int64_t step = 0; step < 4; ++step) {
      ASSERT_OK(Train(table.get(), Range(0, 500), step));
    }
    EXPECT_LE(table->tier_stats_below().memory_rows,
              std::max<int64_t>(1, cache_slots));
    ExpectValues(*table, Range(0, 500), 1);
  }
}

TEST_F(HbmDramSsdRowsTest, RowsThatAreOnlyLookedUpComeFromTheFileOnce) {
  const auto table = MakeTable(Options("v"));
  ASSERT_OK(Train(table.get(), Range(0, 3000)));
  ASSERT_OK(Train(table.get(), Range(0, 1000)));
  // 80 rows: more than fit on the device, fewer than fit beside it.
  EXPECT_GT(Tiers(*table, Range(1000, 1080))[2], 60);
  for (int64_t begin = 1000; begin < 1080; begin += 20) {
    ExpectPooled(table.get(), Range(begin, begin + 20), 4);
  }
  EXPECT_EQ(Tiers(*table, Range(1000, 1080))[2], 0);
  const TierStats before = table->tier_stats();
  const TierStats below = table->tier_stats_below();
  for (int round = 0; round < 20; ++round) {
    for (int64_t begin = 1000; begin < 1080; begin += 20) {
      ExpectPooled(table.get(), Range(begin, begin + 20), 4);
    }
  }
  // The GPU has found all of them, and the rows below were not used.
  const TierStats after = table->tier_stats();
  EXPECT_EQ(after.hits + after.misses - before.hits - before.misses, 20 * 80);
  EXPECT_EQ(table->tier_stats_below().misses, below.misses);
}

TEST_F(HbmDramSsdRowsTest, ABatchThatDoesNotFitIsReadWhereItsRowsAre) {
  const auto table = MakeTable(Options("v"));
  ASSERT_OK(Train(table.get(), Range(0, 3000)));
  const TierStats before = table->tier_stats();
  ExpectPooled(table.get(), Range(0, 3000), 4);
  // The step was tried once, and then the CPU has read each row.
  EXPECT_LT(table->tier_stats().hits, before.hits + 3000);
  EXPECT_GT(table->tier_stats().misses, before.misses + 2800);
  // A batch that fits is brought.
  ExpectPooled(table.get(), Range(2000, 2100), 4);
  EXPECT_EQ(Tiers(*table, Range(2000, 2100))[2], 0);
}

TEST_F(HbmDramSsdRowsTest, ALookupDuringASnapshotMovesNoRow) {
  const auto table = MakeTable(Options("v"));
  ASSERT_OK(Train(table.get(), Range(0, 3000)));
  std::vector<int32_t> before(3000), after(3000);
  ASSERT_OK(FindTiers(*table, Range(0, 3000), before.data()));
  {
    std::unique_ptr<TableReader> reader;
    ASSERT_OK(TableReader::Open(*table, {}, &reader));
    ExpectPooled(table.get(), Range(2000, 2050), 4);
    ASSERT_OK(Prefetch(table.get(), Range(2000, 2050)));
    ASSERT_OK(FindTiers(*table, Range(0, 3000), after.data()));
    for (size_t i = 0; i < after.size(); ++i) {
      EXPECT_EQ(after[i] == 0, before[i] == 0) << i;
    }
  }
  ExpectPooled(table.get(), Range(2000, 2050), 4);
  EXPECT_EQ(Tiers(*table, Range(2000, 2050))[2], 0);
}

TEST_F(HbmDramSsdRowsTest, RowsThatAreUsedOftenStayInCpuMemory) {
  const auto table = MakeTable(Options("v"));
  // Used in every other step, so that the device evicts some of them.
  const std::vector<int64_t> often = Range(0, 100);
  int64_t cold = 1000, step = 0;
  for (; step < 400; ++step) {
    ASSERT_OK(Train(
        table.get(),
        step % 2 == 0 ? Range(step % 4 == 0 ? 0 : 50, step % 4 == 0 ? 50 : 100)
                      : Range(cold, cold + 40),
        step));
    if (step % 2 == 1) cold += 40;
  }
  const std::vector<int64_t> tiers = Tiers(*table, often);
  EXPECT_GT(tiers[1], 20);
  EXPECT_EQ(tiers[2], 0);
}

TEST_F(HbmDramSsdRowsTest, PrefetchedRowsComeFromTheFile) {
  const auto table = MakeTable(Options("v"));
  ASSERT_OK(Train(table.get(), Range(0, 3000)));
  const std::vector<int64_t> some = Range(200, 230);
  ASSERT_OK(Prefetch(table.get(), some));
  EXPECT_EQ(Tiers(*table, some)[0], 30);
  const int64_t misses = table->tier_stats().misses;
  ExpectValues(*table, some, 4);
  EXPECT_EQ(table->tier_stats().misses, misses);
}

TEST_F(HbmDramSsdRowsTest, ASaveMovesNoRow) {
  const auto table = MakeTable(Options("v"));
  ASSERT_OK(Train(table.get(), Range(0, 3000)));
  const TierStats before = table->tier_stats();
  const TierStats below = table->tier_stats_below();
  TableSnapshot snapshot;
  ASSERT_OK(table->Export({}, &snapshot));
  EXPECT_EQ(snapshot.keys.size(), 3000u);
  for (const float value : snapshot.values) ASSERT_EQ(value, 4);
  EXPECT_EQ(table->tier_stats().misses, before.misses);
  EXPECT_EQ(table->tier_stats().hits, before.hits);
  EXPECT_EQ(table->tier_stats_below().misses, below.misses);
  EXPECT_EQ(table->tier_stats_below().hits, below.hits);
}

TEST_F(HbmDramSsdRowsTest, ErasedRowsLeaveAllTiers) {
  const auto table = MakeTable(Options("v"));
  ASSERT_OK(Train(table.get(), Range(0, 3000)));
  EXPECT_EQ(testing::Erased(table.get(), Range(0, 2990)), 2990);
  TierStats below = table->tier_stats_below();
  EXPECT_EQ(
      table->tier_stats().memory_rows + below.memory_rows + below.stored_rows,
      10);
  EXPECT_EQ(testing::Erased(table.get(), Range(2990, 3000)), 10);
  below = table->tier_stats_below();
  EXPECT_EQ(table->tier_stats().memory_rows, 0);
  EXPECT_EQ(below.memory_rows, 0);
  EXPECT_EQ(below.stored_rows, 0);
  ASSERT_OK(Train(table.get(), Range(0, 3000)));
  ExpectValues(*table, Range(0, 3000), 4);
}

TEST_F(HbmDramSsdRowsTest, AFullDiskChangesNothingAndIsNotPermanent) {
  const TableOptions options = Options("clicks");
  const auto table = MakeTable(options);
  ASSERT_OK(Train(table.get(), Range(0, 3000)));
  disk_full = true;
  Status status;
  float value = 4;
  for (int64_t step = 1; step < 50 && status.ok(); ++step) {
    status = Train(table.get(), Range(0, 3000), step);
    if (status.ok()) --value;
  }
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  for (const std::string& part :
       {std::string("table 'clicks'"),
        options.path.substr(options.path.rfind('/')), std::string("bytes more"),
        std::string("are free")}) {
    EXPECT_NE(status.message().find(part), std::string::npos)
        << status.message();
  }
  // All rows can still be read, wherever they are.
  for (int64_t begin = 0; begin < 3000; begin += 50) {
    ASSERT_NO_FATAL_FAILURE(
        ExpectValues(*table, Range(begin, begin + 50), value));
  }
  ASSERT_NO_FATAL_FAILURE(ExpectValues(*table, Range(0, 3000), value));
  for (int64_t begin = 0; begin < 3000; begin += 50) {
    ASSERT_NO_FATAL_FAILURE(
        ExpectPooled(table.get(), Range(begin, begin + 50), value));
  }
  disk_full = false;
  ASSERT_OK(Train(table.get(), Range(0, 3000), 99));
  ExpectValues(*table, Range(0, 3000), value - 1);
}

// Overwrites the table's file.
void Damage(const std::string& directory) {
  DIR* const files = opendir(directory.c_str());
  ASSERT_NE(files, nullptr);
  int damaged = 0;
  while (const dirent* file = readdir(files)) {
    const std::string name = file->d_name;
    if (name.find(".evrows") == std::string::npos) continue;
    FILE* const bytes = std::fopen((directory + "/" + name).c_str(), "r+b");
    ASSERT_NE(bytes, nullptr);
    std::fseek(bytes, 0, SEEK_END);
    const std::string noise(std::ftell(bytes), 'x');
    std::rewind(bytes);
    EXPECT_EQ(std::fwrite(noise.data(), 1, noise.size(), bytes), noise.size());
    std::fclose(bytes);
    ++damaged;
  }
  closedir(files);
  EXPECT_EQ(damaged, 1);
}

TEST_F(HbmDramSsdRowsTest, ADamagedFileIsAnErrorOfItsRowsAlone) {
  const TableOptions options = Options("clicks");
  const auto table = MakeTable(options);
  const std::vector<int64_t> keys = Range(0, 3000);
  for (int64_t step = 0; step < 2; ++step) {
    ASSERT_OK(Train(table.get(), keys, step));
  }
  std::vector<int32_t> tiers(keys.size());
  ASSERT_OK(FindTiers(*table, keys, tiers.data()));
  ASSERT_NO_FATAL_FAILURE(Damage(options.path));
  std::vector<float> values(kDim);
  // Twice: a failed read leaves a row where it was.
  for (int round = 0; round < 2; ++round) {
    for (const int64_t key : keys) {
      const Status status =
          table->Gather(std::vector<int64_t>{key}, values.data(), nullptr);
      if (status.ok()) {
        // Rows that waited to be written may be in the file by now.
        ASSERT_NE(tiers[key], 2) << key;
        ASSERT_EQ(values[0], 3) << key;
        continue;
      }
      ASSERT_NE(tiers[key], 0) << key;
      ASSERT_EQ(status.code(), StatusCode::kDataLoss);
      ASSERT_NE(status.message().find("table 'clicks'"), std::string::npos);
      ASSERT_NE(status.message().find("damaged"), std::string::npos);
    }
  }
  EXPECT_EQ(Train(table.get(), keys, 9).code(), StatusCode::kDataLoss);
  TableSnapshot snapshot;
  EXPECT_EQ(table->Export({}, &snapshot).code(), StatusCode::kDataLoss);
  // Without the rows that are lost the table goes on.
  ASSERT_OK(table->Clear());
  ASSERT_OK(Train(table.get(), keys));
  ExpectValues(*table, keys, 4);
}

std::vector<RowHandle> Handles(RowHandle begin, RowHandle end) {
  std::vector<RowHandle> handles(end - begin);
  std::iota(handles.begin(), handles.end(), begin);
  return handles;
}

// Returns a home in which all elements of the rows have one value.
std::unique_ptr<RowHome> MakeHome(const TableOptions& table,
                                  const std::vector<RowHandle>& handles,
                                  float value) {
  static const std::vector<float> default_row(kDim, 5);
  RowHomeOptions options;
  static_cast<RowStorageOptions&>(options) = table;
  options.name = table.name;
  options.dim = kDim;
  options.default_rows = default_row;
  std::unique_ptr<RowHome> home;
  EXPECT_TRUE(MakeHbmDramSsdRows(options, &home).ok());
  for (const RowHandle handle : handles) {
    EXPECT_TRUE(home->gpu()->NewKeyedRow(handle, handle, 0).ok());
  }
  const std::vector<float> values(handles.size() * kDim, value);
  EXPECT_TRUE(home->Write(handles, 0, values.data()).ok());
  return home;
}

TEST_F(HbmDramSsdRowsTest, CopiesOfAnotherHomeOrLayoutAreNotUsed) {
  const std::vector<RowHandle> some = Handles(1000, 1040);
  const std::vector<int64_t> keys = Range(1000, 1040);
  const auto fours = MakeHome(Options("fours"), Handles(0, 3000), 4);
  const auto sixes = MakeHome(Options("sixes"), Handles(0, 3000), 6);
  const std::unique_ptr<RowCopies> copies =
      fours->gpu()->below()->Copy(some, nullptr);
  ASSERT_TRUE(copies != nullptr);
  const SlotShape slot = {0.5f, kDim};
  ASSERT_OK(fours->Relayout({&slot, 1}));
  std::vector<float> values(40 * kDim);
  for (RowHome* const home : {sixes.get(), fours.get()}) {
    RowsBelow::Brought brought;
    ASSERT_OK(home->gpu()->below()->Bring(keys, some, copies.get(), nullptr,
                                          &brought));
    ASSERT_OK(home->Read(some, 0, values.data()));
    const float expected = home == fours.get() ? 4 : 6;
    for (const float value : values) ASSERT_EQ(value, expected);
  }
  ASSERT_OK(fours->Read(some, 1, values.data()));
  for (const float value : values) ASSERT_EQ(value, 0.5f);
}

TEST_F(HbmDramSsdRowsTest, CopiesOfRowsAreUsedUnlessTheRowsWereWritten) {
  const TableOptions table = Options("v");
  const std::vector<RowHandle> all = Handles(0, 3000);
  const std::unique_ptr<RowHome> home = MakeHome(table, all, 4);
  const std::vector<float> nines(10 * kDim, 9);
  testing::ThreadPool pool(4);
  RowsBelow* const below = home->gpu()->below();
  const std::vector<int64_t> keys = Range(1000, 1040);
  const Span<const RowHandle> some(all.data() + 1000, 40);
  EXPECT_TRUE(below->Copy({}, &pool) == nullptr);
  const std::unique_ptr<RowCopies> copies = below->Copy(some, &pool);
  ASSERT_TRUE(copies != nullptr);
  ASSERT_OK(home->Write(some.subspan(0, 10), 0, nines.data()));
  ASSERT_NO_FATAL_FAILURE(Damage(table.path));
  RowsBelow::Brought brought;
  EXPECT_EQ(below->Bring(keys, some, nullptr, &pool, &brought).code(),
            StatusCode::kDataLoss);
  ASSERT_OK(below->Bring(keys, some, copies.get(), &pool, &brought));
  EXPECT_TRUE(brought.fits);
  std::vector<float> values(40 * kDim);
  ASSERT_OK(home->Read(some, 0, values.data()));
  for (int64_t i = 0; i < 40 * kDim; ++i) {
    ASSERT_EQ(values[i], i < 10 * kDim ? 9 : 4) << i;
  }
}

TEST_F(HbmDramSsdRowsTest, AnUnusableDirectoryIsAnErrorOfTheInitializer) {
  const TableOptions options = Options("users");
  const auto users = MakeTable(options);
  TableOptions same = options;
  same.name = "items";
  EmbeddingTable items(same);
  const Status status = items.Initialize(std::vector<float>(kDim, 5), 1);
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_NE(status.message().find("'users'"), std::string::npos);
  EXPECT_NE(status.message().find("table 'items'"), std::string::npos);
  EXPECT_FALSE(items.initialized());
}

TEST_F(HbmDramSsdRowsTest, FilesOfADeadProcessAreDeleted) {
  const TableOptions options = Options("users");
  ASSERT_EQ(mkdir(options.path.c_str(), 0700), 0);
  const std::string stale = options.path + "/rows-1-0.evrows";
  FILE* const file = std::fopen(stale.c_str(), "w");
  ASSERT_NE(file, nullptr);
  std::fclose(file);
  const auto table = MakeTable(options);
  EXPECT_NE(access(stale.c_str(), F_OK), 0);
  ASSERT_OK(Train(table.get(), Range(0, 1000)));
  ExpectValues(*table, Range(0, 1000), 4);
}

TEST_F(HbmDramSsdRowsTest, EachRankHasADirectoryOfItsOwn) {
  ASSERT_EQ(setenv("HOROVOD_RANK", "3", 1), 0);
  const TableOptions options = Options("v");
  const auto table = MakeTable(options);
  ASSERT_EQ(unsetenv("HOROVOD_RANK"), 0);
  EXPECT_EQ(access((options.path + "/rank_3/LOCK").c_str(), F_OK), 0);
}

TEST_F(HbmDramSsdRowsTest, SlotsThatComeLateReachAllTiers) {
  const auto table = MakeTable(Options("v"));
  ASSERT_OK(Train(table.get(), Range(0, 3000)));
  ASSERT_OK(table->EnsureSlots(std::vector<SlotSpec>{{"a", 0.5f}}, nullptr));
  TableSnapshot snapshot;
  ASSERT_OK(table->Export(std::vector<std::string>{"a"}, &snapshot));
  ASSERT_EQ(snapshot.keys.size(), 3000u);
  for (const float value : snapshot.values) ASSERT_EQ(value, 4);
  for (const float value : snapshot.slots[0]) ASSERT_EQ(value, 0.5f);
  ASSERT_OK(Train(table.get(), Range(0, 3000)));
  ASSERT_OK(table->Export(std::vector<std::string>{"a"}, &snapshot));
  for (const float value : snapshot.values) ASSERT_EQ(value, 3);
  for (const float value : snapshot.slots[0]) ASSERT_EQ(value, 0.5f);
}

TEST_F(HbmDramSsdRowsTest, NoUpdateIsLostWhileRowsMove) {
  const auto table = MakeTable(Options("v"));
  constexpr int64_t kEach = 300;
  constexpr int kThreads = 3;
  std::vector<std::vector<float>> expected(kThreads,
                                           std::vector<float>(kEach, 5));
  std::atomic<int> training{kThreads};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      struct Leave {
        std::atomic<int>* training;
        ~Leave() { --*training; }
      } leave{&training};
      std::mt19937_64 random(t);
      for (int step = 0; step < 150; ++step) {
        std::vector<int64_t> keys;
        // Sometimes more than fit, which are trained where they are.
        const bool takes_all = step % 10 == 9;
        for (int64_t k = 0; k < kEach; ++k) {
          if (!takes_all && random() % 8 != 0) continue;
          keys.push_back(t * kEach + k);
          --expected[t][k];
        }
        ASSERT_OK(Train(table.get(), keys, step));
        // Only this thread changes them.
        std::vector<float> values(keys.size() * kDim);
        ASSERT_OK(table->Gather(keys, values.data(), nullptr));
        for (size_t i = 0; i < values.size(); ++i) {
          ASSERT_EQ(values[i], expected[t][keys[i / kDim] - t * kEach]);
        }
      }
    });
  }
  // Saves meanwhile: all elements of a row change together, but a reader may
  // see some before others.
  threads.emplace_back([&] {
    while (training > 0) {
      TableSnapshot snapshot;
      ASSERT_OK(table->Export({}, &snapshot));
      for (const float value : snapshot.values) {
        ASSERT_EQ(value, static_cast<float>(static_cast<int>(value)));
      }
    }
  });
  threads.emplace_back([&] {
    std::mt19937_64 random(9);
    testing::ThreadPool pool(2);
    while (training > 0) {
      const int64_t begin = static_cast<int64_t>(random() % 860);
      ASSERT_OK(Prefetch(table.get(), Range(begin, begin + 40), &pool));
      table->tier_stats();
      table->tier_stats_below();
    }
  });
  for (std::thread& thread : threads) thread.join();
  for (int t = 0; t < kThreads; ++t) {
    for (int64_t k = 0; k < kEach; ++k) {
      ASSERT_NO_FATAL_FAILURE(
          ExpectValues(*table, {t * kEach + k}, expected[t][k]));
    }
  }
  EXPECT_GT(table->tier_stats_below().misses, 0);
}

}  // namespace
}  // namespace ev
