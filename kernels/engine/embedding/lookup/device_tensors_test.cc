// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Compares lookups and updates whose outputs and gradients are in memory of the
// device that has the rows with those in CPU memory.

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/engine/embedding/embedding_table.h"
#include "kernels/engine/embedding/lookup/pooled_lookup.h"
#include "kernels/engine/embedding/lookup/row_lookup.h"
#include "kernels/engine/embedding/update/row_update.h"
#include "kernels/engine/testing/storage_under_test.h"
#include "kernels/engine/testing/stream_under_test.h"
#include "kernels/engine/testing/thread_pool.h"
#include "kernels/engine/testing/unique_keys.h"

namespace ev {
namespace {

using testing::StreamUnderTest;
using testing::UniqueKeys;

#define ASSERT_OK(expression)                             \
  do {                                                    \
    const Status ev_status_ = (expression);               \
    ASSERT_TRUE(ev_status_.ok()) << ev_status_.message(); \
  } while (0)

using Table = std::shared_ptr<EmbeddingTable>;

constexpr int64_t kDim = 4;

Table MakeTable(RowStorage storage) {
  TableOptions options;
  options.name = "user";
  options.dim = kDim;
  options.storage = storage;
  // Used by HBM_DRAM: 64 rows without slots in the device's memory.
  options.memory_bytes = 64 * options.dim * sizeof(float);
  options.record_frequency = options.record_version = true;
  auto table = std::make_shared<EmbeddingTable>(options);
  std::vector<float> rows(3 * kDim);
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = 0.5f + i % 7;
  const Status status = table->Initialize(rows, 3);
  EXPECT_TRUE(status.ok()) << status.message();
  return table;
}

struct Batch {
  std::vector<int64_t> ids, splits{0};
  std::vector<float> grads;

  Batch(int64_t samples, int64_t most_ids, int64_t range, int seed) {
    std::mt19937_64 random(seed);
    std::normal_distribution<float> normal;
    for (int64_t s = 0; s < samples; ++s) {
      const int64_t n = static_cast<int64_t>(random() % (most_ids + 1));
      for (int64_t i = 0; i < n; ++i) ids.push_back(random() % range);
      splits.push_back(ids.size());
      for (int64_t c = 0; c < kDim; ++c) grads.push_back(normal(random));
    }
  }

  PooledInput Input(EmbeddingTable* table, Combiner combiner) const {
    PooledInput in;
    in.table = table;
    in.combiner = combiner;
    in.batch_size = splits.size() - 1;
    in.num_ids = ids.size();
    in.ids64 = ids.data();
    in.row_splits = splits.data();
    return in;
  }
};

UpdateInput UpdateOf(EmbeddingTable* table, const LookupPlan& plan,
                     const float* grads) {
  UpdateInput update;
  update.table = table;
  update.keys = UniqueKeys(plan, 0);
  update.plan = &plan;
  update.pooled_grads = grads;
  return update;
}

Status Adagrad(const UpdateInput& update, int64_t step, Parallel* parallel) {
  const std::vector<std::vector<SlotSpec>> slots = {{{"Adagrad", 0.1f}}};
  return ApplyRule("Adagrad", std::vector<float>{0.5f},
                   std::vector<UpdateInput>{update}, slots, step, parallel);
}

class DeviceTensorsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    table_ = MakeTable(testing::StorageUnderTest());
    stream_ = StreamUnderTest::Make();
    on_ = stream_->stream();
  }

  // Runs a step whose tensors are on the device, and returns the lookup's
  // output.
  std::vector<float> StepOnDevice(const Batch& batch, Combiner combiner,
                                  int64_t step) {
    const int64_t n = batch.grads.size();
    float* const out = stream_->Allocate(n);
    // A write by the framework, which used the memory before.
    stream_->Fill(std::vector<float>(n, 77.0f), out);
    PooledInput in = batch.Input(table_.get(), combiner);
    in.stream = &on_;
    std::shared_ptr<const LookupPlan> plan;
    Status status = PooledForward(std::vector<PooledInput>{in}, {table_},
                                  std::vector<float*>{out}, &pool_, &plan);
    EXPECT_TRUE(status.ok()) << status.message();
    const std::vector<float> result = stream_->Read(out, n);
    float* const grads = stream_->Allocate(n);
    stream_->Fill(batch.grads, grads);
    UpdateInput update = UpdateOf(table_.get(), *plan, grads);
    update.stream = &on_;
    status = Adagrad(update, step, &pool_);
    EXPECT_TRUE(status.ok()) << status.message();
    return result;
  }

  std::vector<float> StepOnCpu(const Batch& batch, Combiner combiner,
                               int64_t step, EmbeddingTable* table) {
    std::vector<float> out(batch.grads.size());
    std::shared_ptr<const LookupPlan> plan;
    Status status =
        PooledForward(std::vector<PooledInput>{batch.Input(table, combiner)},
                      {}, std::vector<float*>{out.data()}, &pool_, &plan);
    EXPECT_TRUE(status.ok()) << status.message();
    status = Adagrad(UpdateOf(table, *plan, batch.grads.data()), step, &pool_);
    EXPECT_TRUE(status.ok()) << status.message();
    return out;
  }

  Table table_;
  testing::ThreadPool pool_{3};
  std::unique_ptr<StreamUnderTest> stream_;
  DeviceStream on_;
};

void ExpectSame(const EmbeddingTable& one, const EmbeddingTable& other) {
  TableSnapshot a, b;
  ASSERT_OK(one.Export(std::vector<std::string>{"Adagrad"}, &a));
  ASSERT_OK(other.Export(std::vector<std::string>{"Adagrad"}, &b));
  ASSERT_GT(a.keys.size(), 0u);
  EXPECT_EQ(a.keys, b.keys);
  EXPECT_EQ(a.values, b.values);
  EXPECT_EQ(a.slots, b.slots);
  EXPECT_EQ(a.versions, b.versions);
  EXPECT_EQ(a.frequencies, b.frequencies);
}

TEST_F(DeviceTensorsTest, StepsGiveTheBitsOfThoseInCpuMemory) {
  ASSERT_TRUE(table_->takes_device_tensors());
  EXPECT_TRUE(table_->pools_on_device());
  const Table cpu_table = MakeTable(RowStorage::kDram);
  EXPECT_FALSE(cpu_table->takes_device_tensors());
  EXPECT_FALSE(cpu_table->pools_on_device());
  const Combiner combiners[] = {Combiner::kSum, Combiner::kMean,
                                Combiner::kSqrtN};
  // Few ids, many ids of few keys, one id each, and more than a device
  // deduplicates.
  const int64_t shapes[][3] = {
      {20, 2, 50}, {900, 6, 60}, {500, 1, 5000}, {30000, 4, 60000}};
  int64_t step = 0;
  for (const auto& shape : shapes) {
    for (Combiner combiner : combiners) {
      const Batch batch(shape[0], shape[1], shape[2], 7 + step);
      EXPECT_EQ(StepOnCpu(batch, combiner, step, cpu_table.get()),
                StepOnDevice(batch, combiner, step));
      ++step;
    }
  }
  ExpectSame(*cpu_table, *table_);
}

TEST_F(DeviceTensorsTest, RowsAreGatheredIntoDeviceMemory) {
  StepOnDevice(Batch(200, 3, 300, 5), Combiner::kSum, 0);
  // Some keys are absent, some occur twice.
  std::vector<int64_t> keys;
  for (int64_t i = 0; i < 5000; ++i) keys.push_back(i * 7 % 600 - 100);
  std::vector<float> cpu_rows(keys.size() * kDim);
  ASSERT_OK(table_->Gather(keys, cpu_rows.data(), &pool_));
  float* const device_rows = stream_->Allocate(cpu_rows.size());
  stream_->Fill(std::vector<float>(cpu_rows.size(), 77.0f), device_rows);
  const auto gather = [&](const std::vector<int64_t>& wanted,
                          const Table& table) {
    RowsInput input;
    input.table = table.get();
    input.keys = wanted;
    RowPlaces places;
    places.starts = {0, static_cast<int64_t>(wanted.size())};
    places.pieces = {wanted.empty() ? nullptr : device_rows};
    std::shared_ptr<const LookupPlan> plan;
    return GatherRows(std::vector<RowsInput>{input}, {table},
                      std::vector<RowPlaces>{places}, on_, &pool_, &plan);
  };
  ASSERT_OK(gather(keys, table_));
  EXPECT_EQ(cpu_rows, stream_->Read(device_rows, cpu_rows.size()));
  ASSERT_OK(gather({}, table_));
  EXPECT_EQ(StatusCode::kFailedPrecondition,
            gather(keys, MakeTable(RowStorage::kDram)).code());
}

TEST_F(DeviceTensorsTest, SamplesWithoutIdsGiveZeros) {
  const Batch batch(5, 0, 1, 1);
  ASSERT_TRUE(batch.ids.empty());
  EXPECT_EQ(std::vector<float>(5 * kDim, 0.0f),
            StepOnDevice(batch, Combiner::kMean, 0));
}

TEST_F(DeviceTensorsTest, RowsInCpuMemoryHaveNoDevice) {
  const Table cpu_table = MakeTable(RowStorage::kDram);
  const Batch batch(20, 2, 50, 1);
  float* const memory = stream_->Allocate(batch.grads.size());
  PooledInput in = batch.Input(cpu_table.get(), Combiner::kSum);
  in.stream = &on_;
  std::shared_ptr<const LookupPlan> plan;
  Status status = PooledForward(std::vector<PooledInput>{in}, {cpu_table},
                                std::vector<float*>{memory}, &pool_, &plan);
  EXPECT_EQ(StatusCode::kFailedPrecondition, status.code());
  EXPECT_NE(std::string::npos, status.message().find("'user'"));
  in.stream = nullptr;
  std::vector<float> out(batch.grads.size());
  ASSERT_OK(PooledForward(std::vector<PooledInput>{in}, {cpu_table},
                          std::vector<float*>{out.data()}, &pool_, &plan));
  UpdateInput update = UpdateOf(cpu_table.get(), *plan, memory);
  update.stream = &on_;
  status = Adagrad(update, 0, &pool_);
  EXPECT_EQ(StatusCode::kFailedPrecondition, status.code());
  EXPECT_NE(std::string::npos, status.message().find("'user'"));
  EXPECT_EQ(0, cpu_table->size());
}

TEST_F(DeviceTensorsTest, UnsupportedTensorsOnADeviceAreRefused) {
  const Batch batch(20, 2, 50, 1);
  const int64_t n = batch.grads.size();
  float* const memory = stream_->Allocate(n);
  const std::vector<float> weights(batch.ids.size(), 1.0f);
  PooledInput in = batch.Input(table_.get(), Combiner::kSum);
  in.stream = &on_;
  in.weights = weights.data();
  std::shared_ptr<const LookupPlan> plan;
  Status status = PooledForward(std::vector<PooledInput>{in}, {table_},
                                std::vector<float*>{memory}, &pool_, &plan);
  EXPECT_EQ(StatusCode::kInvalidArgument, status.code());
  in.weights = nullptr;
  in.combiner = Combiner::kMax;
  status = PooledForward(std::vector<PooledInput>{in}, {table_},
                         std::vector<float*>{memory}, &pool_, &plan);
  EXPECT_EQ(StatusCode::kInvalidArgument, status.code());
  std::vector<float> out(n);
  in.stream = nullptr;
  ASSERT_OK(PooledForward(std::vector<PooledInput>{in}, {table_},
                          std::vector<float*>{out.data()}, &pool_, &plan));
  UpdateInput of_max = UpdateOf(table_.get(), *plan, memory);
  of_max.stream = &on_;
  EXPECT_EQ(StatusCode::kInvalidArgument, Adagrad(of_max, 0, &pool_).code());
  in.combiner = Combiner::kSum;
  in.stream = &on_;
  ASSERT_OK(PooledForward(std::vector<PooledInput>{in}, {table_},
                          std::vector<float*>{memory}, &pool_, &plan));
  // Sums of gradients are formed in CPU memory.
  UpdateInput update = UpdateOf(table_.get(), *plan, nullptr);
  update.grads = memory;
  update.stream = &on_;
  status = Adagrad(update, 0, &pool_);
  EXPECT_EQ(StatusCode::kInvalidArgument, status.code());
  EXPECT_EQ(0, table_->size());
}

}  // namespace
}  // namespace ev
