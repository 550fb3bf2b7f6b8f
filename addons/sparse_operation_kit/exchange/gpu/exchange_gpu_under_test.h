// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Fixture of the tests that compare the GPU's part of a lookup over ranks with
// the CPU's: long and short tables, and their routes.

#ifndef ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_GPU_EXCHANGE_GPU_UNDER_TEST_H_
#define ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_GPU_EXCHANGE_GPU_UNDER_TEST_H_

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

// Declared as in <cuda_runtime_api.h>; kind 1: to the device.
extern "C" int cudaMemcpy(void* to, const void* from, size_t bytes, int kind);
extern "C" int cudaMemGetInfo(size_t* free_bytes, size_t* all_bytes);

namespace sok {

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

// Long and short tables, with aligned and unaligned rows; one key fills a tenth
// of all positions.
inline std::vector<Table> Tables() {
  return {
      {"one", 16, Combiner::kSum, Placement({0, 1, 2}), 80000, 1, 9000, false},
      {"few", 4, Combiner::kMean, Placement({0, 1, 2}), 300, 4, 50, false},
      {"odd", 7, Combiner::kSqrtN, Placement({2, 0, 0}), 30000, 5, 1 << 30,
       true},
      {"none", 8, Combiner::kSum, Placement({1}), 50000, 0, 10, false},
      {"wide", 40, Combiner::kMean, Placement({0, 1, 2}), 20000, 9, 300, false},
  };
}

// One rank's batch of these tables and the options of its route.
class ExchangeGpuTest : public ::testing::TestWithParam<WireType> {
 protected:
  void SetUp() override {
    EV_SKIP_WITHOUT_GPU(ExchangeDevice::Get(&device_));
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

  // Deduplicated by the CPU, by the device after an upload, or by the device
  // with ids in its memory.
  enum Way { kOnCpu, kUploaded, kInDeviceMemory };
  std::shared_ptr<const RoutePlan> MakeRoute(Way way,
                                             bool brings_inverse = true) {
    RouteOptions options = options_;
    options.device = way == kOnCpu ? nullptr : device_;
    options.brings_inverse = brings_inverse;
    std::shared_ptr<const RoutePlan> plan;
    const ev::Status status =
        Route(way == kInDeviceMemory ? DeviceInputs() : inputs_, options,
              &pool_, &plan);
    EXPECT_TRUE(status.ok()) << status.message();
    return plan;
  }

  template <typename T>
  const T* CopyToDevice(const std::vector<T>& values) {
    const size_t bytes = values.size() * sizeof(T);
    device_copies_.emplace_back();
    const ev::Status status =
        device_->Allocate(bytes + 1, &device_copies_.back());
    EXPECT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(0,
              cudaMemcpy(device_copies_.back().get(), values.data(), bytes, 1));
    return reinterpret_cast<const T*>(device_copies_.back().get());
  }

  // Ids and samples of long tables are in device memory; those with more than
  // five ids per sample use indices.
  std::vector<RouteInput> DeviceInputs() {
    stream_ = device_->stream();
    std::vector<RouteInput> inputs = inputs_;
    RouteOptions options = options_;
    options.device = device_;
    const std::vector<bool> are_on_device = AreForDevice(inputs, options);
    for (size_t t = 0; t < inputs.size(); ++t) {
      RouteInput& in = inputs[t];
      if (!are_on_device[t]) continue;
      in.on_device = true;
      in.stream = &stream_;
      if (in.ids32 != nullptr) {
        in.ids32 = CopyToDevice(narrow_[t]);
      } else {
        in.ids64 = CopyToDevice(ids_[t]);
      }
      if (tables_[t].most_ids <= 5) {
        in.row_splits = CopyToDevice(splits_[t]);
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
      in.coo_indices = CopyToDevice(indices);
    }
    return inputs;
  }

  // Random rows of all keys in pinned memory, which the GPU can read.
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

  std::vector<std::vector<float>> MakeOutputs(
      std::vector<ev::MutableFloats>* addresses) {
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
  std::vector<std::shared_ptr<char>> device_copies_;
};

}  // namespace sok

#endif  // ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_GPU_EXCHANGE_GPU_UNDER_TEST_H_
