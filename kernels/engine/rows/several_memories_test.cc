// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Compares tables that have 64 rows or some more on a device, and the others in
// CPU memory or in CPU memory and a file, with tables that are all in CPU
// memory. Also runs on a GPU. The tests of every table run on them as well
// (BUILD: *_hbm_dram_test, *_hbm_dram_ssd_test).

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/engine/checkpoint/restore_table.h"
#include "kernels/engine/checkpoint/save_table.h"
#include "kernels/engine/embedding/embedding_table.h"
#include "kernels/engine/embedding/lookup/pooled_lookup.h"
#include "kernels/engine/embedding/lookup/presence.h"
#include "kernels/engine/embedding/table_impl.h"
#include "kernels/engine/embedding/update/row_update.h"
#include "kernels/engine/rows/gpu_row_home.h"
#include "kernels/engine/testing/erased.h"
#include "kernels/engine/testing/memory_checkpoint.h"
#include "kernels/engine/testing/storage_under_test.h"
#include "kernels/engine/testing/thread_pool.h"
#include "kernels/engine/testing/unique_keys.h"

namespace ev {
namespace {

using testing::UniqueKeys;

#define ASSERT_OK(expression)                             \
  do {                                                    \
    const Status ev_status_ = (expression);               \
    ASSERT_TRUE(ev_status_.ok()) << ev_status_.message(); \
  } while (0)

constexpr int64_t kDim = 8;

// Returns the bytes of a row with that many slots.
int64_t RowBytes(int slots) { return kDim * (1 + slots) * sizeof(float); }

int64_t RowBytes(const std::vector<SlotSpec>& slots) {
  int64_t floats = kDim;
  for (const SlotSpec& slot : slots) floats += slot.WidthIn(kDim);
  return floats * static_cast<int64_t>(sizeof(float));
}

bool HasSsd() { return testing::StorageUnderTest() == RowStorage::kHbmDramSsd; }

// Returns the rows in CPU memory, or there and in the file.
int64_t StoredRows(const EmbeddingTable& table) {
  return table.tier_stats().stored_rows + table.tier_stats_below().stored_rows;
}

TableOptions Options(const std::string& name, int64_t device_bytes) {
  TableOptions options;
  options.name = name;
  options.dim = kDim;
  options.storage = testing::StorageUnderTest();
  options.memory_bytes = device_bytes;
  if (HasSsd()) {
    options.path = testing::FreshDirectory();
    options.second_memory_bytes = 100 * (RowBytes(1) + 20);
  }
  options.record_frequency = options.record_version = true;
  return options;
}

TableOptions InMemory(TableOptions options) {
  options.storage = RowStorage::kDram;
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
// depend on the result, in odd steps by the gradients of the samples and in
// even ones by their sums.
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
  const std::vector<std::vector<SlotSpec>> all = {slots};
  UpdateInput update;
  update.table = table;
  update.keys = keys;
  update.plan = plan.get();
  if (step % 2 == 1) {
    update.pooled_grads = pooled.data();
    return ApplyRule(rule, hyper, {&update, 1}, all, step, parallel);
  }
  std::vector<float> sums(keys.size() * kDim);
  std::vector<const float*> grads = {pooled.data()};
  std::vector<float*> to = {sums.data()};
  EV_RETURN_IF_ERROR(PooledBackward(*plan, grads, to, parallel));
  update.grads = sums.data();
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

class SeveralMemoriesTest : public ::testing::Test {
 protected:
  std::vector<int64_t> Ids(size_t count, int64_t range) {
    std::vector<int64_t> ids(count);
    for (int64_t& id : ids) {
      // A few ids are frequent, many are rare.
      const double u = (random_() >> 11) * 0x1.0p-53;
      id = static_cast<int64_t>(range * u * u * u) - range / 4;
    }
    return ids;
  }

  // Runs the same step on all tables; stops if one fails.
  Status Both(const std::vector<std::shared_ptr<EmbeddingTable>>& tables,
              const Rule& rule, int64_t step, const std::vector<int64_t>& ids) {
    for (const auto& table : tables) {
      EV_RETURN_IF_ERROR(Step(table.get(), ids, rule.name, rule.hyper,
                              rule.slots, step, &pool_));
    }
    return Status::OK();
  }

  std::mt19937_64 random_{7};
  testing::ThreadPool pool_{3};
};

TEST_F(SeveralMemoriesTest, EveryRuleTrainsToTheSameBits) {
  for (const Rule& rule : Rules()) {
    // 64 cache slots: fewer than the distinct rows of a step. 1024: a step
    // fits.
    for (const int64_t cache_slots : {64, 1024}) {
      const TableOptions options =
          Options("v", cache_slots * RowBytes(rule.slots));
      const auto table_on_test = MakeTable(options);
      const auto in_memory = MakeTable(InMemory(options));
      ASSERT_EQ(table_on_test->storage(), testing::StorageUnderTest());
      ASSERT_TRUE(table_on_test->pools_on_device());
      for (int64_t step = 0; step < 12; ++step) {
        const std::vector<int64_t> ids =
            Ids(cache_slots < 1000 ? 3000 : 900, 6000);
        ASSERT_OK(Both({table_on_test, in_memory}, rule, step, ids));
        if (step == 8) {
          const std::vector<int64_t> some(ids.begin(), ids.begin() + 500);
          EXPECT_EQ(testing::Erased(table_on_test.get(), some),
                    testing::Erased(in_memory.get(), some));
        }
      }
      ExpectSame(*table_on_test, *in_memory, rule.slots);
      const TierStats stats = table_on_test->tier_stats();
      EXPECT_GT(stats.misses, HasSsd() ? 1000 : 100) << rule.name;
      // Cycling through more rows than cache slots gives no hits.
      EXPECT_GT(stats.hits, cache_slots == 1024 ? 1000 : 0) << rule.name;
      EXPECT_LE(stats.memory_rows, cache_slots) << rule.name;
      EXPECT_GE(StoredRows(*table_on_test), table_on_test->size() - cache_slots)
          << rule.name;
    }
  }
}

TEST_F(SeveralMemoriesTest, NewRowsThatTheGpuDoesNotAccessAreTrained) {
  const std::vector<SlotSpec> slots = {{"a", 0.1f}};
  const std::vector<std::vector<SlotSpec>> all = {slots};
  const Rule rule = {"Adagrad", {0.1f}, slots};
  const TableOptions options = Options("v", 64 * RowBytes(1));
  const auto table_on_test = MakeTable(options);
  const auto in_memory = MakeTable(InMemory(options));
  // Takes all room where the GPU accesses rows.
  std::vector<int64_t> ids(300);
  std::iota(ids.begin(), ids.end(), int64_t{1000});
  ASSERT_OK(Both({table_on_test, in_memory}, rule, 0, ids));
  // Samples of two ids, so that gradients have factors. Each step has more new
  // keys than the steps before, and some that are known.
  for (int64_t step = 1; step < 6; ++step) {
    ids.resize(20 * step);
    std::iota(ids.begin(), ids.end(), 10 * step);
    const int64_t num_samples = ids.size() / 2;
    std::vector<int64_t> splits;
    for (int64_t i = 0; i <= num_samples; ++i) splits.push_back(2 * i);
    for (const auto& table : {in_memory, table_on_test}) {
      PooledInput in;
      in.table = table.get();
      in.combiner = Combiner::kMean;
      in.batch_size = num_samples;
      in.num_ids = ids.size();
      in.ids64 = ids.data();
      in.row_splits = splits.data();
      std::vector<float> pooled(num_samples * kDim);
      std::vector<float*> outputs = {pooled.data()};
      std::shared_ptr<const LookupPlan> plan;
      ASSERT_OK(PooledForward({&in, 1}, {}, outputs, &pool_, &plan));
      UpdateInput update;
      update.table = table.get();
      update.plan = plan.get();
      update.pooled_grads = pooled.data();
      ASSERT_OK(
          ApplyRule(rule.name, rule.hyper, {&update, 1}, all, step, &pool_));
    }
  }
  ExpectSame(*table_on_test, *in_memory, slots);
}

TEST_F(SeveralMemoriesTest, EveryStrategyTrainsToTheSameBits) {
  for (const CacheStrategy strategy : kCacheStrategies) {
    TableOptions options = Options("v", 512 * RowBytes(1));
    options.tier_strategy = strategy;
    const auto table_on_test = MakeTable(options);
    const auto in_memory = MakeTable(InMemory(options));
    const Rule rule = Rules()[2];
    for (int64_t step = 0; step < 30; ++step) {
      ASSERT_OK(Both({table_on_test, in_memory}, rule, step, Ids(400, 6000)));
    }
    ExpectSame(*table_on_test, *in_memory, rule.slots);
  }
}

TEST_F(SeveralMemoriesTest, SlotsThatComeLate) {
  const TableOptions options = Options("v", 200 * RowBytes(2));
  const auto table_on_test = MakeTable(options);
  const auto in_memory = MakeTable(InMemory(options));
  const Rule sgd = Rules()[0], adam = Rules()[4];
  for (int64_t step = 0; step < 5; ++step) {
    ASSERT_OK(Both({table_on_test, in_memory}, sgd, step, Ids(500, 3000)));
  }
  // Fresh rows, which must get the current initial values.
  const std::vector<SlotSpec> one = {{"m", 0.25f}};
  std::vector<int32_t> admitted;
  std::vector<int64_t> fresh = {100001, 100002, 100003};
  for (const auto& table : {table_on_test, in_memory}) {
    ASSERT_OK(table->EnsureSlots(one, nullptr));
    std::vector<int64_t> gone;
    std::vector<float> rows(fresh.size() * kDim), gone_rows;
    ASSERT_OK(table->ReadAndEvict(fresh, 5, rows.data(), &gone, &gone_rows));
  }
  ExpectSame(*table_on_test, *in_memory, one);
  // Another initial value, for new rows, and another slot, for all rows.
  for (const auto& table : {table_on_test, in_memory}) {
    ASSERT_OK(table->EnsureSlots(adam.slots, nullptr));
  }
  ExpectSame(*table_on_test, *in_memory, adam.slots);
  for (int64_t step = 5; step < 10; ++step) {
    ASSERT_OK(Both({table_on_test, in_memory}, adam, step, Ids(500, 3000)));
  }
  ExpectSame(*table_on_test, *in_memory, adam.slots);
}

TEST_F(SeveralMemoriesTest, HotRowsStayAndAreNotReadAgain) {
  const Rule rule = Rules()[2];
  const auto table = MakeTable(Options("v", 400 * RowBytes(1)));
  int64_t cold = 1 << 20;
  std::vector<int64_t> hot;
  for (int64_t key = 0; key < 200; ++key) hot.push_back(key);
  const auto step = [&](int64_t number) {
    std::vector<int64_t> ids = hot;
    for (int k = 0; k < 50; ++k) ids.push_back(cold++);
    return Both({table}, rule, number, ids);
  };
  for (int64_t n = 0; n < 20; ++n) ASSERT_OK(step(n));
  const TierStats before = table->tier_stats();
  for (int64_t n = 20; n < 40; ++n) ASSERT_OK(step(n));
  const TierStats after = table->tier_stats();
  // New rows are made where the GPU accesses them.
  EXPECT_EQ(after.misses, before.misses);
  std::vector<int32_t> tiers(hot.size());
  ASSERT_OK(FindTiers(*table, hot, tiers.data()));
  EXPECT_EQ(tiers, std::vector<int32_t>(hot.size(), kMemoryTier));
}

TEST_F(SeveralMemoriesTest, RowsThatBecomeHotMoveToTheDevice) {
  for (const CacheStrategy strategy : kCacheStrategies) {
    TableOptions options = Options("v", 400 * RowBytes(1));
    options.tier_strategy = strategy;
    const auto table = MakeTable(options);
    const auto in_memory = MakeTable(InMemory(options));
    const Rule rule = Rules()[2];
    std::vector<int64_t> keys(3000);
    std::iota(keys.begin(), keys.end(), int64_t{0});
    ASSERT_OK(Both({table, in_memory}, rule, 0, keys));
    // Other rows become hot twice; each time they were in slower memory.
    for (const int64_t first : {2700, 1500}) {
      std::vector<int64_t> hot(100);
      std::iota(hot.begin(), hot.end(), first);
      for (int64_t step = 1; step < 60; ++step) {
        ASSERT_OK(Both({table, in_memory}, rule, step, hot));
      }
      std::vector<int32_t> tiers(hot.size());
      ASSERT_OK(FindTiers(*table, hot, tiers.data()));
      EXPECT_GE(std::count(tiers.begin(), tiers.end(), kMemoryTier), 95)
          << CacheStrategyName(strategy) << " from " << first;
      const TierStats before = table->tier_stats();
      ASSERT_OK(Both({table, in_memory}, rule, 60, hot));
      EXPECT_LE(table->tier_stats().misses - before.misses, 5);
    }
    ExpectSame(*table, *in_memory, rule.slots);
  }
}

TEST_F(SeveralMemoriesTest, RowsThatAreUsedAreWorthMore) {
  if (HasSsd()) GTEST_SKIP() << "the rows are not all in one GpuRowHome";
  const auto table = MakeTable(Options("v", 400 * RowBytes(1)));
  std::vector<int64_t> keys(3000), hot(100);
  std::iota(keys.begin(), keys.end(), int64_t{0});
  std::iota(hot.begin(), hot.end(), int64_t{2000});
  ASSERT_OK(Both({table}, Rules()[2], 0, keys));
  for (int64_t step = 1; step < 20; ++step) {
    ASSERT_OK(Both({table}, Rules()[2], step, hot));
  }
  std::vector<RowHandle> handles(keys.size());
  table->impl()->index.Find(keys, handles.data());
  std::vector<uint32_t> worth(keys.size()), none(10, 1);
  auto* const home = static_cast<GpuRowHome*>(table->impl()->home.get());
  ASSERT_OK(home->ReadWorth(0, Span<uint32_t>(worth)));
  uint32_t least_of_hot = UINT32_MAX, most_of_others = 0;
  for (size_t i = 0; i < keys.size(); ++i) {
    ASSERT_LT(handles[i], worth.size());
    const uint32_t its = worth[handles[i]];
    if (keys[i] >= 2000 && keys[i] < 2100) {
      least_of_hot = std::min(least_of_hot, its);
    } else {
      most_of_others = std::max(most_of_others, its);
    }
  }
  EXPECT_GT(least_of_hot, most_of_others);
  // These handles were never used.
  ASSERT_OK(home->ReadWorth(1 << 24, Span<uint32_t>(none)));
  EXPECT_EQ(none, std::vector<uint32_t>(10, 0));
}

TEST_F(SeveralMemoriesTest, LookupsAloneMoveRows) {
  const auto table = MakeTable(Options("v", 400 * RowBytes(1)));
  const Rule rule = Rules()[2];
  std::vector<int64_t> keys(3000), hot(100), splits(101);
  std::iota(keys.begin(), keys.end(), int64_t{0});
  std::iota(hot.begin(), hot.end(), int64_t{2000});
  std::iota(splits.begin(), splits.end(), int64_t{0});
  ASSERT_OK(Both({table}, rule, 0, keys));
  std::vector<float> before(hot.size() * kDim), pooled(hot.size() * kDim);
  ASSERT_OK(table->Gather(hot, before.data(), nullptr));
  PooledInput in;
  in.table = table.get();
  in.batch_size = in.num_ids = hot.size();
  in.ids64 = hot.data();
  in.row_splits = splits.data();
  std::vector<float*> outputs = {pooled.data()};
  for (int k = 0; k < 60; ++k) {
    std::shared_ptr<const LookupPlan> plan;
    ASSERT_OK(PooledForward({&in, 1}, {}, outputs, &pool_, &plan));
    ASSERT_EQ(pooled, before) << k;
  }
  std::vector<int32_t> tiers(hot.size());
  ASSERT_OK(FindTiers(*table, hot, tiers.data()));
  EXPECT_GE(std::count(tiers.begin(), tiers.end(), kMemoryTier), 95);
}

TEST_F(SeveralMemoriesTest, RowsThatHaveMovedAreErasedAndMadeAgain) {
  // Between steps that move rows, erases half of the keys, hot and cold, and
  // then all, so that handles are used again.
  const TableOptions options = Options("v", 100 * RowBytes(1));
  const auto table = MakeTable(options);
  const auto in_memory = MakeTable(InMemory(options));
  const Rule rule = Rules()[2];
  for (int round = 0; round < 12; ++round) {
    for (int64_t step = 0; step < 12; ++step) {
      ASSERT_OK(Both({table, in_memory}, rule, 20 * round + step,
                     Ids(300, 1000 + 100 * round)));
    }
    ExpectSame(*table, *in_memory, rule.slots);
    std::vector<int64_t> gone;
    for (int64_t key = -600; key < 2400; ++key) {
      if (round % 4 == 3 || random_() % 2 == 0) gone.push_back(key);
    }
    ASSERT_EQ(testing::Erased(table.get(), gone),
              testing::Erased(in_memory.get(), gone));
    ExpectSame(*table, *in_memory, rule.slots);
    ASSERT_GE(table->tier_stats().memory_rows + StoredRows(*table),
              table->size());
  }
}

TEST_F(SeveralMemoriesTest, OnlyWhatWasWrittenIsCopiedBack) {
  const Rule rule = Rules()[2];
  const auto table = MakeTable(Options("v", 64 * RowBytes(1)));
  std::vector<int64_t> keys;
  for (int64_t key = 0; key < 2000; ++key) keys.push_back(key);
  ASSERT_OK(Both({table}, rule, 0, keys));
  std::vector<float> rows(keys.size() * kDim);
  // Reads all rows once, so that all modified rows are written back.
  ASSERT_OK(table->Gather(keys, rows.data(), &pool_));
  const TierStats before = table->tier_stats();
  const int64_t to_file = table->tier_stats_below().written_bytes;
  for (int k = 0; k < 3; ++k) {
    ASSERT_OK(table->Gather(keys, rows.data(), &pool_));
  }
  const TierStats after = table->tier_stats();
  // Rows are read where they are.
  EXPECT_EQ(after.written_bytes, before.written_bytes);
  if (HasSsd()) {
    EXPECT_GT(after.misses - before.misses, 3000);
  } else {
    EXPECT_EQ(after.misses, before.misses);
  }
  // Less than 100 rows were not in the file yet.
  EXPECT_LT(table->tier_stats_below().written_bytes - to_file,
            4 * 100 * RowBytes(1));
  // A row is in CPU memory at most once, and a modified row is in only one
  // memory. A row in CPU memory that was not modified is also in the file.
  EXPECT_LE(StoredRows(*table), HasSsd() ? 2100 : 2000);
  ASSERT_OK(Both({table}, rule, 1, {1, 2, 3}));
  EXPECT_GE(StoredRows(*table), 2000 - 64);
}

TEST_F(SeveralMemoriesTest, PrefetchedRowsAreOnTheDevice) {
  const auto table = MakeTable(Options("v", 1000 * RowBytes(0)));
  std::vector<int64_t> keys;
  for (int64_t key = 0; key < 8000; ++key) keys.push_back(key);
  ASSERT_OK(Both({table}, Rules()[0], 0, keys));
  std::vector<int32_t> all(keys.size());
  ASSERT_OK(FindTiers(*table, keys, all.data()));
  int64_t fast = 0, slow = 0, slowest = 0;
  for (const int32_t tier : all) {
    fast += tier == kMemoryTier;
    slow += tier == kSlowTier;
    slowest += tier == kSlowestTier;
  }
  EXPECT_EQ(fast + slow + slowest, 8000);
  EXPECT_GE(fast, 500);
  EXPECT_GE(slow + slowest, 7000);
  EXPECT_EQ(slowest > 0, HasSsd());
  const std::vector<int64_t> some = {7, 7, 3000, -5, 4000, 10};
  ASSERT_OK(Prefetch(table.get(), some));
  std::vector<int32_t> tiers(some.size());
  ASSERT_OK(FindTiers(*table, some, tiers.data()));
  EXPECT_EQ(tiers, (std::vector<int32_t>{0, 0, 0, -1, 0, 0}));
  const int64_t before = table->tier_stats().misses;
  std::vector<float> rows(some.size() * kDim);
  ASSERT_OK(table->Gather(some, rows.data(), nullptr));
  EXPECT_EQ(table->tier_stats().misses, before);
}

TEST_F(SeveralMemoriesTest, MostOfTheDeviceIsPrefetched) {
  const auto table = MakeTable(Options("v", 64 * RowBytes(0)));
  std::vector<int64_t> keys(2000), some(40);
  std::iota(keys.begin(), keys.end(), int64_t{0});
  std::iota(some.begin(), some.end(), int64_t{1000});
  ASSERT_OK(Both({table}, Rules()[0], 0, keys));
  ASSERT_OK(Prefetch(table.get(), some));
  std::vector<int32_t> tiers(some.size());
  ASSERT_OK(FindTiers(*table, some, tiers.data()));
  EXPECT_EQ(tiers, std::vector<int32_t>(some.size(), kMemoryTier));
}

TEST_F(SeveralMemoriesTest, SavingBringsNothingToTheDevice) {
  const Rule rule = Rules()[2];
  const auto table = MakeTable(Options("v", 100 * RowBytes(1)));
  ASSERT_OK(Both({table}, rule, 0, Ids(3000, 6000)));
  const TierStats before = table->tier_stats();
  TableSnapshot snapshot;
  const std::vector<std::string> slots = {rule.slots[0].name};
  ASSERT_OK(table->Export(slots, &snapshot));
  EXPECT_EQ(snapshot.keys.size(), static_cast<size_t>(table->size()));
  const TierStats after = table->tier_stats();
  EXPECT_EQ(after.misses, before.misses);
  EXPECT_EQ(after.hits, before.hits);
}

TEST_F(SeveralMemoriesTest, ACheckpointIsRestoredIntoAnotherSplit) {
  const Rule rule = Rules()[2];
  const auto saved = MakeTable(Options("v", 100 * RowBytes(1)));
  for (int64_t step = 0; step < 6; ++step) {
    ASSERT_OK(Both({saved}, rule, step, Ids(300, 1000)));
  }
  ASSERT_GT(StoredRows(*saved), 0);
  testing::MemoryCheckpoint checkpoint;
  SaveOptions save;
  save.name = "v";
  save.slots = rule.slots;
  ASSERT_OK(SaveTable(save, saved.get(), &checkpoint));
  TableOptions on_device = InMemory(Options("v", 0));
  on_device.storage = RowStorage::kHbm;
  std::vector<std::shared_ptr<EmbeddingTable>> tables = {saved};
  for (const TableOptions& options :
       {Options("v", 64 * RowBytes(1)), Options("v", 200 * RowBytes(1)),
        Options("v", 5000 * RowBytes(1)), on_device,
        InMemory(Options("v", 0))}) {
    const auto table = MakeTable(options);
    // The restore removes these rows.
    ASSERT_OK(Both({table}, rule, 0, Ids(300, 5000)));
    ASSERT_OK(RestoreTable(&checkpoint, "v", rule.slots, RestoreOptions(),
                           table.get()));
    ExpectSame(*saved, *table, rule.slots);
    tables.push_back(table);
  }
  EXPECT_LE(tables[1]->tier_stats().memory_rows, 64);
  EXPECT_GT(tables[2]->tier_stats().memory_rows, 64);
  EXPECT_EQ(StoredRows(*tables[3]), 0);
  for (int64_t step = 6; step < 12; ++step) {
    ASSERT_OK(Both(tables, rule, step, Ids(300, 1000)));
  }
  for (const auto& table : tables) ExpectSame(*saved, *table, rule.slots);
}

TEST_F(SeveralMemoriesTest, EvictedRowsLeaveAllMemories) {
  const Rule rule = Rules()[2];
  TableOptions options = Options("v", 100 * RowBytes(1));
  const auto table = MakeTable(options);
  std::vector<int64_t> keys;
  for (int64_t key = 0; key < 200000; ++key) keys.push_back(key);
  const int64_t empty = table->stats().row_bytes;
  ASSERT_OK(Both({table}, rule, 0, keys));
  const int64_t full = table->stats().row_bytes;
  if (!HasSsd()) {
    EXPECT_GT(full - empty, 199000 * RowBytes(1));
  }
  keys.resize(199990);
  EXPECT_EQ(testing::Erased(table.get(), keys), 199990);
  EXPECT_EQ(table->tier_stats().memory_rows + StoredRows(*table), 10);
  const std::vector<int64_t> rest = {199990, 199991, 199992, 199993, 199994,
                                     199995, 199996, 199997, 199998, 199999};
  EXPECT_EQ(testing::Erased(table.get(), rest), 10);
  EXPECT_EQ(table->tier_stats().memory_rows, 0);
  EXPECT_EQ(StoredRows(*table), 0);
  EXPECT_LT(table->stats().row_bytes - empty, (full - empty) / 4);
  ASSERT_OK(Both({table}, rule, 1, keys));
  ASSERT_OK(table->Clear());
  EXPECT_EQ(table->tier_stats().memory_rows, 0);
  EXPECT_EQ(StoredRows(*table), 0);
}

TEST_F(SeveralMemoriesTest, ABudgetThatHoldsNothingIsAnError) {
  EmbeddingTable table(Options("clicks", 64 * RowBytes(0) - 1));
  const Status status = table.Initialize(DefaultRows(), 7);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  for (const char* part : {"2048", "2047", "64 rows", "table 'clicks'"}) {
    EXPECT_NE(status.message().find(part), std::string::npos)
        << status.message();
  }
  EXPECT_FALSE(table.initialized());
}

TEST_F(SeveralMemoriesTest, LookupsUpdatesSavesAndEvictionsAtOnce) {
  const TableOptions options = Options("v", 64 * RowBytes(1));
  const std::vector<std::shared_ptr<EmbeddingTable>> tables = {
      MakeTable(options), MakeTable(Options("w", 300 * RowBytes(1)))};
  const std::vector<SlotSpec> slots = {{"a", 0.1f}};
  const std::vector<float> hyper = {0.1f};
  constexpr int kSteps = 40;
  std::atomic<int> training{3};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937_64 random(t);
      for (int step = 0; step < kSteps; ++step) {
        // Both tables, the first of them twice, in one call.
        std::vector<int64_t> ids(200), splits;
        for (int64_t& id : ids) id = static_cast<int64_t>(random() % 700);
        for (size_t i = 0; i <= ids.size(); ++i) splits.push_back(i);
        std::vector<PooledInput> inputs(3);
        std::vector<std::vector<float>> pooled(
            3, std::vector<float>(ids.size() * kDim));
        std::vector<float*> outputs;
        for (int k = 0; k < 3; ++k) {
          inputs[k].table = tables[(t + k) % 2].get();
          inputs[k].batch_size = inputs[k].num_ids = ids.size();
          inputs[k].ids64 = ids.data();
          inputs[k].row_splits = splits.data();
          outputs.push_back(pooled[k].data());
        }
        std::shared_ptr<const LookupPlan> plan;
        ASSERT_OK(PooledForward(inputs, {}, outputs, nullptr, &plan));
        std::vector<UpdateInput> updates(3);
        for (int k = 0; k < 3; ++k) {
          updates[k].table = tables[(t + k) % 2].get();
          updates[k].keys = UniqueKeys(*plan, k);
          updates[k].plan = plan.get();
          updates[k].plan_table = k;
          updates[k].pooled_grads = pooled[k].data();
        }
        const std::vector<std::vector<SlotSpec>> all(3, slots);
        ASSERT_OK(ApplyRule("Adagrad", hyper, updates, all, step, nullptr));
      }
      --training;
    });
  }
  threads.emplace_back([&] {
    while (training > 0) {
      TableSnapshot snapshot;
      ASSERT_OK(tables[0]->Export(std::vector<std::string>{}, &snapshot));
      for (const float value : snapshot.values) {
        ASSERT_TRUE(std::isfinite(value));
      }
      int64_t evicted = 0;
      ASSERT_OK(tables[1]->EvictWeak(1e-4f, &evicted));
      tables[0]->tier_stats();
      tables[1]->stats();
    }
  });
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(tables[0]->tier_stats().misses, 0);
}

}  // namespace
}  // namespace ev
