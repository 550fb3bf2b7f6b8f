// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Tests that a table handles a device with too little memory and frees its
// rows, and that the stand-in aborts if a caller breaks the contract.

#include "kernels/engine/testing/host_device_rows.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/engine/base/parallel.h"
#include "kernels/engine/embedding/embedding_table.h"
#include "kernels/engine/embedding/lookup/pooled_lookup.h"
#include "kernels/engine/embedding/lookup/row_lookup.h"
#include "kernels/engine/embedding/update/row_update.h"
#include "kernels/engine/rows/gpu_row_home.h"
#include "kernels/engine/testing/erased.h"
#include "kernels/engine/testing/host_device_distinct.h"
#include "kernels/engine/testing/host_device_memory.h"
#include "kernels/engine/testing/host_device_step.h"
#include "kernels/engine/testing/unique_keys.h"

namespace ev {
namespace testing {
namespace {

#define ASSERT_OK(expression)                             \
  do {                                                    \
    const Status ev_status_ = (expression);               \
    ASSERT_TRUE(ev_status_.ok()) << ev_status_.message(); \
  } while (0)

TableOptions Options() {
  TableOptions options;
  options.name = "user";
  options.dim = 2;
  options.storage = RowStorage::kHbm;
  return options;
}

Status Train(EmbeddingTable* table, const std::vector<int64_t>& keys) {
  const std::vector<float> ones(keys.size() * 2, 1.0f);
  UpdateInput update;
  update.table = table;
  update.keys = keys;
  update.grads = ones.data();
  return ApplyRule("SGD", std::vector<float>{1.0f},
                   std::vector<UpdateInput>{update},
                   std::vector<std::vector<SlotSpec>>(1), 0, nullptr);
}

TEST(HostDeviceRowsTest, AnUpdateWithoutDeviceMemoryChangesNoValue) {
  EmbeddingTable table(Options());
  ASSERT_OK(table.Initialize(std::vector<float>{5, 5}, 1));
  ASSERT_OK(Train(&table, {1, 2}));
  LimitHostDeviceRows(3);
  const Status status = Train(&table, {1, 2, 3, 4});
  EXPECT_EQ(StatusCode::kResourceExhausted, status.code());
  EXPECT_NE(std::string::npos, status.message().find("table 'user'"));
  std::vector<float> values(8);
  const std::vector<int64_t> keys = {1, 2, 3, 4};
  ASSERT_OK(table.Gather(keys, values.data(), nullptr));
  EXPECT_EQ((std::vector<float>{4, 4, 4, 4, 5, 5, 5, 5}), values);
  EXPECT_EQ(2, table.size());
  EXPECT_EQ(2, table.stats().inserted_rows);
  EXPECT_EQ(2, LiveHostDeviceRows());
  LimitHostDeviceRows(-1);
  ASSERT_OK(Train(&table, {1, 2, 3, 4}));
  ASSERT_OK(table.Gather(keys, values.data(), nullptr));
  EXPECT_EQ((std::vector<float>{3, 3, 3, 3, 4, 4, 4, 4}), values);
}

// Tables whose rows are looked up for other ranks, with GPU memory for the
// rows.
class ServedTables {
 public:
  explicit ServedTables(size_t num_tables) {
    for (size_t t = 0; t < num_tables; ++t) {
      tables_.push_back(std::make_shared<EmbeddingTable>(Options()));
      const Status status =
          tables_.back()->Initialize(std::vector<float>{5, 5}, 1);
      EXPECT_TRUE(status.ok()) << status.message();
    }
  }
  ~ServedTables() { FreeHostDeviceMemory(memory_); }

  // Looks up sizes[t] keys of each table t: 0, 0, 1, 1, 2 and so on.
  Status Serve(const std::vector<int64_t>& sizes) {
    std::vector<std::vector<int64_t>> keys;
    std::vector<RowsInput> inputs(sizes.size());
    std::vector<RowPlaces> places(sizes.size());
    int64_t total = 0;
    for (int64_t size : sizes) total += size;
    FreeHostDeviceMemory(memory_);
    memory_ = AllocateHostDeviceMemory(2 * total * sizeof(float));
    float* out = static_cast<float*>(memory_);
    for (size_t t = 0; t < sizes.size(); ++t) {
      keys.emplace_back();
      for (int64_t i = 0; i < sizes[t]; ++i) keys.back().push_back(i / 2);
      places[t].starts = {0, sizes[t]};
      places[t].pieces = {out};
      out += 2 * sizes[t];
    }
    for (size_t t = 0; t < sizes.size(); ++t) {
      inputs[t].table = tables_[t].get();
      inputs[t].keys = keys[t];
    }
    return GatherRows(inputs, tables_, places, stream_.stream(), nullptr,
                      &plan_);
  }

  // Updates the rows of the last Serve. The gradient of each key is 2.
  Status Update() {
    const DeviceStream stream = stream_.stream();
    std::vector<UpdateInput> updates(tables_.size());
    float* grads = static_cast<float*>(memory_);
    for (size_t t = 0; t < tables_.size(); ++t) {
      const int64_t n = 2 * plan_->num_ids(static_cast<int>(t));
      std::fill_n(Reach(grads), n, 1.0f);
      updates[t].table = tables_[t].get();
      updates[t].plan = plan_.get();
      updates[t].plan_table = static_cast<int>(t);
      updates[t].pooled_grads = grads;
      updates[t].stream = &stream;
      grads += n;
    }
    return ApplyRule("SGD", std::vector<float>{1.0f}, updates,
                     std::vector<std::vector<SlotSpec>>(updates.size()), 0,
                     nullptr);
  }

  const LookupPlan& plan() const { return *plan_; }
  EmbeddingTable* table(int t) const { return tables_[t].get(); }

 private:
  std::vector<std::shared_ptr<EmbeddingTable>> tables_;
  HostStream stream_;
  void* memory_ = nullptr;
  std::shared_ptr<const LookupPlan> plan_;
};

TEST(HostDeviceRowsTest, TablesThatAreServedTogetherAreOneStep) {
  for (const std::vector<int64_t>& sizes : std::vector<std::vector<int64_t>>{
           {25, 24, 0}, {1, 0, 0}, {1, 23, 200}}) {
    ServedTables served(3);
    const int64_t before = HostDeviceSteps();
    ASSERT_OK(served.Serve(sizes));
    EXPECT_EQ(1, HostDeviceSteps() - before);
    const int64_t updates = HostDeviceStepUpdates();
    ASSERT_OK(served.Update());
    EXPECT_EQ(1, HostDeviceStepUpdates() - updates);
  }
}

// While it lives, steps are refused, so the CPU looks up the rows.
class WithoutSteps {
 public:
  WithoutSteps() { RefuseHostDeviceSteps(true); }
  ~WithoutSteps() { RefuseHostDeviceSteps(false); }
};

TEST(HostDeviceRowsTest, KeysOfOtherRanksNeedMemoryForAStep) {
  ServedTables served(3);
  {
    const WithoutSteps without_steps;
    const Status status = served.Serve({200, 0, 31});
    EXPECT_EQ(StatusCode::kResourceExhausted, status.code());
    EXPECT_EQ("no memory for a step, table 'user'", status.message());
    for (int t = 0; t < 3; ++t) EXPECT_EQ(0, served.table(t)->size());
  }
  const int64_t before = HostDeviceSteps();
  ASSERT_OK(served.Serve({200, 0, 31}));
  EXPECT_EQ(1, HostDeviceSteps() - before);
  EXPECT_EQ(100u, UniqueKeys(served.plan(), 0).size());
  EXPECT_EQ(16u, UniqueKeys(served.plan(), 2).size());
  ASSERT_OK(served.Update());
  std::vector<float> values(4);
  ASSERT_OK(served.table(0)->Gather(std::vector<int64_t>{7, 105}, values.data(),
                                    nullptr));
  EXPECT_EQ((std::vector<float>{3, 3, 5, 5}), values);
}

TEST(HostDeviceRowsTest, WhatIsServedAgainIsNotFetched) {
  ServedTables served(2);
  const int64_t fetches = HostDeviceFetches();
  for (int step = 0; step < 3; ++step) {
    ASSERT_OK(served.Serve({200, 100}));
    ASSERT_OK(served.Update());
  }
  // Serves more keys of one table.
  ASSERT_OK(served.Serve({220, 100}));
  ASSERT_OK(served.Update());
  EXPECT_EQ(fetches, HostDeviceFetches());
  std::vector<float> values(4);
  ASSERT_OK(served.table(0)->Gather(std::vector<int64_t>{7, 105}, values.data(),
                                    nullptr));
  EXPECT_EQ((std::vector<float>{-3, -3, 3, 3}), values);
}

void ExpectSumsThatFailOnce() {
  ServedTables served(1);
  ASSERT_OK(served.Serve({200}));
  const std::vector<float> ones(400, 1.0f);
  RowGradients grads;
  grads.starts = {0, 200};
  grads.pieces = {ones.data()};
  std::vector<float> sums(200);
  FailNextHostDeviceFetch();
  const auto sum = [&] {
    return SumRowGradients(served.plan(), std::vector<RowGradients>{grads},
                           std::vector<float*>{sums.data()}, nullptr);
  };
  const Status status = sum();
  EXPECT_EQ(StatusCode::kInternal, status.code());
  EXPECT_NE(std::string::npos, status.message().find("table 'user'"));
  ASSERT_OK(sum());
  EXPECT_EQ(std::vector<float>(200, 2.0f), sums);
}

TEST(HostDeviceRowsTest, SumsOfServedKeysThatCannotBeFetchedAreAnError) {
  ExpectSumsThatFailOnce();
}

TEST(HostDeviceRowsTest, AKeyWithoutGpuMemoryIsAnErrorAndChangesNothing) {
  EmbeddingTable table(Options());
  ASSERT_OK(table.Initialize(std::vector<float>{5, 5}, 1));
  ASSERT_OK(Train(&table, {1, 2}));
  const int64_t rows = LiveHostDeviceRows();
  RefuseHostDeviceKeys(true);
  const Status status = Train(&table, {1, 3});
  RefuseHostDeviceKeys(false);
  EXPECT_EQ(StatusCode::kResourceExhausted, status.code());
  EXPECT_NE(std::string::npos, status.message().find("table 'user'"));
  EXPECT_EQ(2, table.size());
  EXPECT_EQ(rows, LiveHostDeviceRows());
  std::vector<float> values(4);
  const std::vector<int64_t> keys = {1, 3};
  ASSERT_OK(table.Gather(keys, values.data(), nullptr));
  EXPECT_EQ((std::vector<float>{4, 4, 5, 5}), values);
  ASSERT_OK(Train(&table, keys));
  EXPECT_EQ(3, table.size());
}

TEST(HostDeviceRowsTest, RowsThatGoLeaveTheDevice) {
  const int64_t before = LiveHostDeviceRows();
  {
    TableOptions options = Options();
    options.capacity.max_rows = 4;
    EmbeddingTable table(options);
    ASSERT_OK(table.Initialize(std::vector<float>{5, 5}, 1));
    ASSERT_OK(Train(&table, {1, 2, 3, 4, 5, 6, 7}));
    EXPECT_EQ(4, LiveHostDeviceRows() - before);
    const std::vector<int64_t> all = {1, 2, 3, 4, 5, 6, 7};
    EXPECT_EQ(4, Erased(&table, all));
    EXPECT_EQ(0, LiveHostDeviceRows() - before);
    ASSERT_OK(Train(&table, {8}));
  }
  EXPECT_EQ(0, LiveHostDeviceRows() - before);
}

// Trains a table for two steps, with samples of two ids each, and returns the
// pooled rows of the second step.
std::vector<float> TrainAndLookUp(const std::vector<int64_t>& ids,
                                  const float* weights) {
  const auto table = std::make_shared<EmbeddingTable>(Options());
  EXPECT_TRUE(table->Initialize(std::vector<float>{5, 5}, 1).ok());
  std::vector<int64_t> splits;
  for (size_t i = 0; i <= ids.size(); i += 2) splits.push_back(i);
  PooledInput in;
  in.table = table.get();
  in.batch_size = splits.size() - 1;
  in.num_ids = ids.size();
  in.ids64 = ids.data();
  in.row_splits = splits.data();
  in.weights = weights;
  std::vector<float> out(in.batch_size * 2), grads;
  for (size_t i = 0; i < out.size(); ++i) grads.push_back(0.1f * i);
  for (int step = 0; step < 2; ++step) {
    std::shared_ptr<const LookupPlan> plan;
    Status status =
        PooledForward(std::vector<PooledInput>{in}, {table},
                      std::vector<float*>{out.data()}, nullptr, &plan);
    EXPECT_TRUE(status.ok()) << status.message();
    UpdateInput update;
    update.table = table.get();
    update.plan = plan.get();
    update.pooled_grads = grads.data();
    status = ApplyRule("SGD", std::vector<float>{1.0f},
                       std::vector<UpdateInput>{update},
                       std::vector<std::vector<SlotSpec>>(1), 0, nullptr);
    EXPECT_TRUE(status.ok()) << status.message();
  }
  return out;
}

TEST(HostDeviceRowsTest, LookupsWithoutWeightsAreSteps) {
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < 120; ++i) ids.push_back(i * i % 77);
  const std::vector<float> weights(120, 1.0f);
  const int64_t before = HostDeviceSteps();
  const std::vector<float> out = TrainAndLookUp(ids, nullptr);
  EXPECT_EQ(2, HostDeviceSteps() - before);
  EXPECT_EQ(out, TrainAndLookUp(ids, weights.data()));
  RefuseHostDeviceSteps(true);
  EXPECT_EQ(out, TrainAndLookUp(ids, nullptr));
  RefuseHostDeviceSteps(false);
  EXPECT_EQ(2, HostDeviceSteps() - before);
}

// A lookup of the same ids in several tables.
struct Lookup {
  std::vector<std::shared_ptr<EmbeddingTable>> tables;
  std::vector<PooledInput> inputs;
  std::vector<std::vector<float>> outputs;

  Lookup(int num_tables, const std::vector<int64_t>& ids,
         const std::vector<int64_t>& splits)
      : outputs(num_tables, std::vector<float>(2 * (splits.size() - 1))) {
    for (int t = 0; t < num_tables; ++t) {
      tables.push_back(std::make_shared<EmbeddingTable>(Options()));
      EXPECT_TRUE(tables[t]->Initialize(std::vector<float>{5, 5}, 1).ok());
      PooledInput in;
      in.table = tables[t].get();
      in.batch_size = splits.size() - 1;
      in.num_ids = ids.size();
      in.ids64 = ids.data();
      in.row_splits = splits.data();
      inputs.push_back(in);
    }
  }
  Status Run(Parallel* parallel) {
    std::vector<float*> outs;
    for (auto& output : outputs) outs.push_back(output.data());
    std::shared_ptr<const LookupPlan> plan;
    return PooledForward(inputs, tables, outs, parallel, &plan);
  }
};

// Calls before(n) before its n-th loop, then runs that in the calling thread.
class Watched : public Parallel {
 public:
  explicit Watched(std::function<void(int n, int64_t num_tasks)> before)
      : before_(std::move(before)) {}
  int num_threads() const override { return 2; }
  void For(int64_t num_tasks,
           const std::function<void(int64_t)>& body) override {
    before_(num_loops_++, num_tasks);
    for (int64_t i = 0; i < num_tasks; ++i) body(i);
  }

 private:
  const std::function<void(int, int64_t)> before_;
  int num_loops_ = 0;
};

// With so many ids, concurrent lookups put their ids one after the other.
TEST(HostDeviceRowsTest, LookupsAtOncePutTheirIdsInTurn) {
  constexpr int64_t kIds = 32768;
  std::vector<int64_t> ids, splits;
  for (int64_t i = 0; i < kIds; ++i) ids.push_back(i % 700);
  for (int64_t i = 0; i <= kIds; i += 2) splits.push_back(i);
  Lookup first(2, ids, splits), second(2, ids, splits);
  std::thread other;
  std::atomic<bool> is_done{false};
  bool was_done = true;
  Watched watched([&](int n, int64_t) {
    if (n != 0) return;  // ids are put first
    other = std::thread([&] {
      EXPECT_TRUE(second.Run(nullptr).ok());
      is_done = true;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    was_done = is_done;
  });
  const Status status = first.Run(&watched);
  if (other.joinable()) other.join();
  ASSERT_OK(status);
  EXPECT_FALSE(was_done);
  EXPECT_EQ(first.outputs, second.outputs);
}

// Ids are put by the tasks of one loop, and outputs taken by those of another.
TEST(HostDeviceRowsTest, OutputsAreTakenByManyThreads) {
  std::vector<int64_t> ids, splits, tasks;
  for (int64_t i = 0; i < 200; ++i) ids.push_back(i);
  for (int64_t i = 0; i <= 200; i += 2) splits.push_back(i);
  Lookup lookup(9, ids, splits);
  Watched watched([&](int, int64_t num_tasks) { tasks.push_back(num_tasks); });
  EXPECT_TRUE(lookup.Run(&watched).ok());
  ASSERT_FALSE(tasks.empty());
  EXPECT_EQ(1, std::count(tasks.begin() + 1, tasks.end(), 9));
}

TEST(HostDeviceRowsTest, KeysThatStayOnTheDeviceAreNotFetched) {
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < 120; ++i) ids.push_back(i * 7);
  const int64_t fetches = HostDeviceFetches();
  TrainAndLookUp(ids, nullptr);
  EXPECT_EQ(0, HostDeviceFetches() - fetches);
}

TEST(HostDeviceRowsTest, WhatCannotBeFetchedIsAnErrorAndChangesNothing) {
  TableOptions options = Options();
  options.record_frequency = true;
  const auto table = std::make_shared<EmbeddingTable>(options);
  ASSERT_OK(table->Initialize(std::vector<float>{5, 5}, 1));
  std::vector<int64_t> ids, splits = {0};
  for (int64_t i = 0; i < 120; ++i) {
    ids.push_back(i * 7);
    splits.push_back(i + 1);
  }
  PooledInput in;
  in.table = table.get();
  in.batch_size = in.num_ids = 120;
  in.ids64 = ids.data();
  in.row_splits = splits.data();
  std::vector<float> out(240), grads(240, 1.0f);
  std::shared_ptr<const LookupPlan> plan;
  ASSERT_OK(PooledForward(std::vector<PooledInput>{in}, {table},
                          std::vector<float*>{out.data()}, nullptr, &plan));
  UpdateInput update;
  update.table = table.get();
  update.plan = plan.get();
  update.pooled_grads = grads.data();
  const auto apply = [&] {
    // The stand-in's steps do not support this rule.
    return ApplyRule(
        "Adadelta", std::vector<float>{0.5f, 0.9f, 1e-6f},
        std::vector<UpdateInput>{update},
        std::vector<std::vector<SlotSpec>>{{{"accum", 0.0f}, {"update", 0.0f}}},
        0, nullptr);
  };
  FailNextHostDeviceFetch();
  const Status status = apply();
  EXPECT_EQ(StatusCode::kInternal, status.code());
  EXPECT_NE(std::string::npos, status.message().find("table 'user'"));
  EXPECT_EQ(0, table->size());
  FailNextHostDeviceFetch();
  const int64_t none = 0;
  Span<const int64_t> keys(&none, 1);
  Span<const int32_t> counts;
  EXPECT_EQ(StatusCode::kInternal, plan->UniqueKeys(0, &keys, &counts).code());
  EXPECT_EQ(&none, keys.data());
  EXPECT_EQ(120u, UniqueKeys(*plan, 0).size());
  ASSERT_OK(apply());
  EXPECT_EQ(120, table->size());
}

TEST(HostDeviceRowsTest, BadSplitsAreFoundBeforeTheDeviceStarts) {
  const auto table = std::make_shared<EmbeddingTable>(Options());
  ASSERT_OK(table->Initialize(std::vector<float>{5, 5}, 1));
  const std::vector<int64_t> ids(200, 1);
  const std::vector<int64_t> splits = {0, 150, 100, 200};
  PooledInput in;
  in.table = table.get();
  in.batch_size = 3;
  in.num_ids = 200;
  in.ids64 = ids.data();
  in.row_splits = splits.data();
  std::vector<float> out(6);
  std::shared_ptr<const LookupPlan> plan;
  const Status status =
      PooledForward(std::vector<PooledInput>{in}, {table},
                    std::vector<float*>{out.data()}, nullptr, &plan);
  EXPECT_EQ(StatusCode::kInvalidArgument, status.code());
  EXPECT_NE(std::string::npos, status.message().find("user"));
  EXPECT_EQ(nullptr, plan);
  ASSERT_OK(Train(table.get(), {1}));
}

TEST(HostDeviceDistinctDeathTest, NoticesBrokenPromises) {
  std::unique_ptr<DeviceDistinct> distinct(new HostDeviceDistinct(100, 1));
  const std::vector<int64_t> ids(99, 1);
  ASSERT_OK(distinct->Put(0, Span<const int64_t>(ids)));
  const std::vector<int32_t> offsets = {0, 100};
  EXPECT_DEATH(distinct->Put(98, Span<const int64_t>(ids.data(), 2)), "twice");
  EXPECT_DEATH(distinct->Put(99, Span<const int64_t>(ids.data(), 2)),
               "beyond the batch");
  EXPECT_DEATH(distinct->Start(offsets), "never came");
  ASSERT_OK(distinct->Put(99, Span<const int64_t>(ids.data(), 1)));
  EXPECT_DEATH(distinct->Start(std::vector<int32_t>{0, 99}), "not those");
  EXPECT_DEATH(distinct->Wait(), "not started");
  ASSERT_OK(distinct->Start(offsets));
  EXPECT_DEATH(distinct->keys(), "no caller has waited");
  ASSERT_OK(distinct->Wait());
  EXPECT_EQ(1, distinct->keys()[0]);
}

TEST(HostDeviceStepDeathTest, NoticesBrokenPromises) {
  const std::vector<float> defaults = {1.0f};
  GpuRowHomeOptions options;
  options.dim = 1;
  options.default_rows = defaults;
  std::unique_ptr<GpuRowHome> rows;
  ASSERT_OK(MakeGpuRowHome(options, &rows));
  ASSERT_OK(rows->NewKeyedRow(80, 8, 0));
  const std::vector<RowHandle> eight = {8};
  EXPECT_DEATH(rows->Forget(eight), "forgotten before its key");
  const std::vector<int64_t> ids = {80, 81};
  float out[2] = {};
  GpuStepTable table;
  table.table = rows.get();
  table.num_ids = table.num_samples = 2;
  table.ids = ids.data();
  table.out = out;
  std::shared_ptr<GpuStep> step;
  ASSERT_OK(
      rows->StartStep(Span<const GpuStepTable>(&table, 1), nullptr, &step));
  EXPECT_DEATH(step->Start(0, {}), "never came");
  ASSERT_OK(step->Put(0, 0, Span<const int64_t>(ids)));
  EXPECT_DEATH(step->Pool(), "before all tables were started");
  ASSERT_OK(step->Start(0, {}));
  GpuStepUnknown unknown;
  EXPECT_DEATH(step->Settle(0, &unknown), "before the pooling");
  GpuStepIds no_ids;
  EXPECT_DEATH(step->BringIds(0, &no_ids), "before the pooling");
  ASSERT_OK(step->Pool());
  std::unique_ptr<GpuMetaUpdates> meta_updates;
  EXPECT_DEATH(step->Update("SGD", {}, {}, nullptr, &meta_updates),
               "before outputs are taken");
  ASSERT_OK(step->TakeOutput(0));
  EXPECT_EQ(1.0f, out[1]);
}

TEST(HostDeviceRowsDeathTest, NoticesBrokenPromises) {
  const std::vector<float> defaults = {1.0f};
  GpuRowHomeOptions options;
  options.dim = 1;
  options.default_rows = defaults;
  std::unique_ptr<GpuRowHome> rows;
  ASSERT_OK(MakeGpuRowHome(options, &rows));
  ASSERT_OK(rows->NewRow(7, 0));
  const std::vector<RowHandle> seven = {7}, twice = {7, 7}, unknown = {8};
  float value = 0.0f;
  EXPECT_DEATH(rows->NewRow(7, 0), "a row is made twice");
  EXPECT_DEATH(rows->NewRow(8, 1), "there is no such default row");
  EXPECT_DEATH(rows->Read(unknown, 0, &value), "there is no such row");
  EXPECT_DEATH(rows->Read(seven, 1, &value), "there is no such column");
  const std::vector<float> two = {1.0f, 2.0f};
  EXPECT_DEATH(rows->Write(twice, 0, two.data()), "two write a row at once");
  EXPECT_DEATH(rows->Forget(twice), "what is forgotten is no row");
}

}  // namespace
}  // namespace testing
}  // namespace ev
