// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Tests calls that run beside lookups and updates in a step of a GPU, and
// lookups that a step does not take.

#include <cmath>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/engine/embedding/lookup/step_under_test.h"
#include "kernels/engine/testing/erased.h"

namespace ev {
namespace {

// The work goes on after the calls return: later calls must run after it.
TEST_F(StepLookupTest, LaterCallsRunAfterWorkInFlight) {
  Train(Adagrad(), 0);
  for (int round = 0; round < 3; ++round) {
    const std::vector<Batch> batches = Batches(20 + round);
    Plan cpu_plan, device_plan;
    std::vector<std::vector<float>> cpu_out;
    std::vector<float*> device_out;
    LookUpOnCpu(batches, &cpu_plan, &cpu_out);
    LookUpOnDevice(batches, &device_plan, &device_out);
    const int n = static_cast<int>(batches.size());
    ASSERT_OK(Update(Adagrad(), batches, cpu_tables_, *cpu_plan, false, 0, n));
    ASSERT_OK(
        Update(Adagrad(), batches, device_tables_, *device_plan, true, 0, n));
    device_plan.reset();
    // Concurrently rows are read, written and removed, and slots are added.
    for (int t = 0; t < n; ++t) {
      const int64_t dim = Shapes()[t].dim;
      const std::vector<int64_t> keys(batches[t].ids.begin(),
                                      batches[t].ids.begin() + 30);
      std::vector<float> a(keys.size() * dim), b(keys.size() * dim);
      ASSERT_OK(cpu_tables_[t]->Gather(keys, a.data(), &pool_));
      ASSERT_OK(device_tables_[t]->Gather(keys, b.data(), &pool_));
      EXPECT_EQ(a, b) << t;
      const std::vector<int64_t> gone(batches[t].ids.begin() + 30,
                                      batches[t].ids.begin() + 40);
      const int64_t erased = testing::Erased(cpu_tables_[t].get(), gone);
      EXPECT_EQ(erased, testing::Erased(device_tables_[t].get(), gone));
    }
    if (round == 1) {
      for (int t = 0; t < n; ++t) {
        const std::vector<SlotSpec> slots{{"Adagrad", 0.1f}, {"More", 3.0f}};
        ASSERT_OK(cpu_tables_[t]->EnsureSlots(slots, nullptr));
        ASSERT_OK(device_tables_[t]->EnsureSlots(slots, nullptr));
      }
    }
    ExpectSameTables({"Adagrad"});
  }
}

TEST_F(StepLookupTest, ConcurrentCallsDoNotInterfere) {
  Train(Adagrad(), 0);
  // Lookups of other threads run beside updates. Only batches without common
  // keys leave the same rows as one thread would, so only what does not change
  // is compared.
  std::vector<std::thread> threads;
  for (int k = 0; k < 3; ++k) {
    threads.emplace_back([this, k] {
      testing::ThreadPool pool(2);
      const auto stream = StreamUnderTest::Make();
      for (int step = 0; step < 4; ++step) {
        TrainOnDevice(Batches(50 + 10 * k + step), 0, stream.get(), &pool);
      }
      stream->Wait();
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Table& table : device_tables_) {
    TableSnapshot all;
    ASSERT_OK(table->Export(std::vector<std::string>{"Adagrad"}, &all));
    for (float value : all.values) ASSERT_TRUE(std::isfinite(value));
    EXPECT_EQ(table->size(), static_cast<int64_t>(all.keys.size()));
  }
}

// The caller then copies the samples to CPU memory, where the error is found.
TEST_F(StepLookupTest, SamplesOnTheDeviceThatAreNotInOrderAreNotTaken) {
  const std::vector<Batch> batches = Batches(3);
  const std::vector<PooledInput> good = Inputs(batches, device_tables_, true);
  std::vector<float*> outputs;
  for (const Batch& batch : batches) {
    outputs.push_back(stream_->Allocate(batch.grads.size()));
  }
  const auto code_with = [&](size_t t, bool as_indices,
                             std::vector<int64_t> rows) {
    std::vector<PooledInput> inputs = good;
    for (PooledInput& in : inputs) MoveToDevice(false, &in);
    inputs[t].row_splits = inputs[t].coo_indices = nullptr;
    (as_indices ? inputs[t].coo_indices : inputs[t].row_splits) =
        Put(rows.data(), rows.size());
    Plan plan;
    const Status status =
        PooledForward(inputs, device_tables_, outputs, &pool_, &plan);
    stream_->Wait();
    return status.code();
  };
  const size_t t = 1;  // has several ids per sample
  const std::vector<int64_t>& splits = batches[t].splits;
  const int64_t n = batches[t].ids.size();
  EXPECT_EQ(StatusCode::kOk, code_with(t, false, splits));
  for (int64_t bad : {int64_t{-1}, n + 1, INT64_MAX, INT64_MIN}) {
    std::vector<int64_t> wrong = splits;
    wrong[wrong.size() / 2] = bad;
    EXPECT_EQ(StatusCode::kUnimplemented, code_with(t, false, wrong)) << bad;
  }
  for (size_t at : {size_t{0}, splits.size() - 1}) {
    std::vector<int64_t> wrong = splits;
    wrong[at] = wrong[splits.size() / 2];
    EXPECT_EQ(StatusCode::kUnimplemented, code_with(t, false, wrong)) << at;
  }
  std::vector<int64_t> indices;
  for (size_t s = 0; s + 1 < splits.size(); ++s) {
    for (int64_t i = splits[s]; i < splits[s + 1]; ++i) {
      indices.push_back(s);
      indices.push_back(0);
    }
  }
  EXPECT_EQ(StatusCode::kOk, code_with(t, true, indices));
  const int64_t samples = splits.size() - 1;
  for (size_t at : {size_t{0}, indices.size() / 4 * 2, indices.size() - 2}) {
    for (int64_t bad : {int64_t{-1}, samples, INT64_MAX, INT64_MIN}) {
      std::vector<int64_t> wrong = indices;
      wrong[at] = bad;
      EXPECT_EQ(StatusCode::kUnimplemented, code_with(t, true, wrong))
          << at << " " << bad;
    }
  }
  std::vector<int64_t> swapped = indices;
  swapped[2 * (n / 2)] = samples - 1;
  EXPECT_EQ(StatusCode::kUnimplemented, code_with(t, true, swapped));
}

TEST_F(StepLookupTest, IdsOnTheDeviceThatNoStepTakesAreUnimplemented) {
  const std::vector<Batch> batches = Batches(3);
  std::vector<PooledInput> inputs = Inputs(batches, device_tables_, true);
  for (PooledInput& in : inputs) MoveToDevice(false, &in);
  TableOptions narrow;
  narrow.dim = 2;
  narrow.int32_keys = true;
  std::vector<Table> owners = device_tables_;
  owners.push_back(MakeTable(9, narrow, testing::StorageUnderTest()));
  inputs.push_back(inputs[0]);
  ASSERT_NE(nullptr, inputs.back().ids64);  // each of which must be checked
  inputs.back().table = owners.back().get();
  std::vector<float*> outputs;
  for (const PooledInput& in : inputs) {
    outputs.push_back(
        stream_->Allocate(in.batch_size * in.table->options().dim));
  }
  Plan plan;
  const Status status = PooledForward(inputs, owners, outputs, &pool_, &plan);
  EXPECT_EQ(StatusCode::kUnimplemented, status.code());
  EXPECT_EQ("no step takes ids on a device, table 'table 0'", status.message());
  inputs.pop_back();
  owners.pop_back();
  outputs.pop_back();
  ASSERT_OK(PooledForward(inputs, owners, outputs, &pool_, &plan));
  inputs[0].stream = nullptr;
  const Status without = PooledForward(inputs, owners, outputs, &pool_, &plan);
  EXPECT_EQ(StatusCode::kInvalidArgument, without.code());
}

TEST_F(StepLookupTest, EveryNumberOfIdsIsAStep) {
  int64_t looked_up = 0;
  for (const int64_t num_ids : {1, 2, 31, 257}) {
    for (const bool on_device : {false, true}) {
      Batch batch({4, Combiner::kSum, num_ids, 0, false}, 7);
      std::vector<PooledInput> inputs{
          batch.Input(device_tables_[0].get(), Shapes()[0].combiner)};
      std::vector<float> host(batch.grads.size());
      std::vector<float*> outputs{host.data()};
      if (on_device) {
        inputs[0].stream = &on_;
        outputs[0] = stream_->Allocate(host.size());
      }
      Plan plan;
      ASSERT_OK(
          PooledForward(inputs, {device_tables_[0]}, outputs, &pool_, &plan));
      if (on_device) stream_->Wait();
      looked_up += num_ids;
      if (!testing::CountsIdsByFinder()) continue;
      EXPECT_EQ(looked_up, device_tables_[0]->tier_stats().hits) << num_ids;
      EXPECT_EQ(0, device_tables_[0]->tier_stats().misses) << num_ids;
    }
  }
}

TEST_F(StepLookupTest, ATableThatComesTwiceIsInTwoSteps) {
  Train(Adagrad(), 2);
  const std::vector<Batch> batches = Batches(3);
  Plan plan;
  std::vector<PooledInput> inputs = Inputs(batches, device_tables_, true);
  inputs.push_back(inputs[0]);
  std::vector<float*> outputs;
  for (const PooledInput& in : inputs) {
    outputs.push_back(
        stream_->Allocate(in.batch_size * in.table->options().dim));
  }
  std::vector<Table> owners = device_tables_;
  owners.push_back(device_tables_[0]);
  ASSERT_OK(PooledForward(inputs, owners, outputs, &pool_, &plan));
  const int64_t n = batches[0].grads.size();
  EXPECT_EQ(stream_->Read(outputs[0], n), stream_->Read(outputs.back(), n));
  Plan cpu_plan;
  std::vector<std::vector<float>> expected;
  LookUpOnCpu(batches, &cpu_plan, &expected);
  outputs.pop_back();
  ExpectSameOutputs(expected, outputs);
}

}  // namespace
}  // namespace ev
