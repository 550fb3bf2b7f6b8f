// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// What the GPU does for a lookup over ranks, beside what the processors do: the
// same messages, the same bits.

#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "addons/sparse_operation_kit/exchange/exchange_device.h"
#include "addons/sparse_operation_kit/exchange/pool.h"
#include "addons/sparse_operation_kit/exchange/route.h"
#include "addons/sparse_operation_kit/exchange/routed_table.h"
#include "addons/sparse_operation_kit/exchange/row_chunks.h"
#include "addons/sparse_operation_kit/exchange/wire_type.h"
#include "gtest/gtest.h"
#include "kernels/engine/base/transfer_scratch.h"
#include "kernels/engine/testing/thread_pool.h"

// As in <cuda_runtime_api.h>; kind 1: to the device.
extern "C" int cudaMemcpy(void* to, const void* from, size_t bytes, int kind);

namespace sok {
namespace {

using ev::Combiner;
using ev::Span;

#define ASSERT_OK(expression)                             \
  do {                                                    \
    const ev::Status ev_status_ = (expression);           \
    ASSERT_TRUE(ev_status_.ok()) << ev_status_.message(); \
  } while (0)

struct Table {
  std::string name;
  int64_t dim;
  Combiner combiner;
  Placement placement;
  int64_t batch_size;
  int most_ids;    // of a sample
  int64_t range;   // of keys
  bool is_narrow;  // int32 ids
};

// Long and short ones, of aligned and other rows, with a key in a tenth of all
// places.
std::vector<Table> Tables() {
  return {
      {"one", 16, Combiner::kSum, Placement({0, 1, 2}), 80000, 1, 9000, false},
      {"few", 4, Combiner::kMean, Placement({0, 1, 2}), 300, 4, 50, false},
      {"odd", 7, Combiner::kSqrtN, Placement({2, 0, 0}), 30000, 5, 1 << 30,
       true},
      {"none", 8, Combiner::kSum, Placement({1}), 50000, 0, 10, false},
      {"wide", 40, Combiner::kMean, Placement({0, 1, 2}), 20000, 9, 300, false},
  };
}

// One rank's batch of these tables, and the options of a route of them.
class ExchangeGpuTest : public ::testing::TestWithParam<WireType> {
 protected:
  void SetUp() override {
    const ev::Status status = ExchangeDevice::Get(&device_);
    if (status.code() == ev::StatusCode::kFailedPrecondition) {
      GTEST_SKIP() << status.message();
    }
    ASSERT_OK(status);
    std::mt19937_64 random(7);
    const size_t n = tables_.size();
    ids_.resize(n);
    narrow_.resize(n);
    splits_.resize(n);
    for (size_t t = 0; t < n; ++t) {
      const Table& table = tables_[t];
      splits_[t].push_back(0);
      for (int64_t s = 0; s < table.batch_size; ++s) {
        const int64_t more = random() % (table.most_ids + 1);
        for (int64_t i = 0; i < more; ++i) {
          ids_[t].push_back(random() % 10 == 0
                                ? 3
                                : static_cast<int64_t>(random() % table.range) -
                                      table.range / 2);
          narrow_[t].push_back(static_cast<int32_t>(ids_[t].back()));
        }
        splits_[t].push_back(ids_[t].size());
      }
      RouteInput in;
      in.name = table.name;
      in.dim = table.dim;
      in.combiner = table.combiner;
      in.placement = &table.placement;
      in.batch_size = table.batch_size;
      in.num_ids = ids_[t].size();
      if (table.is_narrow) {
        in.ids32 = narrow_[t].data();
      } else {
        in.ids64 = ids_[t].data();
      }
      in.row_splits = splits_[t].data();
      inputs_.push_back(in);
    }
    options_.num_ranks = 3;
    options_.format.num_tables = static_cast<int>(n);
    options_.format.with_occurrences = true;
  }

  // By the processors, by the device, or by the device of ids in its memory.
  enum Way { kHere, kPut, kThere };
  std::shared_ptr<const RoutePlan> MakeRoute(Way way,
                                             bool brings_inverse = true) {
    RouteOptions options = options_;
    options.device = way == kHere ? nullptr : device_;
    options.brings_inverse = brings_inverse;
    std::shared_ptr<const RoutePlan> plan;
    const ev::Status status =
        Route(way == kThere ? InputsThere() : inputs_, options, &pool_, &plan);
    EXPECT_TRUE(status.ok()) << status.message();
    return plan;
  }

  template <typename T>
  const T* CopyThere(const std::vector<T>& values) {
    const size_t bytes = values.size() * sizeof(T);
    there_.emplace_back();
    const ev::Status status = device_->Allocate(bytes + 1, &there_.back());
    EXPECT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(0, cudaMemcpy(there_.back().get(), values.data(), bytes, 1));
    return reinterpret_cast<const T*>(there_.back().get());
  }

  // Long tables' ids and samples are in the device's memory; samples of more
  // than five ids come as indices.
  std::vector<RouteInput> InputsThere() {
    stream_ = device_->stream();
    std::vector<RouteInput> inputs = inputs_;
    RouteOptions options = options_;
    options.device = device_;
    for (size_t t = 0; t < inputs.size(); ++t) {
      RouteInput& in = inputs[t];
      if (!IsForDevice(in, options)) continue;
      in.on_device = true;
      in.stream = &stream_;
      if (in.ids32 != nullptr) {
        in.ids32 = CopyThere(narrow_[t]);
      } else {
        in.ids64 = CopyThere(ids_[t]);
      }
      if (tables_[t].most_ids <= 5) {
        in.row_splits = CopyThere(splits_[t]);
        continue;
      }
      std::vector<int64_t> indices;
      for (int64_t s = 0; s < in.batch_size; ++s) {
        for (int64_t i = splits_[t][s]; i < splits_[t][s + 1]; ++i) {
          indices.push_back(s);
          indices.push_back(i - splits_[t][s]);
        }
      }
      in.row_splits = nullptr;
      in.coo_indices = CopyThere(indices);
    }
    return inputs;
  }

  // Random rows of all keys, in pinned memory, which the GPU reads too.
  int64_t MakeRows(const RoutePlan& plan, ev::TransferScratch* rows) {
    int64_t count = 0;
    for (int t = 0; t < plan.num_tables(); ++t) {
      for (int r = 0; r < plan.num_ranks(); ++r) {
        count += plan.num_keys(r, t) * plan.dim(t);
      }
    }
    std::mt19937 random(5);
    std::vector<float> floats(count);
    for (float& x : floats) {
      x = (static_cast<int>(random() % 20001) - 10000) / 997.0f;
    }
    ToWire(floats.data(), count, GetParam(),
           rows->Reserve(count * WireBytes(GetParam())));
    return count;
  }

  std::vector<std::vector<float>> MakeOutputs(std::vector<float*>* addresses) {
    std::vector<std::vector<float>> outputs;
    for (const Table& table : tables_) {
      outputs.emplace_back(table.batch_size * table.dim, -1.0f);
    }
    for (auto& output : outputs) addresses->push_back(output.data());
    return outputs;
  }

  const std::vector<Table> tables_ = Tables();
  ev::testing::ThreadPool pool_{4};
  ExchangeDevice* device_ = nullptr;
  std::vector<std::vector<int64_t>> ids_, splits_;
  std::vector<std::vector<int32_t>> narrow_;
  std::vector<RouteInput> inputs_;
  RouteOptions options_;
  ev::DeviceStream stream_;
  std::vector<std::shared_ptr<char>> there_;
};

bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() &&
         std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

TEST_P(ExchangeGpuTest, RoutesAndPools) {
  const std::shared_ptr<const RoutePlan> expected = MakeRoute(kHere);
  ev::TransferScratch rows;
  const int64_t count = MakeRows(*expected, &rows);
  std::vector<int64_t> starts;
  ASSERT_OK(ChunkStartsOf(*expected, count, &starts));
  std::vector<float*> addresses;
  const std::vector<std::vector<float>> outputs = MakeOutputs(&addresses);
  ASSERT_OK(PoolReceived(*expected, rows.ReserveOf<char>(1), count, GetParam(),
                         addresses, &pool_));
  std::vector<int64_t> message(expected->message_size());
  WriteMessage(*expected, &pool_, message.data());
  // Memory that is used again, too.
  for (int round = 0; round < 3; ++round) {
    for (Way way : {kHere, kPut, kThere}) {
      const std::shared_ptr<const RoutePlan> plan = MakeRoute(way);
      for (int t = 0; t < plan->num_tables(); ++t) {
        EXPECT_EQ(way != kHere &&
                      inputs_[t].num_ids >= device_->min_ids_to_deduplicate(),
                  plan->routed(t).distinct != nullptr)
            << tables_[t].name << " has " << inputs_[t].num_ids;
        EXPECT_EQ(way == kThere && plan->routed(t).distinct != nullptr,
                  plan->routed(t).is_sorted_there);
      }
      ASSERT_EQ(plan->message_size(), expected->message_size());
      std::vector<int64_t> other(plan->message_size());
      WriteMessage(*plan, &pool_, other.data());
      EXPECT_TRUE(message == other);
      std::unique_ptr<DeviceRoute> route;
      ASSERT_OK(device_->StartRoute(plan, &route));
      std::vector<float*> there;
      const std::vector<std::vector<float>> pooled = MakeOutputs(&there);
      ASSERT_OK(route->StartPool(rows.ReserveOf<char>(1), GetParam(), starts,
                                 there, nullptr));
      ASSERT_OK(route->Wait());
      for (size_t t = 0; t < pooled.size(); ++t) {
        EXPECT_TRUE(SameBits(outputs[t], pooled[t])) << tables_[t].name;
      }
      // What the processors need comes down.
      std::vector<float*> here;
      const std::vector<std::vector<float>> again = MakeOutputs(&here);
      ASSERT_OK(PoolReceived(*plan, rows.ReserveOf<char>(1), count, GetParam(),
                             here, &pool_));
      for (size_t t = 0; t < again.size(); ++t) {
        EXPECT_TRUE(SameBits(outputs[t], again[t])) << tables_[t].name;
      }
    }
  }
}

// Outputs are written, and gradients read, where a framework has its tensors.
TEST_P(ExchangeGpuTest, PoolsAndSumsInItsMemory) {
  const std::shared_ptr<const RoutePlan> expected = MakeRoute(kHere);
  ev::TransferScratch rows;
  const int64_t count = MakeRows(*expected, &rows);
  std::vector<int64_t> starts;
  ASSERT_OK(ChunkStartsOf(*expected, count, &starts));
  std::vector<float*> addresses;
  const std::vector<std::vector<float>> outputs = MakeOutputs(&addresses);
  ASSERT_OK(PoolReceived(*expected, rows.ReserveOf<char>(1), count, GetParam(),
                         addresses, &pool_));
  const std::vector<int> tables = {4, 0, 1, 2, 3};
  std::mt19937 random(9);
  std::vector<std::vector<float>> grads;
  std::vector<const float*> here;
  for (int t : tables) {
    grads.emplace_back(tables_[t].batch_size * tables_[t].dim);
    for (float& x : grads.back()) {
      x = (static_cast<int>(random() % 20001) - 10000) / 997.0f;
    }
    here.push_back(grads.back().data());
  }
  const int64_t bytes = count * WireBytes(GetParam());
  std::string message(bytes, 'x');
  ASSERT_OK(PoolGradient(*expected, nullptr, tables, here, GetParam(),
                         &message[0], &pool_));
  const std::vector<int64_t> message_starts = ChunkStarts(*expected, tables);
  for (int round = 0; round < 3; ++round) {
    for (Way way : {kHere, kPut, kThere}) {
      const std::shared_ptr<const RoutePlan> plan = MakeRoute(way, round == 0);
      std::unique_ptr<DeviceRoute> route;
      ASSERT_OK(device_->StartRoute(plan, &route));
      std::vector<std::shared_ptr<char>> memory(2 * tables.size() + 1);
      std::vector<float*> there;
      for (size_t t = 0; t < outputs.size(); ++t) {
        ASSERT_OK(device_->Allocate(outputs[t].size() * sizeof(float) + 1,
                                    &memory[t]));
        there.push_back(reinterpret_cast<float*>(memory[t].get()));
      }
      const ev::DeviceStream stream = device_->stream();
      ASSERT_OK(route->StartPool(rows.ReserveOf<char>(1), GetParam(), starts,
                                 there, &stream));
      ASSERT_OK(route->Wait());
      for (size_t t = 0; t < outputs.size(); ++t) {
        std::vector<float> pooled(outputs[t].size());
        ASSERT_OK(device_->CopyDown(memory[t].get(),
                                    pooled.size() * sizeof(float),
                                    reinterpret_cast<char*>(pooled.data())));
        EXPECT_TRUE(SameBits(outputs[t], pooled)) << tables_[t].name;
      }
      std::vector<const float*> grads_there;
      for (size_t k = 0; k < tables.size(); ++k) {
        std::shared_ptr<char>& block = memory[tables.size() + k];
        const size_t size = grads[k].size() * sizeof(float);
        ASSERT_OK(device_->Allocate(size + 1, &block));
        ASSERT_EQ(0, cudaMemcpy(block.get(), here[k], size, 1));
        grads_there.push_back(reinterpret_cast<const float*>(block.get()));
      }
      ASSERT_OK(device_->Allocate(bytes, &memory.back()));
      ASSERT_OK(route->SumGradients(tables, grads_there, stream, message_starts,
                                    GetParam(), memory.back().get()));
      std::string summed(bytes, 'y');
      ASSERT_OK(device_->CopyDown(memory.back().get(), bytes, &summed[0]));
      EXPECT_TRUE(message == summed) << way;
    }
  }
}

TEST_P(ExchangeGpuTest, SortsKeysByOwner) {
  for (int num_ranks : {1, 2, 7, ev::kMaxKeyOwners, ev::kMaxKeyOwners + 1}) {
    // All, one, and a list in which ranks come more than once.
    std::vector<int32_t> all, some;
    for (int r = 0; r < num_ranks; ++r) all.push_back(num_ranks - 1 - r);
    for (int k = 0; k < 100; ++k) some.push_back(k * k % num_ranks);
    const Placement placements[] = {Placement(all), Placement({num_ranks / 2}),
                                    Placement(some)};
    for (size_t t = 0; t < inputs_.size(); ++t) {
      inputs_[t].placement = &placements[t % 3];
    }
    options_.num_ranks = num_ranks;
    const std::shared_ptr<const RoutePlan> expected = MakeRoute(kHere);
    const std::shared_ptr<const RoutePlan> plan = MakeRoute(kThere);
    ASSERT_EQ(plan->message_size(), expected->message_size());
    std::vector<int64_t> one(plan->message_size()), other(one.size());
    WriteMessage(*expected, &pool_, one.data());
    WriteMessage(*plan, &pool_, other.data());
    EXPECT_TRUE(one == other) << num_ranks;
    for (int t = 0; t < plan->num_tables(); ++t) {
      EXPECT_EQ(expected->routed(t).starts, plan->routed(t).starts);
    }
  }
}

TEST_P(ExchangeGpuTest, SamplesThatAreThereAndOutOfOrder) {
  RouteOptions options = options_;
  options.device = device_;
  for (const auto& change :
       {std::make_pair(0, -1), std::make_pair(30, -1),
        std::make_pair(30, 1 << 30),
        std::make_pair(static_cast<int>(splits_[2].size()) - 1, 3)}) {
    std::vector<RouteInput> inputs = InputsThere();
    std::vector<int64_t> splits = splits_[2];
    splits[change.first] = change.second;
    inputs[2].row_splits = CopyThere(splits);
    std::shared_ptr<const RoutePlan> plan;
    EXPECT_EQ(Route(inputs, options, &pool_, &plan).code(),
              ev::StatusCode::kUnimplemented);
  }
  // Another call is as before.
  EXPECT_EQ(MakeRoute(kThere)->message_size(),
            MakeRoute(kHere)->message_size());
}

TEST_P(ExchangeGpuTest, SamplesOfOneIdThatAreThere) {
  std::vector<int64_t> ids(50000), splits(50001);
  for (size_t i = 0; i < splits.size(); ++i) splits[i] = i;
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = i % 777;
  const Placement placement({0, 1, 2});
  RouteInput in;
  in.name = "each";
  in.dim = 4;
  in.combiner = Combiner::kMean;
  in.placement = &placement;
  in.batch_size = in.num_ids = ids.size();
  in.ids64 = CopyThere(ids);
  in.row_splits = CopyThere(splits);
  in.on_device = true;
  stream_ = device_->stream();
  in.stream = &stream_;
  options_.format.num_tables = 1;
  options_.device = device_;
  std::shared_ptr<const RoutePlan> plan;
  ASSERT_OK(Route({&in, 1}, options_, &pool_, &plan));
  EXPECT_FALSE(plan->routed(0).has_factors);
  EXPECT_EQ(plan->routed(0).offsets[50000], 50000);
  EXPECT_EQ(plan->routed(0).num_unique, 777);
}

INSTANTIATE_TEST_SUITE_P(Wires, ExchangeGpuTest,
                         ::testing::Values(WireType::kFloat32,
                                           WireType::kFloat16,
                                           WireType::kBFloat16));

}  // namespace
}  // namespace sok
