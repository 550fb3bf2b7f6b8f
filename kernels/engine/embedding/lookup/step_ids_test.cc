// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Compares lookups and updates of tables in a step of a GPU with tables in CPU
// memory: outputs, keys, values and slots, bit by bit, with ids in any memory.

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/engine/embedding/lookup/step_under_test.h"
#include "kernels/engine/embedding/table_impl.h"
#include "kernels/engine/testing/erased.h"

namespace ev {
namespace {

// Parameters: ids in CPU memory, pinned or not, or in device memory; and
// whether the device has all keys or had no memory for one.
class StepIdsTest : public StepLookupTest,
                    public ::testing::WithParamInterface<int> {
 protected:
  void SetUp() override {
    StepLookupTest::SetUp();
    const Ids ids = static_cast<Ids>(GetParam() % 3);
    if (ids == Ids::kThere && !TakesIdsThere()) {
      GTEST_SKIP() << "no step takes so few ids here";
    }
    ids_ = ids;
    if (GetParam() < 3) return;
    for (const Table& table : there_) {
      GpuTableCompute* const gpu = table->impl()->home->gpu_table();
      if (gpu != nullptr) gpu->MissKey();
    }
  }
};
INSTANTIATE_TEST_SUITE_P(HerePinnedThere, StepIdsTest, ::testing::Range(0, 6));

TEST_P(StepIdsTest, StepsGiveTheBitsOfThoseInCpuMemory) {
  for (int step = 0; step < 5; ++step) Train(Adagrad(), step);
  ExpectSameTables({"Adagrad"});
}

TEST_P(StepIdsTest, PartsOfACallAreUpdatedByRulesOfTheirOwn) {
  const int n = static_cast<int>(Shapes().size());
  for (int step = 0; step < 3; ++step) {
    const std::vector<Batch> batches = Batches(step);
    Plan plan_here, plan_there;
    std::vector<std::vector<float>> out_here;
    std::vector<float*> out_there;
    LookUpHere(batches, &plan_here, &out_here);
    LookUpThere(batches, &plan_there, &out_there);
    ExpectSameOutputs(out_here, out_there);
    // The second half is updated twice: by Momentum, and then by Adagrad, whose
    // slot is then not the first column.
    for (bool there : {false, true}) {
      const std::vector<Table>& tables = there ? there_ : here_;
      const LookupPlan& plan = there ? *plan_there : *plan_here;
      ASSERT_OK(Update(Momentum(), batches, tables, plan, there, n / 2, n));
      ASSERT_OK(Update(Adagrad(), batches, tables, plan, there, 0, n));
    }
    stream_->Wait();
  }
  for (int t = 0; t < n; ++t) {
    TableSnapshot a, b;
    const std::vector<std::string> slots(1, t < n / 2 ? "Adagrad" : "Momentum");
    ASSERT_OK(here_[t]->Export(slots, &a));
    ASSERT_OK(there_[t]->Export(slots, &b));
    EXPECT_EQ(a.keys, b.keys) << t;
    EXPECT_EQ(a.values, b.values) << t;
    EXPECT_EQ(a.slots, b.slots) << t;
  }
}

// Copying the ids takes longer than the rest of the call.
TEST_P(StepIdsTest, ManyIdsAreOnTheirWayWhenTheCallReturns) {
  for (int step = 0; step < 2; ++step) {
    std::vector<Batch> batches = Batches(step);
    const Shape many{1, Combiner::kSum, 1500000, 0, false};
    batches[7] = Batch(many, 5);
    Train(Adagrad(), batches);
  }
  ExpectSameTables({"Adagrad"});
}

// Ids were copied as int32 until then.
TEST_P(StepIdsTest, OneIdAmongManyMayBeWide) {
  for (int step = 0; step < 4; ++step) {
    std::vector<Batch> batches = Batches(step);
    const Shape many{64, Combiner::kSum, 60000, 0, false};
    batches[5] = Batch(many, 5);
    if (step == 1) batches[5].ids[41234] = (int64_t{1} << 40) + 3;
    // The first id of its table that does not fit into int32, and its neighbour
    // that does.
    if (step == 2) batches[2].ids[17] = INT32_MIN - int64_t{1};
    Plan plan_here, plan_there;
    LookUpBoth(batches, &plan_here, &plan_there);
    if (step == 1) {
      // Later use of the ids.
      EXPECT_EQ(plan_here->unique_keys(5).size(),
                plan_there->unique_keys(5).size());
    }
    UpdateBoth(Adagrad(), batches, *plan_here, *plan_there);
  }
  ExpectSameTables({"Adagrad"});
}

// Features from one ragged tensor share samples.
TEST_P(StepIdsTest, TablesMayShareTheirSamples) {
  for (int step = 0; step < 3; ++step) {
    std::vector<Batch> batches = Batches(step);
    // Three tables have the same ids and samples.
    const Batch shared(Shape{1, Combiner::kSum, 700, 4, false}, 77 + step);
    std::vector<PooledInput> here = Inputs(batches, here_, false);
    std::vector<PooledInput> there = Inputs(batches, there_, true);
    PooledInput first;
    for (size_t t : {size_t{1}, size_t{5}, size_t{7}}) {
      const Shape& shape = Shapes()[t];
      batches[t].grads.resize(700 * shape.dim, 0.5f);
      here[t] = shared.Input(here_[t].get(), shape.combiner);
      there[t] = shared.Input(there_[t].get(), shape.combiner);
      there[t].stream = &on_;
      if (ids_ != Ids::kThere) continue;
      if (first.table == nullptr) {
        first = there[t];
        MoveThere(step % 2 == 0, &first);
      }
      there[t].ids64 = first.ids64;
      there[t].row_splits = first.row_splits;
      there[t].coo_indices = first.coo_indices;
      there[t].on_device = true;
    }
    // A table between them has the same number of ids and samples, but other
    // samples: their lengths are in reverse order.
    Batch mirrored = shared;
    const int64_t num_ids = shared.splits.back();
    for (int64_t& split : mirrored.splits) split = num_ids - split;
    std::reverse(mirrored.splits.begin(), mirrored.splits.end());
    ASSERT_NE(mirrored.splits, shared.splits);
    here[3] = mirrored.Input(here_[3].get(), Shapes()[3].combiner);
    there[3] = mirrored.Input(there_[3].get(), Shapes()[3].combiner);
    there[3].stream = &on_;
    if (ids_ == Ids::kThere) MoveThere(step % 2 == 0, &there[3]);
    Plan plan_here, plan_there;
    std::vector<std::vector<float>> out_here;
    std::vector<float*> pointers, out_there;
    for (const Batch& batch : batches) {
      out_here.emplace_back(batch.grads.size());
      out_there.push_back(stream_->Allocate(batch.grads.size()));
    }
    for (auto& output : out_here) pointers.push_back(output.data());
    ASSERT_OK(PooledForward(here, here_, pointers, &pool_, &plan_here));
    ASSERT_OK(PooledForward(there, there_, out_there, &pool_, &plan_there));
    ExpectSameOutputs(out_here, out_there);
    if (step == 1) {
      EXPECT_EQ(plan_here->unique_keys(7).size(),
                plan_there->unique_keys(7).size());
    }
    UpdateBoth(Adagrad(), batches, *plan_here, *plan_there);
  }
  ExpectSameTables({"Adagrad"});
}

// Ids found by the GPU and by the CPU are counted.
TEST_P(StepIdsTest, IdsAreCountedByTheWayTheyTook) {
  std::vector<int64_t> counted;
  for (const Table& table : there_) {
    const TierStats stats = table->tier_stats();
    counted.push_back(stats.hits + stats.misses);
  }
  Train(Adagrad(), 1);
  const std::vector<Batch> batches = Batches(1);
  for (size_t t = 0; t < there_.size(); ++t) {
    const int64_t ids = batches[t].ids.size();
    const TierStats on_cpu = here_[t]->tier_stats();
    EXPECT_EQ(0, on_cpu.memory_rows + on_cpu.hits + on_cpu.misses);
    const TierStats before = there_[t]->tier_stats();
    EXPECT_EQ(there_[t]->size(), before.memory_rows);
    EXPECT_EQ(counted[t] + 2 * ids, before.hits + before.misses) << t;
    std::vector<float> row(Shapes()[t].dim);
    ASSERT_OK(there_[t]->Gather(std::vector<int64_t>{7}, row.data(), nullptr));
    EXPECT_EQ(before.misses + 1, there_[t]->tier_stats().misses);
  }
  // A step does not update a table by a rule without kernels, or if its keys
  // are needed in CPU memory.
  Plan plan;
  std::vector<float*> outputs;
  LookUpThere(batches, &plan, &outputs);
  const TierStats before = there_[1]->tier_stats();
  ASSERT_OK(plan->Fetch(1));
  const std::vector<float> grads(plan->num_unique(1) * Shapes()[1].dim);
  UpdateInput update;
  update.table = there_[1].get();
  update.plan = plan.get();
  update.plan_table = 1;
  update.keys = plan->unique_keys(1);
  update.grads = grads.data();
  ASSERT_OK(ApplyRule("Adagrad", Adagrad().hyper, {&update, 1},
                      {&Adagrad().slots, 1}, 0, &pool_));
  EXPECT_EQ(before.misses + static_cast<int64_t>(batches[1].ids.size()),
            there_[1]->tier_stats().misses);
}

// Clipped gradients need distinct keys and their sums.
TEST_P(StepIdsTest, KeysAreMadeDistinctWhenTheyAreAskedFor) {
  Train(Adagrad(), 1);
  const std::vector<Batch> batches = Batches(2);
  Plan plan_here, plan_there;
  std::vector<std::vector<float>> out_here;
  std::vector<float*> out_there;
  LookUpHere(batches, &plan_here, &out_here);
  LookUpThere(batches, &plan_there, &out_there);
  const size_t n = batches.size();
  std::vector<const float*> grads;
  for (const Batch& batch : batches) grads.push_back(batch.grads.data());
  std::vector<std::vector<float>> sums[2];
  for (int there = 0; there < 2; ++there) {
    const LookupPlan& plan = there ? *plan_there : *plan_here;
    std::vector<float*> pointers;
    for (size_t t = 0; t < n; ++t) {
      sums[there].emplace_back(plan.num_unique(t) * Shapes()[t].dim);
    }
    for (auto& sum : sums[there]) pointers.push_back(sum.data());
    ASSERT_OK(PooledBackward(plan, grads, pointers, &pool_));
  }
  for (size_t t = 0; t < n; ++t) {
    const auto keys_here = plan_here->unique_keys(t);
    const auto keys_there = plan_there->unique_keys(t);
    ASSERT_EQ(std::vector<int64_t>(keys_here.begin(), keys_here.end()),
              std::vector<int64_t>(keys_there.begin(), keys_there.end()));
    const auto counts_here = plan_here->counts(t);
    const auto counts_there = plan_there->counts(t);
    EXPECT_EQ(std::vector<int32_t>(counts_here.begin(), counts_here.end()),
              std::vector<int32_t>(counts_there.begin(), counts_there.end()));
    EXPECT_EQ(sums[0][t], sums[1][t]) << t;
  }
  // The update by samples' gradients still gives the same.
  ASSERT_OK(Update(Adagrad(), batches, here_, *plan_here, false, 0, n));
  ASSERT_OK(Update(Adagrad(), batches, there_, *plan_there, true, 0, n));
  stream_->Wait();
  ExpectSameTables({"Adagrad"});
}

TEST_P(StepIdsTest, KeysThatAreErasedInBetweenComeBack) {
  for (int step = 0; step < 3; ++step) {
    Train(Adagrad(), step);
    const std::vector<Batch> batches = Batches(step + 10);
    Plan plan_here, plan_there;
    std::vector<std::vector<float>> out_here;
    std::vector<float*> out_there;
    LookUpHere(batches, &plan_here, &out_here);
    LookUpThere(batches, &plan_there, &out_there);
    const int n = static_cast<int>(batches.size());
    for (int t = 0; t < n; ++t) {
      const std::vector<int64_t> gone(batches[t].ids.begin(),
                                      batches[t].ids.begin() + 20);
      const int64_t erased = testing::Erased(here_[t].get(), gone);
      EXPECT_EQ(erased, testing::Erased(there_[t].get(), gone));
    }
    ASSERT_OK(Update(Adagrad(), batches, here_, *plan_here, false, 0, n));
    ASSERT_OK(Update(Adagrad(), batches, there_, *plan_there, true, 0, n));
    stream_->Wait();
  }
  ExpectSameTables({"Adagrad"});
}

}  // namespace
}  // namespace ev
