// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Compares routes whose ids a device deduplicates with routes made on the CPU:
// same messages, same bits.

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "addons/sparse_operation_kit/exchange/routed_table.h"
#include "addons/sparse_operation_kit/exchange/testing/loopback.h"
#include "kernels/engine/ids/device_distinct.h"
#include "kernels/engine/testing/host_device_distinct.h"
#include "kernels/engine/testing/thread_pool.h"

namespace sok {
namespace testing {
namespace {

using ev::Combiner;
using ev::testing::HostDeviceDistinct;

constexpr int64_t kMinIds = 100;

// HostDeviceDistinct that fails in the call named by the test.
class TestDistinct : public HostDeviceDistinct {
 public:
  TestDistinct(const ev::DistinctRequest& request,
               ev::testing::UnstartedTables unstarted, std::string fails)
      : HostDeviceDistinct(request, std::move(unstarted)),
        fails_(std::move(fails)) {}
  ev::Status Put(int64_t begin, ev::Span<const int64_t> ids) override {
    if (fails_ == "put") return ev::Internal("a bad put");
    return HostDeviceDistinct::Put(begin, ids);
  }
  using HostDeviceDistinct::Put;
  ev::Status Start(ev::Span<const int32_t> offsets) override {
    if (fails_ == "start") return ev::Internal("a bad start");
    return HostDeviceDistinct::Start(offsets);
  }
  ev::Status Wait() override {
    if (fails_ == "wait") return ev::Internal("a bad wait");
    return HostDeviceDistinct::Wait();
  }
  ev::Status Inverse(int32_t* inverse, int32_t* counts) const override {
    if (fails_ == "inverse") return ev::Internal("a bad inverse");
    if (inverse != nullptr) ++num_fetched;
    return HostDeviceDistinct::Inverse(inverse, counts);
  }
  static std::atomic<int> num_fetched;

 private:
  const std::string fails_;
};
std::atomic<int> TestDistinct::num_fetched{0};

class TestDevice : public DistinctDevice {
 public:
  int64_t min_ids_to_deduplicate() const override { return kMinIds; }
  ev::Status StartDistincts(
      ev::Span<const ev::DistinctRequest> requests,
      std::vector<std::unique_ptr<ev::DeviceDistinct>>* distincts) override {
    ++num_calls;
    EXPECT_FALSE(requests.empty());
    if (fails == "memory") return ev::ResourceExhausted("no memory");
    if (fails == "begin") return ev::Internal("a bad begin");
    const auto unstarted =
        std::make_shared<std::atomic<int64_t>>(requests.size());
    for (const ev::DistinctRequest& request : requests) {
      EXPECT_GE(request.num_ids, kMinIds / ev::kDistinctShares);
      EXPECT_FALSE(request.on_device);
      // Keys are sorted on the CPU if the inverse is copied to the host.
      EXPECT_EQ(request.brings_inverse, request.owners.empty());
      ++num_started;
      distincts->emplace_back(new TestDistinct(
          request, unstarted,
          fails_in.empty() || fails_in == request.name ? fails : ""));
    }
    return ev::Status::OK();
  }
  std::string fails_in;  // table that fails; empty: all
  std::string fails;
  std::atomic<int> num_started{0}, num_calls{0};
};

Bag RandomBag(std::mt19937* rng, int64_t batch_size, int64_t max_hotness,
              int64_t vocabulary) {
  Bag bag;
  bag.splits.push_back(0);
  for (int64_t b = 0; b < batch_size; ++b) {
    const int64_t n = (*rng)() % (max_hotness + 1);
    for (int64_t i = 0; i < n; ++i) {
      bag.ids.push_back(static_cast<int64_t>((*rng)() % vocabulary) -
                        vocabulary / 2);
    }
    bag.splits.push_back(bag.ids.size());
  }
  return bag;
}

std::vector<TableSpec> Tables(int num_ranks) {
  return {
      {"long", 4, Combiner::kMean, AllRanks(num_ranks)},
      {"short", 16, Combiner::kSum, AllRanks(num_ranks)},
      {"listed", 3, Combiner::kSqrtN, {0, num_ranks - 1, 0}},
      {"unused", 5, Combiner::kSum, AllRanks(num_ranks)},
      {"longest", 8, Combiner::kSum, AllRanks(num_ranks)},
  };
}

// Rank 1's batch is empty. The longest batch is uploaded in several parts.
std::vector<std::vector<Bag>> Bags(int num_ranks, uint32_t seed) {
  std::mt19937 rng(seed);
  std::vector<std::vector<Bag>> bags(num_ranks);
  for (int r = 0; r < num_ranks; ++r) {
    const int64_t batch = r == 1 ? 0 : 170 + 50 * r;
    bags[r] = {RandomBag(&rng, batch, 4, 50), RandomBag(&rng, batch / 10, 2, 9),
               RandomBag(&rng, batch, 6, 100000), RandomBag(&rng, batch, 0, 10),
               RandomBag(&rng, 100 * batch, 10, 3000)};
  }
  return bags;
}

struct Trained {
  std::vector<PerRank<float>> outputs;
  std::vector<std::vector<float>> grads;
};

// Trains one step of all tables. 'job' keeps its state after it.
Trained Train(LoopbackJob* job, int num_ranks) {
  Trained trained;
  ev::Status status = job->Forward(Bags(num_ranks, 5), &trained.outputs);
  EXPECT_TRUE(status.ok()) << status.message();
  std::vector<PerRank<float>> grads = trained.outputs;
  std::mt19937 rng(3);
  for (auto& rank : grads) {
    for (auto& grad : rank) {
      for (float& g : grad) g = static_cast<int>(rng() % 2001) - 1000;
    }
  }
  status = job->Backward({0, 1, 2, 3, 4}, grads);
  EXPECT_TRUE(status.ok()) << status.message();
  for (int r = 0; r < num_ranks; ++r) {
    for (int t = 0; t < 5; ++t) {
      trained.grads.push_back(job->unique_grads(r, t));
    }
  }
  return trained;
}

class RouteOnDeviceTest : public ::testing::TestWithParam<bool> {
 protected:
  LoopbackJob::Options Options(ev::Parallel* parallel) {
    LoopbackJob::Options options;
    options.num_ranks = 3;
    options.with_occurrences = GetParam();
    options.parallel = parallel;
    return options;
  }
  TestDevice device_;
};

TEST_P(RouteOnDeviceTest, SameRouteAndBits) {
  ev::testing::ThreadPool pool(4);
  for (ev::Parallel* parallel : {static_cast<ev::Parallel*>(nullptr),
                                 static_cast<ev::Parallel*>(&pool)}) {
    LoopbackJob::Options options = Options(parallel);
    LoopbackJob by_processors(options, Tables(3), {0.5f, -1.25f, 3.0f});
    options.device = &device_;
    LoopbackJob by_device(options, Tables(3), {0.5f, -1.25f, 3.0f});
    device_.num_started = device_.num_calls = 0;
    TestDistinct::num_fetched = 0;
    const Trained expected = Train(&by_processors, 3);
    const Trained got = Train(&by_device, 3);
    // The long tables of two ranks; those of a rank share one call.
    EXPECT_EQ(device_.num_started, 6);
    EXPECT_EQ(device_.num_calls, 2);
    // Fetched by pooling; grouping reuses it.
    EXPECT_EQ(TestDistinct::num_fetched, 6);
    EXPECT_TRUE(expected.outputs == got.outputs);
    EXPECT_TRUE(expected.grads == got.grads);
    for (int r = 0; r < 3; ++r) {
      const RoutePlan& plan = by_device.route(r);
      EXPECT_EQ(by_processors.route(r).message_size(), plan.message_size());
      for (int t = 0; t < 5; ++t) {
        const RoutedTable& one = by_processors.route(r).routed(t);
        const RoutedTable& other = plan.routed(t);
        EXPECT_EQ(r != 1 && t != 1 && t != 3, other.distinct != nullptr);
        EXPECT_FALSE(other.is_sorted_on_device);
        EXPECT_EQ(one.starts, other.starts);
        ASSERT_EQ(one.num_unique, other.num_unique);
        for (int64_t u = 0; u < one.num_unique; ++u) {
          ASSERT_EQ(one.unique[u], other.unique[u]);
          ASSERT_EQ(one.counts[u], other.counts[u]);
        }
        for (int64_t i = 0; i < one.num_ids; ++i) {
          ASSERT_EQ(one.inverse[i], other.inverse[i]);
        }
      }
    }
  }
}
// Checks messages when only keys were copied to the host.
TEST_P(RouteOnDeviceTest, SameMessages) {
  const LoopbackJob job(Options(nullptr), Tables(3), {0.5f});
  const std::vector<Bag> bags = Bags(3, 8)[2];
  std::vector<RouteInput> inputs;
  for (int t = 0; t < 5; ++t) inputs.push_back(job.MakeInput(t, bags[t]));
  RouteOptions options;
  options.num_ranks = 3;
  options.format.num_tables = 5;
  options.format.with_occurrences = GetParam();
  std::vector<int64_t> messages[2];
  // Both plans stay alive, so that neither reuses the other's memory.
  std::shared_ptr<const RoutePlan> plans[2];
  for (int on_device = 0; on_device < 2; ++on_device) {
    options.device = on_device == 0 ? nullptr : &device_;
    ASSERT_TRUE(Route(inputs, options, nullptr, &plans[on_device]).ok());
    messages[on_device].resize(plans[on_device]->message_size());
    EXPECT_TRUE(
        WriteMessage(*plans[on_device], nullptr, messages[on_device].data())
            .ok());
  }
  EXPECT_EQ(device_.num_started, 3);
  EXPECT_TRUE(messages[0] == messages[1]);
}

// One table and its batch.
struct OfTable {
  std::string name;
  Placement placement;
  std::vector<int64_t> ids, splits;
  std::vector<int32_t> narrow;
  RouteInput input;
};

// Tables of very different sizes, with the options of GPU ops: the device sorts
// keys by owner. Samples have one id, or up to four.
std::vector<OfTable> ManyTables(int num_tables, int num_ranks) {
  std::mt19937 rng(11);
  std::vector<OfTable> tables;
  for (int t = 0; t < num_tables; ++t) {
    std::vector<int32_t> ranks = AllRanks(num_ranks);
    if (t % 3 == 1) ranks = {0, num_ranks - 1, 0};
    tables.push_back(
        {"t" + std::to_string(t), Placement(ranks), {}, {}, {}, {}});
    OfTable& table = tables.back();
    const int64_t batch = t % 8 == 0 ? 30000 : kMinIds + rng() % (1 << t % 12);
    const int most = t % 5 == 0 ? 1 : 4;
    const int64_t vocabulary = 1 + rng() % (1 << t % 17);
    for (int64_t s = 0; s < batch; ++s) {
      table.splits.push_back(table.ids.size());
      const int64_t n = most == 1 || s < kMinIds ? 1 : rng() % (most + 1);
      for (int64_t i = 0; i < n; ++i) {
        table.ids.push_back(static_cast<int64_t>(rng() % vocabulary) -
                            vocabulary / 2);
        table.narrow.push_back(static_cast<int32_t>(table.ids.back()));
      }
    }
    table.splits.push_back(table.ids.size());
  }
  for (int t = 0; t < num_tables; ++t) {
    OfTable& table = tables[t];
    table.input.name = table.name;
    table.input.dim = 4;
    table.input.combiner = t % 2 == 0 ? Combiner::kSum : Combiner::kMean;
    table.input.placement = &table.placement;
    table.input.batch_size = table.splits.size() - 1;
    table.input.num_ids = table.ids.size();
    if (t % 4 == 1) {
      table.input.ids32 = table.narrow.data();
    } else {
      table.input.ids64 = table.ids.data();
    }
    table.input.row_splits = table.splits.data();
  }
  return tables;
}

TEST_P(RouteOnDeviceTest, ManyTablesSortedOnDevice) {
  ev::testing::ThreadPool pool(4);
  const int num_tables = 40, num_ranks = 3;
  const std::vector<OfTable> tables = ManyTables(num_tables, num_ranks);
  std::vector<RouteInput> inputs;
  std::vector<int> all;
  for (int t = 0; t < num_tables; ++t) {
    inputs.push_back(tables[t].input);
    all.push_back(t);
  }
  RouteOptions options;
  options.num_ranks = num_ranks;
  options.format.num_tables = num_tables;
  options.format.with_occurrences = GetParam();
  options.brings_inverse = false;
  std::shared_ptr<const RoutePlan> expected;
  ASSERT_TRUE(Route(inputs, options, &pool, &expected).ok());
  std::vector<int64_t> message(expected->message_size());
  EXPECT_TRUE(WriteMessage(*expected, &pool, message.data()).ok());
  options.device = &device_;
  for (ev::Parallel* parallel : {static_cast<ev::Parallel*>(nullptr),
                                 static_cast<ev::Parallel*>(&pool)}) {
    device_.num_started = device_.num_calls = 0;
    std::shared_ptr<const RoutePlan> plan;
    ASSERT_TRUE(Route(inputs, options, parallel, &plan).ok());
    EXPECT_EQ(device_.num_calls, 1);
    EXPECT_EQ(device_.num_started, num_tables);
    std::vector<int64_t> other(plan->message_size());
    EXPECT_TRUE(WriteMessage(*plan, parallel, other.data()).ok());
    EXPECT_TRUE(message == other);
    // A pooling device needs nothing more from the host.
    for (int t = 0; t < num_tables; ++t) {
      EXPECT_TRUE(plan->routed(t).is_sorted_on_device);
      EXPECT_EQ(plan->routed(t).for_pooling_bytes(), 0u);
    }
    ASSERT_TRUE(FetchInverse(*plan, all, parallel).ok());
    for (int t = 0; t < num_tables; ++t) {
      const RoutedTable& one = expected->routed(t);
      const RoutedTable& other = plan->routed(t);
      ASSERT_EQ(one.starts, other.starts);
      for (int64_t u = 0; u < one.num_unique; ++u) {
        ASSERT_EQ(one.counts[u], other.counts[u]);
      }
      for (int64_t i = 0; i < one.num_ids; ++i) {
        ASSERT_EQ(one.inverse[i], other.inverse[i]);
      }
    }
  }
}

// With more ranks than the device can sort by, the CPU sorts.
TEST_P(RouteOnDeviceTest, ManyRanks) {
  for (int num_ranks : {1, ev::kMaxKeyOwners, ev::kMaxKeyOwners + 1}) {
    const std::vector<OfTable> tables = ManyTables(3, num_ranks);
    std::vector<RouteInput> inputs;
    for (const OfTable& table : tables) inputs.push_back(table.input);
    RouteOptions options;
    options.num_ranks = num_ranks;
    options.format.num_tables = static_cast<int>(tables.size());
    options.format.with_occurrences = GetParam();
    std::vector<int64_t> messages[2];
    std::shared_ptr<const RoutePlan> plans[2];
    // The stand-in expects owners for every request without an inverse.
    options.brings_inverse = num_ranks > ev::kMaxKeyOwners;
    for (int on_device = 0; on_device < 2; ++on_device) {
      options.device = on_device == 0 ? nullptr : &device_;
      ASSERT_TRUE(Route(inputs, options, nullptr, &plans[on_device]).ok());
      messages[on_device].resize(plans[on_device]->message_size());
      EXPECT_TRUE(
          WriteMessage(*plans[on_device], nullptr, messages[on_device].data())
              .ok());
    }
    EXPECT_TRUE(messages[0] == messages[1]) << num_ranks;
    EXPECT_EQ(plans[1]->routed(0).is_sorted_on_device,
              num_ranks <= ev::kMaxKeyOwners);
  }
}

INSTANTIATE_TEST_SUITE_P(Occurrences, RouteOnDeviceTest, ::testing::Bool());

class RouteOnDeviceErrors : public ::testing::Test {
 protected:
  RouteOnDeviceErrors() {
    for (int64_t i = 0; i < 2 * kMinIds; ++i) {
      ids_.push_back(i % 7);
      narrow_.push_back(static_cast<int32_t>(i % 7));
      splits_.push_back(i);
    }
    splits_.push_back(ids_.size());
    in_.name = "item";
    in_.dim = 4;
    in_.placement = &placement_;
    in_.batch_size = in_.num_ids = ids_.size();
    in_.ids64 = ids_.data();
    in_.row_splits = splits_.data();
    options_.num_ranks = 2;
    options_.format.num_tables = 1;
    options_.device = &device_;
  }
  ev::Status Run() {
    return Route(ev::Span<const RouteInput>(&in_, 1), options_, nullptr,
                 &plan_);
  }
  // A device error that concerns all tables does not contain a table's name.
  void ExpectFails(const std::string& words) {
    const ev::Status status = Run();
    EXPECT_EQ(plan_, nullptr);
    EXPECT_NE(status.message().find(words), std::string::npos)
        << status.message();
    EXPECT_NE(device_.fails == "begin",
              status.message().find("item") != std::string::npos)
        << status.message();
  }
  bool IsOnDevice() const { return plan_->routed(0).distinct != nullptr; }

  TestDevice device_;
  std::vector<int64_t> ids_, splits_;
  std::vector<int32_t> narrow_;
  Placement placement_{{0, 1}};
  RouteInput in_;
  RouteOptions options_;
  std::shared_ptr<const RoutePlan> plan_;
};

TEST_F(RouteOnDeviceErrors, EveryCall) {
  for (const char* call : {"begin", "put", "start", "wait"}) {
    device_.fails = call;
    ExpectFails(std::string("a bad ") + call);
  }
}

// Other tables were uploaded and started, and a pool thread may be polling
// them.
TEST_F(RouteOnDeviceErrors, EveryCallForOneOfManyTables) {
  ev::testing::ThreadPool pool(4);
  const std::vector<OfTable> tables = ManyTables(9, 2);
  std::vector<RouteInput> inputs;
  for (const OfTable& table : tables) inputs.push_back(table.input);
  options_.format.num_tables = 9;
  for (bool brings_inverse : {false, true}) {
    options_.brings_inverse = brings_inverse;
    for (const char* call : {"put", "start", "wait"}) {
      device_.fails = call;
      device_.fails_in = "t4";
      const ev::Status status = Route(inputs, options_, &pool, &plan_);
      EXPECT_EQ(status.message(),
                std::string("a bad ") + call + ", table 't4'");
      EXPECT_EQ(plan_, nullptr);
    }
    device_.fails = "";
    std::shared_ptr<const RoutePlan> plan;
    EXPECT_TRUE(Route(inputs, options_, &pool, &plan).ok());
  }
}

TEST_F(RouteOnDeviceErrors, NoTableIsOnDeviceIfMemoryIsShortForOne) {
  const std::vector<OfTable> tables = ManyTables(9, 2);
  std::vector<RouteInput> inputs;
  for (const OfTable& table : tables) inputs.push_back(table.input);
  options_.format.num_tables = 9;
  device_.fails = "memory";
  ASSERT_TRUE(Route(inputs, options_, nullptr, &plan_).ok());
  EXPECT_EQ(device_.num_calls, 1);
  for (int t = 0; t < 9; ++t) {
    EXPECT_EQ(plan_->routed(t).distinct, nullptr);
  }
}

TEST_F(RouteOnDeviceErrors, BadSplitsBesideGoodIds) {
  splits_[5] = 100;
  ExpectFails("");
}

TEST_F(RouteOnDeviceErrors, FetchingTheInverseFails) {
  device_.fails = "inverse";
  ASSERT_TRUE(Run().ok());
  const int table = 0;
  const ev::Status status =
      FetchInverse(*plan_, ev::Span<const int>(&table, 1), nullptr);
  EXPECT_NE(status.message().find("a bad inverse, table 'item'"),
            std::string::npos)
      << status.message();
}

TEST_F(RouteOnDeviceErrors, WithoutDeviceMemoryTheCpuDeduplicates) {
  device_.fails = "memory";
  ASSERT_TRUE(Run().ok());
  EXPECT_FALSE(IsOnDevice());
  EXPECT_EQ(plan_->num_keys(0, 0) + plan_->num_keys(1, 0), 7);
}

TEST_F(RouteOnDeviceErrors, WeightsAndShortBatchesStayOnTheCpu) {
  const std::vector<float> weights(ids_.size(), 1.0f);
  in_.weights = weights.data();
  ASSERT_TRUE(Run().ok());
  EXPECT_FALSE(IsOnDevice());
  in_.weights = nullptr;
  in_.num_ids = in_.batch_size = kMinIds - 1;
  ASSERT_TRUE(Run().ok());
  EXPECT_FALSE(IsOnDevice());
}

TEST_F(RouteOnDeviceErrors, ShortTablesCountTogether) {
  const auto are_for_device = [&](std::vector<int64_t> num_ids) {
    std::vector<RouteInput> inputs(num_ids.size(), in_);
    for (size_t t = 0; t < num_ids.size(); ++t) inputs[t].num_ids = num_ids[t];
    options_.device = &device_;
    return AreForDevice(inputs, options_);
  };
  constexpr int64_t kShare = kMinIds / ev::kDistinctShares;
  options_.brings_inverse = false;
  EXPECT_EQ((std::vector<bool>{true, true, true}),
            are_for_device({kMinIds / 2, kMinIds / 2, kShare}));
  EXPECT_EQ((std::vector<bool>{true, false, false}),
            are_for_device({kMinIds, kShare - 1, 0}));
  EXPECT_EQ((std::vector<bool>{false, false}),
            are_for_device({kMinIds / 2, kMinIds / 2 - 1}));
  options_.brings_inverse = true;
  EXPECT_EQ((std::vector<bool>{true, false}),
            are_for_device({kMinIds, kMinIds - 1}));
}

TEST_F(RouteOnDeviceErrors, NarrowIds) {
  in_.ids64 = nullptr;
  in_.ids32 = narrow_.data();
  ASSERT_TRUE(Run().ok());
  EXPECT_TRUE(IsOnDevice());
  const std::vector<int64_t> keys(plan_->routed(0).unique,
                                  plan_->routed(0).unique + 7);
  EXPECT_EQ(keys, (std::vector<int64_t>{0, 2, 4, 6, 1, 3, 5}));
}

// Pooling and its gradient may call FetchInverse at the same time.
TEST_F(RouteOnDeviceErrors, ConcurrentFetches) {
  TestDistinct::num_fetched = 0;
  ASSERT_TRUE(Run().ok());
  std::vector<std::thread> callers;
  for (int c = 0; c < 4; ++c) {
    callers.emplace_back([&] {
      const int table = 0;
      EXPECT_TRUE(
          FetchInverse(*plan_, ev::Span<const int>(&table, 1), nullptr).ok());
      EXPECT_EQ(plan_->routed(0).inverse[8], plan_->routed(0).inverse[1]);
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(TestDistinct::num_fetched, 1);
}

}  // namespace
}  // namespace testing
}  // namespace sok
