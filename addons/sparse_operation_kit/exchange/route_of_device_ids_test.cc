// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Compares routes of ids and samples in device memory with routes of the same
// batch in host memory: same messages, same plan.

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "addons/sparse_operation_kit/exchange/routed_table.h"
#include "addons/sparse_operation_kit/exchange/testing/loopback.h"
#include "kernels/engine/ids/device_distinct.h"
#include "kernels/engine/testing/host_device_distinct.h"
#include "kernels/engine/testing/host_device_memory.h"
#include "kernels/engine/testing/thread_pool.h"

namespace sok {
namespace testing {
namespace {

using ev::Combiner;
using ev::Status;
using ev::StatusCode;
using ev::testing::HostDeviceDistinct;
using ev::testing::HostStream;
using ev::testing::Reach;

constexpr int64_t kMinIds = 100;
constexpr int kNumRanks = 3;

// HostDeviceDistinct that counts copies to host memory.
class TestDistinct : public HostDeviceDistinct {
 public:
  using HostDeviceDistinct::HostDeviceDistinct;
  Status Samples(int32_t* offsets) const override {
    ++num_samples_fetched;
    if (samples_fail) return ev::Internal("a bad fetch");
    return HostDeviceDistinct::Samples(offsets);
  }
  Status Places(int32_t* places) const override {
    ++num_places_fetched;
    if (places_fail) return ev::Internal("no places");
    return HostDeviceDistinct::Places(places);
  }
  static std::atomic<int> num_samples_fetched, num_places_fetched;
  static std::atomic<bool> samples_fail, places_fail;
};
std::atomic<int> TestDistinct::num_samples_fetched{0};
std::atomic<int> TestDistinct::num_places_fetched{0};
std::atomic<bool> TestDistinct::samples_fail{false};
std::atomic<bool> TestDistinct::places_fail{false};

class TestDevice : public DistinctDevice {
 public:
  int64_t min_ids_to_deduplicate() const override { return kMinIds; }
  Status StartDistincts(
      ev::Span<const ev::DistinctRequest> requests,
      std::vector<std::unique_ptr<ev::DeviceDistinct>>* distincts) override {
    if (fails == "memory") return ev::ResourceExhausted("no memory");
    if (fails == "begin") return ev::Internal("a bad begin");
    const auto unstarted =
        std::make_shared<std::atomic<int64_t>>(requests.size());
    for (const ev::DistinctRequest& request : requests) {
      EXPECT_GE(request.num_ids, kMinIds / ev::kDistinctShares);
      ++(request.on_device ? num_on_device : num_put);
      distincts->emplace_back(new TestDistinct(request, unstarted));
    }
    return Status::OK();
  }
  std::string fails;
  int num_put = 0, num_on_device = 0;
};

// A framework's tensors in device memory, written by its stream.
class Tensors {
 public:
  ~Tensors() {
    stream_.Wait();
    for (void* block : blocks_) ev::testing::FreeHostDeviceMemory(block);
  }
  template <typename T>
  const T* Make(const std::vector<T>& values) {
    const size_t bytes = values.size() * sizeof(T);
    void* const block = ev::testing::AllocateHostDeviceMemory(bytes + 1);
    blocks_.push_back(block);
    stream_.Give([=] { std::memcpy(Reach(block), values.data(), bytes); });
    return static_cast<const T*>(block);
  }
  ev::DeviceStream stream() { return stream_.stream(); }

 private:
  HostStream stream_;
  std::vector<void*> blocks_;
};

// One table's batch in host memory.
struct Batch {
  std::string name;
  int64_t dim;
  Combiner combiner;
  Placement placement;
  bool is_narrow, by_indices;
  std::vector<int64_t> ids, splits, indices;
  std::vector<int32_t> narrow;

  // Draws samples of up to 'most' ids of 'vocabulary' keys around 0. If most is
  // 1, every sample has exactly one id.
  void Draw(std::mt19937* rng, int64_t batch_size, int64_t most,
            int64_t vocabulary) {
    splits.push_back(0);
    for (int64_t s = 0; s < batch_size; ++s) {
      const int64_t n = most == 1 ? 1 : (*rng)() % (most + 1);
      for (int64_t i = 0; i < n; ++i) {
        ids.push_back(static_cast<int64_t>((*rng)() % vocabulary) -
                      vocabulary / 2);
        narrow.push_back(static_cast<int32_t>(ids.back()));
        indices.push_back(s);
        indices.push_back(i);
      }
      splits.push_back(ids.size());
    }
  }

  RouteInput Sizes() const {
    RouteInput in;
    in.name = name;
    in.dim = dim;
    in.combiner = combiner;
    in.placement = &placement;
    in.batch_size = splits.size() - 1;
    in.num_ids = ids.size();
    return in;
  }
  RouteInput InHostMemory() const {
    RouteInput in = Sizes();
    if (is_narrow) {
      in.ids32 = narrow.data();
    } else {
      in.ids64 = ids.data();
    }
    (by_indices ? in.coo_indices : in.row_splits) =
        by_indices ? indices.data() : splits.data();
    return in;
  }
  RouteInput InDeviceMemory(Tensors* tensors,
                            const ev::DeviceStream* stream) const {
    RouteInput in = Sizes();
    if (is_narrow) {
      in.ids32 = tensors->Make(narrow);
    } else {
      in.ids64 = tensors->Make(ids);
    }
    (by_indices ? in.coo_indices : in.row_splits) =
        tensors->Make(by_indices ? indices : splits);
    in.on_device = true;
    in.stream = stream;
    return in;
  }
};

Batch Table(const std::string& name, Combiner combiner, bool is_narrow,
            bool by_indices, std::vector<int32_t> ranks = {0, 1, 2}) {
  return Batch{name,      4,          combiner, Placement(std::move(ranks)),
               is_narrow, by_indices, {},       {},
               {},        {}};
}

std::vector<Batch> Batches(uint32_t seed) {
  std::vector<Batch> batches = {
      Table("mean", Combiner::kMean, false, true),
      Table("sum", Combiner::kSum, true, false),
      Table("one each", Combiner::kSqrtN, false, true),
      Table("listed", Combiner::kSqrtN, false, false, {0, 2, 0}),
      Table("short", Combiner::kSum, false, true),
      Table("unused", Combiner::kMean, false, false),
  };
  std::mt19937 rng(seed);
  batches[0].Draw(&rng, 300, 4, 50);
  batches[1].Draw(&rng, 400, 6, 100000);
  batches[2].Draw(&rng, 350, 1, 90);
  batches[3].Draw(&rng, 9000, 9, 3000);
  batches[4].Draw(&rng, 9, 1, 9);
  batches[5].Draw(&rng, 20, 0, 9);
  return batches;
}

class RouteOfDeviceIds : public ::testing::TestWithParam<bool> {
 protected:
  RouteOfDeviceIds() {
    options_.num_ranks = kNumRanks;
    options_.brings_inverse = false;
    stream_ = tensors_.stream();
    TestDistinct::num_samples_fetched = 0;
    TestDistinct::num_places_fetched = 0;
    TestDistinct::samples_fail = TestDistinct::places_fail = false;
  }
  void SetTables(const std::vector<Batch>& batches) {
    options_.format.num_tables = static_cast<int>(batches.size());
  }
  // The inputs of tables for which the device is used are in device memory.
  std::vector<RouteInput> Inputs(const std::vector<Batch>& batches) {
    options_.device = &device_;
    std::vector<RouteInput> sizes, inputs;
    for (const Batch& batch : batches) sizes.push_back(batch.Sizes());
    const std::vector<bool> are_on_device = AreForDevice(sizes, options_);
    for (size_t t = 0; t < batches.size(); ++t) {
      inputs.push_back(are_on_device[t]
                           ? batches[t].InDeviceMemory(&tensors_, &stream_)
                           : batches[t].InHostMemory());
    }
    return inputs;
  }
  void ExpectUnimplemented(const Batch& batch, const std::string& words) {
    SetTables({batch});
    options_.device = &device_;
    const RouteInput in = batch.InDeviceMemory(&tensors_, &stream_);
    std::shared_ptr<const RoutePlan> plan;
    const Status status = Route({&in, 1}, options_, nullptr, &plan);
    EXPECT_EQ(status.code(), StatusCode::kUnimplemented) << status.message();
    EXPECT_NE(status.message().find(words), std::string::npos)
        << status.message();
    EXPECT_NE(status.message().find("'" + batch.name + "'"), std::string::npos)
        << status.message();
    EXPECT_EQ(plan, nullptr);
  }

  Tensors tensors_;
  ev::DeviceStream stream_;
  TestDevice device_;
  RouteOptions options_;
};

TEST_P(RouteOfDeviceIds, SameMessagesAndPlan) {
  ev::testing::ThreadPool pool(4);
  const std::vector<Batch> batches = Batches(5);
  const int num_tables = static_cast<int>(batches.size());
  SetTables(batches);
  options_.format.with_occurrences = GetParam();
  std::vector<RouteInput> on_host;
  for (const Batch& batch : batches) on_host.push_back(batch.InHostMemory());
  std::shared_ptr<const RoutePlan> expected;
  ASSERT_TRUE(Route(on_host, options_, &pool, &expected).ok());
  std::vector<int64_t> message(expected->message_size());
  EXPECT_TRUE(WriteMessage(*expected, &pool, message.data()).ok());
  for (ev::Parallel* parallel : {static_cast<ev::Parallel*>(nullptr),
                                 static_cast<ev::Parallel*>(&pool)}) {
    device_.num_on_device = 0;
    TestDistinct::num_samples_fetched = 0;
    TestDistinct::num_places_fetched = 0;
    std::shared_ptr<const RoutePlan> plan;
    const Status status = Route(Inputs(batches), options_, parallel, &plan);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(device_.num_on_device, 4);
    EXPECT_EQ(device_.num_put, 0);
    // Only combiners that divide need offsets on the host; the sum fetches
    // none.
    EXPECT_EQ(TestDistinct::num_samples_fetched, 3);
    // Messages with occurrence counts need the places.
    EXPECT_EQ(TestDistinct::num_places_fetched, GetParam() ? 4 : 0);
    std::vector<int64_t> other(plan->message_size());
    EXPECT_TRUE(WriteMessage(*plan, parallel, other.data()).ok());
    EXPECT_TRUE(message == other);
    std::vector<int> all;
    for (int t = 0; t < num_tables; ++t) all.push_back(t);
    ASSERT_TRUE(FetchInverse(*plan, all, parallel).ok());
    ASSERT_TRUE(FetchInverse(*plan, all, parallel).ok());
    EXPECT_EQ(TestDistinct::num_samples_fetched, 4);
    EXPECT_EQ(TestDistinct::num_places_fetched, GetParam() ? 8 : 4);
    for (int t = 0; t < num_tables; ++t) {
      const RoutedTable& one = expected->routed(t);
      const RoutedTable& other = plan->routed(t);
      EXPECT_EQ(t < 4, other.distinct != nullptr);
      EXPECT_EQ(t < 4, other.is_sorted_on_device);
      EXPECT_EQ(one.starts, other.starts);
      ASSERT_EQ(one.num_unique, other.num_unique);
      EXPECT_EQ(one.has_factors, other.has_factors) << one.name;
      EXPECT_EQ(one.has_factors, t == 0 || t == 3) << one.name;
      for (int64_t u = 0; u < one.num_unique; ++u) {
        ASSERT_EQ(one.unique[u], other.unique[u]);
        ASSERT_EQ(one.counts[u], other.counts[u]);
      }
      for (int64_t i = 0; i < one.num_ids; ++i) {
        ASSERT_EQ(one.inverse[i], other.inverse[i]);
      }
      for (int64_t s = 0; s <= one.batch_size; ++s) {
        ASSERT_EQ(one.offsets[s], other.offsets[s]);
        if (one.has_factors && s < one.batch_size) {
          ASSERT_EQ(one.factors[s], other.factors[s]);
        }
      }
    }
  }
}

// The largest number of owners that a device sorts by, and one more.
TEST_P(RouteOfDeviceIds, ManyRanks) {
  for (int num_ranks : {1, ev::kMaxKeyOwners, ev::kMaxKeyOwners + 1}) {
    std::vector<int32_t> ranks;
    for (int r = 0; r < num_ranks; ++r) ranks.push_back(num_ranks - 1 - r);
    Batch batch = Table("all", Combiner::kSum, false, false, ranks);
    std::mt19937 rng(num_ranks);
    batch.Draw(&rng, 900, 5, 700);
    SetTables({batch});
    options_.num_ranks = num_ranks;
    options_.format.with_occurrences = GetParam();
    std::vector<int64_t> messages[2];
    std::shared_ptr<const RoutePlan> plans[2];
    for (int on_device = 0; on_device < 2; ++on_device) {
      options_.device = on_device == 0 ? nullptr : &device_;
      const RouteInput in = on_device == 0
                                ? batch.InHostMemory()
                                : batch.InDeviceMemory(&tensors_, &stream_);
      ASSERT_TRUE(Route({&in, 1}, options_, nullptr, &plans[on_device]).ok());
      messages[on_device].resize(plans[on_device]->message_size());
      EXPECT_TRUE(
          WriteMessage(*plans[on_device], nullptr, messages[on_device].data())
              .ok());
    }
    EXPECT_TRUE(messages[0] == messages[1]);
    EXPECT_EQ(plans[1]->routed(0).is_sorted_on_device,
              num_ranks <= ev::kMaxKeyOwners);
  }
}

INSTANTIATE_TEST_SUITE_P(Occurrences, RouteOfDeviceIds, ::testing::Bool());

class RouteOfDeviceIdsErrors : public RouteOfDeviceIds {
 protected:
  RouteOfDeviceIdsErrors()
      : batch_(Table("item", Combiner::kSum, false, false)) {
    std::mt19937 rng(3);
    batch_.Draw(&rng, 150, 5, 40);
  }
  Batch batch_;
};

// The caller then copies the inputs to host memory, where the error is made.
TEST_F(RouteOfDeviceIdsErrors, SamplesOutOfOrder) {
  Batch splits = batch_;
  splits.splits[7] = -1;
  Batch end = batch_;
  ++end.splits.back();
  Batch indices = batch_;
  indices.by_indices = true;
  indices.indices[20] = 150;
  for (const Batch& bad : {splits, end, indices}) {
    ExpectUnimplemented(bad, "");
    const RouteInput in = bad.InHostMemory();
    std::shared_ptr<const RoutePlan> plan;
    EXPECT_EQ(Route({&in, 1}, options_, nullptr, &plan).code(),
              StatusCode::kInvalidArgument);
  }
}

TEST_F(RouteOfDeviceIdsErrors, SamplesOutOfOrderInOneOfManyTables) {
  std::vector<Batch> batches = Batches(9);
  batches[3].splits[5] = 1 << 20;
  SetTables(batches);
  std::shared_ptr<const RoutePlan> plan;
  EXPECT_EQ(Route(Inputs(batches), options_, nullptr, &plan).code(),
            StatusCode::kUnimplemented);
  EXPECT_EQ(plan, nullptr);
  batches = Batches(9);
  EXPECT_TRUE(Route(Inputs(batches), options_, nullptr, &plan).ok());
}

TEST_F(RouteOfDeviceIdsErrors, IdsThatTheDeviceCannotDeduplicate) {
  device_.fails = "memory";
  ExpectUnimplemented(batch_, "no memory");
  device_.fails = "";
  Batch few = Table("few", Combiner::kSum, false, false);
  std::mt19937 rng(3);
  few.Draw(&rng, kMinIds - 1, 1, 40);
  ExpectUnimplemented(few, "does not deduplicate");
  Batch most = batch_;
  most.combiner = Combiner::kMax;
  ExpectUnimplemented(most, "does not deduplicate");
  device_.fails = "begin";
  SetTables({batch_});
  const RouteInput in = batch_.InDeviceMemory(&tensors_, &stream_);
  std::shared_ptr<const RoutePlan> plan;
  const Status status = Route({&in, 1}, options_, nullptr, &plan);
  EXPECT_EQ(status.code(), StatusCode::kInternal);
  EXPECT_EQ(status.message(), "a bad begin");
}

// Some tables have ids in device memory; the ids of others are uploaded by Put.
TEST_P(RouteOfDeviceIds, SomeTablesInHostMemory) {
  const std::vector<Batch> batches = Batches(5);
  SetTables(batches);
  options_.format.with_occurrences = GetParam();
  std::vector<RouteInput> on_host, mixed = Inputs(batches);
  for (const Batch& batch : batches) on_host.push_back(batch.InHostMemory());
  mixed[1] = on_host[1];
  mixed[3] = on_host[3];
  for (bool brings_inverse : {false, true}) {
    options_.brings_inverse = brings_inverse;
    device_.num_on_device = device_.num_put = 0;
    std::vector<int64_t> messages[2];
    std::shared_ptr<const RoutePlan> plans[2];
    for (int on_device = 0; on_device < 2; ++on_device) {
      options_.device = on_device == 0 ? nullptr : &device_;
      ASSERT_TRUE(Route(on_device == 0 ? on_host : mixed, options_, nullptr,
                        &plans[on_device])
                      .ok());
      messages[on_device].resize(plans[on_device]->message_size());
      EXPECT_TRUE(
          WriteMessage(*plans[on_device], nullptr, messages[on_device].data())
              .ok());
    }
    EXPECT_EQ(device_.num_on_device, 2);
    EXPECT_EQ(device_.num_put, 2);
    EXPECT_TRUE(messages[0] == messages[1]);
    EXPECT_EQ(plans[1]->routed(1).is_sorted_on_device, !brings_inverse);
    EXPECT_TRUE(plans[1]->routed(2).is_sorted_on_device);
  }
}

TEST_F(RouteOfDeviceIdsErrors, FetchingSamplesFails) {
  TestDistinct::samples_fail = true;
  batch_.combiner = Combiner::kMean;
  SetTables({batch_});
  std::shared_ptr<const RoutePlan> plan;
  Status status = Route(Inputs({batch_}), options_, nullptr, &plan);
  EXPECT_EQ(status.message(), "a bad fetch, table 'item'");
  EXPECT_EQ(plan, nullptr);
  batch_.combiner = Combiner::kSum;
  ASSERT_TRUE(Route(Inputs({batch_}), options_, nullptr, &plan).ok());
  const int table = 0;
  status = FetchInverse(*plan, {&table, 1}, nullptr);
  EXPECT_EQ(status.message(), "a bad fetch, table 'item'");
}

TEST_F(RouteOfDeviceIdsErrors, FetchingPlacesFails) {
  TestDistinct::places_fail = true;
  SetTables({batch_});
  std::shared_ptr<const RoutePlan> plan;
  ASSERT_TRUE(Route(Inputs({batch_}), options_, nullptr, &plan).ok());
  const int table = 0;
  EXPECT_EQ(FetchInverse(*plan, {&table, 1}, nullptr).message(),
            "no places, table 'item'");
  TestDistinct::places_fail = false;
  EXPECT_TRUE(FetchInverse(*plan, {&table, 1}, nullptr).ok());
  TestDistinct::places_fail = true;
  options_.format.with_occurrences = true;
  plan.reset();
  EXPECT_EQ(Route(Inputs({batch_}), options_, nullptr, &plan).message(),
            "no places, table 'item'");
  EXPECT_EQ(plan, nullptr);
}

}  // namespace
}  // namespace testing
}  // namespace sok
