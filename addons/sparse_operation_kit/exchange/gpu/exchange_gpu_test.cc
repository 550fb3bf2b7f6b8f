// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Compares the GPU's part of a lookup over ranks with the CPU's: same messages,
// same bits.

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "addons/sparse_operation_kit/exchange/exchange_device.h"
#include "addons/sparse_operation_kit/exchange/gpu/exchange_gpu_under_test.h"
#include "addons/sparse_operation_kit/exchange/pool.h"
#include "addons/sparse_operation_kit/exchange/route.h"
#include "addons/sparse_operation_kit/exchange/routed_table.h"
#include "addons/sparse_operation_kit/exchange/row_chunks.h"
#include "addons/sparse_operation_kit/exchange/wire_type.h"
#include "gtest/gtest.h"
#include "kernels/engine/base/keyed_hash.h"
#include "kernels/engine/base/transfer_scratch.h"
#include "kernels/engine/ids/device_distinct.h"
#include "kernels/engine/testing/skip_without_gpu.h"
#include "kernels/engine/testing/stream_under_test.h"
#include "kernels/engine/testing/thread_pool.h"

namespace sok {
namespace {

bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() &&
         std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

TEST_P(ExchangeGpuTest, RoutesAndPools) {
  const std::shared_ptr<const RoutePlan> expected = MakeRoute(kOnCpu);
  ev::TransferScratch rows;
  const int64_t count = MakeRows(*expected, &rows);
  std::vector<int64_t> starts;
  ASSERT_OK(ChunkStartsOf(*expected, count, &starts));
  std::vector<ev::MutableFloats> addresses;
  const std::vector<std::vector<float>> outputs = MakeOutputs(&addresses);
  ASSERT_OK(PoolReceived(*expected, rows.ReserveOf<char>(1), count, GetParam(),
                         addresses, &pool_));
  std::vector<int64_t> message(expected->message_size());
  EXPECT_TRUE(WriteMessage(*expected, &pool_, message.data()).ok());
  // Later rounds reuse memory.
  for (int round = 0; round < 3; ++round) {
    for (Way way : {kOnCpu, kUploaded, kInDeviceMemory}) {
      const std::shared_ptr<const RoutePlan> plan = MakeRoute(way);
      for (int t = 0; t < plan->num_tables(); ++t) {
        EXPECT_EQ(way != kOnCpu &&
                      inputs_[t].num_ids >= device_->min_ids_to_deduplicate(),
                  plan->routed(t).distinct != nullptr)
            << tables_[t].name << " has " << inputs_[t].num_ids;
        EXPECT_EQ(way == kInDeviceMemory && plan->routed(t).distinct != nullptr,
                  plan->routed(t).is_sorted_on_device);
      }
      ASSERT_EQ(plan->message_size(), expected->message_size());
      std::vector<int64_t> other(plan->message_size());
      EXPECT_TRUE(WriteMessage(*plan, &pool_, other.data()).ok());
      EXPECT_TRUE(message == other);
      std::unique_ptr<DeviceRoute> route;
      ASSERT_OK(device_->StartRoute(plan, &route));
      std::vector<ev::MutableFloats> device_outputs;
      const std::vector<std::vector<float>> pooled =
          MakeOutputs(&device_outputs);
      ASSERT_OK(route->StartPool(rows.ReserveOf<char>(1), GetParam(), nullptr,
                                 starts, device_outputs, nullptr, nullptr));
      ASSERT_OK(route->Wait());
      for (size_t t = 0; t < pooled.size(); ++t) {
        EXPECT_TRUE(SameBits(outputs[t], pooled[t])) << tables_[t].name;
      }
      // Copies to the host what the CPU needs.
      std::vector<ev::MutableFloats> host_outputs;
      const std::vector<std::vector<float>> again = MakeOutputs(&host_outputs);
      ASSERT_OK(PoolReceived(*plan, rows.ReserveOf<char>(1), count, GetParam(),
                             host_outputs, &pool_));
      for (size_t t = 0; t < again.size(); ++t) {
        EXPECT_TRUE(SameBits(outputs[t], again[t])) << tables_[t].name;
      }
    }
  }
}

// Outputs and gradients are in the framework's device memory.
TEST_P(ExchangeGpuTest, PoolsAndSumsInDeviceMemory) {
  const std::shared_ptr<const RoutePlan> expected = MakeRoute(kOnCpu);
  ev::TransferScratch rows;
  const int64_t count = MakeRows(*expected, &rows);
  std::vector<int64_t> starts;
  ASSERT_OK(ChunkStartsOf(*expected, count, &starts));
  std::vector<ev::MutableFloats> addresses;
  const std::vector<std::vector<float>> outputs = MakeOutputs(&addresses);
  ASSERT_OK(PoolReceived(*expected, rows.ReserveOf<char>(1), count, GetParam(),
                         addresses, &pool_));
  const std::vector<int> tables = {4, 0, 1, 2, 3};
  std::mt19937 random(9);
  std::vector<std::vector<float>> grads;
  std::vector<ev::ConstFloats> host_grads;
  for (int t : tables) {
    grads.emplace_back(tables_[t].batch_size * tables_[t].dim);
    for (float& x : grads.back()) {
      x = (static_cast<int>(random() % 20001) - 10000) / 997.0f;
    }
    host_grads.push_back(grads.back().data());
  }
  const int64_t bytes = count * WireBytes(GetParam());
  std::string message(bytes, 'x');
  ASSERT_OK(PoolGradient(*expected, nullptr, tables, host_grads, GetParam(),
                         &message[0], &pool_));
  const std::vector<int64_t> message_starts = ChunkStarts(*expected, tables);
  for (int round = 0; round < 3; ++round) {
    for (Way way : {kOnCpu, kUploaded, kInDeviceMemory}) {
      const std::shared_ptr<const RoutePlan> plan = MakeRoute(way, round == 0);
      std::unique_ptr<DeviceRoute> route;
      ASSERT_OK(device_->StartRoute(plan, &route));
      std::vector<std::shared_ptr<char>> memory(2 * tables.size() + 1);
      std::vector<ev::MutableFloats> device_outputs;
      for (size_t t = 0; t < outputs.size(); ++t) {
        ASSERT_OK(device_->Allocate(outputs[t].size() * sizeof(float) + 1,
                                    &memory[t]));
        device_outputs.push_back(reinterpret_cast<float*>(memory[t].get()));
      }
      const ev::DeviceStream stream = device_->stream();
      std::shared_ptr<StreamEvent> done;
      ASSERT_OK(route->StartPool(rows.ReserveOf<char>(1), GetParam(), nullptr,
                                 starts, device_outputs, &stream, &done));
      ASSERT_NE(nullptr, done);
      ASSERT_OK(done->Wait());
      EXPECT_TRUE(done->IsReached());
      for (size_t t = 0; t < outputs.size(); ++t) {
        std::vector<float> pooled(outputs[t].size());
        ASSERT_OK(device_->CopyDown(memory[t].get(),
                                    pooled.size() * sizeof(float),
                                    reinterpret_cast<char*>(pooled.data())));
        EXPECT_TRUE(SameBits(outputs[t], pooled)) << tables_[t].name;
      }
      std::vector<ev::ConstFloats> device_grads;
      for (size_t k = 0; k < tables.size(); ++k) {
        std::shared_ptr<char>& block = memory[tables.size() + k];
        const size_t size = grads[k].size() * sizeof(float);
        ASSERT_OK(device_->Allocate(size + 1, &block));
        ASSERT_EQ(0, cudaMemcpy(block.get(), host_grads[k].data(), size, 1));
        device_grads.push_back(reinterpret_cast<const float*>(block.get()));
      }
      ASSERT_OK(device_->Allocate(bytes, &memory.back()));
      ASSERT_OK(route->SumGradients(tables, device_grads, stream,
                                    message_starts, GetParam(),
                                    memory.back().get(), &done));
      ASSERT_NE(nullptr, done);
      ASSERT_OK(done->Wait());
      std::string summed(bytes, 'y');
      ASSERT_OK(device_->CopyDown(memory.back().get(), bytes, &summed[0]));
      EXPECT_TRUE(message == summed) << way;
    }
  }
}

TEST_P(ExchangeGpuTest, SortsKeysByOwner) {
  for (int num_ranks : {1, 2, 7, ev::kMaxKeyOwners, ev::kMaxKeyOwners + 1}) {
    // Placements on all ranks, on one, and by a list that repeats ranks.
    std::vector<int32_t> all, some;
    for (int r = 0; r < num_ranks; ++r) all.push_back(num_ranks - 1 - r);
    for (int k = 0; k < 100; ++k) some.push_back(k * k % num_ranks);
    const Placement placements[] = {Placement(all), Placement({num_ranks / 2}),
                                    Placement(some)};
    for (size_t t = 0; t < inputs_.size(); ++t) {
      inputs_[t].placement = &placements[t % 3];
    }
    options_.num_ranks = num_ranks;
    const std::shared_ptr<const RoutePlan> expected = MakeRoute(kOnCpu);
    for (Way way : {kInDeviceMemory, kUploaded}) {
      const std::shared_ptr<const RoutePlan> plan =
          MakeRoute(way, /*brings_inverse=*/false);
      ASSERT_EQ(plan->message_size(), expected->message_size());
      std::vector<int64_t> one(plan->message_size()), other(one.size());
      EXPECT_TRUE(WriteMessage(*expected, &pool_, one.data()).ok());
      EXPECT_TRUE(WriteMessage(*plan, &pool_, other.data()).ok());
      EXPECT_TRUE(one == other) << num_ranks;
      for (int t = 0; t < plan->num_tables(); ++t) {
        EXPECT_EQ(expected->routed(t).starts, plan->routed(t).starts);
        EXPECT_EQ(plan->routed(t).distinct != nullptr &&
                      num_ranks <= ev::kMaxKeyOwners,
                  plan->routed(t).is_sorted_on_device);
      }
    }
  }
}

// More tables than one launch takes, of several lengths.
TEST_P(ExchangeGpuTest, ManyTablesInOneRoute) {
  const Placement some({2, 0, 0});
  std::vector<RouteInput> inputs;
  std::vector<int> all;
  for (int t = 0; t < 40; ++t) {
    const int like = t % 4 == 3 ? 1 : 2 * (t % 4);  // 0, 2, 4 and the short one
    RouteInput in = inputs_[like];
    in.name = "t" + std::to_string(t);
    if (t % 5 == 0) in.placement = &some;
    if (like != 1) in.batch_size -= 300 * t;
    in.num_ids = splits_[like][in.batch_size];
    inputs.push_back(in);
    all.push_back(t);
  }
  RouteOptions options = options_;
  options.format.num_tables = 40;
  options.brings_inverse = false;
  std::shared_ptr<const RoutePlan> expected;
  ASSERT_OK(Route(inputs, options, &pool_, &expected));
  std::vector<int64_t> message(expected->message_size());
  EXPECT_TRUE(WriteMessage(*expected, &pool_, message.data()).ok());
  options.device = device_;
  for (bool brings_inverse : {false, true}) {
    options.brings_inverse = brings_inverse;
    std::shared_ptr<const RoutePlan> plan;
    ASSERT_OK(Route(inputs, options, &pool_, &plan));
    ASSERT_EQ(plan->message_size(), expected->message_size());
    std::vector<int64_t> other(plan->message_size());
    EXPECT_TRUE(WriteMessage(*plan, &pool_, other.data()).ok());
    EXPECT_TRUE(message == other);
    ASSERT_OK(FetchInverse(*plan, all, &pool_));
    int num_on_device = 0;
    for (int t = 0; t < 40; ++t) {
      const RoutedTable& one = expected->routed(t);
      const RoutedTable& two = plan->routed(t);
      num_on_device += two.distinct != nullptr;
      ASSERT_EQ(one.starts, two.starts);
      const size_t bytes = one.num_ids * sizeof(int32_t);
      EXPECT_EQ(0, std::memcmp(one.inverse, two.inverse, bytes)) << t;
      EXPECT_EQ(0, std::memcmp(one.counts, two.counts,
                               one.num_unique * sizeof(int32_t)))
          << t;
    }
    EXPECT_GT(num_on_device, 26);
  }
}

// One table's batch for the device, and its expected result.
struct GroupedBatch {
  std::vector<int64_t> ids, splits, indices;
  std::vector<int32_t> narrow, offsets, owners;
  std::vector<int64_t> keys, sorted;
  std::vector<int32_t> counts, inverse, places, owner_starts;

  // range: number of different ids; 0: ids whose hashes meet, at the end of the
  // hash table or in one tag.
  void Draw(int64_t num_ids, int64_t range, const ev::KeyedHash& hash,
            std::mt19937_64* random) {
    offsets.push_back(0);
    while (offsets.back() < num_ids) {
      const int64_t end = offsets.back() + (*random)() % 4;
      offsets.push_back(std::min(end, num_ids));
    }
    splits.assign(offsets.begin(), offsets.end());
    for (size_t s = 0; s + 1 < offsets.size(); ++s) {
      for (int32_t i = offsets[s]; i < offsets[s + 1]; ++i) {
        indices.push_back(s);
        indices.push_back(i - offsets[s]);
      }
    }
    for (int64_t i = 0; i < num_ids; ++i) {
      const uint64_t drawn = (*random)();
      if (range == 0) {
        ids.push_back(hash.KeyOf(drawn % 2 == 0
                                     ? 0xFFFFFFFF00000000ULL | drawn % 700
                                     : drawn % 700 << 52 | 0xFFFFFFFFULL));
      } else if (drawn % 10 == 0) {
        ids.push_back(range == 1 << 30 && drawn % 20 == 0 ? INT32_MIN : 3);
      } else {
        ids.push_back(static_cast<int64_t>((*random)() % range) - range / 2);
      }
      narrow.push_back(static_cast<int32_t>(ids.back()));
    }
    std::unordered_map<int64_t, int32_t> number;
    for (int64_t id : ids) {
      const int32_t next = static_cast<int32_t>(keys.size());
      const int32_t u = number.emplace(id, next).first->second;
      if (u == next) {
        keys.push_back(id);
        counts.push_back(0);
      }
      ++counts[u];
      inverse.push_back(u);
    }
  }
  void SortBy(int num_owners, int num_residues, std::mt19937_64* random) {
    for (int k = 0; k < num_residues; ++k) {
      owners.push_back(static_cast<int32_t>((*random)() % num_owners));
    }
    places.resize(keys.size());
    for (int o = 0; o < num_owners; ++o) {
      owner_starts.push_back(static_cast<int32_t>(sorted.size()));
      for (size_t u = 0; u < keys.size(); ++u) {
        const int64_t residue =
            (keys[u] % num_residues + num_residues) % num_residues;
        if (owners[residue] != o) continue;
        places[u] = static_cast<int32_t>(sorted.size());
        sorted.push_back(keys[u]);
      }
    }
    owner_starts.push_back(static_cast<int32_t>(sorted.size()));
  }
};

// One id beside many, int32 beside int64, uploaded beside device memory, sorted
// beside unsorted: each table has its own result.
TEST_P(ExchangeGpuTest, DeduplicatesManyTablesTogether) {
  const int64_t sizes[] = {1,    300001, 2,    1024, 40000, 33,
                           1025, 5000,   1023, 1,    2049};
  std::mt19937_64 random(4);
  const ev::KeyedHash hash = ev::KeyedHash::FromSeed(5);
  const ev::ScopedHashForTesting given(hash);
  for (size_t num_tables : {1, 25, 26, 27, 60}) {
    stream_ = device_->stream();
    std::vector<GroupedBatch> batches(num_tables);
    std::vector<ev::DistinctRequest> requests(num_tables);
    for (size_t t = 0; t < num_tables; ++t) {
      GroupedBatch& batch = batches[t];
      ev::DistinctRequest& request = requests[t];
      const bool is_narrow = t % 3 == 1;
      const int64_t range = t % 7 == 0 ? 1 << 30 : 1 + 100 * t;
      batch.Draw(sizes[t % 11], t % 12 == 3 ? 0 : range, hash, &random);
      request.name = "t" + std::to_string(t);
      request.num_ids = batch.ids.size();
      request.num_samples = batch.offsets.size() - 1;
      request.on_device = t % 4 >= 2;
      request.brings_inverse = !request.on_device && t % 8 == 0;
      if (!request.brings_inverse && t % 5 != 4) {
        request.num_owners = 1 + t % 7;
        batch.SortBy(request.num_owners, 1 + t % 13, &random);
        request.owners = batch.owners;
      }
      if (!request.on_device) continue;
      request.device_ids.stream = stream_;
      if (is_narrow) {
        request.device_ids.ids32 = CopyToDevice(batch.narrow);
      } else {
        request.device_ids.ids64 = CopyToDevice(batch.ids);
      }
      if (t % 4 == 2) {
        request.device_ids.row_splits = CopyToDevice(batch.splits);
      } else {
        request.device_ids.coo_indices = CopyToDevice(batch.indices);
      }
    }
    // Later rounds reuse memory. 'dropped' is never started.
    for (int round = 0; round < 3; ++round) {
      std::vector<std::unique_ptr<ev::DeviceDistinct>> distincts, dropped;
      ASSERT_OK(device_->StartDistincts(requests, &dropped));
      ASSERT_OK(device_->StartDistincts(requests, &distincts));
      ASSERT_EQ(distincts.size(), num_tables);
      const auto start = [&](size_t t, ev::DeviceDistinct* distinct) {
        const GroupedBatch& batch = batches[t];
        if (!distinct->needs_put()) {
          ASSERT_OK(distinct->Start(Span<const int32_t>()));
          return;
        }
        const size_t n = batch.ids.size(), half = n / 2;
        if (t % 3 == 1) {
          const Span<const int32_t> ids(batch.narrow);
          ASSERT_OK(distinct->Put(half, ids.subspan(half, n - half)));
          ASSERT_OK(distinct->Put(0, ids.subspan(0, half)));
        } else {
          const Span<const int64_t> ids(batch.ids);
          ASSERT_OK(distinct->Put(half, ids.subspan(half, n - half)));
          ASSERT_OK(distinct->Put(0, ids.subspan(0, half)));
        }
        ASSERT_OK(distinct->Start(batch.offsets));
      };
      for (size_t t = 1; t < num_tables; t += 2) start(t, dropped[t].get());
      EXPECT_FALSE(dropped[0]->IsDone());
      EXPECT_FALSE(dropped[0]->Wait().ok());
      dropped.clear();
      std::vector<std::thread> callers;
      for (size_t c = 0; c < 4; ++c) {
        callers.emplace_back([&, c] {
          for (size_t t = 1 + c; t < num_tables; t += 4) {
            start(t, distincts[t].get());
          }
        });
      }
      for (std::thread& caller : callers) caller.join();
      callers.clear();
      if (num_tables > 1) {
        EXPECT_FALSE(distincts[1]->IsDone());
      }
      start(0, distincts[0].get());
      for (size_t c = 0; c < 4; ++c) {
        callers.emplace_back([&, c] {
          for (size_t t = c; t < num_tables; t += 4) {
            ASSERT_OK(distincts[t]->Wait());
          }
        });
      }
      for (std::thread& caller : callers) caller.join();
      for (size_t t = 0; t < num_tables; ++t) {
        const GroupedBatch& batch = batches[t];
        const ev::DeviceDistinct& distinct = *distincts[t];
        EXPECT_TRUE(distinct.IsDone());
        const int64_t n = batch.keys.size();
        ASSERT_EQ(n, distinct.num_unique()) << t << " of " << num_tables;
        const std::vector<int64_t> keys(distinct.keys(), distinct.keys() + n);
        EXPECT_TRUE(keys == (batch.owners.empty() ? batch.keys : batch.sorted))
            << t << " of " << num_tables;
        std::vector<int32_t> inverse(batch.ids.size()), counts(n), places(n);
        ASSERT_OK(distinct.Inverse(inverse.data(), counts.data()));
        EXPECT_TRUE(inverse == batch.inverse) << t << " of " << num_tables;
        EXPECT_TRUE(counts == batch.counts) << t << " of " << num_tables;
        if (requests[t].on_device) {
          std::vector<int32_t> offsets(batch.offsets.size());
          ASSERT_OK(distinct.Samples(offsets.data()));
          EXPECT_TRUE(offsets == batch.offsets) << t << " of " << num_tables;
        }
        if (batch.owners.empty()) {
          EXPECT_EQ(distinct.owner_starts(), nullptr);
          continue;
        }
        const std::vector<int32_t> owner_starts(
            distinct.owner_starts(),
            distinct.owner_starts() + requests[t].num_owners + 1);
        EXPECT_EQ(owner_starts, batch.owner_starts);
        ASSERT_OK(distinct.Places(places.data()));
        EXPECT_TRUE(places == batch.places) << t << " of " << num_tables;
      }
    }
  }
}

TEST_P(ExchangeGpuTest, DeviceSamplesOutOfOrder) {
  RouteOptions options = options_;
  options.device = device_;
  for (const auto& change :
       {std::make_pair(0, -1), std::make_pair(30, -1),
        std::make_pair(30, 1 << 30),
        std::make_pair(static_cast<int>(splits_[2].size()) - 1, 3)}) {
    std::vector<RouteInput> inputs = DeviceInputs();
    std::vector<int64_t> splits = splits_[2];
    splits[change.first] = change.second;
    inputs[2].row_splits = CopyToDevice(splits);
    std::shared_ptr<const RoutePlan> plan;
    EXPECT_EQ(Route(inputs, options, &pool_, &plan).code(),
              ev::StatusCode::kUnimplemented);
  }
  // A later call works as before.
  EXPECT_EQ(MakeRoute(kInDeviceMemory)->message_size(),
            MakeRoute(kOnCpu)->message_size());
}

TEST_P(ExchangeGpuTest, DeviceSamplesOfOneId) {
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
  in.ids64 = CopyToDevice(ids);
  in.row_splits = CopyToDevice(splits);
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

// Two such blocks do not fit; late work keeps the first one.
TEST_P(ExchangeGpuTest, AllocateWaitsForKeptMemory) {
  size_t free_bytes = 0, all_bytes = 0;
  ASSERT_EQ(0, cudaMemGetInfo(&free_bytes, &all_bytes));
  const int64_t bytes = static_cast<int64_t>(free_bytes / 10 * 6);
  std::shared_ptr<char> first, second;
  ASSERT_OK(device_->Allocate(bytes, &first));
  ev::testing::GiveLate(device_->stream(), [] {});
  std::shared_ptr<StreamEvent> event;
  ASSERT_OK(device_->RecordEvent(device_->stream(), &event));
  device_->KeepUntil(event, std::move(first));
  ASSERT_OK(device_->Allocate(bytes, &second));
  EXPECT_TRUE(event->IsReached());
}

INSTANTIATE_TEST_SUITE_P(Wires, ExchangeGpuTest,
                         ::testing::Values(WireType::kFloat32,
                                           WireType::kFloat16,
                                           WireType::kBFloat16));

}  // namespace
}  // namespace sok
