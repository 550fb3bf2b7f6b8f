// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Compares tables that have most rows in a file with tables in memory, and
// tests the failures that only they can have. The tests of every table run on
// them as well (../BUILD: *_ssd_test).

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/engine/embedding/embedding_table.h"
#include "kernels/engine/embedding/lookup/pooled_lookup.h"
#include "kernels/engine/embedding/lookup/presence.h"
#include "kernels/engine/embedding/update/row_update.h"
#include "kernels/engine/storage/dram/row_layout.h"
#include "kernels/engine/storage/ssd/row_file.h"
#include "kernels/engine/testing/erased.h"
#include "kernels/engine/testing/thread_pool.h"
#include "kernels/engine/testing/unique_keys.h"

namespace ev {
namespace {

using testing::UniqueKeys;

constexpr int64_t kDim = 8;

std::atomic<bool> disk_full{false};
bool HasSpace(int64_t) { return !disk_full; }

std::string FreshPath() {
  static int next = 0;
  return ::testing::TempDir() + "/ssd-rows-" + std::to_string(getpid()) + "-" +
         std::to_string(next++);
}

TableOptions Options(const std::string& name, const std::string& path) {
  TableOptions options;
  options.name = name;
  options.dim = kDim;
  options.storage = RowStorage::kDramSsd;
  options.path = path;
  // 64 rows without slots, including the overhead of a cache slot.
  options.memory_bytes = 64 * (kDim * sizeof(float) + 20);
  options.record_frequency = options.record_version = true;
  return options;
}

std::vector<float> DefaultRows() {
  std::vector<float> rows(7 * kDim);
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = 0.01f * (i % 31) - 0.1f;
  return rows;
}

std::shared_ptr<EmbeddingTable> MakeTable(const TableOptions& options) {
  auto table = std::make_shared<EmbeddingTable>(options);
  const Status status = table->Initialize(DefaultRows(), 7);
  EXPECT_TRUE(status.ok()) << status.message();
  return table;
}

// One training step: looks ids up, one per sample, and applies gradients that
// depend on the result.
Status Step(EmbeddingTable* table, const std::vector<int64_t>& ids,
            const std::string& rule, const std::vector<float>& hyper,
            const std::vector<SlotSpec>& slots, int64_t step,
            Parallel* parallel) {
  std::vector<int64_t> splits;
  for (size_t i = 0; i <= ids.size(); ++i) splits.push_back(i);
  PooledInput in;
  in.table = table;
  in.batch_size = in.num_ids = ids.size();
  in.ids64 = ids.data();
  in.row_splits = splits.data();
  std::vector<float> pooled(ids.size() * kDim);
  std::vector<float*> outputs = {pooled.data()};
  std::shared_ptr<const LookupPlan> plan;
  EV_RETURN_IF_ERROR(PooledForward({&in, 1}, {}, outputs, parallel, &plan));
  for (size_t i = 0; i < pooled.size(); ++i) pooled[i] = pooled[i] - 0.3f;
  const Span<const int64_t> keys = UniqueKeys(*plan, 0);
  std::vector<float> sums(keys.size() * kDim);
  std::vector<const float*> grads = {pooled.data()};
  std::vector<float*> to = {sums.data()};
  EV_RETURN_IF_ERROR(PooledBackward(*plan, grads, to, parallel));
  UpdateInput update;
  update.table = table;
  update.keys = keys;
  update.grads = sums.data();
  update.plan = plan.get();
  const std::vector<std::vector<SlotSpec>> all = {slots};
  return ApplyRule(rule, hyper, {&update, 1}, all, step, parallel);
}

struct Rule {
  const char* name;
  std::vector<float> hyper;
  std::vector<SlotSpec> slots;
};

std::vector<Rule> Rules() {
  return {
      {"SGD", {0.1f}, {}},
      {"Momentum", {0.1f, 0.9f, 1.0f}, {{"m", 0.0f}}},
      {"Adagrad", {0.1f}, {{"a", 0.1f}}},
      {"AdagradDecay",
       {0.1f, 10.0f, 0.9f, 0.1f, 25.0f},
       {{"a", 0.1f}, {"d", 0.0f}}},
      {"Adam",
       {0.1f, 0.9f, 0.999f, 1e-8f, 0.9f, 0.999f},
       {{"m", 0.0f}, {"v", 0.0f}}},
      {"AdamAsync",
       {0.1f, 0.9f, 0.999f, 1e-8f, 0.9f, 0.999f, 0.0f},
       {{"m", 0.0f}, {"v", 0.0f}}},
      {"AdamW",
       {0.1f, 0.9f, 0.999f, 1e-8f, 0.9f, 0.999f, 0.01f},
       {{"m", 0.0f}, {"v", 0.0f}}},
      {"Ftrl", {0.1f, 0.01f, 0.01f, 0.0f, -0.5f}, {{"a", 0.1f}, {"l", 0.0f}}},
      {"RMSProp", {0.1f, 0.9f, 0.1f, 1e-3f}, {{"r", 1.0f}, {"m", 0.0f}}},
      {"CenteredRMSProp",
       {0.1f, 0.9f, 0.1f, 1e-3f},
       {{"g", 0.0f}, {"r", 1.0f}, {"m", 0.0f}}},
      {"Adadelta", {0.1f, 0.9f, 1e-3f}, {{"a", 0.0f}, {"u", 0.0f}}},
      {"RowWiseAdagrad", {0.1f, 1e-8f}, {{"a@row", 0.1f}}},
  };
}

void ExpectSame(const EmbeddingTable& a, const EmbeddingTable& b,
                const std::vector<SlotSpec>& slots) {
  std::vector<std::string> names;
  for (const SlotSpec& slot : slots) names.push_back(slot.name);
  TableSnapshot x, y;
  ASSERT_TRUE(a.Export(names, &x).ok());
  ASSERT_TRUE(b.Export(names, &y).ok());
  ASSERT_EQ(x.keys, y.keys);
  ASSERT_EQ(x.values, y.values);
  ASSERT_EQ(x.slots, y.slots);
  ASSERT_EQ(x.versions, y.versions);
  ASSERT_EQ(x.frequencies, y.frequencies);
}

class SsdRowsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    disk_full = false;
    RowFile::SetSpaceHookForTesting(&HasSpace);
  }
  void TearDown() override { RowFile::SetSpaceHookForTesting(nullptr); }

  std::vector<int64_t> Ids(size_t count, int64_t range) {
    std::vector<int64_t> ids(count);
    for (int64_t& id : ids) {
      // A few ids are frequent, many are rare.
      const double u = (random_() >> 11) * 0x1.0p-53;
      id = static_cast<int64_t>(range * u * u * u) - range / 4;
    }
    return ids;
  }

  std::mt19937_64 random_{7};
  testing::ThreadPool pool_{3};
};

TEST_F(SsdRowsTest, EveryRuleTrainsToTheSameBits) {
  for (const Rule& rule : Rules()) {
    TableOptions options = Options("v", FreshPath());
    int64_t floats = kDim;
    for (const SlotSpec& slot : rule.slots) floats += slot.WidthIn(kDim);
    options.memory_bytes = 64 * (RowStride(floats) + 20);
    const auto on_ssd = MakeTable(options);
    options.storage = RowStorage::kDram;
    const auto in_memory = MakeTable(options);
    for (int64_t step = 0; step < 12; ++step) {
      const std::vector<int64_t> ids = Ids(3000, 6000);
      for (const auto& table : {on_ssd, in_memory}) {
        const Status status = Step(table.get(), ids, rule.name, rule.hyper,
                                   rule.slots, step, &pool_);
        ASSERT_TRUE(status.ok()) << rule.name << ": " << status.message();
      }
      if (step == 8) {
        const std::vector<int64_t> some(ids.begin(), ids.begin() + 500);
        EXPECT_EQ(testing::Erased(on_ssd.get(), some),
                  testing::Erased(in_memory.get(), some));
      }
    }
    ExpectSame(*on_ssd, *in_memory, rule.slots);
    const TierStats stats = on_ssd->tier_stats();
    EXPECT_GT(stats.misses, 1000) << rule.name;
    EXPECT_EQ(stats.memory_rows, 64) << rule.name;
    EXPECT_GE(stats.stored_rows, on_ssd->size() - 64) << rule.name;
  }
}

// Rows are pooled in place if they take less than half of the memory, else from
// copies. Two threads look up, another one updates.
TEST_F(SsdRowsTest, LookupsHoldWhatTheyReadOrCopyIt) {
  TableOptions options = Options("v", FreshPath());
  options.memory_bytes = 4000 * 80;
  const auto on_ssd = MakeTable(options);
  options.storage = RowStorage::kDram;
  const auto in_memory = MakeTable(options);
  const Rule rule = Rules()[2];
  for (const size_t count : {500, 3000, 20000}) {
    for (int64_t step = 0; step < 4; ++step) {
      const std::vector<int64_t> ids = Ids(count, 16000);
      for (const auto& table : {on_ssd, in_memory}) {
        ASSERT_TRUE(Step(table.get(), ids, rule.name, rule.hyper, rule.slots,
                         step, &pool_)
                        .ok());
      }
    }
    ExpectSame(*on_ssd, *in_memory, rule.slots);
  }
  std::atomic<bool> failed{false};
  const auto look = [&](uint64_t seed) {
    std::mt19937_64 random(seed);
    for (int round = 0; round < 30; ++round) {
      std::vector<int64_t> ids(200 << (round % 6));
      for (int64_t& id : ids) id = static_cast<int64_t>(random() % 12000);
      std::vector<float> out(ids.size() * kDim);
      if (!on_ssd->Gather(ids, out.data(), nullptr).ok()) failed = true;
      PooledInput in;
      in.table = on_ssd.get();
      in.batch_size = in.num_ids = static_cast<int64_t>(ids.size());
      in.ids64 = ids.data();
      std::vector<int64_t> splits(ids.size() + 1);
      for (size_t i = 0; i < splits.size(); ++i) splits[i] = i;
      in.row_splits = splits.data();
      std::vector<float*> outputs = {out.data()};
      std::shared_ptr<const LookupPlan> plan;
      if (!PooledForward({&in, 1}, {}, outputs, &pool_, &plan).ok()) {
        failed = true;
      }
    }
  };
  std::thread first(look, 1), second(look, 2);
  for (int64_t step = 0; step < 10; ++step) {
    EXPECT_TRUE(Step(on_ssd.get(), Ids(2000, 16000), rule.name, rule.hyper,
                     rule.slots, step, &pool_)
                    .ok());
  }
  first.join();
  second.join();
  EXPECT_FALSE(failed);
}

TEST_F(SsdRowsTest, CompactionByTheCallerTrainsToTheSameBits) {
  ASSERT_EQ(setenv("TF_SSDHASH_ASYNC_COMPACTION", "0", 1), 0);
  TableOptions options = Options("v", FreshPath());
  const auto on_ssd = MakeTable(options);
  ASSERT_EQ(unsetenv("TF_SSDHASH_ASYNC_COMPACTION"), 0);
  options.storage = RowStorage::kDram;
  const auto in_memory = MakeTable(options);
  const Rule rule = Rules()[2];
  for (int64_t step = 0; step < 60; ++step) {
    const std::vector<int64_t> ids = Ids(1000, 6000);
    for (const auto& table : {on_ssd, in_memory}) {
      ASSERT_TRUE(Step(table.get(), ids, rule.name, rule.hyper, rule.slots,
                       step, &pool_)
                      .ok());
    }
  }
  ExpectSame(*on_ssd, *in_memory, rule.slots);
  // 80 bytes per row: the dead records are gone.
  EXPECT_LT(on_ssd->tier_stats().stored_bytes, 3 * 80 * on_ssd->size() + 65536);
}

TEST_F(SsdRowsTest, MemoryHoldsAtMostTheConfiguredRows) {
  const Rule rule = Rules()[2];
  const int64_t row_bytes = 2 * kDim * sizeof(float) + 20;
  for (const int64_t rows : {0, 1, 2, 5}) {
    TableOptions options = Options("v", FreshPath());
    options.memory_bytes = rows * row_bytes;
    const auto on_ssd = MakeTable(options);
    options.storage = RowStorage::kDram;
    const auto in_memory = MakeTable(options);
    for (int64_t step = 0; step < 6; ++step) {
      const std::vector<int64_t> ids = Ids(300, 400);
      for (const auto& table : {on_ssd, in_memory}) {
        const Status status = Step(table.get(), ids, rule.name, rule.hyper,
                                   rule.slots, step, &pool_);
        ASSERT_TRUE(status.ok()) << status.message();
      }
    }
    ExpectSame(*on_ssd, *in_memory, rule.slots);
    // A row that a thread is storing is counted in both places.
    TierStats stats = on_ssd->tier_stats();
    for (int wait = 0;
         wait < 1000 && stats.stored_rows + stats.memory_rows != on_ssd->size();
         ++wait) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      stats = on_ssd->tier_stats();
    }
    EXPECT_EQ(stats.memory_rows, std::max<int64_t>(1, rows));
    EXPECT_EQ(stats.stored_rows + stats.memory_rows, on_ssd->size());
  }
}

TEST_F(SsdRowsTest, ReturnsTheTierOfARow) {
  const auto table = MakeTable(Options("v", FreshPath()));
  std::vector<int64_t> keys;
  for (int64_t key = 0; key < 5000; ++key) keys.push_back(key);
  const Rule rule = Rules()[0];
  ASSERT_TRUE(
      Step(table.get(), keys, rule.name, rule.hyper, rule.slots, 0, &pool_)
          .ok());
  keys.push_back(-1);
  std::vector<int32_t> tiers(keys.size(), 9);
  ASSERT_TRUE(FindTiers(*table, keys, tiers.data()).ok());
  int64_t in_memory = 0, stored = 0;
  for (int64_t key = 0; key < 5000; ++key) {
    in_memory += tiers[key] == kMemoryTier;
    stored += tiers[key] == kSlowTier;
  }
  EXPECT_EQ(in_memory + stored, 5000);
  EXPECT_GE(in_memory, 64);
  EXPECT_GT(stored, 2000);
  EXPECT_EQ(tiers.back(), kAbsentTier);
}

TEST_F(SsdRowsTest, PrefetchedRowsAreInMemory) {
  TableOptions options = Options("v", FreshPath());
  options.memory_bytes = 1000 * 64;
  const auto table = MakeTable(options);
  std::vector<int64_t> keys;
  for (int64_t key = 0; key < 8000; ++key) keys.push_back(key);
  const Rule rule = Rules()[0];
  ASSERT_TRUE(
      Step(table.get(), keys, rule.name, rule.hyper, rule.slots, 0, &pool_)
          .ok());
  const std::vector<int64_t> some = {7, 7, 3000, -5, 4000, 10};
  ASSERT_TRUE(Prefetch(table.get(), some).ok());
  std::vector<int32_t> tiers(some.size());
  ASSERT_TRUE(FindTiers(*table, some, tiers.data()).ok());
  EXPECT_EQ(tiers, (std::vector<int32_t>{0, 0, 0, -1, 0, 0}));
  EXPECT_EQ(table->size(), 8000);
  const int64_t before = table->tier_stats().misses;
  std::vector<float> rows(some.size() * kDim);
  ASSERT_TRUE(table->Gather(some, rows.data(), nullptr).ok());
  EXPECT_EQ(table->tier_stats().misses, before);

  options.storage = RowStorage::kDram;
  EXPECT_TRUE(Prefetch(MakeTable(options).get(), some).ok());
}

TEST_F(SsdRowsTest, AFullDiskChangesNothingAndIsNotPermanent) {
  TableOptions options = Options("clicks", FreshPath());
  const auto table = MakeTable(options);
  options.storage = RowStorage::kDram;
  const auto in_memory = MakeTable(options);
  const Rule rule = Rules()[2];
  const auto step = [&](const std::vector<int64_t>& ids, int64_t number) {
    const Status status = Step(table.get(), ids, rule.name, rule.hyper,
                               rule.slots, number, &pool_);
    if (!status.ok()) return status;
    return Step(in_memory.get(), ids, rule.name, rule.hyper, rule.slots, number,
                &pool_);
  };
  std::vector<int64_t> ids;
  for (int64_t key = 0; key < 4000; ++key) ids.push_back(key);
  ASSERT_TRUE(step(ids, 0).ok());
  disk_full = true;
  Status status;
  for (int64_t n = 1; n < 50 && status.ok(); ++n) status = step(ids, n);
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  for (const std::string& part :
       {std::string("table 'clicks'"),
        options.path.substr(options.path.rfind('/')), std::string("bytes more"),
        std::string("are free")}) {
    EXPECT_NE(status.message().find(part), std::string::npos)
        << status.message();
  }
  ExpectSame(*table, *in_memory, rule.slots);
  disk_full = false;
  ASSERT_TRUE(step(ids, 99).ok());
  ExpectSame(*table, *in_memory, rule.slots);
}

TEST_F(SsdRowsTest, AnUnusableDirectoryIsAnErrorOfTheInitializer) {
  const std::string path = FreshPath();
  const auto users = MakeTable(Options("users", path));
  EmbeddingTable items(Options("items", path));
  Status status = items.Initialize(DefaultRows(), 7);
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_NE(status.message().find("'users'"), std::string::npos);
  EXPECT_NE(status.message().find("table 'items'"), std::string::npos);
  EXPECT_FALSE(items.initialized());

  EmbeddingTable nowhere(Options("nowhere", "/proc/self/rows"));
  status = nowhere.Initialize(DefaultRows(), 7);
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_NE(status.message().find("/proc/self/rows"), std::string::npos);
  EXPECT_NE(status.message().find("table 'nowhere'"), std::string::npos);
}

TEST_F(SsdRowsTest, InitializingAgainEmptiesAndASecondSessionHasItsOwn) {
  const TableOptions options = Options("v", FreshPath());
  const auto first = MakeTable(options), second = MakeTable(options);
  const Rule rule = Rules()[0];
  const std::vector<int64_t> ids = Ids(1000, 2000);
  ASSERT_TRUE(
      Step(first.get(), ids, rule.name, rule.hyper, rule.slots, 0, &pool_)
          .ok());
  EXPECT_EQ(second->size(), 0);
  ASSERT_TRUE(first->Initialize(DefaultRows(), 7).ok());
  EXPECT_EQ(first->size(), 0);
  EXPECT_EQ(first->tier_stats().stored_rows, 0);
}

TEST_F(SsdRowsTest, EachRankHasADirectoryOfItsOwn) {
  ASSERT_EQ(setenv("HOROVOD_RANK", "3", 1), 0);
  const TableOptions options = Options("v", FreshPath());
  const auto table = MakeTable(options);
  ASSERT_EQ(unsetenv("HOROVOD_RANK"), 0);
  EXPECT_EQ(access((options.path + "/rank_3/LOCK").c_str(), F_OK), 0);
}

TEST_F(SsdRowsTest, RoomIsMadeForDistinctKeysOnly) {
  TableOptions options = Options("repeated", FreshPath());
  options.memory_bytes = 1;
  const auto table = MakeTable(options);
  // 300 keys, more than fit into memory, 200 times each.
  std::vector<int64_t> keys(60000);
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = i % 300;
  const std::vector<float> grads(keys.size() * kDim, 0.5f), hyper = {0.1f};
  const std::vector<std::vector<SlotSpec>> slots(1);
  for (int64_t step = 0; step < 3; ++step) {
    UpdateInput update;
    update.table = table.get();
    update.keys = keys;
    update.grads = grads.data();
    const Status status =
        ApplyRule("SGD", hyper, {&update, 1}, slots, step, &pool_);
    ASSERT_TRUE(status.ok()) << status.message();
  }
  EXPECT_EQ(table->size(), 300);
  // One row per key, not one per occurrence.
  EXPECT_LT(table->tier_stats().stored_bytes, 64 << 10);
}

}  // namespace
}  // namespace ev
