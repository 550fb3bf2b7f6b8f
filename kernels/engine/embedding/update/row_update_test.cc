// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/embedding/update/row_update.h"

#include <atomic>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/engine/base/pages.h"
#include "kernels/engine/testing/erased.h"
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

using Slots = std::vector<SlotSpec>;
using Row = std::vector<float>;

std::shared_ptr<EmbeddingTable> MakeTable(const std::string& name,
                                          int64_t dim) {
  TableOptions options;
  options.name = name;
  options.dim = dim;
  testing::PutUnderTest(&options);
  options.record_frequency = options.record_version = true;
  auto table = std::make_shared<EmbeddingTable>(options);
  std::vector<float> rows(3 * dim);
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = 1.0f + i / dim;
  EXPECT_TRUE(table->Initialize(rows, 3).ok());
  return table;
}

// Model of a table trained by Adagrad with rate 0.5: key -> (value,
// accumulator).
class Model {
 public:
  explicit Model(int64_t dim) : dim_(dim) {}

  void Update(const std::vector<int64_t>& keys,
              const std::vector<float>& grads) {
    std::map<int64_t, Row> sums;
    for (size_t i = 0; i < keys.size(); ++i) {
      const auto at = sums.find(keys[i]);
      for (int64_t j = 0; j < dim_; ++j) {
        const float g = grads[i * dim_ + j];
        if (at == sums.end()) {
          sums[keys[i]].push_back(g);
        } else {
          at->second[j] += g;
        }
      }
    }
    for (const auto& sum : sums) {
      auto inserted = rows_.emplace(sum.first, Row());
      Row& row = inserted.first->second;
      if (inserted.second) {
        const int64_t r = ((sum.first % 3) + 3) % 3;
        row.assign(2 * dim_, 0.1f);
        std::fill_n(row.begin(), dim_, 1.0f + r);
      }
      for (int64_t j = 0; j < dim_; ++j) {
        const float g = sum.second[j];
        row[dim_ + j] += g * g;
        row[j] -= 0.5f * g / std::sqrt(row[dim_ + j]);
      }
    }
  }
  void Erase(int64_t key) { rows_.erase(key); }

  void ExpectEqual(const EmbeddingTable& table) const {
    TableSnapshot snapshot;
    ASSERT_OK(table.Export(std::vector<std::string>{"Adagrad"}, &snapshot));
    ASSERT_EQ(rows_.size(), snapshot.keys.size());
    for (size_t i = 0; i < snapshot.keys.size(); ++i) {
      const Row& row = rows_.at(snapshot.keys[i]);
      for (int64_t j = 0; j < dim_; ++j) {
        ASSERT_EQ(row[j], snapshot.values[i * dim_ + j])
            << "key " << snapshot.keys[i];
        ASSERT_EQ(row[dim_ + j], snapshot.slots[0][i * dim_ + j]);
      }
    }
  }

 private:
  const int64_t dim_;
  std::map<int64_t, Row> rows_;
};

UpdateInput Input(EmbeddingTable* table, const std::vector<int64_t>& keys,
                  const std::vector<float>& grads) {
  UpdateInput in;
  in.table = table;
  in.keys = keys;
  in.grads = grads.data();
  return in;
}

Status Adagrad(const std::vector<UpdateInput>& inputs, Parallel* parallel,
               int64_t step = 0) {
  const std::vector<Slots> slots(inputs.size(), Slots{{"Adagrad", 0.1f}});
  return ApplyRule("Adagrad", std::vector<float>{0.5f}, inputs, slots, step,
                   parallel);
}

Status Sgd(const std::vector<UpdateInput>& inputs, Parallel* parallel) {
  const std::vector<Slots> slots(inputs.size());
  return ApplyRule("SGD", std::vector<float>{1.0f}, inputs, slots, 0, parallel);
}

class RowUpdateTest : public ::testing::Test {
 protected:
  // Keys and gradients of one update, with duplicates.
  void Draw(int64_t n, int64_t dim, int64_t range) {
    keys_.clear();
    grads_.clear();
    for (int64_t i = 0; i < n; ++i) {
      keys_.push_back(static_cast<int64_t>(random_() % range) - range / 2);
      for (int64_t j = 0; j < dim; ++j) grads_.push_back(normal_(random_));
    }
  }
  // A forward whose unique keys are updated afterwards; one id per sample.
  std::shared_ptr<const LookupPlan> Look(
      const std::shared_ptr<EmbeddingTable>& table) {
    std::vector<int64_t> splits;
    for (size_t i = 0; i <= keys_.size(); ++i) splits.push_back(i);
    std::vector<float> out(keys_.size() * table->options().dim);
    PooledInput in;
    in.table = table.get();
    in.batch_size = in.num_ids = keys_.size();
    in.ids64 = keys_.data();
    in.row_splits = splits.data();
    const std::vector<PooledInput> inputs = {in};
    const std::vector<float*> outs = {out.data()};
    std::shared_ptr<const LookupPlan> plan;
    EXPECT_TRUE(PooledForward(inputs, {table}, outs, &pool_, &plan).ok());
    return plan;
  }
  UpdateInput Planned(const LookupPlan& plan, const std::vector<float>& grads) {
    UpdateInput in;
    in.table = plan.table(0);
    in.keys = UniqueKeys(plan, 0);
    in.grads = grads.data();
    in.plan = &plan;
    return in;
  }

  std::mt19937_64 random_{3};
  std::normal_distribution<float> normal_;
  std::vector<int64_t> keys_;
  std::vector<float> grads_;
  testing::ThreadPool pool_{2};
};

TEST_F(RowUpdateTest, TrainsAsTheModelDoes) {
  for (int64_t dim : {1, 8, 16, 30, 64}) {
    auto table = MakeTable("user", dim);
    Model model(dim);
    for (int64_t n : {1, 10, 3000, 7000, 3000}) {
      Draw(n, dim, 2 * n + 1);
      ASSERT_OK(Adagrad({Input(table.get(), keys_, grads_)}, &pool_));
      model.Update(keys_, grads_);
    }
    model.ExpectEqual(*table);
  }
}

TEST_F(RowUpdateTest, TrainsLongBatchesAsTheModelDoes) {
  auto table = MakeTable("user", 2);
  Model model(2);
  Draw(300000, 2, 50000);
  ASSERT_OK(Adagrad({Input(table.get(), keys_, grads_)}, &pool_));
  model.Update(keys_, grads_);
  model.ExpectEqual(*table);
}

TEST_F(RowUpdateTest, DuplicatesAreSummedBeforeTheRule) {
  auto table = MakeTable("user", 1);
  const std::vector<int64_t> keys = {5, 5, 5};
  const std::vector<float> grads = {1, 2, -1};
  ASSERT_OK(Adagrad({Input(table.get(), keys, grads)}, &pool_));
  float row;
  ASSERT_OK(table->Gather(std::vector<int64_t>{5}, &row, nullptr));
  EXPECT_EQ(3.0f - 0.5f * 2.0f / std::sqrt(0.1f + 4.0f), row);
}

TEST_F(RowUpdateTest, PlanDoesNotChangeTheBits) {
  auto planned = MakeTable("a", 16), plain = MakeTable("b", 16);
  for (int step = 0; step < 4; ++step) {
    Draw(5000, 16, 3000);
    const auto plan = Look(planned);
    const Span<const int64_t> keys = UniqueKeys(*plan, 0);
    ASSERT_LT(keys.size(), keys_.size());
    const std::vector<float> grads(grads_.begin(),
                                   grads_.begin() + keys.size() * 16);
    ASSERT_OK(Adagrad({Planned(*plan, grads)}, &pool_));
    const std::vector<int64_t> copy(keys.begin(), keys.end());
    ASSERT_OK(Adagrad({Input(plain.get(), copy, grads)}, &pool_));
  }
  TableSnapshot a, b;
  ASSERT_OK(planned->Export(std::vector<std::string>{"Adagrad"}, &a));
  ASSERT_OK(plain->Export(std::vector<std::string>{"Adagrad"}, &b));
  EXPECT_EQ(a.keys, b.keys);
  EXPECT_EQ(a.values, b.values);
  EXPECT_EQ(a.slots, b.slots);
}

TEST_F(RowUpdateTest, APlanFromBeforeAnEraseFindsRowsAnew) {
  auto table = MakeTable("user", 4);
  Model model(4);
  Draw(2000, 4, 1500);
  ASSERT_OK(Adagrad({Input(table.get(), keys_, grads_)}, &pool_));
  model.Update(keys_, grads_);
  const auto plan = Look(table);
  const Span<const int64_t> unique = UniqueKeys(*plan, 0);
  const std::vector<int64_t> keys(unique.begin(), unique.end());
  // Other keys get the erased rows before the update.
  std::vector<int64_t> erased(keys.begin(), keys.begin() + keys.size() / 2);
  EXPECT_EQ(static_cast<int64_t>(erased.size()),
            testing::Erased(table.get(), erased));
  for (int64_t key : erased) model.Erase(key);
  std::vector<int64_t> others;
  for (int64_t k = 0; k < 1000; ++k) others.push_back(1000000 + k);
  const std::vector<float> ones(4000, 1.0f);
  ASSERT_OK(Adagrad({Input(table.get(), others, ones)}, &pool_));
  model.Update(others, ones);
  const std::vector<float> grads(keys.size() * 4, 0.25f);
  ASSERT_OK(Adagrad({Planned(*plan, grads)}, &pool_));
  model.Update(keys, grads);
  model.ExpectEqual(*table);
}

TEST_F(RowUpdateTest, APlanFromBeforeInitializeOrClearFindsRowsAnew) {
  auto table = MakeTable("user", 4);
  Draw(100, 4, 100);
  ASSERT_OK(Adagrad({Input(table.get(), keys_, grads_)}, &pool_));
  for (bool initialize : {true, false}) {
    const auto plan = Look(table);
    if (initialize) {
      ASSERT_OK(table->Initialize(
          std::vector<float>{1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3}, 3));
    } else {
      ASSERT_OK(table->Clear());
    }
    const Span<const int64_t> unique = UniqueKeys(*plan, 0);
    const std::vector<int64_t> keys(unique.begin(), unique.end());
    const std::vector<float> grads(keys.size() * 4, 0.25f);
    ASSERT_OK(Adagrad({Planned(*plan, grads)}, &pool_));
    Model model(4);
    model.Update(keys, grads);
    model.ExpectEqual(*table);
  }
}

TEST_F(RowUpdateTest, KeysThatWereInsertedSinceTheForwardAreFound) {
  auto table = MakeTable("user", 2);
  keys_ = {1, 2, 3};
  const auto plan = Look(table);
  const std::vector<float> one_row = {1, 1}, rows = {1, 1, 1, 1, 1, 1};
  ASSERT_OK(Adagrad({Input(table.get(), {2}, one_row)}, &pool_));
  ASSERT_OK(Adagrad({Planned(*plan, rows)}, &pool_));
  Model model(2);
  model.Update({2}, one_row);
  model.Update({1, 2, 3}, rows);
  model.ExpectEqual(*table);
}

TEST_F(RowUpdateTest, ManyTablesAtOnceWhateverTheThreads) {
  std::vector<TableSnapshot> snapshots;
  for (int threads : {1, 2, 8}) {
    testing::ThreadPool pool(threads);
    random_.seed(17);
    normal_.reset();
    std::vector<std::shared_ptr<EmbeddingTable>> tables;
    for (int t = 0; t < 5; ++t) {
      tables.push_back(MakeTable("t" + std::to_string(t), 4 << t));
    }
    for (int step = 0; step < 3; ++step) {
      std::vector<UpdateInput> inputs;
      std::vector<std::vector<int64_t>> keys(5);
      std::vector<std::vector<float>> grads(5);
      for (int t = 0; t < 5; ++t) {
        Draw(1 + 1500 * t, 4 << t, 2000);
        keys[t] = keys_;
        grads[t] = grads_;
      }
      for (int t = 0; t < 5; ++t) {
        inputs.push_back(Input(tables[t].get(), keys[t], grads[t]));
      }
      ASSERT_OK(Adagrad(inputs, &pool, step));
    }
    for (size_t t = 0; t < tables.size(); ++t) {
      TableSnapshot snapshot;
      ASSERT_OK(
          tables[t]->Export(std::vector<std::string>{"Adagrad"}, &snapshot));
      if (threads == 1) {
        snapshots.push_back(snapshot);
      } else {
        EXPECT_EQ(snapshots[t].keys, snapshot.keys);
        EXPECT_EQ(snapshots[t].values, snapshot.values);
        EXPECT_EQ(snapshots[t].slots, snapshot.slots);
        EXPECT_EQ(snapshots[t].versions, snapshot.versions);
        EXPECT_EQ(snapshots[t].frequencies, snapshot.frequencies);
      }
    }
  }
}

TEST_F(RowUpdateTest, ATableTwiceInACallIsUpdatedInTheOrderOfTheInputs) {
  auto once = MakeTable("user", 8), other = MakeTable("other", 8);
  Model model(8), other_model(8);
  Draw(3000, 8, 900);
  const std::vector<int64_t> first_keys = keys_;
  const std::vector<float> first_grads = grads_;
  Draw(3000, 8, 900);
  ASSERT_OK(Adagrad(
      {Input(once.get(), first_keys, first_grads),
       Input(other.get(), keys_, grads_), Input(once.get(), keys_, grads_)},
      &pool_));
  model.Update(first_keys, first_grads);
  model.Update(keys_, grads_);
  other_model.Update(keys_, grads_);
  model.ExpectEqual(*once);
  other_model.ExpectEqual(*other);
}

TEST_F(RowUpdateTest, CountsOccurrencesAndStampsTheStep) {
  auto table = MakeTable("user", 1);
  keys_ = {4, 6, 4, 4};
  const auto plan = Look(table);
  const std::vector<float> grads = {1, 1, 1, 1};
  ASSERT_OK(Adagrad({Planned(*plan, grads)}, &pool_, 100));
  ASSERT_OK(Adagrad({Input(table.get(), {6, 6}, grads)}, &pool_, 101));
  ASSERT_OK(Adagrad({Input(table.get(), {7}, grads)}, &pool_, 102));
  int64_t frequency[3], version[3];
  ASSERT_OK(table->GetMeta(std::vector<int64_t>{4, 6, 7}, frequency, version));
  EXPECT_EQ(3, frequency[0]);
  EXPECT_EQ(100, version[0]);
  EXPECT_EQ(3, frequency[1]);
  EXPECT_EQ(101, version[1]);
  EXPECT_EQ(1, frequency[2]);
  EXPECT_EQ(102, version[2]);
}

TEST_F(RowUpdateTest, GivenCountsAreSummedToo) {
  const std::vector<int64_t> distinct = {7, -1}, twice = {7, -1, 7};
  const std::vector<int64_t> counts = {5, 6, 40};
  for (const std::vector<int64_t>& keys : {distinct, twice}) {
    const auto table = MakeTable("counted", 1);
    const std::vector<float> grads(keys.size(), 1.0f);
    UpdateInput in = Input(table.get(), keys, grads);
    in.counts = counts.data();
    ASSERT_OK(Adagrad({in}, &pool_));
    int64_t frequencies[2], versions[2];
    ASSERT_OK(table->GetMeta(distinct, frequencies, versions));
    EXPECT_EQ(keys.size() == 2 ? 5 : 45, frequencies[0]);
    EXPECT_EQ(6, frequencies[1]);
  }
}

TEST_F(RowUpdateTest, CountsEndAtTheLargestFrequency) {
  const std::vector<int64_t> keys = {7, -1, 7};
  const std::vector<int64_t> counts = {int64_t{3} << 30, -5, 40};
  const std::vector<float> grads(3, 1.0f);
  const auto table = MakeTable("counted", 1);
  UpdateInput in = Input(table.get(), keys, grads);
  in.counts = counts.data();
  ASSERT_OK(Adagrad({in}, &pool_));
  int64_t frequencies[2], versions[2];
  ASSERT_OK(table->GetMeta(std::vector<int64_t>{7, -1}, frequencies, versions));
  EXPECT_EQ(std::numeric_limits<int32_t>::max(), frequencies[0]);
  EXPECT_EQ(0, frequencies[1]);
}

TEST_F(RowUpdateTest, ASecondOptimizerWidensRowsOfALiveTable) {
  auto table = MakeTable("user", 3);
  Draw(2000, 3, 700);
  Model model(3);
  ASSERT_OK(Adagrad({Input(table.get(), keys_, grads_)}, &pool_));
  model.Update(keys_, grads_);
  // A plan made before the rows move is valid for the update after it.
  const auto plan = Look(table);
  const Span<const int64_t> unique = UniqueKeys(*plan, 0);
  const std::vector<float> zeros(unique.size() * 3, 0.0f);
  const std::vector<UpdateInput> inputs = {Planned(*plan, zeros)};
  const std::vector<Slots> slots = {{{"m", 0.0f}, {"v", 0.5f}}};
  ASSERT_OK(ApplyRule("Adam",
                      std::vector<float>{0.1f, 0.5f, 0.5f, 1.0f, 0.5f, 0.5f},
                      inputs, slots, 0, &pool_));
  model.ExpectEqual(*table);  // a zero gradient changes nothing
  TableSnapshot snapshot;
  ASSERT_OK(table->Export(std::vector<std::string>{"v"}, &snapshot));
  for (float v : snapshot.slots[0]) ASSERT_EQ(0.25f, v);
  EXPECT_EQ(3u, table->slots().size());
}

TEST_F(RowUpdateTest, ASlotWithOneNumberPerRowIsBesideOtherSlots) {
  auto alone = MakeTable("alone", 3), table = MakeTable("user", 3);
  const std::vector<Slots> row_wise = {{{"a@row", 0.1f}}};
  const std::vector<Slots> adam = {{{"m", 0.0f}, {"v", 0.5f}}};
  Draw(2000, 3, 700);
  const std::vector<float> zeros(grads_.size(), 0.0f);
  for (int step = 0; step < 3; ++step) {
    for (const auto& trained : {alone, table}) {
      const std::vector<UpdateInput> inputs = {
          Input(trained.get(), keys_, grads_)};
      ASSERT_OK(ApplyRule("RowWiseAdagrad", std::vector<float>{0.1f, 1e-8f},
                          inputs, row_wise, step, &pool_));
    }
    // A zero gradient changes no value.
    const std::vector<UpdateInput> inputs = {Input(table.get(), keys_, zeros)};
    ASSERT_OK(ApplyRule("Adam",
                        std::vector<float>{0.1f, 0.5f, 0.5f, 1.0f, 0.5f, 0.5f},
                        inputs, adam, step, &pool_));
  }
  TableSnapshot a, b;
  ASSERT_OK(alone->Export(std::vector<std::string>{"a@row"}, &a));
  ASSERT_OK(table->Export(std::vector<std::string>{"a@row", "v"}, &b));
  EXPECT_EQ(a.values, b.values);
  EXPECT_EQ(a.slots[0].size(), a.keys.size());
  EXPECT_EQ(a.slots[0], b.slots[0]);
  EXPECT_EQ(b.slots[1], std::vector<float>(b.values.size(), 0.0625f));
}

TEST_F(RowUpdateTest, NotANumberStaysInItsRow) {
  auto table = MakeTable("user", 16);
  const float inf = std::numeric_limits<float>::infinity();
  std::vector<float> grads(48, 1.0f);
  grads[16] = std::numeric_limits<float>::quiet_NaN();
  grads[17] = inf;
  ASSERT_OK(Sgd({Input(table.get(), {0, 1, 3}, grads)}, &pool_));
  std::vector<float> rows(48);
  ASSERT_OK(table->Gather(std::vector<int64_t>{0, 1, 3}, rows.data(), nullptr));
  for (int i = 0; i < 48; ++i) {
    if (i == 16) {
      EXPECT_TRUE(std::isnan(rows[i]));
    } else if (i == 17) {
      EXPECT_EQ(-inf, rows[i]);
    } else {
      EXPECT_EQ(i / 16 == 1 ? 1.0f : 0.0f, rows[i]);
    }
  }
}

TEST_F(RowUpdateTest, NoKeysIsNoWork) {
  auto table = MakeTable("user", 4);
  ASSERT_OK(Adagrad({Input(table.get(), {}, {})}, &pool_));
  ASSERT_OK(Adagrad({}, &pool_));
  EXPECT_EQ(0, table->size());
}

// --- Failure changes nothing ---

class RowUpdateErrorTest : public RowUpdateTest {
 protected:
  void SetUp() override {
    ASSERT_OK(Adagrad({Input(table_.get(), {1, 2}, {1, 1, 1, 1})}, &pool_));
    ASSERT_OK(table_->Export(std::vector<std::string>{"Adagrad"}, &before_));
  }
  void TearDown() override {
    TableSnapshot after;
    ASSERT_OK(table_->Export(std::vector<std::string>{"Adagrad"}, &after));
    EXPECT_EQ(before_.keys, after.keys);
    EXPECT_EQ(before_.values, after.values);
    EXPECT_EQ(before_.slots, after.slots);
    EXPECT_EQ(1u, table_->slots().size());
  }
  void ExpectError(StatusCode code, const std::string& part,
                   const Status& status) {
    EXPECT_EQ(code, status.code()) << status.message();
    EXPECT_NE(std::string::npos, status.message().find(part))
        << status.message();
  }

  std::shared_ptr<EmbeddingTable> table_ = MakeTable("user", 2);
  const std::vector<float> ones_ = {1, 1, 1, 1};
  TableSnapshot before_;
};

TEST_F(RowUpdateErrorTest, RuleHyperparametersAndSlots) {
  const std::vector<int64_t> keys = {1, 2};
  const std::vector<UpdateInput> inputs = {Input(table_.get(), keys, ones_)};
  const std::vector<Slots> one = {{{"Adagrad", 0.1f}}}, none = {{}},
                           missing = {}, two = {{{"a", 0.0f}, {"b", 0.0f}}},
                           same = {{{"a", 0.0f}, {"a", 0.0f}}};
  const std::vector<float> rate = {0.1f},
                           adam = {0.1f, 0.9f, 0.99f, 1e-3f, 0.9f, 0.99f};
  const StatusCode invalid = StatusCode::kInvalidArgument;
  ExpectError(invalid, "unknown rule 'Adagard'",
              ApplyRule("Adagard", rate, inputs, one, 0, &pool_));
  ExpectError(invalid, "takes 1 hyperparameters and perhaps a factor, got 6",
              ApplyRule("Adagrad", adam, inputs, one, 0, &pool_));
  ExpectError(invalid, "has 1 slots, got 0, table 'user'",
              ApplyRule("Adagrad", rate, inputs, none, 0, &pool_));
  ExpectError(invalid, "has 1 slots, got 2, table 'user'",
              ApplyRule("Adagrad", rate, inputs, two, 0, &pool_));
  ExpectError(invalid, "1 tables and 0 lists of slots",
              ApplyRule("Adagrad", rate, inputs, missing, 0, &pool_));
  const std::vector<Slots> per_row = {{{"a@row", 0.1f}}};
  ExpectError(invalid,
              "slot 'a@row' has one number per row, rule Adagrad needs one per "
              "element: expected a name that does not end with @row",
              ApplyRule("Adagrad", rate, inputs, per_row, 0, &pool_));
  ExpectError(invalid,
              "slot 'Adagrad' has one number per element, rule RowWiseAdagrad "
              "needs one per row: expected a name that ends with @row, table",
              ApplyRule("RowWiseAdagrad", std::vector<float>{0.1f, 0.0f},
                        inputs, one, 0, &pool_));
  ExpectError(invalid, "slot 'a' is named twice, table 'user'",
              ApplyRule("Adam", adam, inputs, same, 0, &pool_));
}

TEST_F(RowUpdateErrorTest, OneBadTableStopsAll) {
  const std::vector<int64_t> keys = {1, 2};
  TableOptions options;
  options.name = "fresh";
  options.dim = 2;
  testing::PutUnderTest(&options);
  EmbeddingTable fresh(options);
  ExpectError(
      StatusCode::kFailedPrecondition, "table 'fresh' is not initialized",
      Adagrad({Input(table_.get(), keys, ones_), Input(&fresh, keys, ones_)},
              &pool_));
  ExpectError(
      StatusCode::kInvalidArgument, "update 1 has no table",
      Adagrad({Input(table_.get(), keys, ones_), UpdateInput()}, &pool_));
  UpdateInput no_grads = Input(table_.get(), keys, ones_);
  no_grads.grads = nullptr;
  ExpectError(StatusCode::kInvalidArgument, "keys need either gradients or",
              Adagrad({no_grads}, &pool_));
}

TEST_F(RowUpdateErrorTest, KeysThatAreNotThePlans) {
  keys_ = {1, 2};
  const auto plan = Look(table_);
  auto other = MakeTable("other", 2);
  const StatusCode invalid = StatusCode::kInvalidArgument;
  const std::vector<int64_t> swapped = {2, 1}, fewer = {1};
  UpdateInput in = Planned(*plan, ones_);
  in.keys = swapped;
  ExpectError(invalid, "not those of the plan, table 'user'",
              Adagrad({in}, &pool_));
  in.keys = fewer;
  ExpectError(invalid, "not those of the plan", Adagrad({in}, &pool_));
  in = Planned(*plan, ones_);
  in.table = other.get();
  ExpectError(invalid, "not the table to update, table 'other'",
              Adagrad({in}, &pool_));
  in = Planned(*plan, ones_);
  in.plan_table = 1;
  ExpectError(invalid, "table 1 of the plan", Adagrad({in}, &pool_));
}

// --- No memory ---

std::atomic<int64_t> allocations_left{0};

class NoMemory {
 public:
  explicit NoMemory(int64_t allowed) {
    allocations_left = allowed;
    SetAllocationHookForTesting([](size_t) { return allocations_left-- > 0; });
  }
  ~NoMemory() { SetAllocationHookForTesting(nullptr); }
};

TEST_F(RowUpdateTest, WithoutMemoryNoRowIsUpdatedAndTheTableLivesOn) {
  int failures = 0;
  for (int64_t allowed = 0; allowed < 40; ++allowed) {
    auto table = MakeTable("user", 8);
    Model model(8);
    const std::vector<int64_t> old_keys = {1, 2, 3};
    const std::vector<float> ones(24, 1.0f);
    ASSERT_OK(Adagrad({Input(table.get(), old_keys, ones)}, &pool_));
    model.Update(old_keys, ones);
    Draw(6000, 8, 5000);
    Status status;
    {
      NoMemory no_memory(allowed);
      status = Adagrad({Input(table.get(), keys_, grads_)}, &pool_);
    }
    if (status.ok()) {
      model.Update(keys_, grads_);
      model.ExpectEqual(*table);
      break;
    }
    ++failures;
    EXPECT_EQ(StatusCode::kResourceExhausted, status.code());
    model.ExpectEqual(*table);
    EXPECT_EQ(3, table->stats().inserted_rows);
    std::vector<float> rows(24), untouched(24);
    ASSERT_OK(table->Gather(old_keys, rows.data(), nullptr));
    auto other = MakeTable("user", 8);
    ASSERT_OK(Adagrad({Input(other.get(), old_keys, ones)}, &pool_));
    ASSERT_OK(other->Gather(old_keys, untouched.data(), nullptr));
    ASSERT_EQ(untouched, rows);
    // With memory available again, the same call succeeds.
    ASSERT_OK(Adagrad({Input(table.get(), keys_, grads_)}, &pool_));
    model.Update(keys_, grads_);
    model.ExpectEqual(*table);
  }
  EXPECT_GT(failures, 0);
}

TEST_F(RowUpdateTest, WithoutMemoryThePlansUpdateChangesNothing) {
  // One of two tables has no memory for its new rows.
  int failures = 0;
  for (int64_t allowed = 0; allowed < 40; ++allowed) {
    auto table = MakeTable("user", 8);
    const std::vector<int64_t> old_keys = {1, 2, 3};
    const std::vector<float> ones(24, 1.0f);
    ASSERT_OK(Adagrad({Input(table.get(), old_keys, ones)}, &pool_, 5));
    Draw(6000, 8, 5000);
    const auto plan = Look(table);
    const std::vector<float> grads(UniqueKeys(*plan, 0).size() * 8, 0.5f);
    TableSnapshot before, after;
    const std::vector<std::string> slots = {"Adagrad"};
    ASSERT_OK(table->Export(slots, &before));
    Status status;
    {
      NoMemory no_memory(allowed);
      status = Adagrad({Planned(*plan, grads)}, &pool_, 6);
    }
    if (status.ok()) break;
    ++failures;
    EXPECT_EQ(StatusCode::kResourceExhausted, status.code());
    ASSERT_OK(table->Export(slots, &after));
    EXPECT_EQ(before.keys, after.keys);
    EXPECT_EQ(before.values, after.values);
    EXPECT_EQ(before.slots, after.slots);
    EXPECT_EQ(before.versions, after.versions);
    EXPECT_EQ(before.frequencies, after.frequencies);
    ASSERT_OK(Adagrad({Planned(*plan, grads)}, &pool_, 6));
  }
  EXPECT_GT(failures, 0);
}

TEST_F(RowUpdateTest, WithoutMemoryWritesAndReadsInsertNothing) {
  int failures = 0;
  std::vector<int64_t> keys;
  for (int64_t key = 0; key < 5000; ++key) keys.push_back(key);
  std::vector<float> values(keys.size() * 8, 3.0f), gone_values;
  std::vector<int64_t> gone;
  for (int64_t allowed = 0; allowed < 80; ++allowed) {
    const bool writes = allowed % 2 == 0;
    auto table = MakeTable("user", 8);
    const std::vector<int64_t> old_keys = {1, 2, 3};
    ASSERT_OK(
        table->WriteRows(old_keys, {}, values.data(), {}, nullptr, 5, &pool_));
    TableSnapshot before, after;
    ASSERT_OK(table->Export({}, &before));
    Status status;
    {
      NoMemory no_memory(allowed / 2);
      status = writes ? table->WriteRows(keys, {}, values.data(), {}, nullptr,
                                         6, &pool_)
                      : table->ReadAndEvict(keys, 6, values.data(), &gone,
                                            &gone_values);
    }
    values.assign(values.size(), 3.0f);
    if (status.ok()) continue;
    ++failures;
    EXPECT_EQ(StatusCode::kResourceExhausted, status.code());
    EXPECT_EQ(3, table->size());
    EXPECT_EQ(3, table->stats().inserted_rows);
    ASSERT_OK(table->Export({}, &after));
    EXPECT_EQ(before.values, after.values);
    EXPECT_EQ(before.versions, after.versions);
    EXPECT_EQ(before.frequencies, after.frequencies);
  }
  EXPECT_GT(failures, 1);
}

}  // namespace
}  // namespace ev
