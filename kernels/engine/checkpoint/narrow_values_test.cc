// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Tests tables whose rows keep values of float16 or bfloat16: lookups, updates,
// the bits of stochastic rounding, checkpoints.

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/engine/base/float_math.h"
#include "kernels/engine/checkpoint/restore_table.h"
#include "kernels/engine/checkpoint/save_table.h"
#include "kernels/engine/embedding/lookup/pooled_lookup.h"
#include "kernels/engine/embedding/lookup/row_lookup.h"
#include "kernels/engine/embedding/update/row_update.h"
#include "kernels/engine/testing/memory_checkpoint.h"
#include "kernels/engine/testing/storage_under_test.h"
#include "kernels/engine/testing/thread_pool.h"

namespace ev {
namespace {

#define ASSERT_OK(expression)                             \
  do {                                                    \
    const Status ev_status_ = (expression);               \
    ASSERT_TRUE(ev_status_.ok()) << ev_status_.message(); \
  } while (0)

using Ints = std::vector<int64_t>;
using Floats = std::vector<float>;
using testing::MemoryCheckpoint;

const std::vector<SlotSpec> kAdagradSlots = {{"Adagrad", 0.1f}};

float Rounded(FloatType type, float x) {
  return type == FloatType::kFloat32   ? x
         : type == FloatType::kFloat16 ? FromFloat16(ToFloat16(x))
                                       : FromBFloat16(ToBFloat16(x));
}

Floats RoundedAll(FloatType type, Floats x) {
  for (float& one : x) one = Rounded(type, one);
  return x;
}

class NarrowValuesTest : public ::testing::TestWithParam<FloatType> {
 protected:
  NarrowValuesTest() : pool_(8) {}

  static FloatType type() { return GetParam(); }

  TableOptions Options(int64_t dim, const std::string& name = "user") const {
    TableOptions options;
    options.name = name;
    options.dim = dim;
    options.value_type = type();
    testing::PutUnderTest(&options);
    return options;
  }

  std::shared_ptr<EmbeddingTable> Make(const TableOptions& options) const {
    auto table = std::make_shared<EmbeddingTable>(options);
    Floats rows(3 * options.dim);
    for (size_t i = 0; i < rows.size(); ++i) {
      rows[i] = 0.1f + 0.013f * static_cast<float>(i);
    }
    EXPECT_TRUE(table->Initialize(rows, 3).ok());
    return table;
  }

  // One update of distinct keys. The gradients depend on step and key alone.
  void Train(EmbeddingTable* table, const Ints& keys, int step,
             Parallel* parallel, const std::string& rule = "Adagrad",
             const Floats& hyper = {0.05f},
             const std::vector<SlotSpec>& slots = kAdagradSlots) {
    const int64_t dim = table->options().dim;
    Floats grads;
    for (const int64_t key : keys) {
      std::mt19937 random(static_cast<unsigned>(key * 31 + step));
      for (int64_t j = 0; j < dim; ++j) {
        grads.push_back(static_cast<float>(random() % 2001) / 1000.0f - 1.0f);
      }
    }
    UpdateInput update;
    update.table = table;
    update.keys = keys;
    update.grads = grads.data();
    ASSERT_OK(ApplyRule(rule, hyper, std::vector<UpdateInput>{update},
                        std::vector<std::vector<SlotSpec>>{slots}, step,
                        parallel));
  }

  static TableSnapshot Export(const EmbeddingTable& table,
                              const std::vector<std::string>& slots = {
                                  "Adagrad"}) {
    TableSnapshot snapshot;
    EXPECT_TRUE(table.Export(slots, &snapshot).ok());
    return snapshot;
  }

  static Ints Keys(int64_t n) {
    Ints keys;
    for (int64_t k = 0; k < n; ++k) keys.push_back(k * k * 7919 - n);
    return keys;
  }

  testing::ThreadPool pool_;
};

TEST_P(NarrowValuesTest, LookupsAreThoseOfATableWithTheRoundedValues) {
  for (const int64_t dim : {1, 3, 8, 16, 32, 33, 64, 100, 128}) {
    const auto narrow = Make(Options(dim));
    TableOptions wide_options = Options(dim);
    wide_options.value_type = FloatType::kFloat32;
    const auto wide = std::make_shared<EmbeddingTable>(wide_options);
    // The default rows, too, are rounded once.
    Floats defaults = narrow->default_rows();
    EXPECT_EQ(defaults, RoundedAll(type(), defaults));
    ASSERT_OK(wide->Initialize(defaults, 3));
    const Ints keys = Keys(50);
    Floats values(keys.size() * dim);
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = 0.37f * static_cast<float>(i % 101) - 17.0f;
    }
    ASSERT_OK(
        narrow->WriteRows(keys, {}, values.data(), {}, nullptr, 0, &pool_));
    values = RoundedAll(type(), values);
    ASSERT_OK(wide->WriteRows(keys, {}, values.data(), {}, nullptr, 0, &pool_));
    Ints ids;
    std::vector<int64_t> splits = {0};
    Floats weights;
    for (int s = 0; s < 40; ++s) {
      for (int i = 0; i < s % 5; ++i) {
        ids.push_back(keys[(s * 7 + i * 3) % 50] + (s % 9 == 0 ? 1 : 0));
        weights.push_back(0.5f + 0.1f * static_cast<float>(i));
      }
      splits.push_back(static_cast<int64_t>(ids.size()));
    }
    for (const Combiner combiner :
         {Combiner::kSum, Combiner::kMean, Combiner::kSqrtN, Combiner::kMax}) {
      for (const bool weighted : {false, true}) {
        if (weighted && Selects(combiner)) continue;
        std::vector<Floats> found;
        for (const auto& table : {narrow, wide}) {
          PooledInput in;
          in.table = table.get();
          in.combiner = combiner;
          in.batch_size = 40;
          in.num_ids = static_cast<int64_t>(ids.size());
          in.ids64 = ids.data();
          in.row_splits = splits.data();
          if (weighted) in.weights = weights.data();
          found.emplace_back(40 * dim, -1.0f);
          const MutableFloats out(found.back().data());
          std::shared_ptr<const LookupPlan> plan;
          ASSERT_OK(PooledForward(Span<const PooledInput>(&in, 1), {table},
                                  Span<const MutableFloats>(&out, 1), &pool_,
                                  &plan));
        }
        EXPECT_EQ(found[0], found[1]) << dim;
      }
    }
    for (const Ints& some : {keys, Ints(700, keys[3]), ids}) {
      std::vector<Floats> found;
      for (const auto& table : {narrow, wide}) {
        RowsInput in;
        in.table = table.get();
        in.keys = some;
        found.emplace_back(some.size() * dim);
        std::shared_ptr<const LookupPlan> plan;
        ASSERT_OK(LookupRows(
            Span<const RowsInput>(&in, 1), {table},
            [&](int, int64_t begin, int64_t end, const float* const* rows) {
              for (int64_t i = begin; i < end; ++i) {
                std::copy_n(rows[i - begin], dim,
                            found.back().data() + i * dim);
              }
            },
            &pool_, &plan));
      }
      EXPECT_EQ(found[0], found[1]) << dim;
    }
    EXPECT_EQ(Export(*narrow, {}).values, Export(*wide, {}).values);
  }
}

TEST_P(NarrowValuesTest, ARowTakesHalfOfTheBytes) {
  // The row_bytes of other memories count more than rows.
  TableOptions narrow = Options(64);
  narrow.storage = RowStorage::kDram;
  TableOptions wide = narrow;
  wide.value_type = FloatType::kFloat32;
  for (const bool per_row : {false, true}) {
    const std::string slot = per_row ? "a@row" : "Adagrad";
    int64_t bytes[2];
    for (const bool is_wide : {false, true}) {
      const auto table = Make(is_wide ? wide : narrow);
      std::vector<int> columns;
      ASSERT_OK(
          table->EnsureSlots(std::vector<SlotSpec>{{slot, 0.1f}}, &columns));
      const Ints keys = Keys(100000);
      ASSERT_OK(table->WriteRows(keys, {}, Floats(keys.size() * 64).data(), {},
                                 nullptr, 0, &pool_));
      bytes[is_wide] = table->stats().row_bytes;
    }
    EXPECT_LT(bytes[0], bytes[1] * (per_row ? 0.55 : 0.77)) << slot;
  }
}

TEST_P(NarrowValuesTest, NearestRoundingIsThatOfOneUpdate) {
  for (const int64_t dim : {1, 5, 16, 31, 64}) {
    for (const std::string rule : {"Adagrad", "RowWiseAdagrad", "SGD"}) {
      std::vector<SlotSpec> slots;
      Floats hyper = {0.05f};
      if (rule == "Adagrad") slots = kAdagradSlots;
      if (rule == "RowWiseAdagrad") {
        slots = {{"a@row", 0.1f}};
        hyper.push_back(1e-7f);
      }
      hyper.push_back(0.5f);  // a factor of the gradients
      TableOptions options = Options(dim);
      options.rounds_to_nearest = true;
      const auto narrow = Make(options);
      options.value_type = FloatType::kFloat32;
      const auto wide = std::make_shared<EmbeddingTable>(options);
      ASSERT_OK(wide->Initialize(narrow->default_rows(), 3));
      const Ints keys = Keys(600);
      for (const auto& table : {narrow, wide}) {
        Train(table.get(), keys, 3, &pool_, rule, hyper, slots);
      }
      std::vector<std::string> names;
      for (const SlotSpec& slot : slots) names.push_back(slot.name);
      const TableSnapshot found = Export(*narrow, names);
      const TableSnapshot expected = Export(*wide, names);
      EXPECT_EQ(found.values, RoundedAll(type(), expected.values));
      EXPECT_EQ(found.slots, expected.slots);
    }
  }
}

TEST_P(NarrowValuesTest, SmallStepsAreKeptOnAverage) {
  for (const bool nearest : {true, false}) {
    TableOptions options = Options(64);
    options.rounds_to_nearest = nearest;
    const auto table = std::make_shared<EmbeddingTable>(options);
    ASSERT_OK(table->Initialize(Floats(64, 0.1f), 1));
    const Floats grads(64, -1e-5f);
    UpdateInput update;
    update.table = table.get();
    const Ints key = {42};
    update.keys = key;
    update.grads = grads.data();
    for (int step = 0; step < 10000; ++step) {
      ASSERT_OK(ApplyRule("SGD", Floats{1.0f}, std::vector<UpdateInput>{update},
                          std::vector<std::vector<SlotSpec>>{{}}, step,
                          nullptr));
    }
    double mean = 0;
    for (const float value : Export(*table, {}).values) mean += value / 64;
    if (nearest) {
      EXPECT_EQ(mean, Rounded(type(), 0.1f));
    } else {
      EXPECT_NEAR(mean, 0.2, 0.01);
    }
  }
}

TEST_P(NarrowValuesTest, BitsDependOnSeedUpdateAndKeyAlone) {
  const Ints keys = Keys(3000);
  const Ints reversed(keys.rbegin(), keys.rend());
  const auto one = Make(Options(17)), other = Make(Options(17));
  const auto renamed = Make(Options(17, "item"));
  TableOptions of_seed = Options(17);
  of_seed.rounding_seed = 1;
  const auto reseeded = Make(of_seed);
  TableOptions in_memory = Options(17);
  in_memory.storage = RowStorage::kDram;
  const auto dram = Make(in_memory);
  for (int step = 0; step < 5; ++step) {
    Train(one.get(), keys, step, nullptr);
    Train(other.get(), reversed, step, &pool_);
    Train(renamed.get(), keys, step, &pool_);
    Train(reseeded.get(), keys, step, &pool_);
    Train(dram.get(), keys, step, &pool_);
  }
  const Floats values = Export(*one).values;
  EXPECT_EQ(values, Export(*other).values);
  EXPECT_EQ(values, Export(*renamed).values);
  EXPECT_EQ(values, Export(*dram).values);
  const Floats others = Export(*reseeded).values;
  int64_t differ = 0;
  for (size_t i = 0; i < values.size(); ++i) differ += values[i] != others[i];
  EXPECT_GT(differ, static_cast<int64_t>(values.size()) / 10);
}

TEST_P(NarrowValuesTest, TrainingContinuesAfterARestoreWithTheSameBits) {
  const Ints keys = Keys(500);
  const auto whole = Make(Options(8));
  for (int step = 0; step < 4; ++step) Train(whole.get(), keys, step, &pool_);
  MemoryCheckpoint checkpoint;
  SaveOptions saved;
  saved.name = "old";
  saved.slots = kAdagradSlots;
  ASSERT_OK(SaveTable(saved, whole.get(), &checkpoint));
  EXPECT_EQ(checkpoint.Describe("old-values"), "float [500,8]");
  ASSERT_EQ(checkpoint.Describe("old-rounding"), "int64 [2]");
  EXPECT_EQ(checkpoint.Get<int64_t>("old-rounding")[1], 4);
  // The seed is restored too.
  TableOptions of_seed = Options(8);
  of_seed.rounding_seed = 9;
  const auto resumed = Make(of_seed);
  Train(resumed.get(), {1}, 0, &pool_);
  ASSERT_OK(RestoreTable(&checkpoint, "old", kAdagradSlots, {}, resumed.get()));
  for (int step = 4; step < 7; ++step) {
    Train(whole.get(), keys, step, &pool_);
    Train(resumed.get(), keys, step, &pool_);
  }
  EXPECT_EQ(Export(*whole).values, Export(*resumed).values);
  EXPECT_EQ(Export(*whole).slots, Export(*resumed).slots);
  // A table of float32 takes the values as they are, and has no such tensor.
  TableOptions wide = Options(8);
  wide.value_type = FloatType::kFloat32;
  const auto widened = Make(wide);
  ASSERT_OK(RestoreTable(&checkpoint, "old", kAdagradSlots, {}, widened.get()));
  EXPECT_EQ(RoundedAll(type(), Export(*widened).values),
            Export(*widened).values);
  Train(widened.get(), keys, 4, &pool_);
  MemoryCheckpoint of_wide;
  ASSERT_OK(SaveTable(saved, widened.get(), &of_wide));
  EXPECT_EQ(of_wide.tensors().count("old-rounding"), 0u);
  // The other way its values are rounded to nearest, once.
  ASSERT_OK(RestoreTable(&of_wide, "old", kAdagradSlots, {}, resumed.get()));
  EXPECT_EQ(Export(*resumed).values,
            RoundedAll(type(), Export(*widened).values));
}

TEST_P(NarrowValuesTest, ADeltaContinuesTheRandomBits) {
  const Ints keys = Keys(50);
  const auto source = Make(Options(4));
  int64_t cut = 0;
  ASSERT_OK(source->CutChanges(&cut));
  for (int step = 0; step < 3; ++step) Train(source.get(), keys, step, &pool_);
  TableDelta delta;
  ASSERT_OK(
      source->ExportChanges(cut, std::vector<std::string>{"Adagrad"}, &delta));
  ASSERT_EQ(delta.changed.tensors.size(), 2u);
  EXPECT_EQ(delta.changed.tensors[1].shape, Ints{2});
  EXPECT_EQ(delta.changed.tensors[1].bytes.size(), 16u);
}

TEST_P(NarrowValuesTest, OverflowsAreCounted) {
  TableOptions options = Options(3);
  options.rounds_to_nearest = true;
  const auto table = std::make_shared<EmbeddingTable>(options);
  const bool is_float16 = type() == FloatType::kFloat16;
  const float large = is_float16 ? 65504.0f : 3.38e38f;
  const float more = is_float16 ? 100.0f : 2.2e36f;  // finite as float32
  ASSERT_OK(table->Initialize(Floats{large, 1.0f, large}, 1));
  const Floats grads = {0.0f, 0.0f, -more, 0.0f, 0.0f, 0.0f};
  UpdateInput update;
  update.table = table.get();
  const Ints keys = {1, 2};
  update.keys = keys;
  update.grads = grads.data();
  EXPECT_EQ(table->stats().overflows, 0);
  ASSERT_OK(ApplyRule("SGD", Floats{1.0f}, std::vector<UpdateInput>{update},
                      std::vector<std::vector<SlotSpec>>{{}}, 0, nullptr));
  EXPECT_EQ(table->stats().overflows, 1);
  const TableSnapshot rows = Export(*table, {});
  ASSERT_EQ(rows.keys, (Ints{1, 2}));
  EXPECT_EQ(rows.values[2], std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isfinite(rows.values[0]));
  // It stays infinite, and is not counted again.
  ASSERT_OK(ApplyRule("SGD", Floats{1.0f}, std::vector<UpdateInput>{update},
                      std::vector<std::vector<SlotSpec>>{{}}, 1, nullptr));
  EXPECT_EQ(table->stats().overflows, 1);
}

// An optimizer with its slots.
struct Optimizer {
  const char* rule;
  Floats hyper;
  std::vector<SlotSpec> slots;
};

// A batch of samples with several ids, or none, and their gradients.
struct Batch {
  Ints ids, splits = {0};
  Floats grads;
};

// Looks up a batch, and updates by its gradients. Returns the pooled rows.
Floats PooledStep(const std::shared_ptr<EmbeddingTable>& table,
                  const Optimizer& optimizer, const Batch& batch, int step,
                  Parallel* parallel) {
  PooledInput in;
  in.table = table.get();
  in.combiner = Combiner::kMean;
  in.batch_size = static_cast<int64_t>(batch.splits.size()) - 1;
  in.num_ids = static_cast<int64_t>(batch.ids.size());
  in.ids64 = batch.ids.data();
  in.row_splits = batch.splits.data();
  Floats out(batch.grads.size(), -1.0f);
  const MutableFloats outs(out.data());
  std::shared_ptr<const LookupPlan> plan;
  Status status =
      PooledForward(Span<const PooledInput>(&in, 1), {table},
                    Span<const MutableFloats>(&outs, 1), parallel, &plan);
  EXPECT_TRUE(status.ok()) << status.message();
  if (!status.ok()) return out;
  UpdateInput update;
  update.table = table.get();
  update.plan = plan.get();
  update.plan_table = 0;
  update.pooled_grads = batch.grads.data();
  status = ApplyRule(
      optimizer.rule, optimizer.hyper, std::vector<UpdateInput>{update},
      std::vector<std::vector<SlotSpec>>{optimizer.slots}, step, parallel);
  EXPECT_TRUE(status.ok()) << status.message();
  return out;
}

// One key occurs in every other sample, some once, the others several times.
Batch MixedBatch(int64_t dim, int step) {
  std::mt19937_64 random(step);
  Batch batch;
  for (int64_t s = 0; s < 900; ++s) {
    for (int64_t i = 0; i < s % 4; ++i) {
      const int64_t many = static_cast<int64_t>(random() % 40);
      const int64_t once = 1000 + static_cast<int64_t>(random() % 100000);
      batch.ids.push_back(i == 0 && s % 2 == 0 ? -7 : i == 2 ? many : once);
    }
    batch.splits.push_back(static_cast<int64_t>(batch.ids.size()));
    for (int64_t c = 0; c < dim; ++c) {
      batch.grads.push_back(static_cast<float>(random() % 2001) / 1000.0f -
                            1.0f);
    }
  }
  return batch;
}

TEST_P(NarrowValuesTest, StepsHaveTheBitsOfCpuMemory) {
  const Optimizer kOptimizers[] = {
      {"Adagrad", {0.05f}, kAdagradSlots},
      {"RowWiseAdagrad", {0.05f, 1e-7f}, {{"a@row", 0.1f}}},
      {"SGD", {0.05f}, {}},
      {"Momentum", {0.05f, 0.9f, 0.0f}, {{"Momentum", 0.0f}}},
      {"Adam",
       {0.125f, 0.5f, 0.75f, 0.001f, 0.5f, 0.75f},
       {{"m", 0.0f}, {"v", 0.0f}}},
  };
  for (const int64_t dim : {3, 8, 32, 64, 132}) {
    for (const Optimizer& optimizer : kOptimizers) {
      for (const bool nearest : {false, true}) {
        TableOptions options = Options(dim);
        options.rounds_to_nearest = nearest;
        const auto tested = Make(options);
        options.storage = RowStorage::kDram;
        const auto dram = Make(options);
        for (int step = 0; step < 4; ++step) {
          const Batch batch = MixedBatch(dim, step);
          EXPECT_EQ(PooledStep(tested, optimizer, batch, step, &pool_),
                    PooledStep(dram, optimizer, batch, step, nullptr));
        }
        std::vector<std::string> names;
        for (const SlotSpec& slot : optimizer.slots) names.push_back(slot.name);
        const TableSnapshot rows = Export(*tested, names);
        const TableSnapshot of_dram = Export(*dram, names);
        ASSERT_GT(rows.keys.size(), 64u);
        EXPECT_EQ(rows.keys, of_dram.keys);
        EXPECT_EQ(rows.values, of_dram.values)
            << optimizer.rule << dim << nearest;
        EXPECT_EQ(rows.slots, of_dram.slots)
            << optimizer.rule << dim << nearest;
      }
    }
  }
}

// The new slot may fit into padding.
TEST_P(NarrowValuesTest, SlotsAreAddedToExistingRows) {
  const std::vector<SlotSpec> slots = {{"a@row", 0.1f}};
  const Ints keys = Keys(300);
  for (const int64_t dim : {8, 64}) {
    std::vector<TableSnapshot> found;
    for (const bool is_dram : {false, true}) {
      TableOptions options = Options(dim);
      if (is_dram) options.storage = RowStorage::kDram;
      const auto table = Make(options);
      Train(table.get(), keys, 0, &pool_, "SGD", {0.05f}, {});
      Train(table.get(), keys, 1, &pool_, "RowWiseAdagrad", {0.05f, 1e-7f},
            slots);
      found.push_back(Export(*table, {"a@row"}));
    }
    EXPECT_EQ(found[0].values, found[1].values) << dim;
    EXPECT_EQ(found[0].slots, found[1].slots) << dim;
  }
}

// The last table has the key in many samples.
TEST_P(NarrowValuesTest, StepsCountOverflows) {
  const float large = type() == FloatType::kFloat16 ? 65504.0f : 3.38e38f;
  const float more = type() == FloatType::kFloat16 ? 100.0f : 2.2e36f;
  for (const int64_t dim : {3, 8, 64}) {
    for (const int64_t batch : {1, 20, 600}) {
      TableOptions options = Options(dim);
      options.rounds_to_nearest = true;
      const auto table = std::make_shared<EmbeddingTable>(options);
      ASSERT_OK(table->Initialize(Floats(dim, large), 1));
      Batch of_one_key;
      of_one_key.ids.assign(batch, 5);
      for (int64_t s = 0; s < batch; ++s) of_one_key.splits.push_back(s + 1);
      of_one_key.grads.resize(batch * dim);
      of_one_key.grads[dim - 1] = -more;
      EXPECT_EQ(table->stats().overflows, 0);
      PooledStep(table, {"SGD", {1.0f}, {}}, of_one_key, 0, &pool_);
      EXPECT_EQ(table->stats().overflows, 1) << dim << " " << batch;
      const Floats values = Export(*table, {}).values;
      EXPECT_EQ(values[dim - 1], std::numeric_limits<float>::infinity());
      EXPECT_EQ(values[0], Rounded(type(), large));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, NarrowValuesTest,
                         ::testing::Values(FloatType::kFloat16,
                                           FloatType::kBFloat16));

}  // namespace
}  // namespace ev
