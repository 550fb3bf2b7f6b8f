// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Lookups and updates of many tables that a GPU takes together, against tables
// in CPU memory: outputs, keys, values and slots, bit by bit.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <list>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/engine/base/transfer_memory.h"
#include "kernels/engine/embedding/embedding_table.h"
#include "kernels/engine/embedding/lookup/pooled_lookup.h"
#include "kernels/engine/embedding/table_impl.h"
#include "kernels/engine/embedding/update/row_update.h"
#include "kernels/engine/testing/storage_under_test.h"
#include "kernels/engine/testing/stream_under_test.h"
#include "kernels/engine/testing/thread_pool.h"

namespace ev {
namespace {

using testing::StreamUnderTest;

#define ASSERT_OK(expression)                             \
  do {                                                    \
    const Status ev_status_ = (expression);               \
    ASSERT_TRUE(ev_status_.ok()) << ev_status_.message(); \
  } while (0)

using Table = std::shared_ptr<EmbeddingTable>;

struct Shape {
  int64_t dim;
  Combiner combiner;
  int64_t samples;
  int most_ids;  // of a sample; 0: exactly one
  bool narrow;
};

// All groups of lanes, widths that 4 does not divide, one id and several.
const std::vector<Shape>& Shapes() {
  static const std::vector<Shape>* const shapes = new std::vector<Shape>{
      {4, Combiner::kSum, 700, 0, false},   {16, Combiner::kMean, 700, 4, true},
      {6, Combiner::kSqrtN, 300, 3, false}, {32, Combiner::kMean, 700, 0, true},
      {33, Combiner::kSum, 200, 2, false},  {64, Combiner::kSum, 700, 3, false},
      {128, Combiner::kMean, 500, 2, true}, {1, Combiner::kSum, 700, 0, false},
      {160, Combiner::kSum, 90, 5, false},
  };
  return *shapes;
}

Table MakeTable(int t, int64_t dim, RowStorage storage) {
  TableOptions options;
  options.name = "table " + std::to_string(t);
  options.dim = dim;
  options.storage = storage;
  auto table = std::make_shared<EmbeddingTable>(options);
  std::vector<float> rows(3 * dim);
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = 0.25f * (i % 9) - 1.0f;
  const Status status = table->Initialize(rows, 3);
  EXPECT_TRUE(status.ok()) << status.message();
  return table;
}

// One table's batch. A tenth of the ids is one key, so that its gradients are
// summed by a whole block; most others are of few keys; some are new.
struct Batch {
  std::vector<int64_t> ids, splits{0};
  std::vector<int32_t> narrow_ids;
  std::vector<float> grads;
  bool narrow;

  Batch(const Shape& shape, int seed) : narrow(shape.narrow) {
    std::mt19937_64 random(seed);
    std::uniform_real_distribution<double> unit;
    std::normal_distribution<float> normal;
    for (int64_t s = 0; s < shape.samples; ++s) {
      const int n = shape.most_ids == 0
                        ? 1
                        : static_cast<int>(random() % (shape.most_ids + 1));
      for (int i = 0; i < n; ++i) {
        const double u = unit(random);
        int64_t id = static_cast<int64_t>(u * u * u * 2000) * 7919 - 100;
        if (unit(random) < 0.45) id = narrow ? -2147483647 : INT64_MIN;
        if (unit(random) < 0.02) id = 900000000 + seed * 1000 + s;
        ids.push_back(id);
      }
      splits.push_back(ids.size());
      for (int64_t c = 0; c < shape.dim; ++c) grads.push_back(normal(random));
    }
    narrow_ids.assign(ids.begin(), ids.end());
  }

  PooledInput Input(EmbeddingTable* table, Combiner combiner) const {
    PooledInput in;
    in.table = table;
    in.combiner = combiner;
    in.batch_size = splits.size() - 1;
    in.num_ids = ids.size();
    if (narrow) {
      in.ids32 = narrow_ids.data();
    } else {
      in.ids64 = ids.data();
    }
    in.row_splits = splits.data();
    return in;
  }
};

struct Rule {
  std::string name;
  std::vector<float> hyper;
  std::vector<SlotSpec> slots;
};
const Rule& Adagrad() {
  static const Rule* const rule =
      new Rule{"Adagrad", {0.5f}, {{"Adagrad", 0.1f}}};
  return *rule;
}
const Rule& Momentum() {
  static const Rule* const rule =
      new Rule{"Momentum", {0.25f, 0.5f, 0.0f}, {{"Momentum", 0.0f}}};
  return *rule;
}

class StepLookupTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (size_t t = 0; t < Shapes().size(); ++t) {
      const int64_t dim = Shapes()[t].dim;
      there_.push_back(MakeTable(t, dim, testing::StorageUnderTest()));
      here_.push_back(MakeTable(t, dim, RowStorage::kDram));
    }
    stream_ = StreamUnderTest::Make();
    on_ = stream_->stream();
  }

  using Plan = std::shared_ptr<const LookupPlan>;

  std::vector<Batch> Batches(int seed) const {
    std::vector<Batch> batches;
    for (size_t t = 0; t < Shapes().size(); ++t) {
      batches.emplace_back(Shapes()[t], seed * 100 + static_cast<int>(t));
    }
    return batches;
  }

  std::vector<PooledInput> Inputs(const std::vector<Batch>& batches,
                                  const std::vector<Table>& tables,
                                  bool on_device) {
    calls_ += on_device;
    std::vector<PooledInput> inputs;
    for (size_t t = 0; t < tables.size(); ++t) {
      inputs.push_back(batches[t].Input(tables[t].get(), Shapes()[t].combiner));
      if (on_device) inputs.back().stream = &on_;
      if (on_device && ids_ == Ids::kThere) {
        MoveThere(t % 2 == 0, &inputs.back());
      }
      // Tables beside each other are of both kinds.
      if (on_device && ids_ == Ids::kPinned && t % 3 != 0) Pin(&inputs.back());
    }
    return inputs;
  }

  // Ids go to memory that a GPU reads by itself.
  void Pin(PooledInput* in) {
    const bool wide = in->ids64 != nullptr;
    const void* const ids = wide ? static_cast<const void*>(in->ids64)
                                 : static_cast<const void*>(in->ids32);
    const size_t bytes = in->num_ids * (wide ? 8 : 4);
    void* block = AllocateTransferMemory(bytes);
    if (block == nullptr) return;  // a stand-in has none
    std::memcpy(block, ids, bytes);
    // In one call all have an owner, in the next none has.
    if (calls_ % 2 == 0) {
      pinned_.push_back(block);
    } else {
      in->ids_owner.reset(block, FreeTransferMemory);
    }
    if (wide) {
      in->ids64 = static_cast<const int64_t*>(block);
    } else {
      in->ids32 = static_cast<const int32_t*>(block);
    }
  }

  // Ids and samples go to the device's memory, late.
  void MoveThere(bool as_indices, PooledInput* in) {
    if (in->ids64 != nullptr) {
      in->ids64 = Put(in->ids64, in->num_ids);
    } else {
      in->ids32 = Put(in->ids32, in->num_ids);
    }
    if (as_indices) {
      std::vector<int64_t> indices;
      for (int64_t s = 0; s < in->batch_size; ++s) {
        for (int64_t i = in->row_splits[s]; i < in->row_splits[s + 1]; ++i) {
          indices.push_back(s);
          indices.push_back(i - in->row_splits[s]);
        }
      }
      in->row_splits = nullptr;
      in->coo_indices = Put(indices.data(), indices.size());
    } else {
      in->row_splits = Put(in->row_splits, in->batch_size + 1);
    }
    in->on_device = true;
  }

  // Whether a step takes as many ids as the tests have.
  bool TakesIdsThere() {
    const std::vector<Batch> batches = Batches(99);
    std::vector<PooledInput> inputs = Inputs(batches, there_, true);
    std::vector<float*> outputs;
    for (size_t t = 0; t < inputs.size(); ++t) {
      MoveThere(false, &inputs[t]);
      outputs.push_back(stream_->Allocate(batches[t].grads.size()));
    }
    Plan plan;
    const Status status = PooledForward(inputs, there_, outputs, &pool_, &plan);
    stream_->Wait();
    return status.ok();
  }

  template <typename T>
  const T* Put(const T* from, int64_t n) {
    sent_.emplace_back((n * sizeof(T) + sizeof(float) - 1) / sizeof(float));
    std::memcpy(sent_.back().data(), from, n * sizeof(T));
    float* const there = stream_->Allocate(sent_.back().size());
    stream_->Fill(sent_.back(), there);
    return reinterpret_cast<const T*>(there);
  }

  void LookUpThere(const std::vector<Batch>& batches, Plan* plan,
                   std::vector<float*>* outputs) {
    outputs->clear();
    for (const Batch& batch : batches) {
      const int64_t n = batch.grads.size();
      outputs->push_back(stream_->Allocate(n));
      // What the framework did with the memory before.
      stream_->Fill(std::vector<float>(n, 77.0f), outputs->back());
    }
    stream_->Wait();
    ASSERT_OK(PooledForward(Inputs(batches, there_, true), there_, *outputs,
                            &pool_, plan));
  }

  void LookUpHere(const std::vector<Batch>& batches, Plan* plan,
                  std::vector<std::vector<float>>* outputs) {
    std::vector<float*> pointers;
    outputs->clear();
    for (const Batch& batch : batches) {
      outputs->emplace_back(batch.grads.size());
    }
    for (auto& output : *outputs) pointers.push_back(output.data());
    ASSERT_OK(PooledForward(Inputs(batches, here_, false), here_, pointers,
                            &pool_, plan));
  }

  void ExpectSameOutputs(const std::vector<std::vector<float>>& here,
                         const std::vector<float*>& there) {
    for (size_t t = 0; t < here.size(); ++t) {
      EXPECT_EQ(here[t], stream_->Read(there[t], here[t].size())) << t;
    }
  }

  // Of tables [begin, end).
  Status Update(const Rule& rule, const std::vector<Batch>& batches,
                const std::vector<Table>& tables, const LookupPlan& plan,
                bool on_device, int begin, int end) {
    std::vector<UpdateInput> updates;
    std::vector<std::vector<SlotSpec>> slots;
    for (int t = begin; t < end; ++t) {
      UpdateInput update;
      update.table = tables[t].get();
      update.plan = &plan;
      update.plan_table = t;
      update.pooled_grads = batches[t].grads.data();
      if (on_device) {
        float* const grads = stream_->Allocate(batches[t].grads.size());
        stream_->Fill(batches[t].grads, grads);
        update.pooled_grads = grads;
        update.stream = &on_;
      }
      updates.push_back(update);
      slots.push_back(rule.slots);
    }
    return ApplyRule(rule.name, rule.hyper, updates, slots, 0, &pool_);
  }

  void Train(const Rule& rule, int seed) {
    const std::vector<Batch> batches = Batches(seed);
    Plan plan_here, plan_there;
    std::vector<std::vector<float>> out_here;
    std::vector<float*> out_there;
    LookUpHere(batches, &plan_here, &out_here);
    LookUpThere(batches, &plan_there, &out_there);
    ExpectSameOutputs(out_here, out_there);
    const int n = static_cast<int>(batches.size());
    ASSERT_OK(Update(rule, batches, here_, *plan_here, false, 0, n));
    ASSERT_OK(Update(rule, batches, there_, *plan_there, true, 0, n));
    stream_->Wait();  // the gradients are read until then
  }

  void ExpectSameTables(const std::vector<std::string>& slots) {
    for (size_t t = 0; t < here_.size(); ++t) {
      TableSnapshot a, b;
      ASSERT_OK(here_[t]->Export(slots, &a));
      ASSERT_OK(there_[t]->Export(slots, &b));
      ASSERT_GT(a.keys.size(), 0u);
      EXPECT_EQ(a.keys, b.keys) << t;
      EXPECT_EQ(a.values, b.values) << t;
      EXPECT_EQ(a.slots, b.slots) << t;
    }
  }

  std::vector<Table> there_, here_;
  testing::ThreadPool pool_{3};
  enum class Ids { kHere, kPinned, kThere };
  Ids ids_ = Ids::kHere;
  std::vector<void*> pinned_;
  int calls_ = 0;
  std::list<std::vector<float>> sent_;  // which the stream may still read
  std::unique_ptr<StreamUnderTest> stream_;
  DeviceStream on_;

  ~StepLookupTest() override {
    for (void* block : pinned_) FreeTransferMemory(block);
  }
};

// The same with ids in CPU memory, pinned or not, and in the device's, where
// the device knows all keys, and where it had no memory for one.
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
    // The second half twice: by Momentum, and again by Adagrad, whose slot is
    // then not the first column.
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

// Ids are on their way for longer than the processor needs for the rest.
TEST_P(StepIdsTest, ManyIdsAreOnTheirWayWhenTheCallReturns) {
  for (int step = 0; step < 2; ++step) {
    std::vector<Batch> batches = Batches(step);
    const Shape many{1, Combiner::kSum, 1500000, 0, false};
    batches[7] = Batch(many, 5);
    Plan plan_here, plan_there;
    std::vector<std::vector<float>> out_here;
    std::vector<float*> out_there;
    LookUpHere(batches, &plan_here, &out_here);
    LookUpThere(batches, &plan_there, &out_there);
    ExpectSameOutputs(out_here, out_there);
    const int n = static_cast<int>(batches.size());
    ASSERT_OK(Update(Adagrad(), batches, here_, *plan_here, false, 0, n));
    ASSERT_OK(Update(Adagrad(), batches, there_, *plan_there, true, 0, n));
    stream_->Wait();
  }
  ExpectSameTables({"Adagrad"});
}

// As of features that come from one ragged tensor.
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
    // One between them has as many ids and samples, and others: the lengths of
    // the samples in the other order.
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
    const int n = static_cast<int>(batches.size());
    ASSERT_OK(Update(Adagrad(), batches, here_, *plan_here, false, 0, n));
    ASSERT_OK(Update(Adagrad(), batches, there_, *plan_there, true, 0, n));
    stream_->Wait();
  }
  ExpectSameTables({"Adagrad"});
}

// Which way was taken is counted.
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
  // No step takes a table with a rule that it has no kernels for, or whose keys
  // are wanted here.
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

// What clipped gradients need: distinct keys and their sums.
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
  // And the update by samples' gradients still does the same.
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
      const int64_t erased = here_[t]->Erase(gone);
      EXPECT_EQ(erased, there_[t]->Erase(gone));
    }
    ASSERT_OK(Update(Adagrad(), batches, here_, *plan_here, false, 0, n));
    ASSERT_OK(Update(Adagrad(), batches, there_, *plan_there, true, 0, n));
    stream_->Wait();
  }
  ExpectSameTables({"Adagrad"});
}

// The work goes on after the calls: what comes next must come after it.
TEST_F(StepLookupTest, CallsThatFollowComeAfterWhatIsUnderWay) {
  Train(Adagrad(), 0);
  for (int round = 0; round < 3; ++round) {
    const std::vector<Batch> batches = Batches(20 + round);
    Plan plan_here, plan_there;
    std::vector<std::vector<float>> out_here;
    std::vector<float*> out_there;
    LookUpHere(batches, &plan_here, &out_here);
    LookUpThere(batches, &plan_there, &out_there);
    const int n = static_cast<int>(batches.size());
    ASSERT_OK(Update(Adagrad(), batches, here_, *plan_here, false, 0, n));
    ASSERT_OK(Update(Adagrad(), batches, there_, *plan_there, true, 0, n));
    plan_there.reset();
    // At once: rows are read, written and forgotten, slots are added.
    for (int t = 0; t < n; ++t) {
      const int64_t dim = Shapes()[t].dim;
      const std::vector<int64_t> keys(batches[t].ids.begin(),
                                      batches[t].ids.begin() + 30);
      std::vector<float> a(keys.size() * dim), b(keys.size() * dim);
      ASSERT_OK(here_[t]->Gather(keys, a.data(), &pool_));
      ASSERT_OK(there_[t]->Gather(keys, b.data(), &pool_));
      EXPECT_EQ(a, b) << t;
      const std::vector<int64_t> gone(batches[t].ids.begin() + 30,
                                      batches[t].ids.begin() + 40);
      const int64_t erased = here_[t]->Erase(gone);
      EXPECT_EQ(erased, there_[t]->Erase(gone));
    }
    if (round == 1) {
      for (int t = 0; t < n; ++t) {
        const std::vector<SlotSpec> slots{{"Adagrad", 0.1f}, {"More", 3.0f}};
        ASSERT_OK(here_[t]->EnsureSlots(slots, nullptr));
        ASSERT_OK(there_[t]->EnsureSlots(slots, nullptr));
      }
    }
    ExpectSameTables({"Adagrad"});
  }
}

TEST_F(StepLookupTest, CallsMadeAtOnceDoNotMeet) {
  Train(Adagrad(), 0);
  // Lookups of other threads beside updates; rows are as one thread after the
  // other would leave them only where batches share no key, so nothing is
  // compared but what does not change.
  std::vector<std::thread> threads;
  for (int k = 0; k < 3; ++k) {
    threads.emplace_back([this, k] {
      testing::ThreadPool pool(2);
      const auto stream = StreamUnderTest::Make();
      const DeviceStream on = stream->stream();
      for (int step = 0; step < 4; ++step) {
        const std::vector<Batch> batches = Batches(50 + 10 * k + step);
        std::vector<PooledInput> inputs = Inputs(batches, there_, true);
        std::vector<float*> outputs;
        for (size_t t = 0; t < inputs.size(); ++t) {
          inputs[t].stream = &on;
          outputs.push_back(stream->Allocate(batches[t].grads.size()));
        }
        Plan plan;
        ASSERT_OK(PooledForward(inputs, there_, outputs, &pool, &plan));
        std::vector<UpdateInput> updates(inputs.size());
        std::vector<std::vector<SlotSpec>> slots(inputs.size(),
                                                 Adagrad().slots);
        for (size_t t = 0; t < inputs.size(); ++t) {
          updates[t].table = there_[t].get();
          updates[t].plan = plan.get();
          updates[t].plan_table = static_cast<int>(t);
          updates[t].pooled_grads = outputs[t];
          updates[t].stream = &on;
        }
        ASSERT_OK(
            ApplyRule("Adagrad", Adagrad().hyper, updates, slots, 0, &pool));
      }
      stream->Wait();
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Table& table : there_) {
    TableSnapshot all;
    ASSERT_OK(table->Export(std::vector<std::string>{"Adagrad"}, &all));
    for (float value : all.values) ASSERT_TRUE(std::isfinite(value));
    EXPECT_EQ(table->size(), static_cast<int64_t>(all.keys.size()));
  }
}

// The caller then brings them to CPU memory, and hears there what is wrong.
TEST_F(StepLookupTest, SamplesOnTheDeviceThatAreNotInOrderAreNotTaken) {
  if (!TakesIdsThere()) GTEST_SKIP() << "no step takes so few ids here";
  const std::vector<Batch> batches = Batches(3);
  const std::vector<PooledInput> good = Inputs(batches, there_, true);
  std::vector<float*> outputs;
  for (const Batch& batch : batches) {
    outputs.push_back(stream_->Allocate(batch.grads.size()));
  }
  const auto code_with = [&](size_t t, bool as_indices,
                             std::vector<int64_t> rows) {
    std::vector<PooledInput> inputs = good;
    for (PooledInput& in : inputs) MoveThere(false, &in);
    inputs[t].row_splits = inputs[t].coo_indices = nullptr;
    (as_indices ? inputs[t].coo_indices : inputs[t].row_splits) =
        Put(rows.data(), rows.size());
    Plan plan;
    const Status status = PooledForward(inputs, there_, outputs, &pool_, &plan);
    stream_->Wait();
    return status.code();
  };
  const size_t t = 1;  // of several ids a sample
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

TEST_F(StepLookupTest, IdsOnTheDeviceThatNoStepTakesAreSaid) {
  const std::vector<Batch> batches = Batches(3);
  std::vector<PooledInput> inputs = Inputs(batches, there_, true);
  for (PooledInput& in : inputs) MoveThere(false, &in);
  inputs.push_back(inputs[0]);  // a table comes twice
  std::vector<Table> owners = there_;
  owners.push_back(there_[0]);
  std::vector<float*> outputs;
  for (const PooledInput& in : inputs) {
    outputs.push_back(
        stream_->Allocate(in.batch_size * in.table->options().dim));
  }
  Plan plan;
  const Status status = PooledForward(inputs, owners, outputs, &pool_, &plan);
  EXPECT_EQ(StatusCode::kUnimplemented, status.code());
  EXPECT_EQ("no step takes ids on a device, table 'table 0'", status.message());
  inputs[0].stream = nullptr;
  const Status without = PooledForward(inputs, owners, outputs, &pool_, &plan);
  EXPECT_EQ(StatusCode::kInvalidArgument, without.code());
}

TEST_F(StepLookupTest, ATableThatComesTwiceIsNoPartOfAStep) {
  std::vector<Batch> batches = Batches(3);
  Plan plan;
  std::vector<PooledInput> inputs = Inputs(batches, there_, true);
  inputs.push_back(inputs[0]);
  std::vector<float*> outputs;
  for (const PooledInput& in : inputs) {
    outputs.push_back(
        stream_->Allocate(in.batch_size * in.table->options().dim));
  }
  std::vector<Table> owners = there_;
  owners.push_back(there_[0]);
  ASSERT_OK(PooledForward(inputs, owners, outputs, &pool_, &plan));
  const int64_t n = batches[0].grads.size();
  EXPECT_EQ(stream_->Read(outputs[0], n), stream_->Read(outputs.back(), n));
}

}  // namespace
}  // namespace ev
