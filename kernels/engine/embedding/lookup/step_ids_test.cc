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
#include "kernels/engine/testing/unique_keys.h"

namespace ev {
namespace {

using testing::UniqueCounts;
using testing::UniqueKeys;

// Parameter: ids in CPU memory, pinned or not, or in device memory.
class StepIdsTest : public StepLookupTest,
                    public ::testing::WithParamInterface<int> {
 protected:
  void SetUp() override {
    StepLookupTest::SetUp();
    ids_ = static_cast<Ids>(GetParam());
  }
};
INSTANTIATE_TEST_SUITE_P(CpuPinnedDevice, StepIdsTest, ::testing::Range(0, 3));

TEST_P(StepIdsTest, StepsGiveTheBitsOfThoseInCpuMemory) {
  for (int step = 0; step < 5; ++step) Train(Adagrad(), step);
  ExpectSameTables({"Adagrad"});
}

TEST_P(StepIdsTest, PartsOfACallAreUpdatedByRulesOfTheirOwn) {
  const int n = static_cast<int>(Shapes().size());
  for (int step = 0; step < 3; ++step) {
    const std::vector<Batch> batches = Batches(step);
    Plan cpu_plan, device_plan;
    std::vector<std::vector<float>> cpu_out;
    std::vector<float*> device_out;
    LookUpOnCpu(batches, &cpu_plan, &cpu_out);
    LookUpOnDevice(batches, &device_plan, &device_out);
    ExpectSameOutputs(cpu_out, device_out);
    // The second half is updated twice: by Momentum, and then by Adagrad, whose
    // slot is then not the first column.
    for (bool on_device : {false, true}) {
      const std::vector<Table>& tables =
          on_device ? device_tables_ : cpu_tables_;
      const LookupPlan& plan = on_device ? *device_plan : *cpu_plan;
      ASSERT_OK(Update(Momentum(), batches, tables, plan, on_device, n / 2, n));
      ASSERT_OK(Update(Adagrad(), batches, tables, plan, on_device, 0, n));
    }
    stream_->Wait();
  }
  for (int t = 0; t < n; ++t) {
    TableSnapshot a, b;
    const std::vector<std::string> slots(1, t < n / 2 ? "Adagrad" : "Momentum");
    ASSERT_OK(cpu_tables_[t]->Export(slots, &a));
    ASSERT_OK(device_tables_[t]->Export(slots, &b));
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
    Plan cpu_plan, device_plan;
    LookUpBoth(batches, &cpu_plan, &device_plan);
    if (step == 1) {
      // Later use of the ids.
      EXPECT_EQ(UniqueKeys(*cpu_plan, 5).size(),
                UniqueKeys(*device_plan, 5).size());
    }
    UpdateBoth(Adagrad(), batches, *cpu_plan, *device_plan);
  }
  ExpectSameTables({"Adagrad"});
}

// Features from one ragged tensor share samples.
TEST_P(StepIdsTest, TablesMayShareTheirSamples) {
  for (int step = 0; step < 3; ++step) {
    std::vector<Batch> batches = Batches(step);
    // Three tables have the same ids and samples.
    const Batch shared(Shape{1, Combiner::kSum, 700, 4, false}, 77 + step);
    std::vector<PooledInput> cpu_inputs = Inputs(batches, cpu_tables_, false);
    std::vector<PooledInput> device_inputs =
        Inputs(batches, device_tables_, true);
    PooledInput first;
    for (size_t t : {size_t{1}, size_t{5}, size_t{7}}) {
      const Shape& shape = Shapes()[t];
      batches[t].grads.resize(700 * shape.dim, 0.5f);
      cpu_inputs[t] = shared.Input(cpu_tables_[t].get(), shape.combiner);
      device_inputs[t] = shared.Input(device_tables_[t].get(), shape.combiner);
      device_inputs[t].stream = &on_;
      if (ids_ != Ids::kDevice) continue;
      if (first.table == nullptr) {
        first = device_inputs[t];
        MoveToDevice(step % 2 == 0, &first);
      }
      device_inputs[t].ids64 = first.ids64;
      device_inputs[t].row_splits = first.row_splits;
      device_inputs[t].coo_indices = first.coo_indices;
      device_inputs[t].on_device = true;
    }
    // A table between them has the same number of ids and samples, but other
    // samples: their lengths are in reverse order.
    Batch mirrored = shared;
    const int64_t num_ids = shared.splits.back();
    for (int64_t& split : mirrored.splits) split = num_ids - split;
    std::reverse(mirrored.splits.begin(), mirrored.splits.end());
    ASSERT_NE(mirrored.splits, shared.splits);
    cpu_inputs[3] = mirrored.Input(cpu_tables_[3].get(), Shapes()[3].combiner);
    device_inputs[3] =
        mirrored.Input(device_tables_[3].get(), Shapes()[3].combiner);
    device_inputs[3].stream = &on_;
    if (ids_ == Ids::kDevice) MoveToDevice(step % 2 == 0, &device_inputs[3]);
    Plan cpu_plan, device_plan;
    std::vector<std::vector<float>> cpu_out;
    std::vector<float*> pointers, device_out;
    for (const Batch& batch : batches) {
      cpu_out.emplace_back(batch.grads.size());
      device_out.push_back(stream_->Allocate(batch.grads.size()));
    }
    for (auto& output : cpu_out) pointers.push_back(output.data());
    ASSERT_OK(
        PooledForward(cpu_inputs, cpu_tables_, pointers, &pool_, &cpu_plan));
    ASSERT_OK(PooledForward(device_inputs, device_tables_, device_out, &pool_,
                            &device_plan));
    ExpectSameOutputs(cpu_out, device_out);
    if (step == 1) {
      EXPECT_EQ(UniqueKeys(*cpu_plan, 7).size(),
                UniqueKeys(*device_plan, 7).size());
    }
    UpdateBoth(Adagrad(), batches, *cpu_plan, *device_plan);
  }
  ExpectSameTables({"Adagrad"});
}

// Ids found by the GPU and by the CPU are counted.
TEST_P(StepIdsTest, IdsAreCountedByTheWayTheyTook) {
  if (!testing::CountsIdsByFinder()) GTEST_SKIP() << "counts rows by memory";
  std::vector<int64_t> counted;
  for (const Table& table : device_tables_) {
    const TierStats stats = table->tier_stats();
    counted.push_back(stats.hits + stats.misses);
  }
  Train(Adagrad(), 1);
  const std::vector<Batch> batches = Batches(1);
  for (size_t t = 0; t < device_tables_.size(); ++t) {
    const int64_t ids = batches[t].ids.size();
    const TierStats on_cpu = cpu_tables_[t]->tier_stats();
    EXPECT_EQ(0, on_cpu.memory_rows + on_cpu.hits + on_cpu.misses);
    const TierStats before = device_tables_[t]->tier_stats();
    EXPECT_EQ(device_tables_[t]->size(), before.memory_rows);
    EXPECT_EQ(counted[t] + 2 * ids, before.hits + before.misses) << t;
    std::vector<float> row(Shapes()[t].dim);
    ASSERT_OK(device_tables_[t]->Gather(std::vector<int64_t>{7}, row.data(),
                                        nullptr));
    EXPECT_EQ(before.misses + 1, device_tables_[t]->tier_stats().misses);
  }
  // A step does not update a table by a rule without kernels, or if its keys
  // are needed in CPU memory.
  Plan plan;
  std::vector<float*> outputs;
  LookUpOnDevice(batches, &plan, &outputs);
  const TierStats before = device_tables_[1]->tier_stats();
  ASSERT_OK(plan->Fetch(std::vector<int>{1}, nullptr));
  const std::vector<float> grads(UniqueKeys(*plan, 1).size() * Shapes()[1].dim);
  UpdateInput update;
  update.table = device_tables_[1].get();
  update.plan = plan.get();
  update.plan_table = 1;
  update.keys = UniqueKeys(*plan, 1);
  update.grads = grads.data();
  ASSERT_OK(ApplyRule("Adagrad", Adagrad().hyper, {&update, 1},
                      {&Adagrad().slots, 1}, 0, &pool_));
  EXPECT_EQ(before.misses + static_cast<int64_t>(batches[1].ids.size()),
            device_tables_[1]->tier_stats().misses);
}

// Clipped gradients need distinct keys and their sums.
TEST_P(StepIdsTest, KeysAreMadeDistinctWhenTheyAreAskedFor) {
  Train(Adagrad(), 1);
  const std::vector<Batch> batches = Batches(2);
  Plan cpu_plan, device_plan;
  std::vector<std::vector<float>> cpu_out;
  std::vector<float*> device_out;
  LookUpOnCpu(batches, &cpu_plan, &cpu_out);
  LookUpOnDevice(batches, &device_plan, &device_out);
  const size_t n = batches.size();
  std::vector<const float*> grads;
  for (const Batch& batch : batches) grads.push_back(batch.grads.data());
  std::vector<std::vector<float>> sums[2];
  for (int on_device = 0; on_device < 2; ++on_device) {
    const LookupPlan& plan = on_device ? *device_plan : *cpu_plan;
    std::vector<float*> pointers;
    for (size_t t = 0; t < n; ++t) {
      sums[on_device].emplace_back(UniqueKeys(plan, t).size() *
                                   Shapes()[t].dim);
    }
    for (auto& sum : sums[on_device]) pointers.push_back(sum.data());
    ASSERT_OK(PooledBackward(plan, grads, pointers, &pool_));
  }
  for (size_t t = 0; t < n; ++t) {
    const auto cpu_keys = UniqueKeys(*cpu_plan, t);
    const auto device_keys = UniqueKeys(*device_plan, t);
    ASSERT_EQ(std::vector<int64_t>(cpu_keys.begin(), cpu_keys.end()),
              std::vector<int64_t>(device_keys.begin(), device_keys.end()));
    const auto cpu_counts = UniqueCounts(*cpu_plan, t);
    const auto device_counts = UniqueCounts(*device_plan, t);
    EXPECT_EQ(std::vector<int32_t>(cpu_counts.begin(), cpu_counts.end()),
              std::vector<int32_t>(device_counts.begin(), device_counts.end()));
    EXPECT_EQ(sums[0][t], sums[1][t]) << t;
  }
  // The update by samples' gradients still gives the same.
  ASSERT_OK(Update(Adagrad(), batches, cpu_tables_, *cpu_plan, false, 0, n));
  ASSERT_OK(
      Update(Adagrad(), batches, device_tables_, *device_plan, true, 0, n));
  stream_->Wait();
  ExpectSameTables({"Adagrad"});
}

TEST_P(StepIdsTest, KeysThatAreErasedInBetweenComeBack) {
  for (int step = 0; step < 3; ++step) {
    Train(Adagrad(), step);
    const std::vector<Batch> batches = Batches(step + 10);
    Plan cpu_plan, device_plan;
    std::vector<std::vector<float>> cpu_out;
    std::vector<float*> device_out;
    LookUpOnCpu(batches, &cpu_plan, &cpu_out);
    LookUpOnDevice(batches, &device_plan, &device_out);
    const int n = static_cast<int>(batches.size());
    for (int t = 0; t < n; ++t) {
      const std::vector<int64_t> gone(batches[t].ids.begin(),
                                      batches[t].ids.begin() + 20);
      const int64_t erased = testing::Erased(cpu_tables_[t].get(), gone);
      EXPECT_EQ(erased, testing::Erased(device_tables_[t].get(), gone));
    }
    ASSERT_OK(Update(Adagrad(), batches, cpu_tables_, *cpu_plan, false, 0, n));
    ASSERT_OK(
        Update(Adagrad(), batches, device_tables_, *device_plan, true, 0, n));
    stream_->Wait();
  }
  ExpectSameTables({"Adagrad"});
}

}  // namespace
}  // namespace ev
