// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Tests steps whose occurrences are grouped before their update is called,
// because the last update found a row for every key. Another update may follow,
// or none. Compares with tables in CPU memory, bit by bit.

#include <memory>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/engine/embedding/lookup/step_under_test.h"

namespace ev {
namespace {

class StepGroupsTest : public StepLookupTest {
 protected:
  // Trains until a step expects its update: the second time every key has a
  // row.
  void TrainTwice(const std::vector<Batch>& batches) {
    Train(Adagrad(), batches);
    Train(Adagrad(), batches);
  }
};

TEST_F(StepGroupsTest, KeysMayBeNewAfterStepsWithoutAny) {
  TrainTwice(Batches(0));
  Train(Adagrad(), Batches(0));
  Train(Adagrad(), Batches(1));
  TrainTwice(Batches(1));
  Train(Adagrad(), Batches(0));
  ExpectSameTables({"Adagrad"});
}

TEST_F(StepGroupsTest, LookupsMayComeWithoutUpdates) {
  const std::vector<Batch> batches = Batches(0), others = Batches(1);
  TrainTwice(others);
  TrainTwice(batches);
  for (int round = 0; round < 3; ++round) {
    Plan cpu_plan, device_plan;
    LookUpBoth(round == 1 ? others : batches, &cpu_plan, &device_plan);
  }
  // The first of two lookups in flight is updated last.
  TrainTwice(batches);
  Plan first_cpu, first_device, second_cpu, second_device;
  LookUpBoth(batches, &first_cpu, &first_device);
  LookUpBoth(others, &second_cpu, &second_device);
  UpdateBoth(Adagrad(), others, *second_cpu, *second_device);
  UpdateBoth(Adagrad(), batches, *first_cpu, *first_device);
  ExpectSameTables({"Adagrad"});
}

// Another thread groups, and is not waited for.
TEST_F(StepGroupsTest, GroupingMayComeLateOrNever) {
  const std::vector<Batch> batches = Batches(0);
  TrainTwice(batches);
  pool_.keeps = true;
  Train(Adagrad(), batches);
  ASSERT_EQ(1u, pool_.kept.size());
  pool_.kept[0]();  // after the update
  pool_.kept.clear();
  Train(Adagrad(), batches);
  ASSERT_EQ(1u, pool_.kept.size());
  pool_.kept.clear();
  // During the update, before it, and after the plan is destroyed.
  for (int round = 0; round < 5; ++round) {
    std::thread rest;
    {
      Plan cpu_plan, device_plan;
      LookUpBoth(batches, &cpu_plan, &device_plan);
      ASSERT_EQ(1u, pool_.kept.size());
      rest = std::thread(pool_.kept[0]);
      pool_.kept.clear();
      if (round != 4) UpdateBoth(Adagrad(), batches, *cpu_plan, *device_plan);
    }
    rest.join();
  }
  pool_.keeps = false;
  Train(Adagrad(), batches);
  ExpectSameTables({"Adagrad"});
}

TEST_F(StepGroupsTest, OnlySomeTablesMayBeUpdated) {
  const std::vector<Batch> batches = Batches(0);
  const int n = static_cast<int>(batches.size());
  for (int round = 0; round < 2; ++round) {
    TrainTwice(batches);
    Plan cpu_plan, device_plan;
    LookUpBoth(batches, &cpu_plan, &device_plan);
    for (bool on_device : {false, true}) {
      const std::vector<Table>& tables =
          on_device ? device_tables_ : cpu_tables_;
      const LookupPlan& plan = on_device ? *device_plan : *cpu_plan;
      ASSERT_OK(Update(Adagrad(), batches, tables, plan, on_device, n / 2, n));
      // The second time the other tables are not updated.
      if (round == 1) continue;
      ASSERT_OK(Update(Adagrad(), batches, tables, plan, on_device, 0, n / 2));
    }
    stream_->Wait();
  }
  ExpectSameTables({"Adagrad"});
}

// Rows of four floats then use other kernels.
TEST_F(StepGroupsTest, GradientsMayBeUnaligned) {
  const std::vector<Batch> batches = Batches(0);
  TrainTwice(batches);
  grads_offset_ = 1;
  Train(Adagrad(), batches);
  Train(Adagrad(), batches);
  grads_offset_ = 0;
  Train(Adagrad(), batches);
  ExpectSameTables({"Adagrad"});
}

// Numbers of occurrences for each way of summing, very many included.
TEST_F(StepGroupsTest, KeysMayOccurSeldomOrOften) {
  std::vector<Batch> batches = Batches(0);
  for (int t : {0, 3, 7}) {
    const Shape many{Shapes()[t].dim, Shapes()[t].combiner, 200000, 0,
                     Shapes()[t].narrow};
    batches[t] = Batch(many, t);
    // 1, 2, 4 up to 65,536 occurrences, and a few more and fewer.
    size_t at = 0;
    for (int64_t count = 1, key = 5000000; count < 100000; count *= 2) {
      for (int64_t n : {count - 1, count, count + 1}) {
        for (; n > 0 && at < 199999; --n, at += 1) {
          // Occurrences are spread over the batch.
          const size_t place = at * 7919 % 199999;
          batches[t].ids[place] = key;
        }
        ++key;
      }
    }
    batches[t].narrow_ids.assign(batches[t].ids.begin(), batches[t].ids.end());
  }
  TrainTwice(batches);
  Train(Adagrad(), batches);
  ExpectSameTables({"Adagrad"});
}

}  // namespace
}  // namespace ev
