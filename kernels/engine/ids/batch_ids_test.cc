// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/ids/batch_ids.h"

#include <atomic>
#include <memory>
#include <random>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/engine/base/scratch.h"
#include "kernels/engine/testing/host_device_distinct.h"
#include "kernels/engine/testing/thread_pool.h"

namespace ev {
namespace {

using testing::HostDeviceDistinct;

// One table's batch, and its plan.
struct Table {
  // Samples of 0, 1, 2, 0, 1, 2, ... ids; 'range' different ids.
  Table(std::string table, int64_t num_ids, int64_t range)
      : name(std::move(table)), splits{0} {
    std::mt19937_64 random(num_ids);
    for (int64_t i = 0; i < num_ids; ++i) {
      ids.push_back(static_cast<int64_t>(random() % range) - range / 2);
      weights.push_back(static_cast<float>(i % 5));
    }
    for (int64_t s = 0; splits.back() < num_ids; ++s) {
      const int64_t begin = splits.back();
      splits.push_back(std::min(num_ids, begin + s % 3));
      for (int64_t i = begin; i < splits.back(); ++i) {
        indices.insert(indices.end(), {s, i - begin});
      }
    }
    narrow.assign(ids.begin(), ids.end());
    in.batch_size = splits.size() - 1;
    in.num_ids = num_ids;
    in.ids64 = ids.data();
    in.row_splits = splits.data();
  }

  void Reserve() {
    plan.Begin(in, name);
    ArrayLayout layout;
    const TableIds::Layout at = plan.AddTo(&layout, in.num_ids);
    plan.PointInto(static_cast<char*>(arrays.Reserve(layout.bytes())), at);
  }

  // Checks the plan. of_first_occurrence: distinct keys must be in order of
  // first occurrence; otherwise any order is right.
  void ExpectPlanned(bool of_first_occurrence) const {
    ASSERT_EQ(plan.num_ids, in.num_ids);
    for (int64_t s = 0; s <= in.batch_size; ++s) {
      ASSERT_EQ(plan.offsets[s], splits[s]) << name;
    }
    if (plan.has_weights) {
      for (int64_t i = 0; i < in.num_ids; ++i) {
        ASSERT_EQ(plan.weights[i], weights[i]) << name;
      }
    }
    std::unordered_map<int64_t, int32_t> counts;
    int64_t unseen = 0;
    for (int64_t i = 0; i < in.num_ids; ++i) {
      const int64_t u = plan.inverse[i];
      ASSERT_LT(u, plan.num_unique);
      ASSERT_EQ(plan.unique[u], ids[i]) << name;
      if (of_first_occurrence && counts.count(ids[i]) == 0) {
        ASSERT_EQ(u, unseen++) << name;
      }
      ++counts[ids[i]];
    }
    ASSERT_EQ(plan.num_unique, static_cast<int64_t>(counts.size())) << name;
    for (int64_t u = 0; u < plan.num_unique; ++u) {
      ASSERT_EQ(plan.counts[u], counts.at(plan.unique[u])) << name;
    }
  }

  const std::string name;
  std::vector<int64_t> ids, splits, indices;
  std::vector<int32_t> narrow;
  std::vector<float> weights;
  IdsInput in;
  TableIds plan;
  LineBuffer arrays;
};

using Tables = std::vector<std::unique_ptr<Table>>;

// Tables with no, few, many, and too many ids for one task; each in every form.
Tables MakeTables() {
  Tables tables;
  for (const auto& size : std::vector<std::pair<int64_t, int64_t>>{
           {0, 1}, {10, 4}, {900, 1000}, {30000, 500}, {200000, 60000}}) {
    for (int form = 0; form < 4; ++form) {
      const std::string name =
          std::to_string(size.first) + " ids in form " + std::to_string(form);
      tables.emplace_back(new Table(name, size.first, size.second));
      Table* const table = tables.back().get();
      if (form % 2 == 1) {
        table->in.ids64 = nullptr;
        table->in.ids32 = table->narrow.data();
        table->in.weights = table->weights.data();
      }
      if (form / 2 == 1) {
        table->in.row_splits = nullptr;
        table->in.coo_indices = table->indices.data();
      }
    }
  }
  return tables;
}

Status Plan(const Tables& tables, const PlanIdsOptions& options,
            Parallel* parallel, DistinctQueue* queue = nullptr) {
  std::vector<const IdsInput*> inputs;
  std::vector<TableIds*> plans;
  for (const auto& table : tables) {
    table->Reserve();
    inputs.push_back(&table->in);
    plans.push_back(&table->plan);
  }
  return PlanIds(inputs, plans, options, queue, parallel);
}

class BatchIdsTest : public ::testing::Test {
 protected:
  testing::ThreadPool pool_{3};
};

TEST_F(BatchIdsTest, PlansEveryTable) {
  for (Parallel* parallel :
       {static_cast<Parallel*>(nullptr), static_cast<Parallel*>(&pool_)}) {
    for (const DistinctOrder order :
         {DistinctOrder::kShardByShard, DistinctOrder::kFirstOccurrence}) {
      const Tables tables = MakeTables();
      const int n = static_cast<int>(tables.size());
      std::vector<std::atomic<int>> checked(n), sampled(n), keyed(n);
      PlanIdsOptions options;
      options.order = order;
      options.check = [&](int t) {
        EXPECT_EQ(0, sampled[t]);
        ++checked[t];
        return Status::OK();
      };
      options.samples_known = [&](int t) {
        EXPECT_EQ(tables[t]->in.num_ids,
                  tables[t]->plan.offsets[tables[t]->in.batch_size]);
        ++sampled[t];
        return Status::OK();
      };
      options.keys_known = [&](int t, Parallel* within) {
        const TableIds& plan = tables[t]->plan;
        // Each of the four long tables is a fair share of a thread's work.
        const bool is_shared = plan.num_ids > ShardedIds::kMaxWhole &&
                               order == DistinctOrder::kShardByShard;
        EXPECT_EQ(is_shared ? parallel : nullptr, within);
        EXPECT_GE(plan.num_unique, plan.num_ids > 0 ? 1 : 0);
        if (IsSmall(plan, options.ids_per_task)) {
          EXPECT_EQ(1, sampled[t]);
        }
        ++keyed[t];
        return Status::OK();
      };
      ASSERT_TRUE(Plan(tables, options, parallel).ok());
      for (int t = 0; t < n; ++t) {
        const TableIds& plan = tables[t]->plan;
        const bool in_shards = order == DistinctOrder::kShardByShard &&
                               plan.num_ids > ShardedIds::kMaxWhole;
        EXPECT_EQ(in_shards, plan.is_sharded);
        tables[t]->ExpectPlanned(!in_shards);
        EXPECT_EQ(1, checked[t]);
        EXPECT_EQ(1, sampled[t]);
        EXPECT_EQ(1, keyed[t]);
      }
    }
  }
}

TEST_F(BatchIdsTest, ALongTableKeepsNoThreadWaiting) {
  for (Parallel* parallel :
       {static_cast<Parallel*>(nullptr), static_cast<Parallel*>(&pool_)}) {
    Tables tables;
    tables.emplace_back(new Table("long", 200000, 60000));
    tables.emplace_back(new Table("short", 1000, 60));
    int keyed = 0;
    PlanIdsOptions options;
    options.order = DistinctOrder::kFirstOccurrence;
    options.keys_known = [&](int t, Parallel* within) {
      if (t == 0) {
        EXPECT_EQ(parallel, within);
        ++keyed;
      }
      return Status::OK();
    };
    ASSERT_TRUE(Plan(tables, options, parallel).ok());
    EXPECT_EQ(1, keyed);
    for (const auto& table : tables) table->ExpectPlanned(true);
  }
}

TEST_F(BatchIdsTest, OneIdASample) {
  Tables tables = MakeTables();
  for (const auto& table : tables) {
    table->in.row_splits = table->in.coo_indices = nullptr;
    table->in.batch_size = table->in.num_ids;
    for (int64_t i = table->splits.size(); i <= table->in.num_ids; ++i) {
      table->splits.push_back(0);
    }
    for (int64_t i = 0; i <= table->in.num_ids; ++i) table->splits[i] = i;
  }
  PlanIdsOptions options;
  options.samples = Samples::kOneIdEach;
  options.order = DistinctOrder::kFirstOccurrence;
  ASSERT_TRUE(Plan(tables, options, &pool_).ok());
  for (const auto& table : tables) table->ExpectPlanned(true);
}

TEST_F(BatchIdsTest, TheSamplesOfASmallTableAreKnownBeforeItsKeys) {
  for (Parallel* parallel :
       {static_cast<Parallel*>(nullptr), static_cast<Parallel*>(&pool_)}) {
    const Tables tables = MakeTables();
    std::vector<std::atomic<bool>> known(tables.size());
    PlanIdsOptions options;
    options.samples_known = [&](int t) {
      known[t] = true;
      return Status::OK();
    };
    options.keys_known = [&](int t, Parallel*) {
      const bool is_small = tables[t]->in.num_ids <= 900;
      EXPECT_TRUE(known[t] || !is_small) << tables[t]->name;
      return Status::OK();
    };
    ASSERT_TRUE(Plan(tables, options, parallel).ok());
  }
}

TEST_F(BatchIdsTest, ErrorsNameTheTable) {
  for (int64_t size : {10, 30000, 200000}) {
    Tables tables;
    tables.emplace_back(new Table("good", 50, 7));
    tables.emplace_back(new Table("bad", size, 7));
    tables[1]->splits[1] = size;  // decreases after that
    const Status status = Plan(tables, PlanIdsOptions(), &pool_);
    EXPECT_EQ(StatusCode::kInvalidArgument, status.code());
    EXPECT_NE(std::string::npos, status.message().find("table 'bad'"))
        << status.message();
  }
}

TEST_F(BatchIdsTest, ErrorsOfTheCaller) {
  for (const std::string step : {"check", "samples", "keys"}) {
    const Tables tables = MakeTables();
    const auto fails_in = [&](const std::string& at, int t) {
      return at == step && t == 13 ? Internal(at + " failed") : Status::OK();
    };
    PlanIdsOptions options;
    options.check = [&](int t) { return fails_in("check", t); };
    options.samples_known = [&](int t) { return fails_in("samples", t); };
    options.keys_known = [&](int t, Parallel*) { return fails_in("keys", t); };
    EXPECT_EQ(step + " failed", Plan(tables, options, &pool_).message());
  }
}

TEST(CheckIdsTest, ReportsWhatIsWrong) {
  const int64_t some64[2] = {0, 0};
  const int32_t some32[1] = {0};
  IdsInput good;
  good.batch_size = good.num_ids = 1;
  good.ids64 = some64;
  good.row_splits = some64;
  EXPECT_TRUE(CheckIds(good, "a").ok());
  EXPECT_TRUE(CheckIds(IdsInput(), "a").ok());
  const auto expect = [&](const std::string& words, const IdsInput& in) {
    const Status status = CheckIds(in, "a");
    EXPECT_EQ(StatusCode::kInvalidArgument, status.code());
    EXPECT_EQ(words + ", table 'a'", status.message());
  };
  IdsInput in = good;
  in.batch_size = -1;
  expect("the batch size: expected a number in [0, 2^31 - 1), got -1", in);
  in = good;
  in.num_ids = 2147483647;
  expect(
      "the number of ids: expected a number in [0, 2^31 - 1), got 2147483647",
      in);
  in = good;
  in.ids32 = some32;
  expect("ids: expected either int64 or int32", in);
  in = good;
  in.coo_indices = some64;
  expect("samples: expected either row splits or indices", in);
  in = good;
  in.row_splits = nullptr;
  expect("ids came without row splits and without indices", in);
}

// The devices finish in an order of their own.
TEST_F(BatchIdsTest, DevicesDeduplicate) {
  for (Parallel* parallel :
       {static_cast<Parallel*>(nullptr), static_cast<Parallel*>(&pool_)}) {
    const Tables tables = MakeTables();
    std::vector<TableIds*> plans;
    std::vector<bool> has_device_ids;
    for (const auto& table : tables) {
      const bool on_device =
          table->in.num_ids >= 900 && table->in.weights == nullptr;
      has_device_ids.push_back(on_device);
      plans.push_back(&table->plan);
      if (!on_device) continue;
      auto* distinct =
          new HostDeviceDistinct(table->in.num_ids, table->in.batch_size);
      if (table->in.num_ids == 900) distinct->BeLate();
      table->plan.distinct.reset(distinct);
    }
    std::vector<std::atomic<int>> taken(tables.size());
    DistinctQueue queue(plans, [&](int t) {
      ++taken[t];
      plans[t]->num_unique = plans[t]->distinct->num_unique();
      return Status::OK();
    });
    PlanIdsOptions options;
    options.order = DistinctOrder::kFirstOccurrence;
    options.ids_per_put = 7000;
    options.keys_known = [&](int t, Parallel*) {
      EXPECT_FALSE(has_device_ids[t]);
      return Status::OK();
    };
    ASSERT_TRUE(Plan(tables, options, parallel, &queue).ok());
    ASSERT_TRUE(queue.Finish(parallel).ok());
    for (size_t t = 0; t < tables.size(); ++t) {
      TableIds* const plan = plans[t];
      EXPECT_EQ(has_device_ids[t] ? 1 : 0, taken[t]);
      if (has_device_ids[t]) {
        std::copy_n(plan->distinct->keys(), plan->num_unique, plan->unique);
        ASSERT_TRUE(plan->distinct->Inverse(plan->inverse, plan->counts).ok());
      }
      tables[t]->ExpectPlanned(true);
    }
  }
}

class FailingDistinct : public HostDeviceDistinct {
 public:
  FailingDistinct(const IdsInput& in, std::string step)
      : HostDeviceDistinct(in.num_ids, in.batch_size), step_(std::move(step)) {}
  Status Put(int64_t begin, Span<const int64_t> ids) override {
    return Or("put", [&] { return HostDeviceDistinct::Put(begin, ids); });
  }
  using HostDeviceDistinct::Put;
  Status Start(Span<const int32_t> offsets) override {
    return Or("start", [&] { return HostDeviceDistinct::Start(offsets); });
  }
  Status Wait() override {
    return Or("wait", [&] { return HostDeviceDistinct::Wait(); });
  }

 private:
  template <typename Call>
  Status Or(const std::string& step, const Call& call) {
    return step == step_ ? Internal("a bad " + step) : call();
  }
  const std::string step_;
};

TEST_F(BatchIdsTest, ErrorsOfADeviceNameTheTable) {
  for (const std::string step : {"put", "start", "wait"}) {
    Tables tables;
    tables.emplace_back(new Table("t", 3000, 7));
    TableIds* const plan = &tables[0]->plan;
    plan->distinct.reset(new FailingDistinct(tables[0]->in, step));
    DistinctQueue queue({plan}, [](int) {
      ADD_FAILURE() << "taken";
      return Status::OK();
    });
    Status status = Plan(tables, PlanIdsOptions(), &pool_, &queue);
    if (status.ok()) status = queue.Finish(&pool_);
    EXPECT_EQ("a bad " + step + ", table 't'", status.message());
  }
}

// A device that reads the ids in place.
class ReadingDistinct : public FailingDistinct {
 public:
  explicit ReadingDistinct(const IdsInput& in) : FailingDistinct(in, "put") {}
  bool needs_put() const override { return false; }
  Status Start(Span<const int32_t>) override {
    ++starts;
    return Status::OK();
  }
  bool IsDone() const override { return true; }
  Status Wait() override { return Status::OK(); }

  std::atomic<int> starts{0};
};

TEST_F(BatchIdsTest, IdsThatADeviceReadsAreNotPut) {
  for (const int64_t size : {1, 3000, 200000}) {
    Tables tables;
    tables.emplace_back(new Table("t", size, 7));
    TableIds* const plan = &tables[0]->plan;
    auto* distinct = new ReadingDistinct(tables[0]->in);
    plan->distinct.reset(distinct);
    int taken = 0;
    DistinctQueue queue({plan}, [&](int) {
      ++taken;
      return Status::OK();
    });
    ASSERT_TRUE(Plan(tables, PlanIdsOptions(), &pool_, &queue).ok());
    ASSERT_TRUE(queue.Finish(&pool_).ok());
    EXPECT_EQ(1, distinct->starts);
    EXPECT_EQ(1, taken);
  }
}

}  // namespace
}  // namespace ev
