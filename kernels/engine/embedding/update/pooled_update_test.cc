// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Compares updates by the gradients of samples with updates by their sums.

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/engine/embedding/embedding_table.h"
#include "kernels/engine/embedding/lookup/pooled_lookup.h"
#include "kernels/engine/embedding/table_reader.h"
#include "kernels/engine/embedding/update/row_update.h"
#include "kernels/engine/testing/storage_under_test.h"
#include "kernels/engine/testing/thread_pool.h"
#include "kernels/engine/testing/unique_keys.h"

namespace ev {
namespace {

using testing::UniqueKeys;

#define ASSERT_OK(expression)                             \
  do {                                                    \
    const Status ev_status_ = (expression);               \
    ASSERT_TRUE(ev_status_.ok()) << ev_status_.message(); \
  } while (0)

#define EXPECT_OK(expression)                             \
  do {                                                    \
    const Status ev_status_ = (expression);               \
    EXPECT_TRUE(ev_status_.ok()) << ev_status_.message(); \
  } while (0)

using Table = std::shared_ptr<EmbeddingTable>;

TableOptions Options(int64_t dim, RowStorage storage) {
  TableOptions options;
  options.name = "user";
  options.dim = dim;
  options.storage = storage;
  options.record_frequency = options.record_version = true;
  return options;
}

// A table without recorded frequencies and versions.
TableOptions Plain(int64_t dim, RowStorage storage) {
  TableOptions options = Options(dim, storage);
  options.record_frequency = options.record_version = false;
  return options;
}

Table MakeTable(TableOptions options) {
  if (options.storage == testing::StorageUnderTest()) {
    testing::PutUnderTest(&options);
  }
  auto table = std::make_shared<EmbeddingTable>(options);
  std::vector<float> rows(3 * options.dim);
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = 0.5f + i % 7;
  const Status status = table->Initialize(rows, 3);
  EXPECT_TRUE(status.ok()) << status.message();
  return table;
}

// Samples with several ids, or none; a quarter of all ids are one key.
struct Batch {
  int64_t num_samples = 0;
  std::vector<int64_t> ids, splits;
  std::vector<float> weights, grads;

  Batch(int64_t samples, int64_t most_ids, int64_t range, int64_t dim,
        std::mt19937_64* random) {
    num_samples = samples;
    splits.push_back(0);
    std::normal_distribution<float> normal;
    for (int64_t s = 0; s < samples; ++s) {
      const int64_t n = static_cast<int64_t>((*random)() % (most_ids + 1));
      for (int64_t i = 0; i < n; ++i) {
        const int64_t key = static_cast<int64_t>((*random)() % range);
        ids.push_back((*random)() % 4 == 0 ? -1 : key);
        weights.push_back(normal(*random));
      }
      splits.push_back(static_cast<int64_t>(ids.size()));
      for (int64_t c = 0; c < dim; ++c) grads.push_back(normal(*random));
    }
  }

  PooledInput Input(EmbeddingTable* table, Combiner combiner,
                    bool weighted) const {
    PooledInput in;
    in.table = table;
    in.combiner = combiner;
    in.batch_size = num_samples;
    in.num_ids = static_cast<int64_t>(ids.size());
    in.ids64 = ids.data();
    in.row_splits = splits.data();
    in.weights = weighted ? weights.data() : nullptr;
    return in;
  }
};

enum class How { kSums, kSamples };

// Runs one step of Adagrad on several tables. 'between' is called between the
// lookup and the update. Returns the pooled rows of the last table.
std::vector<float> Step(const std::vector<Table>& tables, const Batch& batch,
                        Combiner combiner, bool weighted, How how, int64_t step,
                        Parallel* parallel,
                        const std::function<void()>& between = nullptr) {
  std::vector<PooledInput> inputs;
  std::vector<std::vector<float>> outputs, sums;
  std::vector<float*> outs, sum_outs;
  for (const Table& table : tables) {
    inputs.push_back(batch.Input(table.get(), combiner, weighted));
    outputs.emplace_back(batch.grads.size());
    outs.push_back(outputs.back().data());
  }
  std::shared_ptr<const LookupPlan> plan;
  EXPECT_OK(PooledForward(inputs, tables, outs, parallel, &plan));
  if (between) between();
  const std::vector<const float*> grads(tables.size(), batch.grads.data());
  std::vector<UpdateInput> updates(tables.size());
  for (size_t t = 0; t < tables.size(); ++t) {
    const int number = static_cast<int>(t);
    updates[t].table = tables[t].get();
    updates[t].plan = plan.get();
    updates[t].plan_table = number;
    sums.emplace_back(UniqueKeys(*plan, number).size() *
                      tables[t]->options().dim);
    sum_outs.push_back(sums.back().data());
    if (how == How::kSums) {
      updates[t].keys = UniqueKeys(*plan, number);
      updates[t].grads = sums.back().data();
    } else {
      updates[t].pooled_grads = batch.grads.data();
    }
  }
  if (how == How::kSums) {
    EXPECT_OK(PooledBackward(*plan, grads, sum_outs, parallel));
  }
  const std::vector<std::vector<SlotSpec>> slots(tables.size(),
                                                 {{"Adagrad", 0.1f}});
  EXPECT_OK(ApplyRule("Adagrad", std::vector<float>{0.5f}, updates, slots, step,
                      parallel));
  return outputs.back();
}

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

struct Case {
  const char* name;
  Combiner combiner;
  bool weighted;
  int64_t samples, most_ids, range, dim;
};

class PooledUpdateTest : public ::testing::TestWithParam<Case> {
 protected:
  testing::ThreadPool pool_{3};
};

TEST_P(PooledUpdateTest, EqualsTheUpdateByTheSumsBitForBit) {
  const Case& c = GetParam();
  const RowStorage tested_storage = testing::StorageUnderTest();
  const auto sums = MakeTable(Options(c.dim, tested_storage));
  const auto samples = MakeTable(Options(c.dim, tested_storage));
  const auto cpu = MakeTable(Options(c.dim, RowStorage::kDram));
  const auto plain = MakeTable(Plain(c.dim, tested_storage));
  const auto plain_cpu = MakeTable(Plain(c.dim, RowStorage::kDram));
  std::mt19937_64 random(7);
  for (int64_t step = 0; step < 3; ++step) {
    const Batch batch(c.samples, c.most_ids, c.range, c.dim, &random);
    const auto train = [&](const Table& table, How how, Parallel* parallel) {
      return Step({table}, batch, c.combiner, c.weighted, how, step, parallel);
    };
    train(sums, How::kSums, &pool_);
    train(samples, How::kSamples, &pool_);
    const std::vector<float> out = train(cpu, How::kSamples, nullptr);
    EXPECT_EQ(out, train(plain, How::kSamples, &pool_));
    EXPECT_EQ(out, train(plain_cpu, How::kSamples, nullptr));
  }
  ExpectSame(*sums, *samples);
  ExpectSame(*sums, *cpu);
  ExpectSame(*plain, *plain_cpu);
}

INSTANTIATE_TEST_SUITE_P(
    All, PooledUpdateTest,
    ::testing::Values(
        Case{"Sum", Combiner::kSum, false, 900, 1, 5000, 16},
        Case{"Mean", Combiner::kMean, false, 500, 6, 300, 3},
        Case{"SqrtN", Combiner::kSqrtN, false, 500, 6, 300, 40},
        Case{"WeightedSum", Combiner::kSum, true, 500, 6, 300, 8},
        Case{"WeightedMean", Combiner::kMean, true, 500, 6, 300, 16},
        Case{"OneColumn", Combiner::kSum, false, 2000, 3, 1 << 20, 1},
        Case{"Max", Combiner::kMax, false, 500, 6, 300, 9},
        Case{"MaxFewKeys", Combiner::kMax, false, 3000, 6, 100, 8},
        Case{"MaxSharded", Combiner::kMax, false, 30000, 10, 60000, 4},
        // Far fewer keys than samples, with many ids and with few.
        Case{"FewKeys", Combiner::kMean, false, 3000, 6, 100, 8},
        Case{"FewKeysOnce", Combiner::kSum, false, 3000, 1, 100, 8},
        Case{"FewLongRowsOnce", Combiner::kMean, false, 3000, 1, 100, 40},
        // More ids than are deduplicated in one piece.
        Case{"Sharded", Combiner::kMean, false, 30000, 10, 60000, 4}),
    [](const ::testing::TestParamInfo<Case>& info) {
      return std::string(info.param.name);
    });

TEST_F(PooledUpdateTest, SeveralTablesAndThoseInOtherMemoryAtOnce) {
  const RowStorage tested_storage = testing::StorageUnderTest();
  const std::vector<Table> one = {MakeTable(Options(4, tested_storage)),
                                  MakeTable(Options(4, RowStorage::kDram)),
                                  MakeTable(Options(4, tested_storage))};
  const auto alone = MakeTable(Options(4, RowStorage::kDram));
  std::mt19937_64 random(3);
  for (int64_t step = 0; step < 3; ++step) {
    const Batch batch(400, 3, 900, 4, &random);
    Step(one, batch, Combiner::kSum, false, How::kSamples, step, &pool_);
    Step({alone}, batch, Combiner::kSum, false, How::kSums, step, nullptr);
  }
  for (const Table& table : one) ExpectSame(*alone, *table);
}

// One lookup's table twice in a call: as in two calls, one after the other.
TEST_F(PooledUpdateTest, OneTableOfALookupTwice) {
  const RowStorage storage = testing::StorageUnderTest();
  const auto at_once = MakeTable(Options(4, storage));
  const auto apart = MakeTable(Options(4, storage));
  std::mt19937_64 random(11);
  const Batch batch(300, 4, 400, 4, &random);
  std::vector<float> others = batch.grads;
  for (float& x : others) x = 2 - x;
  for (const Table& table : {at_once, apart}) {
    const std::vector<PooledInput> inputs = {
        batch.Input(table.get(), Combiner::kMean, false)};
    const std::vector<Table> owners = {table};
    std::vector<float> out(batch.grads.size());
    const std::vector<float*> outs = {out.data()};
    std::shared_ptr<const LookupPlan> plan;
    ASSERT_OK(PooledForward(inputs, owners, outs, &pool_, &plan));
    std::vector<UpdateInput> updates(2);
    for (UpdateInput& update : updates) {
      update.table = table.get();
      update.plan = plan.get();
    }
    updates[0].pooled_grads = batch.grads.data();
    updates[1].pooled_grads = others.data();
    const size_t in_a_call = table == at_once ? 2 : 1;
    const std::vector<std::vector<SlotSpec>> slots(in_a_call,
                                                   {{"Adagrad", 0.1f}});
    for (size_t i = 0; i < updates.size(); i += in_a_call) {
      ASSERT_OK(ApplyRule("Adagrad", std::vector<float>{0.5f},
                          Span<const UpdateInput>(&updates[i], in_a_call),
                          slots, 0, &pool_));
    }
  }
  ExpectSame(*apart, *at_once);
}

TEST_F(PooledUpdateTest, KeysThatAreKeptOutAreCountedAndDropped) {
  TableOptions options = Options(4, testing::StorageUnderTest());
  options.admission.filter = AdmissionOptions::Filter::kCounter;
  options.admission.threshold = 5;
  const auto sums = MakeTable(options), samples = MakeTable(options);
  std::mt19937_64 random(5);
  for (int64_t step = 0; step < 4; ++step) {
    const Batch batch(300, 4, 400, 4, &random);
    Step({sums}, batch, Combiner::kMean, false, How::kSums, step, &pool_);
    Step({samples}, batch, Combiner::kMean, false, How::kSamples, step, &pool_);
  }
  EXPECT_GT(samples->stats().filtered_keys, 0);
  EXPECT_EQ(samples->stats().filtered_keys, sums->stats().filtered_keys);
  ExpectSame(*sums, *samples);
}

// Keys that are erased, and return with other rows, after a lookup that has
// found them and before one.
TEST_F(PooledUpdateTest, KeysErasedBeforeTheUpdateOrTheNextLookup) {
  for (const bool plain : {true, false}) {
    std::vector<Table> tables;
    for (RowStorage storage :
         {testing::StorageUnderTest(), RowStorage::kDram}) {
      tables.push_back(
          MakeTable(plain ? Plain(4, storage) : Options(4, storage)));
    }
    std::vector<std::vector<float>> outs[2];
    for (int t = 0; t < 2; ++t) {
      std::mt19937_64 random(11);
      const Table& table = tables[t];
      for (int64_t step = 0; step < 8; ++step) {
        const Batch batch(600, 3, 400, 4, &random);
        std::vector<int64_t> gone = {-1};
        for (int64_t key = step; key < 400; key += 5) gone.push_back(key);
        outs[t].push_back(Step({table}, batch, Combiner::kMean, false,
                               How::kSamples, step, &pool_, [&] {
                                 if (step % 3 == 1) table->Erase(gone);
                               }));
        if (step % 3 == 2) table->Erase(gone);
        if (step == 5) ASSERT_OK(table->Clear());
      }
    }
    EXPECT_EQ(outs[0], outs[1]);
    ExpectSame(*tables[0], *tables[1]);
  }
}

// One call looks up and updates a table more than once.
TEST_F(PooledUpdateTest, ATableThatComesSeveralTimes) {
  std::vector<Table> tables;
  std::vector<std::vector<float>> outs;
  for (RowStorage storage : {testing::StorageUnderTest(), RowStorage::kDram}) {
    std::mt19937_64 random(12);
    const Table table = MakeTable(Plain(4, storage));
    for (int64_t step = 0; step < 4; ++step) {
      const Batch batch(500, 3, 900, 4, &random);
      outs.push_back(Step({table, table, table}, batch, Combiner::kSum, false,
                          How::kSamples, step, &pool_));
    }
    tables.push_back(table);
  }
  for (int step = 0; step < 4; ++step) EXPECT_EQ(outs[step], outs[4 + step]);
  ExpectSame(*tables[0], *tables[1]);
}

TEST_F(PooledUpdateTest, WhileATableIsReadItsRowsAreKept) {
  const auto table = MakeTable(Plain(4, testing::StorageUnderTest()));
  std::mt19937_64 random(13);
  const Batch batch(500, 3, 300, 4, &random);
  Step({table}, batch, Combiner::kSum, false, How::kSamples, 0, &pool_);
  TableSnapshot before;
  ASSERT_OK(table->Export(std::vector<std::string>{"Adagrad"}, &before));
  std::vector<float> values;
  std::vector<int64_t> keys;
  {
    std::unique_ptr<TableReader> reader;
    ASSERT_OK(TableReader::Open(*table, std::vector<std::string>{"Adagrad"},
                                &reader));
    Step({table}, batch, Combiner::kSum, false, How::kSamples, 1, &pool_);
    ASSERT_OK(reader->Rows([&](const RowPiece& piece) {
      keys.insert(keys.end(), piece.keys.begin(), piece.keys.end());
      values.insert(values.end(), piece.columns[0].begin(),
                    piece.columns[0].end());
      return Status::OK();
    }));
  }
  EXPECT_EQ(before.keys, keys);
  EXPECT_EQ(before.values, values);
  TableSnapshot after;
  ASSERT_OK(table->Export(std::vector<std::string>{"Adagrad"}, &after));
  EXPECT_NE(before.values, after.values);
}

// Lookups and updates of plain tables beside erasures: each key's row is its
// default row, or the result of some number of updates since then.
TEST_F(PooledUpdateTest, CallsBesideErasures) {
  const auto table = MakeTable(Plain(1, testing::StorageUnderTest()));
  std::mt19937_64 random(14);
  Batch batch(256, 2, 100, 1, &random);
  std::fill(batch.grads.begin(), batch.grads.end(), -1.0f);
  std::vector<std::thread> callers;
  for (int c = 0; c < 3; ++c) {
    callers.emplace_back([&] {
      for (int step = 0; step < 15; ++step) {
        std::vector<float> out(batch.num_samples);
        std::shared_ptr<const LookupPlan> plan;
        ASSERT_OK(PooledForward(std::vector<PooledInput>{batch.Input(
                                    table.get(), Combiner::kMean, false)},
                                {table}, std::vector<float*>{out.data()},
                                nullptr, &plan));
        for (int64_t s = 0; s < batch.num_samples; ++s) {
          ASSERT_GE(out[s], batch.splits[s] == batch.splits[s + 1] ? 0 : 0.5f);
          ASSERT_LT(out[s], 1e6f);
        }
        UpdateInput update;
        update.table = table.get();
        update.plan = plan.get();
        update.pooled_grads = batch.grads.data();
        ASSERT_OK(ApplyRule(
            "SGD", std::vector<float>{1.0f}, std::vector<UpdateInput>{update},
            std::vector<std::vector<SlotSpec>>(1), step, nullptr));
      }
    });
  }
  callers.emplace_back([&] {
    for (int round = 0; round < 30; ++round) {
      std::vector<int64_t> gone;
      for (int64_t key = -1; key < 100; ++key) {
        if ((key + round) % 3 == 0) gone.push_back(key);
      }
      table->Erase(gone);
    }
  });
  for (std::thread& caller : callers) caller.join();
  // One more step without erasures, after which all keys have rows that count
  // it.
  const std::set<int64_t> distinct(batch.ids.begin(), batch.ids.end());
  const std::vector<int64_t> keys(distinct.begin(), distinct.end());
  table->Erase(keys);
  Step({table}, batch, Combiner::kSum, false, How::kSamples, 0, nullptr);
  EXPECT_EQ(static_cast<int64_t>(keys.size()), table->size());
}

TEST_F(PooledUpdateTest, ChangesAreNoticed) {
  TableOptions options = Options(4, testing::StorageUnderTest());
  options.record_frequency = options.record_version = false;
  const auto table = MakeTable(options);
  std::mt19937_64 random(5);
  const Batch first(300, 4, 200, 4, &random), second(30, 4, 400, 4, &random);
  Step({table}, first, Combiner::kMean, false, How::kSamples, 0, &pool_);
  int64_t cut = 0;
  ASSERT_OK(table->CutChanges(&cut));
  Step({table}, second, Combiner::kMean, false, How::kSamples, 1, &pool_);
  TableDelta delta;
  ASSERT_OK(table->ExportChanges(cut, {}, &delta));
  EXPECT_FALSE(delta.replaces);
  EXPECT_EQ(
      std::set<int64_t>(second.ids.begin(), second.ids.end()),
      std::set<int64_t>(delta.changed.keys.begin(), delta.changed.keys.end()));
}

TEST_F(PooledUpdateTest, CallsAtOnceEachApplyWhole) {
  constexpr int kCalls = 4, kSteps = 20;
  const RowStorage tested_storage = testing::StorageUnderTest();
  const std::vector<Table> tables = {MakeTable(Options(1, tested_storage)),
                                     MakeTable(Plain(1, tested_storage))};
  std::mt19937_64 random(9);
  Batch batch(64, 3, 40, 1, &random);
  std::fill(batch.grads.begin(), batch.grads.end(), -1.0f);
  std::map<int64_t, int64_t> occurrences;
  for (int64_t id : batch.ids) ++occurrences[id];
  std::vector<std::thread> callers;
  for (int c = 0; c < kCalls; ++c) {
    callers.emplace_back([&, c] {
      // In another order, which must not change the result.
      const std::vector<Table> mine =
          c % 2 == 0 ? tables : std::vector<Table>{tables[1], tables[0]};
      const std::vector<PooledInput> inputs = {
          batch.Input(mine[0].get(), Combiner::kSum, false),
          batch.Input(mine[1].get(), Combiner::kSum, false)};
      std::vector<float> out(2 * batch.num_samples);
      for (int step = 0; step < kSteps; ++step) {
        std::shared_ptr<const LookupPlan> plan;
        ASSERT_OK(PooledForward(
            inputs, mine,
            std::vector<float*>{out.data(), out.data() + batch.num_samples},
            nullptr, &plan));
        std::vector<UpdateInput> updates(2);
        for (int t = 0; t < 2; ++t) {
          updates[t].table = mine[t].get();
          updates[t].plan = plan.get();
          updates[t].plan_table = t;
          updates[t].pooled_grads = batch.grads.data();
        }
        ASSERT_OK(ApplyRule("SGD", std::vector<float>{1.0f}, updates,
                            std::vector<std::vector<SlotSpec>>(2), step,
                            nullptr));
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  const auto fresh = MakeTable(Options(1, RowStorage::kDram));
  for (const Table& table : tables) {
    for (const auto& at : occurrences) {
      const std::vector<int64_t> key = {at.first};
      float value = 0, before = 0;
      ASSERT_OK(table->Gather(key, &value, nullptr));
      ASSERT_OK(fresh->Gather(key, &before, nullptr));
      ASSERT_EQ(before + kCalls * kSteps * at.second, value) << at.first;
    }
  }
}

TEST_F(PooledUpdateTest, NeedsAPlanAndNoSums) {
  const auto table = MakeTable(Options(1, testing::StorageUnderTest()));
  const std::vector<int64_t> keys = {1};
  const float grad = 1.0f;
  UpdateInput in;
  in.table = table.get();
  in.keys = keys;
  in.pooled_grads = &grad;
  const std::vector<std::vector<SlotSpec>> slots(1);
  Status status = ApplyRule("SGD", std::vector<float>{1.0f},
                            std::vector<UpdateInput>{in}, slots, 0, nullptr);
  EXPECT_EQ(StatusCode::kInvalidArgument, status.code());
  EXPECT_NE(std::string::npos,
            status.message().find("need a plan, table 'user'"));
  EXPECT_EQ(0, table->size());
}

}  // namespace
}  // namespace ev
