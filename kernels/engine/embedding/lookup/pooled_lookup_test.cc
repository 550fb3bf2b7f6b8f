// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/embedding/lookup/pooled_lookup.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/engine/testing/storage_under_test.h"
#include "kernels/engine/testing/thread_pool.h"
#include "kernels/engine/testing/unique_keys.h"

namespace ev {
namespace {

#define ASSERT_OK(expression)                             \
  do {                                                    \
    const Status ev_status_ = (expression);               \
    ASSERT_TRUE(ev_status_.ok()) << ev_status_.message(); \
  } while (0)

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int64_t kLongBatch = 700;  // of up to 12 ids: still several tasks
constexpr int64_t kLongDim = 1;
#else
constexpr int64_t kLongDim = 4;
constexpr int64_t kLongBatch = 4000;
#endif

using Tables = std::vector<std::shared_ptr<EmbeddingTable>>;

std::shared_ptr<EmbeddingTable> MakeTable(const std::string& name, int64_t dim,
                                          int64_t default_rows = 5) {
  TableOptions options;
  options.name = name;
  options.dim = dim;
  testing::PutUnderTest(&options);
  auto table = std::make_shared<EmbeddingTable>(options);
  std::vector<float> rows(default_rows * dim);
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = 0.125f * (i % 37);
  EXPECT_TRUE(table->Initialize(rows, default_rows).ok());
  return table;
}

// Half of the keys below 'keys' get rows of their own.
void Fill(EmbeddingTable* table, int64_t keys) {
  const int64_t dim = table->options().dim;
  std::vector<int64_t> k;
  std::vector<float> v;
  std::mt19937 random(static_cast<unsigned>(dim));
  std::normal_distribution<float> normal;
  for (int64_t key = 0; key < keys; key += 2) {
    k.push_back(key);
    for (int64_t j = 0; j < dim; ++j) v.push_back(normal(random));
  }
  ASSERT_OK(table->Import(k, v.data(), {}, {}, {}, {}, 0, 1));
}

// One table's ids of one batch.
struct Features {
  std::vector<int64_t> ids, splits;
  std::vector<int32_t> narrow;
  std::vector<int64_t> indices;
  std::vector<float> weights;
  int64_t batch_size = 0;

  // max_ids 1: exactly one id per sample.
  static Features Random(int64_t batch_size, int max_ids, int64_t keys,
                         unsigned seed) {
    Features f;
    f.batch_size = batch_size;
    f.splits.push_back(0);
    std::mt19937 random(seed);
    for (int64_t s = 0; s < batch_size; ++s) {
      const int n = max_ids == 1 ? 1 : random() % (max_ids + 1);
      for (int i = 0; i < n; ++i) {
        f.ids.push_back(random() % keys);
        f.narrow.push_back(static_cast<int32_t>(f.ids.back()));
        f.indices.push_back(s);
        f.indices.push_back(i);
        f.weights.push_back(0.5f + (random() % 4));
      }
      f.splits.push_back(f.ids.size());
    }
    return f;
  }

  PooledInput Input(EmbeddingTable* table, Combiner combiner) const {
    PooledInput in;
    in.table = table;
    in.combiner = combiner;
    in.batch_size = batch_size;
    in.num_ids = ids.size();
    in.ids64 = ids.data();
    in.row_splits = splits.data();
    return in;
  }
};

// Outputs of one forward, and the gradients of its backward.
struct Step {
  std::shared_ptr<const LookupPlan> plan;
  std::vector<std::vector<float>> outputs, unique_grads, weight_grads;
  Status status;
};

// Gradient of output element i.
float GradAt(size_t i) { return std::sin(0.1f * static_cast<float>(i % 1000)); }

Step RunStep(const std::vector<PooledInput>& inputs, const Tables& tables,
             Parallel* parallel) {
  Step step;
  std::vector<float*> outs;
  for (const PooledInput& in : inputs) {
    const int64_t size = in.batch_size * in.table->options().dim;
    step.outputs.emplace_back(std::max<int64_t>(size, 0), -77.0f);
  }
  for (auto& output : step.outputs) outs.push_back(output.data());
  step.status = PooledForward(inputs, tables, outs, parallel, &step.plan);
  if (!step.status.ok()) return step;
  std::vector<std::vector<float>> grads;
  std::vector<const float*> grad_pointers;
  std::vector<float*> unique_pointers;
  for (size_t t = 0; t < inputs.size(); ++t) {
    grads.emplace_back(step.outputs[t].size());
    for (size_t i = 0; i < grads[t].size(); ++i) grads[t][i] = GradAt(i);
    step.unique_grads.emplace_back(testing::UniqueKeys(*step.plan, t).size() *
                                   inputs[t].table->options().dim);
  }
  for (size_t t = 0; t < inputs.size(); ++t) {
    grad_pointers.push_back(grads[t].data());
    unique_pointers.push_back(step.unique_grads[t].data());
  }
  step.status =
      PooledBackward(*step.plan, grad_pointers, unique_pointers, parallel);
  for (size_t t = 0; t < inputs.size(); ++t) {
    if (inputs[t].weights == nullptr) continue;
    step.weight_grads.emplace_back(inputs[t].num_ids);
    step.status = PooledWeightGrad(*step.plan, static_cast<int>(t),
                                   grads[t].data(), step.outputs[t].data(),
                                   step.weight_grads.back().data(), parallel);
  }
  return step;
}

// Checks the output of sample s of a lookup by kMax, and adds the gradient that
// the rows of its ids get.
void ExpectMax(const Features& f, int64_t s, int64_t dim,
               const std::vector<float>& rows,
               const std::unordered_map<int64_t, size_t>& place,
               const float* out, std::vector<float>* expected_grads) {
  const int64_t begin = f.splits[s], end = f.splits[s + 1];
  for (int64_t j = 0; j < dim; ++j) {
    float largest = begin == end ? 0.0f : rows[begin * dim + j];
    for (int64_t i = begin; i < end; ++i) {
      largest = std::max(largest, rows[i * dim + j]);
    }
    ASSERT_EQ(largest, out[j]) << "sample " << s << ", element " << j;
    float ties = 0.0f;
    for (int64_t i = begin; i < end; ++i) {
      ties += rows[i * dim + j] == largest;
    }
    for (int64_t i = begin; i < end; ++i) {
      if (rows[i * dim + j] != largest) continue;
      (*expected_grads)[place.at(f.ids[i]) * dim + j] +=
          GradAt(s * dim + j) / ties;
    }
  }
}

// Compares the lookup of one table with the definition, computed with the same
// order of float operations, so that bits must be equal.
void ExpectStep(const PooledInput& in, const Features& f,
                const std::vector<float>& out,
                const std::vector<float>& unique_grads, const LookupPlan& plan,
                int t) {
  const int64_t dim = in.table->options().dim;
  std::unordered_map<int64_t, size_t> first;
  std::vector<int64_t> unique;
  for (int64_t id : f.ids) {
    if (first.emplace(id, unique.size()).second) unique.push_back(id);
  }
  Span<const int32_t> got_counts;
  const auto keys = testing::UniqueKeys(plan, t, &got_counts);
  if (f.ids.size() > 100000) {  // in shards: another order of the same keys
    ASSERT_EQ(unique.size(), keys.size());
    unique.assign(keys.begin(), keys.end());
    for (size_t u = 0; u < unique.size(); ++u) {
      ASSERT_EQ(1u, first.count(unique[u]));
      first[unique[u]] = u;
    }
  }
  ASSERT_EQ(unique, std::vector<int64_t>(keys.begin(), keys.end()));
  std::vector<int32_t> counts(unique.size());
  for (int64_t id : f.ids) ++counts[first[id]];
  ASSERT_EQ(counts, std::vector<int32_t>(got_counts.begin(), got_counts.end()));
  EXPECT_EQ(in.batch_size, plan.batch_size(t));
  EXPECT_EQ(in.num_ids, plan.num_ids(t));
  std::vector<float> rows(f.ids.size() * dim);
  ASSERT_OK(in.table->Gather(f.ids, rows.data(), nullptr));
  std::vector<float> expected_grads(unique.size() * dim);
  std::vector<bool> seen(unique.size());
  for (int64_t s = 0; s < f.batch_size; ++s) {
    float divisor = 1.0f, sum = 0.0f, squares = 0.0f;
    for (int64_t i = f.splits[s]; i < f.splits[s + 1]; ++i) {
      const float w = in.weights == nullptr ? 1.0f : in.weights[i];
      sum += w;
      squares += w * w;
    }
    if (f.splits[s] != f.splits[s + 1]) {
      if (in.combiner == Combiner::kMean) divisor = sum;
      if (in.combiner == Combiner::kSqrtN) divisor = std::sqrt(squares);
    }
    if (in.combiner == Combiner::kMax) {
      ASSERT_NO_FATAL_FAILURE(
          ExpectMax(f, s, dim, rows, first, &out[s * dim], &expected_grads));
      continue;
    }
    for (int64_t j = 0; j < dim; ++j) {
      float pooled = 0.0f;
      for (int64_t i = f.splits[s]; i < f.splits[s + 1]; ++i) {
        const float w = in.weights == nullptr ? 1.0f : in.weights[i];
        const float e = rows[i * dim + j] * w;
        pooled = i == f.splits[s] ? e : pooled + e;
      }
      ASSERT_EQ(pooled / divisor, out[s * dim + j])
          << "sample " << s << ", element " << j;
    }
    for (int64_t i = f.splits[s]; i < f.splits[s + 1]; ++i) {
      const float w = in.weights == nullptr ? 1.0f : in.weights[i];
      const float scale = w * (1.0f / divisor);
      const size_t u = first[f.ids[i]];
      for (int64_t j = 0; j < dim; ++j) {
        float& sum_of_row = expected_grads[u * dim + j];
        const float g = GradAt(s * dim + j) * scale;
        sum_of_row = seen[u] ? sum_of_row + g : g;
      }
      seen[u] = true;
    }
  }
  ASSERT_EQ(expected_grads, unique_grads);
}

class PooledLookupTest : public ::testing::TestWithParam<Combiner> {
 protected:
  testing::ThreadPool pool_{2};
};

TEST_P(PooledLookupTest, FollowsTheDefinition) {
  // Batches below and far above the size of one task, of one id or several per
  // sample.
  for (int64_t dim : {3, 8, 16, 64, 65}) {
    for (int max_ids : {1, 12}) {
      for (int64_t batch_size : {int64_t{1}, int64_t{100}, kLongBatch}) {
        auto table = MakeTable("user", dim);
        Fill(table.get(), 3000);
        const Features f = Features::Random(batch_size, max_ids, 3000, 11);
        const PooledInput in = f.Input(table.get(), GetParam());
        const Step step = RunStep({in}, {table}, &pool_);
        ASSERT_OK(step.status);
        ExpectStep(in, f, step.outputs[0], step.unique_grads[0], *step.plan, 0);
      }
    }
  }
}

TEST_P(PooledLookupTest, BatchesThatAreDeduplicatedInShards) {
  auto table = MakeTable("user", kLongDim);
  Fill(table.get(), 90000);
  for (bool weighted : {false, true}) {
    if (weighted && Selects(GetParam())) continue;
    const Features f = Features::Random(80000, 5, 90000, 14);
    ASSERT_GT(f.ids.size(), 160000u);
    PooledInput in = f.Input(table.get(), GetParam());
    if (weighted) {
      in.weights = f.weights.data();
    } else {
      in.ids64 = nullptr;
      in.ids32 = f.narrow.data();
    }
    const Step step = RunStep({in}, {table}, &pool_);
    ASSERT_OK(step.status);
    ExpectStep(in, f, step.outputs[0], step.unique_grads[0], *step.plan, 0);
    testing::ThreadPool pool(8);
    const Step again = RunStep({in}, {table}, &pool);
    EXPECT_EQ(step.outputs, again.outputs);
    EXPECT_EQ(step.unique_grads, again.unique_grads);
    EXPECT_EQ(step.weight_grads, again.weight_grads);
  }
}

TEST_P(PooledLookupTest, ALongBatchOfDistinctIdsKeepsItsOrder) {
  auto table = MakeTable("user", kLongDim);
  Features f;
  f.splits.push_back(0);
  for (int64_t i = 0; i < 150000; ++i) {
    f.ids.push_back(i * 7919 - 1000);
    if (i % 3 == 2) f.splits.push_back(i + 1);
  }
  f.batch_size = 50000;
  const PooledInput in = f.Input(table.get(), GetParam());
  const Step step = RunStep({in}, {table}, &pool_);
  ASSERT_OK(step.status);
  const Span<const int64_t> keys = testing::UniqueKeys(*step.plan, 0);
  EXPECT_EQ(f.ids, std::vector<int64_t>(keys.begin(), keys.end()));
  ExpectStep(in, f, step.outputs[0], step.unique_grads[0], *step.plan, 0);
}

TEST_P(PooledLookupTest, Weights) {
  if (Selects(GetParam())) {
    auto table = MakeTable("user", 5);
    const Features f = Features::Random(15, 9, 500, 12);
    PooledInput in = f.Input(table.get(), GetParam());
    in.weights = f.weights.data();
    const Status status = RunStep({in}, {table}, &pool_).status;
    EXPECT_EQ(StatusCode::kInvalidArgument, status.code());
    EXPECT_NE(std::string::npos, status.message().find("'user'"));
    return;
  }
  for (int64_t dim : {5, 16, 64}) {
    auto table = MakeTable("user", dim);
    Fill(table.get(), 500);
    const Features f = Features::Random(1500, 9, 500, 12);
    PooledInput in = f.Input(table.get(), GetParam());
    in.weights = f.weights.data();
    const Step step = RunStep({in}, {table}, &pool_);
    ASSERT_OK(step.status);
    ExpectStep(in, f, step.outputs[0], step.unique_grads[0], *step.plan, 0);
  }
}

TEST_P(PooledLookupTest, WeightGradientsAreTheNumericalOnes) {
  if (Selects(GetParam())) return;  // takes no weights
  auto table = MakeTable("user", 6);
  Fill(table.get(), 40);
  Features f = Features::Random(30, 5, 40, 13);
  PooledInput in = f.Input(table.get(), GetParam());
  in.weights = f.weights.data();
  const Step step = RunStep({in}, {table}, &pool_);
  ASSERT_OK(step.status);
  const auto loss = [&] {
    const Step s = RunStep({in}, {table}, nullptr);
    double sum = 0;
    for (size_t i = 0; i < s.outputs[0].size(); ++i) {
      sum += static_cast<double>(s.outputs[0][i]) * GradAt(i);
    }
    return sum;
  };
  for (size_t i = 0; i < f.ids.size(); ++i) {
    const float before = f.weights[i], h = 1.0f / 64;
    f.weights[i] = before + h;
    const double plus = loss();
    f.weights[i] = before - h;
    const double minus = loss();
    f.weights[i] = before;
    const double numerical = (plus - minus) / (2 * h);
    ASSERT_NEAR(numerical, step.weight_grads[0][i],
                2e-3 * (1 + std::abs(numerical)))
        << "id " << i;
  }
}

TEST_P(PooledLookupTest, SameBitsWhateverTheThreads) {
  Tables tables;
  std::vector<Features> features;
  std::vector<PooledInput> inputs;
  for (int t = 0; t < 9; ++t) {
    tables.push_back(MakeTable("t" + std::to_string(t), 8 + 4 * t));
    Fill(tables[t].get(), 2000);
    // From tiny batches to batches larger than one task.
    features.push_back(Features::Random(3 << t, t % 2 == 0 ? 20 : 1, 2000, t));
  }
  for (int t = 0; t < 9; ++t) {
    inputs.push_back(features[t].Input(tables[t].get(), GetParam()));
  }
  const Step serial = RunStep(inputs, tables, nullptr);
  ASSERT_OK(serial.status);
  for (int threads : {1, 2, 8}) {
    testing::ThreadPool pool(threads);
    const Step step = RunStep(inputs, tables, &pool);
    ASSERT_OK(step.status);
    EXPECT_EQ(serial.outputs, step.outputs);
    EXPECT_EQ(serial.unique_grads, step.unique_grads);
  }
  for (int t = 0; t < 9; ++t) {
    ExpectStep(inputs[t], features[t], serial.outputs[t],
               serial.unique_grads[t], *serial.plan, t);
  }
}

INSTANTIATE_TEST_SUITE_P(All, PooledLookupTest,
                         ::testing::Values(Combiner::kSum, Combiner::kMean,
                                           Combiner::kSqrtN, Combiner::kMax));

class PooledInputTest : public ::testing::Test {
 protected:
  std::shared_ptr<EmbeddingTable> table_ = MakeTable("user", 4);
  testing::ThreadPool pool_{2};
};

TEST_F(PooledInputTest, IndicesAndNarrowIdsGiveTheSame) {
  Fill(table_.get(), 300);
  const Features f = Features::Random(200, 6, 300, 21);
  const PooledInput splits = f.Input(table_.get(), Combiner::kMean);
  PooledInput other = splits;
  other.row_splits = nullptr;
  other.coo_indices = f.indices.data();
  other.ids64 = nullptr;
  other.ids32 = f.narrow.data();
  const Step a = RunStep({splits}, {table_}, &pool_);
  const Step b = RunStep({other}, {table_}, &pool_);
  ASSERT_OK(a.status);
  ASSERT_OK(b.status);
  EXPECT_EQ(a.outputs, b.outputs);
  EXPECT_EQ(a.unique_grads, b.unique_grads);
}

TEST_F(PooledInputTest, NegativeNarrowIdsAreNegativeKeys) {
  const float row[4] = {9, 9, 9, 9};
  ASSERT_OK(
      table_->Import(std::vector<int64_t>{-5}, row, {}, {}, {}, {}, 0, 1));
  const std::vector<int32_t> ids = {-5};
  const std::vector<int64_t> splits = {0, 1};
  PooledInput in;
  in.table = table_.get();
  in.batch_size = in.num_ids = 1;
  in.ids32 = ids.data();
  in.row_splits = splits.data();
  const Step step = RunStep({in}, {table_}, &pool_);
  ASSERT_OK(step.status);
  EXPECT_EQ(std::vector<float>(4, 9.0f), step.outputs[0]);
  EXPECT_EQ(-5, testing::UniqueKeys(*step.plan, 0)[0]);
}

TEST_F(PooledInputTest, ExtremeKeysAndAbsentOnesAreNotInserted) {
  Features f;
  f.ids = {std::numeric_limits<int64_t>::min(),
           std::numeric_limits<int64_t>::max(), -1, 0};
  f.splits = {0, 4};
  f.batch_size = 1;
  const PooledInput in = f.Input(table_.get(), Combiner::kSum);
  const Step step = RunStep({in}, {table_}, &pool_);
  ASSERT_OK(step.status);
  ExpectStep(in, f, step.outputs[0], step.unique_grads[0], *step.plan, 0);
  EXPECT_EQ(0, table_->size());
}

TEST_F(PooledInputTest, EmptySamplesAndEmptyBatches) {
  Features none;
  none.splits = {0, 0, 0};
  none.batch_size = 2;
  Features empty;
  empty.splits = {0};
  const std::vector<PooledInput> inputs = {
      none.Input(table_.get(), Combiner::kMean),
      empty.Input(table_.get(), Combiner::kSum)};
  const Step step = RunStep(inputs, {table_, table_}, &pool_);
  ASSERT_OK(step.status);
  EXPECT_EQ(std::vector<float>(8, 0.0f), step.outputs[0]);
  EXPECT_TRUE(step.outputs[1].empty());
  EXPECT_EQ(0u, testing::UniqueKeys(*step.plan, 0).size());
  // The same as a SparseTensor of no ids, whose tensors may have no memory.
  PooledInput in;
  in.table = table_.get();
  in.batch_size = 2;
  const Step sparse = RunStep({in}, {table_}, &pool_);
  ASSERT_OK(sparse.status);
  EXPECT_EQ(std::vector<float>(8, 0.0f), sparse.outputs[0]);
}

TEST_F(PooledInputTest, NoTables) {
  const Step step = RunStep({}, {}, &pool_);
  ASSERT_OK(step.status);
  EXPECT_EQ(0, step.plan->num_tables());
}

TEST_F(PooledInputTest, TheSameTableTwiceInACall) {
  Fill(table_.get(), 100);
  const Features a = Features::Random(50, 3, 100, 1),
                 b = Features::Random(20, 8, 100, 2);
  const std::vector<PooledInput> inputs = {
      a.Input(table_.get(), Combiner::kSum),
      b.Input(table_.get(), Combiner::kMean)};
  const Step step = RunStep(inputs, {table_, table_}, &pool_);
  ASSERT_OK(step.status);
  ExpectStep(inputs[0], a, step.outputs[0], step.unique_grads[0], *step.plan,
             0);
  ExpectStep(inputs[1], b, step.outputs[1], step.unique_grads[1], *step.plan,
             1);
}

TEST_F(PooledInputTest, OneIdInTheWholeBatch) {
  Features f;
  f.ids.assign(20000, 42);
  for (int64_t i = 0; i <= 20000; ++i) f.splits.push_back(i);
  f.batch_size = 20000;
  const PooledInput in = f.Input(table_.get(), Combiner::kMean);
  const Step step = RunStep({in}, {table_}, &pool_);
  ASSERT_OK(step.status);
  ExpectStep(in, f, step.outputs[0], step.unique_grads[0], *step.plan, 0);
}

TEST_F(PooledInputTest, WeightGradientsAreOfTheRowsThatTheForwardRead) {
  const Features f = Features::Random(20, 3, 30, 5);
  PooledInput in = f.Input(table_.get(), Combiner::kSum);
  in.weights = f.weights.data();
  const Step step = RunStep({in}, {table_}, &pool_);
  ASSERT_OK(step.status);
  // The update runs before the gradient of the weights is computed.
  const Span<const int64_t> keys = testing::UniqueKeys(*step.plan, 0);
  const std::vector<float> changed(keys.size() * 4, 1e6f);
  ASSERT_OK(
      table_->WriteRows(keys, {}, changed.data(), {}, nullptr, 0, &pool_));
  std::vector<float> grads(step.outputs[0].size()), again(f.ids.size());
  for (size_t i = 0; i < grads.size(); ++i) grads[i] = GradAt(i);
  ASSERT_OK(PooledWeightGrad(*step.plan, 0, grads.data(),
                             step.outputs[0].data(), again.data(), &pool_));
  EXPECT_EQ(step.weight_grads[0], again);
}

TEST_F(PooledInputTest, TheGradientOfMaxIsOfTheRowsThatWereRead) {
  Fill(table_.get(), 300);
  const Features f = Features::Random(200, 6, 300, 23);
  const PooledInput in = f.Input(table_.get(), Combiner::kMax);
  const Step step = RunStep({in}, {table_}, &pool_);
  ASSERT_OK(step.status);
  const Span<const int64_t> keys = testing::UniqueKeys(*step.plan, 0);
  const std::vector<float> others(keys.size() * 4, 9.0f);
  ASSERT_OK(table_->Import(keys, others.data(), {}, {}, {}, {}, 0, 1));
  std::vector<float> grad(200 * 4), sums(keys.size() * 4);
  for (size_t i = 0; i < grad.size(); ++i) grad[i] = GradAt(i);
  ASSERT_OK(PooledBackward(*step.plan, std::vector<const float*>{grad.data()},
                           std::vector<float*>{sums.data()}, &pool_));
  EXPECT_EQ(step.unique_grads[0], sums);
}

TEST_F(PooledInputTest, NullLeavesATablesGradientOut) {
  const Features f = Features::Random(10, 3, 30, 5);
  const std::vector<PooledInput> inputs(2,
                                        f.Input(table_.get(), Combiner::kSum));
  const Step step = RunStep(inputs, {table_, table_}, &pool_);
  const std::vector<float> grad(step.outputs[0].size(), 1.0f);
  std::vector<float> unique(step.unique_grads[1].size());
  const std::vector<const float*> grads = {nullptr, grad.data()};
  const std::vector<float*> uniques = {nullptr, unique.data()};
  ASSERT_OK(PooledBackward(*step.plan, grads, uniques, &pool_));
  EXPECT_EQ(static_cast<float>(testing::UniqueCounts(*step.plan, 1)[0]),
            unique[0]);
}

TEST_F(PooledInputTest, APlanKeepsItsTablesAlive) {
  std::weak_ptr<EmbeddingTable> watch;
  std::shared_ptr<const LookupPlan> plan;
  {
    auto table = MakeTable("gone", 4);
    watch = table;
    const Features f = Features::Random(10, 3, 30, 5);
    plan =
        RunStep({f.Input(table.get(), Combiner::kSum)}, {table}, &pool_).plan;
  }
  ASSERT_FALSE(watch.expired());
  EXPECT_EQ("gone", plan->table(0)->options().name);
  plan.reset();
  EXPECT_TRUE(watch.expired());
}

TEST_F(PooledInputTest, NotANumberStaysInItsSamples) {
  std::vector<float> rows(8, 1.0f);
  rows[2] = std::numeric_limits<float>::quiet_NaN();
  ASSERT_OK(table_->Import(std::vector<int64_t>{1, 2}, rows.data(), {}, {}, {},
                           {}, 0, 1));
  Features f;
  f.ids = {1, 2, 2};
  f.splits = {0, 2, 3};
  f.batch_size = 2;
  const Step step =
      RunStep({f.Input(table_.get(), Combiner::kSum)}, {table_}, &pool_);
  EXPECT_TRUE(std::isnan(step.outputs[0][2]));
  for (int i : {0, 1, 3}) EXPECT_EQ(2.0f, step.outputs[0][i]);
  for (int i : {4, 5, 6, 7}) EXPECT_EQ(1.0f, step.outputs[0][i]);
}

// --- Wrong input ---

class PooledErrorTest : public PooledInputTest {
 protected:
  void ExpectError(StatusCode code, const std::string& part,
                   const PooledInput& in) {
    Features good;
    good.ids = {1};
    good.splits = {0, 1};
    good.batch_size = 1;
    auto other = MakeTable("other", 4);
    float out[64];
    const std::vector<PooledInput> inputs = {
        good.Input(other.get(), Combiner::kSum), in};
    const std::vector<float*> outs = {out, out + 4};
    std::shared_ptr<const LookupPlan> plan;
    const Status status = PooledForward(inputs, {}, outs, &pool_, &plan);
    EXPECT_EQ(code, status.code()) << status.message();
    EXPECT_NE(std::string::npos, status.message().find(part))
        << status.message();
    EXPECT_NE(std::string::npos, status.message().find("'user'"))
        << status.message();
    EXPECT_EQ(nullptr, plan);
    EXPECT_EQ(0, table_->size());
  }
};

TEST_F(PooledErrorTest, NamesTheTableAndWhatIsWrong) {
  Features f;
  f.ids = {1, 2, 3};
  f.splits = {0, 2, 3};
  f.indices = {0, 0, 0, 1, 1, 0};
  f.batch_size = 2;
  const PooledInput good = f.Input(table_.get(), Combiner::kSum);
  const StatusCode invalid = StatusCode::kInvalidArgument;

  PooledInput in = good;
  const std::vector<int64_t> short_splits = {0, 2, 2};
  in.row_splits = short_splits.data();
  ExpectError(invalid, "expected the number of ids as the last, 3, got 2", in);

  in = good;
  in.row_splits = nullptr;
  const std::vector<int64_t> unsorted = {1, 0, 0, 0, 1, 1};
  in.coo_indices = unsorted.data();
  ExpectError(invalid, "expected an order by sample", in);

  in.coo_indices = f.indices.data();
  in.batch_size = 1;
  ExpectError(invalid, "below the batch size 1, got sample 1", in);

  in.batch_size = -1;
  ExpectError(invalid, "the batch size: expected", in);

  in = good;
  in.num_ids = -1;
  ExpectError(invalid, "the number of ids: expected", in);
  in.num_ids = int64_t{1} << 31;
  ExpectError(invalid, "the number of ids: expected", in);

  in = good;
  const std::vector<int32_t> narrow = {1, 2, 3};
  in.ids32 = narrow.data();
  ExpectError(invalid, "either int64 or int32", in);
  in.ids32 = nullptr;
  in.ids64 = nullptr;
  ExpectError(invalid, "either int64 or int32", in);

  in = good;
  in.coo_indices = f.indices.data();
  ExpectError(invalid, "either row splits or indices", in);
  in.coo_indices = in.row_splits = nullptr;
  ExpectError(invalid, "without row splits and without indices", in);

  TableOptions options;
  options.name = "user";
  options.dim = 4;
  testing::PutUnderTest(&options);
  EmbeddingTable fresh(options);
  in = good;
  in.table = &fresh;
  ExpectError(StatusCode::kFailedPrecondition, "not initialized", in);
}

TEST_F(PooledErrorTest, CountsThatDoNotFit) {
  Features f = Features::Random(2, 1, 5, 1);
  const std::vector<PooledInput> inputs = {
      f.Input(table_.get(), Combiner::kSum)};
  std::shared_ptr<const LookupPlan> plan;
  float out[8];
  const std::vector<float*> outs = {out}, no_outs;
  EXPECT_EQ(StatusCode::kInvalidArgument,
            PooledForward(inputs, {table_}, no_outs, &pool_, &plan).code());
  EXPECT_EQ(StatusCode::kInvalidArgument,
            PooledForward(inputs, {MakeTable("other", 4)}, outs, &pool_, &plan)
                .code());
  ASSERT_OK(PooledForward(inputs, {table_}, outs, &pool_, &plan));
  const std::vector<const float*> no_grads = {nullptr}, none;
  EXPECT_EQ(StatusCode::kInvalidArgument,
            PooledBackward(*plan, none, {}, &pool_).code());
  EXPECT_EQ(StatusCode::kInvalidArgument,
            PooledBackward(*plan, no_grads, outs, &pool_).code());
  EXPECT_EQ(StatusCode::kInvalidArgument,
            PooledWeightGrad(*plan, 1, out, out, out, &pool_).code());
  const Status status = PooledWeightGrad(*plan, 0, out, out, out, &pool_);
  EXPECT_NE(std::string::npos, status.message().find("the lookup had none"));
}

}  // namespace
}  // namespace ev
