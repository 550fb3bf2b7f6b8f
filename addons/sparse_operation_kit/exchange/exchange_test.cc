// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Tests all steps of a lookup over ranks together, against one table that holds
// all keys.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <tuple>

#include "addons/sparse_operation_kit/exchange/testing/loopback.h"
#include "kernels/engine/embedding/lookup/pooled_lookup.h"
#include "kernels/engine/testing/storage_under_test.h"
#include "kernels/engine/testing/thread_pool.h"
#include "kernels/engine/testing/unique_keys.h"

namespace sok {
namespace testing {
namespace {

using ev::Combiner;

const std::vector<float> kDefaults = {0.5f, -1.25f, 3.0f};

LoopbackJob::Options TestOptions() {
  LoopbackJob::Options options;
  options.storage = ev::testing::StorageUnderTest();
  return options;
}

Bag RandomBag(std::mt19937* rng, int64_t batch_size, int64_t max_hotness,
              int64_t vocabulary, bool weighted) {
  Bag bag;
  bag.splits.push_back(0);
  for (int64_t b = 0; b < batch_size; ++b) {
    const int64_t n = (*rng)() % (max_hotness + 1);
    for (int64_t i = 0; i < n; ++i) {
      bag.ids.push_back(static_cast<int64_t>((*rng)() % vocabulary) -
                        vocabulary / 2);
      if (weighted) bag.weights.push_back(0.25f * (1 + (*rng)() % 8));
    }
    bag.splits.push_back(bag.ids.size());
  }
  return bag;
}

std::vector<TableSpec> MixedTables(int num_ranks) {
  return {
      {"a", 3, Combiner::kSum, AllRanks(num_ranks)},
      {"b", 16, Combiner::kMean, {num_ranks - 1}},
      {"c", 8, Combiner::kSqrtN, AllRanks(num_ranks)},
      {"unused", 5, Combiner::kSum, AllRanks(num_ranks)},
      {"d", 1, Combiner::kMean, {0, num_ranks - 1, 0}},
  };
}

// Batches of different sizes; rank 1's is empty.
std::vector<std::vector<Bag>> MixedBags(int num_ranks, uint32_t seed) {
  std::mt19937 rng(seed);
  std::vector<std::vector<Bag>> bags(num_ranks);
  for (int r = 0; r < num_ranks; ++r) {
    const int64_t batch = r == 1 ? 0 : 17 + 5 * r;
    bags[r] = {RandomBag(&rng, batch, 4, 50, false),
               RandomBag(&rng, batch, 1, 20, false),
               RandomBag(&rng, batch, 6, 40, true),
               RandomBag(&rng, batch, 0, 10, false),
               RandomBag(&rng, batch, 3, 1000, true)};
  }
  return bags;
}

std::vector<PerRank<float>> RandomGrads(
    const std::vector<PerRank<float>>& outputs, uint32_t seed) {
  std::mt19937 rng(seed);
  std::vector<PerRank<float>> grads = outputs;
  for (auto& rank : grads) {
    for (auto& grad : rank) {
      for (float& g : grad) {
        g = static_cast<float>(static_cast<int>(rng() % 2001) - 1000) / 997;
      }
    }
  }
  return grads;
}

// The result for one rank's bag of a single table that holds all keys.
std::vector<float> OneTable(ev::EmbeddingTable* table, Combiner combiner,
                            const Bag& bag) {
  ev::PooledInput in;
  in.table = table;
  in.combiner = combiner;
  in.batch_size = bag.batch_size();
  in.num_ids = bag.ids.size();
  in.ids64 = bag.ids.data();
  in.row_splits = bag.splits.data();
  if (!bag.weights.empty()) in.weights = bag.weights.data();
  std::vector<float> out(bag.batch_size() * table->options().dim);
  float* outputs[] = {out.data()};
  std::shared_ptr<const ev::LookupPlan> plan;
  EXPECT_TRUE(ev::PooledForward(ev::Span<const ev::PooledInput>(&in, 1), {},
                                ev::Span<float* const>(outputs, 1), nullptr,
                                &plan)
                  .ok());
  return out;
}

std::map<int64_t, std::vector<float>> Rows(ev::EmbeddingTable* table) {
  ev::TableSnapshot snapshot;
  EXPECT_TRUE(table->Export({}, &snapshot).ok());
  const int64_t dim = table->options().dim;
  std::map<int64_t, std::vector<float>> rows;
  for (size_t i = 0; i < snapshot.keys.size(); ++i) {
    rows[snapshot.keys[i]].assign(snapshot.values.begin() + i * dim,
                                  snapshot.values.begin() + (i + 1) * dim);
  }
  return rows;
}

class ExchangeTest : public ::testing::TestWithParam<int> {
 protected:
  int num_ranks() const { return GetParam(); }
};

// Forward results have the bits of one table. Trained rows are equal up to the
// order of sums, and exist only on their owners.
TEST_P(ExchangeTest, TrainsAsOneTableDoes) {
  const std::vector<TableSpec> specs = MixedTables(num_ranks());
  LoopbackJob::Options options = TestOptions();
  options.num_ranks = num_ranks();
  LoopbackJob job(options, specs, kDefaults);
  std::vector<std::shared_ptr<ev::EmbeddingTable>> whole;
  for (const TableSpec& spec : specs) {
    whole.push_back(LoopbackJob::MakeTable(spec, false, kDefaults));
  }
  const std::vector<int> trained = {4, 0, 1, 2};  // in any order
  const std::vector<ev::SlotSpec> slots = {{"Adagrad", 0.1f}};
  for (uint32_t step = 0; step < 4; ++step) {
    const auto bags = MixedBags(num_ranks(), step);
    std::vector<PerRank<float>> outputs;
    ev::Status status = job.Forward(bags, &outputs);
    ASSERT_TRUE(status.ok()) << status.message();
    const auto all_grads = RandomGrads(outputs, 100 + step);
    std::vector<PerRank<float>> grads(num_ranks());
    for (int r = 0; r < num_ranks(); ++r) {
      for (size_t t = 0; t < specs.size(); ++t) {
        const std::vector<float> expected =
            OneTable(whole[t].get(), specs[t].combiner, bags[r][t]);
        ASSERT_EQ(expected.size(), outputs[r][t].size());
        for (size_t i = 0; i < expected.size(); ++i) {
          if (step == 0) {
            ASSERT_EQ(expected[i], outputs[r][t][i]) << r << " " << t;
          } else {
            ASSERT_NEAR(expected[i], outputs[r][t][i], 1e-5) << r << " " << t;
          }
        }
      }
      for (int t : trained) grads[r].push_back(all_grads[r][t]);
    }
    status = job.Backward(trained, grads);
    ASSERT_TRUE(status.ok()) << status.message();
    status = job.Apply("Adagrad", {0.1f}, slots, step);
    ASSERT_TRUE(status.ok()) << status.message();

    // One table trained on the merged batch.
    for (int t : trained) {
      Bag merged;
      merged.splits.push_back(0);
      std::vector<float> grad;
      for (int r = 0; r < num_ranks(); ++r) {
        const Bag& bag = bags[r][t];
        const int64_t base = merged.ids.size();
        merged.ids.insert(merged.ids.end(), bag.ids.begin(), bag.ids.end());
        merged.weights.insert(merged.weights.end(), bag.weights.begin(),
                              bag.weights.end());
        for (int64_t b = 1; b <= bag.batch_size(); ++b) {
          merged.splits.push_back(base + bag.splits[b]);
        }
        grad.insert(grad.end(), all_grads[r][t].begin(), all_grads[r][t].end());
      }
      ev::PooledInput in;
      in.table = whole[t].get();
      in.combiner = specs[t].combiner;
      in.batch_size = merged.batch_size();
      in.num_ids = merged.ids.size();
      in.ids64 = merged.ids.data();
      in.row_splits = merged.splits.data();
      if (!merged.weights.empty()) in.weights = merged.weights.data();
      std::vector<float> out(grad.size());
      float* outs[] = {out.data()};
      std::shared_ptr<const ev::LookupPlan> plan;
      ASSERT_TRUE(ev::PooledForward(ev::Span<const ev::PooledInput>(&in, 1), {},
                                    ev::Span<float* const>(outs, 1), nullptr,
                                    &plan)
                      .ok());
      const ev::Span<const int64_t> keys = ev::testing::UniqueKeys(*plan, 0);
      std::vector<float> unique_grads(keys.size() * specs[t].dim);
      const float* in_grads[] = {grad.data()};
      float* out_grads[] = {unique_grads.data()};
      ASSERT_TRUE(
          ev::PooledBackward(*plan, ev::Span<const float* const>(in_grads, 1),
                             ev::Span<float* const>(out_grads, 1), nullptr)
              .ok());
      ev::UpdateInput update;
      update.table = whole[t].get();
      update.keys = keys;
      update.grads = unique_grads.data();
      const std::vector<std::vector<ev::SlotSpec>> whole_slots = {slots};
      const std::vector<float> hyper = {0.1f};
      ASSERT_TRUE(ev::ApplyRule("Adagrad", hyper,
                                ev::Span<const ev::UpdateInput>(&update, 1),
                                whole_slots, step, nullptr)
                      .ok());
    }
  }
  for (size_t t = 0; t < specs.size(); ++t) {
    const auto expected = Rows(whole[t].get());
    size_t found = 0;
    for (int r = 0; r < num_ranks(); ++r) {
      for (const auto& row : Rows(job.table(r, t))) {
        ++found;
        ASSERT_EQ(Placement(specs[t].ranks).OwnerOf(row.first), r)
            << "key " << row.first << " of table " << t;
        const auto one = expected.find(row.first);
        ASSERT_NE(one, expected.end()) << row.first;
        for (int64_t c = 0; c < specs[t].dim; ++c) {
          EXPECT_NEAR(one->second[c], row.second[c], 2e-5) << row.first;
        }
      }
    }
    EXPECT_EQ(found, expected.size()) << "table " << t;
    EXPECT_EQ(found == 0, specs[t].name == "unused");
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, ExchangeTest, ::testing::Values(1, 2, 3, 4, 7));

// Checks the gradient of a key to the bit: each rank's occurrences in order,
// then the ranks in order.
TEST(ExchangeGradient, SumsInRankOrder) {
  LoopbackJob::Options options = TestOptions();
  options.num_ranks = 3;
  LoopbackJob job(options, {{"t", 1, Combiner::kSum, {0, 1, 2}}}, {0.0f});
  const Bag bag = {{6, 6, 7}, {0, 1, 2, 3}, {}};
  std::vector<PerRank<float>> outputs;
  ASSERT_TRUE(job.Forward({{bag}, {bag}, {bag}}, &outputs).ok());
  const float big = 16777216.0f;  // 2^24: adding 1 to it is lost
  ASSERT_TRUE(
      job.Backward({0}, {{{1, 1, 0}}, {{big, 1, 0}}, {{-big, 1, 0}}}).ok());
  const float expected = ((1.0f + 1.0f) + (big + 1.0f)) + (-big + 1.0f);
  ASSERT_EQ(ev::testing::UniqueKeys(job.plan(0), 0).size(), 1u);
  EXPECT_EQ(job.unique_grads(0, 0)[0], expected);
  EXPECT_EQ(ev::testing::UniqueKeys(job.plan(1), 0)[0], 7);
  EXPECT_EQ(ev::testing::UniqueKeys(job.plan(2), 0).size(), 0u);
}

TEST(ExchangeThreads, GiveTheSameBits) {
  std::vector<std::vector<std::vector<float>>> results;
  for (int threads : {1, 2, 8}) {
    ev::testing::ThreadPool pool(threads);
    LoopbackJob::Options options = TestOptions();
    options.num_ranks = 2;
    options.parallel = &pool;
    LoopbackJob job(options,
                    {{"large", 24, Combiner::kMean, {0, 1}},
                     {"small", 7, Combiner::kSum, {0, 1}}},
                    kDefaults);
    std::mt19937 rng(7);
    std::vector<std::vector<Bag>> bags(2);
    for (auto& rank : bags) {
      rank = {RandomBag(&rng, 9000, 4, 15000, true),
              RandomBag(&rng, 300, 3, 40, false)};
    }
    std::vector<PerRank<float>> outputs;
    for (int step = 0; step < 2; ++step) {
      ASSERT_TRUE(job.Forward(bags, &outputs).ok());
      ASSERT_TRUE(job.Backward({0, 1}, RandomGrads(outputs, 3)).ok());
      ASSERT_TRUE(job.Apply("Adam", {0.01f, 0.9f, 0.999f, 1e-8f, 0.9f, 0.999f},
                            {{"Adam", 0}, {"Adam_1", 0}}, step)
                      .ok());
    }
    std::vector<std::vector<float>> result;
    for (int r = 0; r < 2; ++r) {
      for (int t = 0; t < 2; ++t) {
        result.push_back(outputs[r][t]);
        result.push_back(job.unique_grads(r, t));
      }
    }
    results.push_back(result);
  }
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
}

// Enough keys that the owner splits deduplication and search into tasks.
TEST(ExchangeThreads, ManyKeysForOneOwner) {
  ev::testing::ThreadPool pool(3);
  LoopbackJob::Options options = TestOptions();
  options.num_ranks = 2;
  options.parallel = &pool;
  LoopbackJob job(options, {{"t", 2, Combiner::kSum, {0}}}, {1.0f});
  // Half of rank 1's keys are also rank 0's, in another order.
  constexpr int64_t kKeys = 80000;
  std::vector<std::vector<Bag>> bags(2, std::vector<Bag>(1));
  std::vector<PerRank<float>> grads(2, PerRank<float>(1));
  std::map<int64_t, float> sums;
  for (int r = 0; r < 2; ++r) {
    for (int64_t i = 0; i < kKeys; ++i) {
      const int64_t id = r == 0 ? i : kKeys + kKeys / 2 - 1 - i;
      bags[r][0].ids.push_back(id);
      bags[r][0].splits.push_back(i);
      const float grad = static_cast<float>(r + 1 + id % 1000);
      grads[r][0].insert(grads[r][0].end(), {grad, -grad});
      sums[id] += grad;
    }
    bags[r][0].splits.push_back(kKeys);
  }
  std::vector<PerRank<float>> outputs;
  for (int step = 0; step < 2; ++step) {
    ASSERT_TRUE(job.Forward(bags, &outputs).ok());
    const auto keys = ev::testing::UniqueKeys(job.plan(0), 0);
    ASSERT_EQ(sums.size(), keys.size());
    for (int r = 0; r < 2; ++r) {
      for (int64_t i = 0; i < kKeys; ++i) {
        const float sum = step == 0 ? 0.0f : sums[bags[r][0].ids[i]];
        ASSERT_EQ(1.0f - sum, outputs[r][0][2 * i]) << r << " " << i;
        ASSERT_EQ(1.0f + sum, outputs[r][0][2 * i + 1]) << r << " " << i;
      }
    }
    ASSERT_TRUE(job.Backward({0}, grads).ok());
    for (size_t u = 0; u < keys.size(); ++u) {
      ASSERT_EQ(sums[keys[u]], job.unique_grads(0, 0)[2 * u]) << keys[u];
    }
    ASSERT_TRUE(job.Apply("SGD", {1.0f}, {}, step).ok());
  }
}

TEST(ExchangeWire, NarrowTypesRoundOnceEachWay) {
  for (WireType wire : {WireType::kFloat16, WireType::kBFloat16}) {
    const float bound = wire == WireType::kFloat16 ? 0x1p-11f : 0x1p-8f;
    LoopbackJob::Options options = TestOptions();
    options.num_ranks = 2;
    options.wire = wire;
    const std::vector<float> defaults = {0.1f, -3.3f, 1.7f};
    LoopbackJob job(options, {{"t", 9, Combiner::kSum, {0, 1}}}, defaults);
    Bag bag = {{0, 1, 2, -1, 1}, {0, 1, 2, 3, 4, 5}, {}};
    std::vector<PerRank<float>> outputs;
    ASSERT_TRUE(job.Forward({{bag}, {bag}}, &outputs).ok());
    for (size_t b = 0; b < 5; ++b) {
      const float exact = defaults[(bag.ids[b] + 3) % 3];
      for (int c = 0; c < 9; ++c) {
        EXPECT_NEAR(outputs[0][0][b * 9 + c], exact, std::abs(exact) * bound);
      }
    }
    const auto grads = RandomGrads(outputs, 5);
    ASSERT_TRUE(job.Backward({0}, grads).ok());
    // Key 1 is owned by rank 1 and occurs in samples 1 and 4 of both ranks.
    const auto keys = ev::testing::UniqueKeys(job.plan(1), 0);
    for (size_t u = 0; u < keys.size(); ++u) {
      if (keys[u] != 1) continue;
      for (int c = 0; c < 9; ++c) {
        float exact = 0, size = 0;
        for (int r = 0; r < 2; ++r) {
          const float part = grads[r][0][9 + c] + grads[r][0][36 + c];
          exact += part;
          size += std::abs(part);
        }
        EXPECT_NEAR(job.unique_grads(1, 0)[u * 9 + c], exact, size * bound);
      }
    }
  }
}

TEST(ExchangeFrequencies, CountEveryOccurrenceOfEveryRank) {
  LoopbackJob::Options options = TestOptions();
  options.num_ranks = 2;
  options.with_occurrences = true;
  LoopbackJob job(options, {{"t", 2, Combiner::kSum, {0, 1}}}, {0.0f});
  std::vector<PerRank<float>> outputs;
  ASSERT_TRUE(
      job.Forward({{{{4, 4, 5}, {0, 3}, {}}}, {{{4, 6}, {0, 2}, {}}}}, &outputs)
          .ok());
  ASSERT_TRUE(job.Backward({0}, {{{1, 1}}, {{1, 1}}}).ok());
  ASSERT_TRUE(job.Apply("SGD", {0.1f}, {}, 12).ok());
  const std::vector<int64_t> keys = {4, 5, 6};
  int64_t frequency[3], version[3];
  ASSERT_TRUE(job.table(0, 0)->GetMeta(keys, frequency, version).ok());
  EXPECT_EQ(frequency[0], 3);
  EXPECT_EQ(frequency[1], 0);
  EXPECT_EQ(frequency[2], 1);
  EXPECT_EQ(version[0], 12);
  ASSERT_TRUE(job.table(1, 0)->GetMeta(keys, frequency, version).ok());
  EXPECT_EQ(frequency[0], 0);
  EXPECT_EQ(frequency[1], 1);
}

TEST(ExchangeKeys, AnyValueIsLegal) {
  const int64_t lowest = std::numeric_limits<int64_t>::min();
  const int64_t highest = std::numeric_limits<int64_t>::max();
  for (int num_ranks : {2, 3, 4}) {
    LoopbackJob::Options options = TestOptions();
    options.num_ranks = num_ranks;
    LoopbackJob job(options, {{"t", 1, Combiner::kSum, AllRanks(num_ranks)}},
                    {0.0f});
    const Bag bag = {
        {lowest, highest, 0, -1, lowest + 1}, {0, 1, 2, 3, 4, 5}, {}};
    const Bag none = {{}, {0}, {}};
    std::vector<std::vector<Bag>> bags(num_ranks, {none});
    bags[0] = {bag};
    std::vector<PerRank<float>> outputs;
    ASSERT_TRUE(job.Forward(bags, &outputs).ok());
    std::vector<PerRank<float>> grads(num_ranks, {{}});
    grads[0] = {{1, 2, 3, 4, 5}};
    ASSERT_TRUE(job.Backward({0}, grads).ok());
    ASSERT_TRUE(job.Apply("SGD", {1.0f}, {}, 0).ok());
    ASSERT_TRUE(job.Forward(bags, &outputs).ok());
    EXPECT_EQ(outputs[0][0], (std::vector<float>{-1, -2, -3, -4, -5}));
  }
}

TEST(ExchangeVolume, DedupSendsEachKeyOnce) {
  const Bag bag = {{1, 1, 1, 2, 1}, {0, 2, 5}, {}};
  LoopbackJob job(TestOptions(), {{"t", 4, Combiner::kSum, {0, 1}}}, {0.0f});
  std::vector<PerRank<float>> outputs;
  ASSERT_TRUE(job.Forward({{bag}, {bag}}, &outputs).ok());
  // Two ranks send two messages each: three numbers and the two keys.
  EXPECT_EQ(job.sent_numbers(), 2 * (2 * 3 + 2));
  EXPECT_EQ(job.num_floats(0), 4 * 2);
}

TEST_P(ExchangeTest, GivenRowsAreTheTransposeOfTheGradient) {
  std::vector<TableSpec> specs = MixedTables(num_ranks());
  specs.push_back({"m", 4, Combiner::kMax, AllRanks(num_ranks())});
  LoopbackJob::Options options = TestOptions();
  options.num_ranks = num_ranks();
  LoopbackJob job(options, specs, kDefaults);
  auto bags = MixedBags(num_ranks(), 3);
  std::mt19937 rng(4);
  for (auto& of_rank : bags) {
    of_rank.push_back(RandomBag(&rng, of_rank[0].batch_size(), 4, 30, false));
  }
  std::vector<PerRank<float>> outputs;
  ASSERT_TRUE(job.Forward(bags, &outputs).ok());
  const std::vector<int> tables = {4, 0, 5, 1, 2};
  const auto all_grads = RandomGrads(outputs, 5);
  std::vector<PerRank<float>> grads(num_ranks()), sums(num_ranks()), pooled;
  for (int r = 0; r < num_ranks(); ++r) {
    for (int t : tables) grads[r].push_back(all_grads[r][t]);
  }
  ASSERT_TRUE(job.Backward(tables, grads).ok());
  for (int r = 0; r < num_ranks(); ++r) {
    for (size_t k = 0; k < tables.size(); ++k) {
      sums[r].push_back(job.unique_grads(r, k));
    }
  }
  const auto given = RandomGrads(sums, 6);
  const ev::Status status = job.PoolGiven(given, &pooled);
  ASSERT_TRUE(status.ok()) << status.message();
  for (size_t k = 0; k < tables.size(); ++k) {
    double expected = 0, found = 0;
    for (int r = 0; r < num_ranks(); ++r) {
      for (size_t i = 0; i < sums[r][k].size(); ++i) {
        expected += static_cast<double>(sums[r][k][i]) * given[r][k][i];
      }
      for (size_t i = 0; i < pooled[r][k].size(); ++i) {
        found += static_cast<double>(pooled[r][k][i]) * grads[r][k][i];
      }
    }
    EXPECT_NE(0.0, expected);
    EXPECT_NEAR(expected, found, 1e-4 * (1 + std::abs(expected))) << tables[k];
  }
}

TEST(ExchangeWeights, GradientIsThatOfOneTable) {
  LoopbackJob::Options options = TestOptions();
  const std::vector<TableSpec> specs = {{"t", 3, Combiner::kMean, {0, 1}}};
  LoopbackJob job(options, specs, kDefaults);
  std::mt19937 rng(11);
  std::vector<std::vector<Bag>> bags = {{RandomBag(&rng, 20, 5, 30, true)},
                                        {RandomBag(&rng, 10, 5, 30, true)}};
  std::vector<PerRank<float>> outputs;
  ASSERT_TRUE(job.Forward(bags, &outputs).ok());
  const auto grads = RandomGrads(outputs, 1);
  auto whole = LoopbackJob::MakeTable(specs[0], false, kDefaults);
  for (int r = 0; r < 2; ++r) {
    const Bag& bag = bags[r][0];
    std::vector<float> mine(bag.ids.size()), one(bag.ids.size());
    ReceivedRows rows;
    rows.data = job.received_rows(r);
    rows.num_floats = job.num_floats(r);
    ASSERT_TRUE(PoolWeightGradient(job.route(r), 0, rows, WireType::kFloat32,
                                   grads[r][0].data(), outputs[r][0].data(),
                                   mine.data(), nullptr)
                    .ok());
    ev::PooledInput in;
    in.table = whole.get();
    in.combiner = Combiner::kMean;
    in.batch_size = bag.batch_size();
    in.num_ids = bag.ids.size();
    in.ids64 = bag.ids.data();
    in.row_splits = bag.splits.data();
    in.weights = bag.weights.data();
    std::vector<float> out(outputs[r][0].size());
    float* outs[] = {out.data()};
    std::shared_ptr<const ev::LookupPlan> plan;
    ASSERT_TRUE(ev::PooledForward(ev::Span<const ev::PooledInput>(&in, 1), {},
                                  ev::Span<float* const>(outs, 1), nullptr,
                                  &plan)
                    .ok());
    ASSERT_TRUE(ev::PooledWeightGrad(*plan, 0, grads[r][0].data(), out.data(),
                                     one.data(), nullptr)
                    .ok());
    EXPECT_EQ(mine, one);
  }
}

// --- Rejected inputs; the error names what is wrong ---

class RouteErrors : public ::testing::Test {
 protected:
  ev::Status Run(const RouteInput& in) {
    RouteOptions options;
    options.num_ranks = 2;
    options.format.num_tables = 1;
    std::shared_ptr<const RoutePlan> plan;
    return Route(ev::Span<const RouteInput>(&in, 1), options, nullptr, &plan);
  }
  void ExpectRefused(const RouteInput& in, const std::string& words) {
    const ev::Status status = Run(in);
    EXPECT_EQ(status.code(), ev::StatusCode::kInvalidArgument);
    EXPECT_NE(status.message().find(words), std::string::npos)
        << status.message();
    EXPECT_NE(status.message().find("item"), std::string::npos)
        << status.message();
  }
  RouteErrors() {
    in_.name = "item";
    in_.dim = 4;
    in_.placement = &placement_;
    in_.batch_size = 2;
    in_.num_ids = 2;
    in_.ids64 = ids_;
    in_.row_splits = splits_;
  }
  const int64_t ids_[2] = {1, 2};
  int64_t splits_[3] = {0, 1, 2};
  int64_t indices_[4] = {1, 0, 0, 0};
  Placement placement_{{0, 1}};
  RouteInput in_;
};

TEST_F(RouteErrors, GoodInputPasses) { EXPECT_TRUE(Run(in_).ok()); }
TEST_F(RouteErrors, BadSplits) {
  splits_[2] = 3;
  ExpectRefused(in_, "");
}
TEST_F(RouteErrors, UnsortedIndices) {
  in_.row_splits = nullptr;
  in_.coo_indices = indices_;
  ExpectRefused(in_, "");
}
TEST_F(RouteErrors, NegativeBatch) {
  in_.batch_size = -1;
  ExpectRefused(in_, "batch size");
}
TEST_F(RouteErrors, RankOutsideTheJob) {
  placement_ = Placement({0, 2});
  ExpectRefused(in_, "on rank 2, but the job has 2 ranks");
}
TEST_F(RouteErrors, NoSamples) {
  in_.row_splits = nullptr;
  ExpectRefused(in_, "without row splits");
}

class MessageErrors : public ::testing::Test {
 protected:
  void ExpectRefused(const std::string& words) {
    MessageFormat format;
    format.num_tables = 2;
    format.fingerprint = 9;
    MessageLayout layout;
    const ev::Status status =
        MessageLayout::Parse(format, message_, splits_, &layout);
    EXPECT_EQ(status.code(), ev::StatusCode::kInvalidArgument);
    EXPECT_NE(status.message().find(words), std::string::npos)
        << status.message();
  }
  // Rank 0 sends key 5 of table 0; rank 1 sends keys 6 and 7 of table 1.
  std::vector<int64_t> message_ = {9, 1, 0, 0, 5, 9, 0, 2, 0, 6, 7};
  std::vector<int32_t> splits_ = {5, 6};
};

TEST_F(MessageErrors, GoodMessagePasses) {
  MessageFormat format;
  format.num_tables = 2;
  format.fingerprint = 9;
  MessageLayout layout;
  ASSERT_TRUE(MessageLayout::Parse(format, message_, splits_, &layout).ok());
  EXPECT_EQ(layout.num_keys(1, 1), 2);
  EXPECT_EQ(message_[layout.key_start(1, 1)], 6);
  EXPECT_EQ(layout.num_keys(0), 1);
}
TEST_F(MessageErrors, AnotherLookup) {
  message_[5] += 64;
  ExpectRefused("rank 1 sent the keys of another lookup");
}
TEST_F(MessageErrors, TooShort) {
  splits_ = {3, 8};
  ExpectRefused("rank 0 sent a message of 3 numbers");
}
TEST_F(MessageErrors, MoreKeysThanSent) {
  message_[7] = 3;
  ExpectRefused("announces 3 keys of table 1");
}
TEST_F(MessageErrors, NegativeCount) {
  message_[6] = -1;
  ExpectRefused("announces -1 keys");
}
TEST_F(MessageErrors, FewerKeysThanSent) {
  message_[1] = 0;
  ExpectRefused("belong to no table");
}
TEST_F(MessageErrors, SplitsBeyondTheMessage) {
  splits_ = {5, 7};
  ExpectRefused("rank 1 sent a message of 7");
}
TEST_F(MessageErrors, SplitsThatEndEarly) {
  message_.push_back(0);
  ExpectRefused("was split into 11");
}
TEST_F(MessageErrors, MoreTraitsThanSent) {
  message_[8] = 17;
  ExpectRefused("rank 1 sent a message of 6 numbers that announces 17 bytes");
  message_[8] = -1;
  ExpectRefused("announces -1 bytes");
}

TEST(ExchangeErrors, TableThatIsNotInitialized) {
  ev::TableOptions options;
  options.name = "blank";
  options.dim = 2;
  auto table = std::make_shared<ev::EmbeddingTable>(options);
  MessageFormat format;
  format.num_tables = 1;
  const std::vector<int64_t> message = {0, 1, 0, 77};
  const std::vector<int32_t> splits = {4};
  MessageLayout layout;
  ASSERT_TRUE(MessageLayout::Parse(format, message, splits, &layout).ok());
  float rows[2];
  std::shared_ptr<const ev::LookupPlan> plan;
  const ev::Status status = Serve(layout, message.data(), {table},
                                  WireType::kFloat32, rows, nullptr, &plan);
  EXPECT_EQ(status.code(), ev::StatusCode::kFailedPrecondition);
  EXPECT_NE(status.message().find("blank"), std::string::npos);
}

TEST(ExchangeErrors, RowsOfAnotherSize) {
  LoopbackJob::Options options = TestOptions();
  LoopbackJob job(options, {{"t", 4, Combiner::kSum, {0, 1}}}, {0.0f});
  const Bag bag = {{1, 2}, {0, 2}, {}};
  std::vector<PerRank<float>> outputs;
  ASSERT_TRUE(job.Forward({{bag}, {bag}}, &outputs).ok());
  float out[4];
  ev::MutableFloats outs[] = {out};
  EXPECT_EQ(PoolReceived(job.route(0), job.received_rows(0),
                         job.num_floats(0) - 4, WireType::kFloat32,
                         ev::Span<const ev::MutableFloats>(outs, 1), nullptr)
                .code(),
            ev::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace testing
}  // namespace sok
