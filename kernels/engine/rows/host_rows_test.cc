// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Steps of several tables of which most rows are in CPU memory, where a device
// reads and trains them, against tables that are all in CPU memory. Also runs
// on a GPU.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/engine/base/transfer_memory.h"
#include "kernels/engine/embedding/embedding_table.h"
#include "kernels/engine/embedding/lookup/pooled_lookup.h"
#include "kernels/engine/embedding/lookup/presence.h"
#include "kernels/engine/embedding/update/row_update.h"
#include "kernels/engine/testing/storage_under_test.h"
#include "kernels/engine/testing/thread_pool.h"
#include "kernels/engine/testing/unique_keys.h"

namespace ev {
namespace {

#define ASSERT_OK(expression)                             \
  do {                                                    \
    const Status ev_status_ = (expression);               \
    ASSERT_TRUE(ev_status_.ok()) << ev_status_.message(); \
  } while (0)

constexpr int64_t kKeys = 3000;

// Properties in which the tables of a step differ.
struct Kind {
  int64_t dim;
  bool one_id_each;
  Combiner combiner;
  bool is_all_on_device;
};
const std::vector<Kind> kKinds = {
    {4, true, Combiner::kSum, false},   {6, false, Combiner::kMean, false},
    {72, true, Combiner::kSum, false},  {8, true, Combiner::kSum, true},
    {200, true, Combiner::kSum, false}, {64, false, Combiner::kSqrtN, false},
};

// The ids of one table in one step.
struct Batch {
  std::vector<int64_t> ids, splits;
};

// Outputs of a lookup, of NaN: in pinned memory if there is some, else in
// ordinary memory.
class Outputs {
 public:
  Outputs(size_t count, bool is_pinned)
      : pinned_(is_pinned ? AllocateTransferMemory(count * sizeof(float))
                          : nullptr),
        ordinary_(count, std::numeric_limits<float>::quiet_NaN()) {
    std::copy(ordinary_.begin(), ordinary_.end(), data());
  }
  ~Outputs() {
    if (pinned_ != nullptr) FreeTransferMemory(pinned_);
  }
  Outputs(const Outputs&) = delete;
  Outputs& operator=(const Outputs&) = delete;
  float* data() {
    return pinned_ != nullptr ? static_cast<float*>(pinned_) : ordinary_.data();
  }
  std::vector<float> values() {
    return std::vector<float>(data(), data() + ordinary_.size());
  }

 private:
  void* const pinned_;
  std::vector<float> ordinary_;
};

class HostRowsTest : public ::testing::Test {
 protected:
  void MakeTables(bool on_device, std::vector<Kind> kinds) {
    Tables* const to = on_device ? &on_device_ : &in_memory_;
    kinds_ = kinds;
    for (const Kind& kind : kinds) {
      TableOptions options;
      options.name = "v" + std::to_string(to->size());
      options.dim = kind.dim;
      if (on_device) {
        options.storage = kind.is_all_on_device ? RowStorage::kHbm
                                                : testing::StorageUnderTest();
        options.memory_bytes = 64 * 2 * kind.dim * sizeof(float);
      }
      std::unique_ptr<EmbeddingTable> table(new EmbeddingTable(options));
      std::vector<float> defaults(3 * kind.dim);
      for (size_t e = 0; e < defaults.size(); ++e) defaults[e] = 0.01f * e;
      ASSERT_OK(table->Initialize(defaults, 3));
      ASSERT_OK(table->EnsureSlots(slots_, nullptr));
      std::vector<int64_t> keys(kKeys);
      std::vector<float> values(kKeys * kind.dim);
      for (int64_t k = 0; k < kKeys; ++k) keys[k] = 7 * k - 5000;
      for (size_t e = 0; e < values.size(); ++e) values[e] = 1e-3f * (e % 9973);
      const std::vector<float> sums(values.size(), 0.5f);
      const std::vector<const float*> slots = {sums.data()};
      ASSERT_OK(table->WriteRows(keys, slots_, values.data(), slots, nullptr, 0,
                                 nullptr));
      to->push_back(std::move(table));
    }
  }

  // One id is most of the batch and some are frequent; some have no row.
  Batch MakeBatch(const Kind& kind, int64_t samples) {
    Batch batch;
    batch.splits.push_back(0);
    for (int64_t s = 0; s < samples; ++s) {
      const uint64_t n = kind.one_id_each ? 1 : random_() % 4;
      for (uint64_t j = 0; j < n; ++j) {
        const uint64_t k = random_() % 10;
        const int64_t row = k < 4   ? kKeys - 1
                            : k < 6 ? static_cast<int64_t>(random_() % 20)
                                    : static_cast<int64_t>(random_() % kKeys);
        batch.ids.push_back(7 * row - 5000 + (random_() % 20 == 0 ? 1 : 0));
      }
      batch.splits.push_back(batch.ids.size());
    }
    return batch;
  }

  using Tables = std::vector<std::unique_ptr<EmbeddingTable>>;
  // Looks all tables up, and trains them unless step is negative. Outputs of
  // every second step are in pinned memory.
  void Step(const Tables& tables, const std::vector<Batch>& batches,
            int64_t step, std::vector<std::vector<float>>* pooled) {
    std::vector<std::unique_ptr<Outputs>> to;
    std::vector<PooledInput> inputs(tables.size());
    std::vector<float*> outputs;
    pooled->clear();
    for (size_t t = 0; t < tables.size(); ++t) {
      inputs[t].table = tables[t].get();
      inputs[t].combiner = kinds_[t].combiner;
      inputs[t].batch_size = batches[t].splits.size() - 1;
      inputs[t].num_ids = batches[t].ids.size();
      inputs[t].ids64 = batches[t].ids.data();
      inputs[t].row_splits = batches[t].splits.data();
      to.emplace_back(
          new Outputs(inputs[t].batch_size * kinds_[t].dim, num_steps_ % 2));
      outputs.push_back(to.back()->data());
    }
    std::shared_ptr<const LookupPlan> plan;
    ASSERT_OK(PooledForward(inputs, {}, outputs, &pool_, &plan));
    for (const auto& one : to) pooled->push_back(one->values());
    if (after_lookup_ != nullptr) after_lookup_();
    if (step < 0) return;
    std::vector<UpdateInput> updates(tables.size());
    for (size_t t = 0; t < tables.size(); ++t) {
      updates[t].table = tables[t].get();
      updates[t].keys = testing::UniqueKeys(*plan, t);
      updates[t].plan = plan.get();
      updates[t].plan_table = static_cast<int>(t);
      updates[t].pooled_grads = (*pooled)[t].data();
    }
    const std::vector<std::vector<SlotSpec>> all(tables.size(), slots_);
    const std::vector<float> rate = {0.1f};
    ASSERT_OK(ApplyRule("Adagrad", rate, updates, all, step, &pool_));
  }

  // Runs steps on all tables of both kinds and expects the same bits.
  void Compare(int64_t num_steps, int64_t samples, bool trains) {
    for (int64_t step = 0; step < num_steps; ++step) {
      std::vector<Batch> batches;
      for (const Kind& kind : kinds_) {
        batches.push_back(MakeBatch(kind, samples));
      }
      std::vector<std::vector<float>> a, b;
      ++num_steps_;
      Step(on_device_, batches, trains ? step : -1, &a);
      Step(in_memory_, batches, trains ? step : -1, &b);
      for (size_t t = 0; t < kinds_.size(); ++t) {
        ASSERT_EQ(a[t], b[t]) << "step " << step << ", table " << t;
      }
    }
    for (size_t t = 0; t < kinds_.size(); ++t) {
      TableSnapshot a, b;
      const std::vector<std::string> names = {"a"};
      ASSERT_OK(on_device_[t]->Export(names, &a));
      ASSERT_OK(in_memory_[t]->Export(names, &b));
      ASSERT_EQ(a.keys, b.keys) << t;
      ASSERT_EQ(a.values, b.values) << t;
      ASSERT_EQ(a.slots, b.slots) << t;
    }
  }

  const std::vector<SlotSpec> slots_ = {{"a", 0.1f}};
  std::vector<Kind> kinds_;
  Tables on_device_, in_memory_;
  std::mt19937_64 random_{5};
  int num_steps_ = 0;
  std::function<void()> after_lookup_;  // called by Step
  testing::ThreadPool pool_{3};
};

TEST_F(HostRowsTest, ManyTablesTrainToTheSameBits) {
  MakeTables(true, kKinds);
  MakeTables(false, kKinds);
  Compare(8, 1000, /*trains=*/true);
  for (size_t t = 0; t < kKinds.size(); ++t) {
    const TierStats stats = on_device_[t]->tier_stats();
    if (kKinds[t].is_all_on_device) continue;
    EXPECT_GT(stats.misses, 1000) << t;
    EXPECT_GT(stats.hits, 0) << t;
  }
}

// Compares the counts with the memory of each row before and after each call.
TEST_F(HostRowsTest, CountsMovedRowsAndBytesOverTheLink) {
  const Kind kind = {4, true, Combiner::kSum, false};
  constexpr int64_t kValueBytes = 4 * sizeof(float),
                    kRowBytes = 2 * kValueBytes;
  MakeTables(true, {kind});
  const EmbeddingTable& table = *on_device_[0];
  TierStats expected;
  std::vector<int64_t> keys(7 * kKeys);
  std::iota(keys.begin(), keys.end(), -5000);
  // Returns the memory of each key's row, after adding the moves since
  // 'before'.
  const auto tiers_after = [&](const std::vector<int32_t>& before) {
    std::vector<float> values(keys.size() * kind.dim);
    EXPECT_TRUE(table.Gather(keys, values.data(), &pool_).ok());  // waits
    std::vector<int32_t> tiers(keys.size());
    EXPECT_TRUE(FindTiers(table, keys, tiers.data()).ok());
    for (size_t k = 0; k < before.size(); ++k) {
      expected.moved_up += before[k] == 1 && tiers[k] == 0;
      expected.moved_down += before[k] == 0 && tiers[k] == 1;
    }
    return tiers;
  };
  std::vector<int32_t> tiers = tiers_after({});
  EXPECT_EQ(0, table.tier_stats().link_bytes);
  for (int64_t step = 0; step < 12; ++step) {
    const Batch batch = MakeBatch(kind, 200);
    const std::set<int64_t> ids(batch.ids.begin(), batch.ids.end());
    for (int64_t id : ids) {
      if (tiers[id + 5000] == 1) expected.link_bytes += kValueBytes;
    }
    after_lookup_ = [&] {
      tiers = tiers_after(tiers);
      for (int64_t id : ids) {
        // The update makes missing rows, in CPU memory.
        if (tiers[id + 5000] != 0) expected.link_bytes += 2 * kRowBytes;
      }
    };
    std::vector<std::vector<float>> pooled;
    Step(on_device_, {batch}, step, &pooled);
    tiers = tiers_after(tiers);
    const TierStats stats = table.tier_stats();
    EXPECT_EQ(expected.moved_up, stats.moved_up) << step;
    EXPECT_EQ(expected.moved_down, stats.moved_down) << step;
    EXPECT_EQ(expected.link_bytes + 2 * kRowBytes * expected.moved_up,
              stats.link_bytes)
        << step;
  }
  EXPECT_GT(expected.moved_up, 0);
}

TEST_F(HostRowsTest, LookupsAloneReadTheSameBits) {
  MakeTables(true, kKinds);
  MakeTables(false, kKinds);
  Compare(8, 700, /*trains=*/false);
}

TEST_F(HostRowsTest, OneTableOfOneIdEach) {
  for (const Kind& kind : kKinds) {
    on_device_.clear();
    in_memory_.clear();
    MakeTables(true, {kind});
    MakeTables(false, {kind});
    for (const int64_t samples : {1, 2, 300, 5000}) {
      Compare(2, samples, /*trains=*/true);
    }
  }
}

}  // namespace
}  // namespace ev
