// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Tests which lookups and updates run as steps. The results are tested by
// embedding/lookup/step_lookup_test.cc.

#include "kernels/engine/testing/host_device_step.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/engine/embedding/embedding_table.h"
#include "kernels/engine/embedding/lookup/pooled_lookup.h"
#include "kernels/engine/embedding/table_impl.h"
#include "kernels/engine/embedding/update/row_update.h"
#include "kernels/engine/rows/gpu_step.h"
#include "kernels/engine/testing/host_device_memory.h"
#include "kernels/engine/testing/host_device_rows.h"

namespace ev {
namespace testing {
namespace {

constexpr int64_t kIds = 200;

class StepTest : public ::testing::Test {
 protected:
  using Table = std::shared_ptr<EmbeddingTable>;

  static Table MakeTable(bool records = false, bool counters = false) {
    TableOptions options;
    options.name = "user";
    options.dim = 2;
    options.storage = RowStorage::kHbm;
    options.record_frequency = records;
    options.counts_on_gpu = counters;
    auto table = std::make_shared<EmbeddingTable>(options);
    EXPECT_TRUE(table->Initialize(std::vector<float>{1.0f, 2.0f}, 1).ok());
    return table;
  }

  StepTest() {
    for (int64_t i = 0; i < kIds; ++i) {
      ids_.push_back(i % 50);
      splits_.push_back(i);
    }
    splits_.push_back(kIds);
    weights_.resize(kIds, 1.0f);
    memory_ =
        static_cast<float*>(AllocateHostDeviceMemory(2 * kIds * sizeof(float)));
    std::fill_n(Reach(memory_), 2 * kIds, 1.0f);
    on_ = stream_.stream();
  }
  ~StepTest() override { FreeHostDeviceMemory(memory_); }

  PooledInput Input(EmbeddingTable* table) {
    PooledInput in;
    in.table = table;
    in.combiner = Combiner::kSum;
    in.batch_size = in.num_ids = kIds;
    in.ids64 = ids_.data();
    in.row_splits = splits_.data();
    in.stream = &on_;
    return in;
  }

  // Runs a lookup and an update, and returns how many steps and how many
  // updates of steps they made.
  std::vector<int64_t> Made(const Table& table, const PooledInput& in,
                            const std::string& rule = "Adagrad",
                            std::vector<float> hyper = {0.5f},
                            std::vector<SlotSpec> slots = {{"A", 0.1f}}) {
    const int64_t steps = HostDeviceSteps(), updates = HostDeviceStepUpdates();
    std::shared_ptr<const LookupPlan> plan;
    std::vector<float> outputs(2 * kIds);
    float* out = in.stream == nullptr ? outputs.data() : memory_;
    Status status = PooledForward(std::vector<PooledInput>{in}, {table},
                                  std::vector<float*>{out}, nullptr, &plan);
    EXPECT_TRUE(status.ok()) << status.message();
    UpdateInput update;
    update.table = table.get();
    update.plan = plan.get();
    update.pooled_grads = out;
    update.stream = in.stream;
    status = ApplyRule(rule, hyper, std::vector<UpdateInput>{update},
                       std::vector<std::vector<SlotSpec>>{slots}, 0, nullptr);
    EXPECT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(50, table->size());
    return {HostDeviceSteps() - steps, HostDeviceStepUpdates() - updates};
  }

  std::vector<int64_t> ids_, splits_;
  std::vector<float> weights_;
  float* memory_;
  HostStream stream_;
  DeviceStream on_;
};

using Numbers = std::vector<int64_t>;

TEST_F(StepTest, APlainTableIsTaken) {
  const Table table = MakeTable();
  EXPECT_EQ((Numbers{1, 1}), Made(table, Input(table.get())));
  EXPECT_EQ((Numbers{1, 1}), Made(table, Input(table.get())));
}

TEST_F(StepTest, AnUpdateThatTheStepHasNotTakesTheOtherWay) {
  const Table table = MakeTable();
  EXPECT_EQ((Numbers{1, 0}),
            Made(table, Input(table.get()), "Adadelta", {0.5f, 0.9f, 1e-6f},
                 {{"D", 0.0f}, {"E", 0.0f}}));
  // The rule's slot is in the third column; a step supports the first only.
  EXPECT_EQ((Numbers{1, 0}), Made(table, Input(table.get())));
}

TEST_F(StepTest, TablesThatRecordUpdatesAreTaken) {
  const Table table = MakeTable(/*records=*/true);
  EXPECT_EQ((Numbers{1, 1}), Made(table, Input(table.get())));
  EXPECT_EQ((Numbers{1, 1}), Made(table, Input(table.get())));
}

TEST_F(StepTest, CountersThatCannotBeTakenAreAnErrorThatChangesNothing) {
  const Table table = MakeTable(/*records=*/true, /*counters=*/true);
  EXPECT_EQ((Numbers{1, 1}), Made(table, Input(table.get())));
  const std::vector<int64_t> key(1, ids_[0]);
  int64_t number = 0, other = 0;
  TableSnapshot snapshot;
  const std::vector<std::function<Status()>> calls = {
      [&] { return table->Erase(key); },
      [&] { return table->EvictWeak(1e9f, &number); },
      [&] { return table->CutChanges(&number); },
      [&] { return table->GetMeta(key, &number, &other); },
      [&] { return table->Export({}, &snapshot); },
  };
  for (size_t i = 0; i < calls.size(); ++i) {
    FailNextHostDeviceCounters();
    const Status status = calls[i]();
    EXPECT_EQ(StatusCode::kInternal, status.code()) << i;
    EXPECT_NE(std::string::npos, status.message().find("table 'user'")) << i;
    EXPECT_EQ(50, table->size()) << i;
  }
  ASSERT_TRUE(table->Export({}, &snapshot).ok());
  EXPECT_EQ(std::vector<int64_t>(50, kIds / 50), snapshot.frequencies);
}

// The row's floats have their initial values, but a step has updated it. The
// call that inserted its key failed, and takes back only rows without updates.
TEST_F(StepTest, ARowThatWasCountedIsNotTakenBack) {
  const Table table = MakeTable(/*records=*/true, /*counters=*/true);
  EXPECT_EQ((Numbers{1, 1}),
            Made(table, Input(table.get()), "SGD", {0.0f}, {}));
  TableJournal journal;
  {
    TableJournal::Writer writer(&journal);
    writer.part()->inserted.push_back(ids_[0]);
  }
  for (const bool is_known : {false, true}) {
    if (!is_known) FailNextHostDeviceCounters();
    table->impl()->TakeBack(journal);
    EXPECT_EQ(50, table->size()) << is_known;
  }
}

// The k-th lookup of each table is in the k-th step.
TEST_F(StepTest, TheSecondLookupsOfTablesAreAStepOfTheirOwn) {
  const Table twice = MakeTable(/*records=*/true), once = MakeTable();
  float* const more =
      static_cast<float*>(AllocateHostDeviceMemory(4 * kIds * sizeof(float)));
  const auto steps_of = [&](const std::vector<Table>& tables) {
    std::vector<PooledInput> inputs;
    std::vector<float*> outputs{memory_, more, more + 2 * kIds};
    for (const Table& table : tables) inputs.push_back(Input(table.get()));
    outputs.resize(inputs.size());
    const int64_t before = HostDeviceSteps();
    std::shared_ptr<const LookupPlan> plan;
    const Status status =
        PooledForward(inputs, tables, outputs, nullptr, &plan);
    EXPECT_TRUE(status.ok()) << status.message();
    return HostDeviceSteps() - before;
  };
  EXPECT_EQ(1, steps_of({twice, once}));
  EXPECT_EQ(2, steps_of({twice, once, twice}));
  EXPECT_EQ(2, steps_of({twice, twice}));
  EXPECT_EQ(3, steps_of({twice, twice, twice}));
  FreeHostDeviceMemory(more);
}

TEST_F(StepTest, OutputsInCpuMemoryAreTaken) {
  const Table table = MakeTable();
  PooledInput in = Input(table.get());
  in.stream = nullptr;
  EXPECT_EQ((Numbers{1, 1}), Made(table, in));
}

TEST_F(StepTest, FewIdsAreTaken) {
  const Table table = MakeTable();
  PooledInput in = Input(table.get());
  in.batch_size = in.num_ids = 50;
  EXPECT_EQ((Numbers{1, 1}), Made(table, in));
}

TEST_F(StepTest, TablesWithOutputsInDifferentMemoryAreNotInOneStep) {
  const Table on_gpu = MakeTable(), on_cpu = MakeTable();
  std::vector<PooledInput> inputs = {Input(on_gpu.get()), Input(on_cpu.get())};
  inputs[1].stream = nullptr;
  std::vector<float> out(2 * kIds, -1.0f), expected;
  const int64_t steps = HostDeviceSteps();
  std::shared_ptr<const LookupPlan> plan;
  ASSERT_TRUE(PooledForward(inputs, {on_gpu, on_cpu},
                            std::vector<float*>{memory_, out.data()}, nullptr,
                            &plan)
                  .ok());
  EXPECT_EQ(2, HostDeviceSteps() - steps);
  for (int64_t i = 0; i < kIds; ++i) expected.insert(expected.end(), {1, 2});
  EXPECT_EQ(expected, out);
  EXPECT_EQ(expected,
            std::vector<float>(Reach(memory_), Reach(memory_) + 2 * kIds));
}

TEST_F(StepTest, WithoutMemoryForAStepTheCpuFindsTheRows) {
  const Table table = MakeTable();
  PooledInput in = Input(table.get());
  in.stream = nullptr;
  RefuseHostDeviceSteps(true);
  EXPECT_EQ((Numbers{0, 0}), Made(table, in));
  RefuseHostDeviceSteps(false);
}

TEST_F(StepTest, OutputsInGpuMemoryNeedMemoryForAStep) {
  const Table table = MakeTable();
  std::shared_ptr<const LookupPlan> plan;
  RefuseHostDeviceSteps(true);
  const Status status =
      PooledForward(std::vector<PooledInput>{Input(table.get())}, {table},
                    std::vector<float*>{memory_}, nullptr, &plan);
  RefuseHostDeviceSteps(false);
  EXPECT_EQ(StatusCode::kResourceExhausted, status.code());
  EXPECT_EQ("no memory for a step, table 'user'", status.message());
  EXPECT_EQ(nullptr, plan);
  EXPECT_EQ(0, table->size());
  EXPECT_EQ((Numbers{1, 1}), Made(table, Input(table.get())));
}

}  // namespace
}  // namespace testing
}  // namespace ev
