// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Fixture: nine tables that a GPU takes in one step, the same tables in CPU
// memory, and batches for them.

#ifndef KERNELS_ENGINE_EMBEDDING_LOOKUP_STEP_UNDER_TEST_H_
#define KERNELS_ENGINE_EMBEDDING_LOOKUP_STEP_UNDER_TEST_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <functional>
#include <list>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/engine/base/float_math.h"
#include "kernels/engine/base/parallel.h"
#include "kernels/engine/base/transfer_memory.h"
#include "kernels/engine/embedding/embedding_table.h"
#include "kernels/engine/embedding/lookup/pooled_lookup.h"
#include "kernels/engine/embedding/table_impl.h"
#include "kernels/engine/embedding/update/row_update.h"
#include "kernels/engine/rows/gpu_compute.h"
#include "kernels/engine/testing/storage_under_test.h"
#include "kernels/engine/testing/stream_under_test.h"
#include "kernels/engine/testing/thread_pool.h"

namespace ev {

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

// Covers all groups of lanes, dims that are not multiples of 4, and one id or
// several per sample.
inline const std::vector<Shape>& Shapes() {
  static const std::vector<Shape>* const shapes = new std::vector<Shape>{
      {4, Combiner::kSum, 700, 0, false},   {16, Combiner::kMean, 700, 4, true},
      {6, Combiner::kSqrtN, 300, 3, false}, {32, Combiner::kMean, 700, 0, true},
      {33, Combiner::kSum, 200, 2, false},  {64, Combiner::kSum, 700, 3, false},
      {128, Combiner::kMean, 500, 2, true}, {1, Combiner::kSum, 700, 0, false},
      {160, Combiner::kSum, 90, 5, false},
  };
  return *shapes;
}

inline Table MakeTable(int t, TableOptions options, RowStorage storage) {
  const int64_t dim = options.dim;
  options.name = "table " + std::to_string(t);
  options.storage = storage;
  // Used by HBM_DRAM: 64 rows without slots in the device's memory.
  options.memory_bytes = 64 * options.dim * sizeof(float);
  auto table = std::make_shared<EmbeddingTable>(options);
  std::vector<float> rows(3 * dim);
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = 0.25f * (i % 9) - 1.0f;
  const Status status = table->Initialize(rows, 3);
  EXPECT_TRUE(status.ok()) << status.message();
  return table;
}

// One table's batch, for table seed % 100 and step seed / 100. Half of the ids
// are one key, so that a whole GPU block sums its gradients; most others are of
// few keys; some are new. That key fits into int32 in int32 ids. In int64 ids
// it needs 64 bits from the first step on, from step 2 on, or never.
struct Batch {
  std::vector<int64_t> ids, splits{0};
  std::vector<int32_t> narrow_ids;
  std::vector<float> grads;
  bool narrow;

  Batch(const Shape& shape, int seed) : narrow(shape.narrow) {
    std::mt19937_64 random(seed);
    std::uniform_real_distribution<double> unit;
    std::normal_distribution<float> normal;
    const int kind = seed % 100 % 3;
    const bool is_wide = !narrow && (kind == 0 || (kind == 1 && seed >= 200));
    for (int64_t s = 0; s < shape.samples; ++s) {
      const int n = shape.most_ids == 0
                        ? 1
                        : static_cast<int>(random() % (shape.most_ids + 1));
      for (int i = 0; i < n; ++i) {
        const double u = unit(random);
        int64_t id = static_cast<int64_t>(u * u * u * 2000) * 7919 - 100;
        if (unit(random) < 0.45) id = is_wide ? INT64_MIN : INT32_MIN;
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
inline const Rule& Adagrad() {
  static const Rule* const rule =
      new Rule{"Adagrad", {0.5f}, {{"Adagrad", 0.1f}}};
  return *rule;
}
inline const Rule& Momentum() {
  static const Rule* const rule =
      new Rule{"Momentum", {0.25f, 0.5f, 0.0f}, {{"Momentum", 0.0f}}};
  return *rule;
}

// A thread pool that can keep the work of Later instead of running it.
class KeepingPool : public Parallel {
 public:
  int num_threads() const override { return pool_.num_threads(); }
  void For(int64_t num_tasks,
           const std::function<void(int64_t)>& body) override {
    pool_.For(num_tasks, body);
  }
  void Later(std::function<void()> work) override {
    if (!keeps) return work();
    kept.push_back(std::move(work));
  }

  bool keeps = false;
  std::vector<std::function<void()>> kept;

 private:
  testing::ThreadPool pool_{3};
};

class StepLookupTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (size_t t = 0; t < Shapes().size(); ++t) {
      TableOptions options;
      options.dim = Shapes()[t].dim;
      Choose(static_cast<int>(t), &options);
      device_tables_.push_back(
          MakeTable(t, options, testing::StorageUnderTest()));
      cpu_tables_.push_back(MakeTable(t, options, RowStorage::kDram));
    }
    stream_ = StreamUnderTest::Make();
    on_ = stream_->stream();
  }

  // Sets further options of table t.
  virtual void Choose(int /*t*/, TableOptions* /*options*/) {}

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
      if (on_device && ids_ == Ids::kDevice) {
        MoveToDevice(t % 2 == 0, &inputs.back());
      }
      // Adjacent tables are of both kinds.
      if (on_device && ids_ == Ids::kPinned && t % 3 != 0) Pin(&inputs.back());
    }
    return inputs;
  }

  // Moves ids to memory that a GPU reads directly.
  void Pin(PooledInput* in) {
    const bool wide = in->ids64 != nullptr;
    const void* const ids = wide ? static_cast<const void*>(in->ids64)
                                 : static_cast<const void*>(in->ids32);
    const size_t bytes = in->num_ids * (wide ? 8 : 4);
    void* block = AllocateTransferMemory(bytes);
    if (block == nullptr) return;  // a stand-in has no such memory
    std::memcpy(block, ids, bytes);
    // In one call all ids have an owner, in the next none has.
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

  // Moves ids and samples to the device's memory, late.
  void MoveToDevice(bool as_indices, PooledInput* in) {
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

  template <typename T>
  const T* Put(const T* from, int64_t n) {
    sent_.emplace_back((n * sizeof(T) + sizeof(float) - 1) / sizeof(float));
    std::memcpy(sent_.back().data(), from, n * sizeof(T));
    float* const to = stream_->Allocate(sent_.back().size());
    stream_->Fill(sent_.back(), to);
    return reinterpret_cast<const T*>(to);
  }

  // Outputs of type_ in memory of as many floats, of which narrow ones use the
  // first half.
  std::vector<MutableFloats> Typed(const std::vector<float*>& outputs) const {
    std::vector<MutableFloats> typed;
    for (float* output : outputs) {
      typed.emplace_back(reinterpret_cast<char*>(output), type_);
    }
    return typed;
  }
  // Gradients of type_, in the same way.
  std::vector<float> Rounded(const std::vector<float>& grads) const {
    std::vector<float> rounded = grads;
    uint16_t* const narrow = reinterpret_cast<uint16_t*>(rounded.data());
    for (size_t i = 0; type_ != FloatType::kFloat32 && i < grads.size(); ++i) {
      const uint16_t bits = type_ == FloatType::kFloat16 ? ToFloat16(grads[i])
                                                         : ToBFloat16(grads[i]);
      std::memcpy(narrow + i, &bits, sizeof(bits));
    }
    return rounded;
  }
  ConstFloats Typed(const float* grads) const {
    return ConstFloats(reinterpret_cast<const char*>(grads), type_);
  }

  void LookUpOnDevice(const std::vector<Batch>& batches, Plan* plan,
                      std::vector<float*>* outputs) {
    outputs->clear();
    for (const Batch& batch : batches) {
      const int64_t n = batch.grads.size();
      outputs->push_back(stream_->Allocate(n));
      // A write by the framework, which used the memory before.
      stream_->Fill(std::vector<float>(n, 77.0f), outputs->back());
    }
    stream_->Wait();
    const std::vector<MutableFloats> typed = Typed(*outputs);
    ASSERT_OK(PooledForward(Inputs(batches, device_tables_, true),
                            device_tables_, Span<const MutableFloats>(typed),
                            &pool_, plan));
  }

  void LookUpOnCpu(const std::vector<Batch>& batches, Plan* plan,
                   std::vector<std::vector<float>>* outputs) {
    std::vector<float*> pointers;
    outputs->clear();
    for (const Batch& batch : batches) {
      outputs->emplace_back(batch.grads.size(), 77.0f);
    }
    for (auto& output : *outputs) pointers.push_back(output.data());
    const std::vector<MutableFloats> typed = Typed(pointers);
    ASSERT_OK(PooledForward(Inputs(batches, cpu_tables_, false), cpu_tables_,
                            Span<const MutableFloats>(typed), &pool_, plan));
  }

  void ExpectSameOutputs(const std::vector<std::vector<float>>& cpu_outputs,
                         const std::vector<float*>& device_outputs) {
    for (size_t t = 0; t < cpu_outputs.size(); ++t) {
      EXPECT_EQ(cpu_outputs[t],
                stream_->Read(device_outputs[t], cpu_outputs[t].size()))
          << t;
    }
  }

  // Updates tables [begin, end).
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
      sent_.push_back(Rounded(batches[t].grads));
      update.pooled_grads = Typed(sent_.back().data());
      if (on_device) {
        float* const grads =
            stream_->Allocate(grads_offset_ + batches[t].grads.size()) +
            grads_offset_;
        stream_->Fill(sent_.back(), grads);
        update.pooled_grads = Typed(grads);
        update.stream = &on_;
      }
      updates.push_back(update);
      slots.push_back(rule.slots);
    }
    return ApplyRule(rule.name, rule.hyper, updates, slots, step_, &pool_);
  }

  // Looks up in both memories, and expects the same outputs.
  void LookUpBoth(const std::vector<Batch>& batches, Plan* cpu_plan,
                  Plan* device_plan) {
    std::vector<std::vector<float>> cpu_out;
    std::vector<float*> device_out;
    LookUpOnCpu(batches, cpu_plan, &cpu_out);
    LookUpOnDevice(batches, device_plan, &device_out);
    ExpectSameOutputs(cpu_out, device_out);
  }

  // Updates all tables in both memories.
  void UpdateBoth(const Rule& rule, const std::vector<Batch>& batches,
                  const LookupPlan& cpu_plan, const LookupPlan& device_plan) {
    const int n = static_cast<int>(batches.size());
    ASSERT_OK(Update(rule, batches, cpu_tables_, cpu_plan, false, 0, n));
    ASSERT_OK(Update(rule, batches, device_tables_, device_plan, true, 0, n));
    stream_->Wait();  // the gradients are read until then
  }

  void Train(const Rule& rule, const std::vector<Batch>& batches) {
    Plan cpu_plan, device_plan;
    LookUpBoth(batches, &cpu_plan, &device_plan);
    UpdateBoth(rule, batches, *cpu_plan, *device_plan);
  }
  void Train(const Rule& rule, int seed) { Train(rule, Batches(seed)); }

  // Runs one step of the tables on the device, with a stream and threads of its
  // own, so that several can run at once. Gradients are the looked-up outputs.
  void TrainOnDevice(const std::vector<Batch>& batches, int64_t step,
                     StreamUnderTest* stream, Parallel* pool) {
    const DeviceStream on = stream->stream();
    std::vector<PooledInput> inputs = Inputs(batches, device_tables_, true);
    std::vector<float*> outputs;
    for (size_t t = 0; t < inputs.size(); ++t) {
      inputs[t].stream = &on;
      outputs.push_back(stream->Allocate(batches[t].grads.size()));
    }
    Plan plan;
    ASSERT_OK(PooledForward(inputs, device_tables_, outputs, pool, &plan));
    std::vector<UpdateInput> updates(inputs.size());
    const std::vector<std::vector<SlotSpec>> slots(inputs.size(),
                                                   Adagrad().slots);
    for (size_t t = 0; t < inputs.size(); ++t) {
      updates[t].table = device_tables_[t].get();
      updates[t].plan = plan.get();
      updates[t].plan_table = static_cast<int>(t);
      updates[t].pooled_grads = outputs[t];
      updates[t].stream = &on;
    }
    ASSERT_OK(
        ApplyRule("Adagrad", Adagrad().hyper, updates, slots, step, pool));
  }

  void ExpectSameTables(const std::vector<std::string>& slots) {
    for (size_t t = 0; t < cpu_tables_.size(); ++t) {
      TableSnapshot a, b;
      ASSERT_OK(cpu_tables_[t]->Export(slots, &a));
      ASSERT_OK(device_tables_[t]->Export(slots, &b));
      ASSERT_GT(a.keys.size(), 0u);
      EXPECT_EQ(a.keys, b.keys) << t;
      EXPECT_EQ(a.values, b.values) << t;
      EXPECT_EQ(a.slots, b.slots) << t;
    }
  }

  std::vector<Table> device_tables_, cpu_tables_;
  KeepingPool pool_;
  enum class Ids { kCpu, kPinned, kDevice };
  Ids ids_ = Ids::kCpu;
  std::vector<void*> pinned_;
  std::atomic<int> calls_{0};
  int64_t step_ = 0;                      // version of updates
  int grads_offset_ = 0;                  // in floats, from an aligned address
  FloatType type_ = FloatType::kFloat32;  // of outputs and gradients
  std::list<std::vector<float>> sent_;    // the stream may still read it
  std::unique_ptr<StreamUnderTest> stream_;
  DeviceStream on_;

  ~StepLookupTest() override {
    for (void* block : pinned_) FreeTransferMemory(block);
  }
};

}  // namespace ev

#endif  // KERNELS_ENGINE_EMBEDDING_LOOKUP_STEP_UNDER_TEST_H_
