// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Grouping is one stable radix sort by key of all ids of a call, table after
// table. Then each thread sums one column, or four adjacent ones. Sums have the
// bits of SumOccurrences in combine/pooling_gradient.h.
//
// Keys that occur very often are summed first (combine/gpu/long_sums.cuh),
// those of all tables in parallel: the hottest key of a table takes as long as
// all of its other keys.

#include <cuda_runtime.h>

#include <algorithm>
#include <cub/device/device_radix_sort.cuh>

#include "addons/sparse_operation_kit/exchange/gpu/sum_kernels.h"
#include "addons/sparse_operation_kit/exchange/gpu/wire_pack.cuh"
#include "kernels/engine/base/gpu/cuda_error.h"
#include "kernels/engine/combine/gpu/long_sums.cuh"

namespace sok {
namespace gpu {
namespace {

using ev::Status;
using ev::gpu::kManyOccurrences;

// Gradients in flight per thread.
constexpr int kAhead = 8;

// Writes each id's key, numbered over the whole call, and its sample.
__global__ void __launch_bounds__(kThreads)
    KeysKernel(const SummedTable* tables, uint32_t* keys, int32_t* samples) {
  const SummedTable table = tables[blockIdx.y];
  for (int64_t i = FirstIndex(); i < table.num_ids; i += IndexStep()) {
    int32_t u = table.inverse[i];
    if (table.places != nullptr) u = table.places[u];
    keys[table.first_id + i] = static_cast<uint32_t>(table.first_key + u);
    // Find the last sample that begins at or before the id.
    int64_t low = 0, high = table.num_samples - 1;
    while (low < high) {
      const int64_t middle = low + (high - low + 1) / 2;
      if (table.offsets[middle] <= i) {
        low = middle;
      } else {
        high = middle - 1;
      }
    }
    samples[table.first_id + i] = static_cast<int32_t>(low);
  }
}

__global__ void __launch_bounds__(kThreads)
    EndsKernel(const SummedTable* tables, const uint32_t* keys, int32_t* ends) {
  const SummedTable table = tables[blockIdx.y];
  const uint32_t* const own = keys + table.first_id;
  for (int64_t i = FirstIndex(); i < table.num_ids; i += IndexStep()) {
    if (i + 1 == table.num_ids || own[i + 1] != own[i]) {
      ends[own[i]] = static_cast<int32_t>(i + 1);
    }
  }
}

cudaError_t Sort(int64_t num_ids, int64_t num_keys, const GroupScratch& scratch,
                 size_t* bytes, int32_t* samples, cudaStream_t stream) {
  int bits = 1;
  while (bits < 31 && (num_keys - 1) >> bits != 0) ++bits;
  return cub::DeviceRadixSort::SortPairs(
      scratch.sort, *bytes, scratch.keys, scratch.sorted_keys, scratch.samples,
      samples, static_cast<int>(num_ids), 0, bits, stream);
}

// Sums columns [c, c + kWidth) over occurrences [i, end), at least one.
template <int kWidth>
__device__ __forceinline__ Pack<kWidth> SumOf(const SummedTable& table,
                                              const int32_t* samples, int32_t i,
                                              int32_t end, int64_t c) {
  const auto at = [&](int32_t k) {
    const int64_t sample = samples[k];
    Pack<kWidth> grad =
        LoadTyped<kWidth>(table.grads, table.grad_type, sample * table.dim + c);
    if (table.factors != nullptr) {
      const float factor = table.factors[sample];
#pragma unroll
      for (int w = 0; w < kWidth; ++w) grad.x[w] = grad.x[w] * factor;
    }
    return grad;
  };
  Pack<kWidth> sum = at(i++);
  for (; i + kAhead <= end; i += kAhead) {
    Pack<kWidth> ahead[kAhead];
#pragma unroll
    for (int k = 0; k < kAhead; ++k) ahead[k] = at(i + k);
#pragma unroll
    for (int k = 0; k < kAhead; ++k) {
#pragma unroll
      for (int w = 0; w < kWidth; ++w) sum.x[w] += ahead[k].x[w];
    }
  }
  for (; i < end; ++i) {
    const Pack<kWidth> grad = at(i);
#pragma unroll
    for (int w = 0; w < kWidth; ++w) sum.x[w] += grad.x[w];
  }
  return sum;
}

template <WireType kWire, int kWidth>
__device__ __forceinline__ void SumTable(
    const SummedTable& table, const int32_t* all_ends,
    const int32_t* all_samples, typename Wire<kWire>::Number* message) {
  const int32_t* const ends = all_ends + table.first_key;
  const int32_t* const samples = all_samples + table.first_id;
  const int64_t dim = table.dim / kWidth;
  const int64_t n = table.num_keys * dim;
  for (int64_t e = FirstIndex(); e < n; e += IndexStep()) {
    const int64_t u = e / dim;
    const int64_t c = (e - u * dim) * kWidth;
    const int32_t begin = u == 0 ? 0 : ends[u - 1], end = ends[u];
    const Pack<kWidth> sum =
        end - begin >= kManyOccurrences
            ? Load<WireType::kFloat32, kWidth>(
                  table.long_sums + begin / kManyOccurrences * table.dim + c)
            : SumOf<kWidth>(table, samples, begin, end, c);
    int r = 0;
    while (u >= table.starts[r + 1]) ++r;
    StoreAs<kWire, kWidth>(
        sum, message + table.chunks[r] + (u - table.starts[r]) * table.dim + c);
  }
}

// blockIdx.y is the table.
__global__ void __launch_bounds__(ev::gpu::kSumThreads, 2)
    LongSumsKernel(const SummedTable* tables, const int32_t* ends,
                   const int32_t* samples) {
  __shared__ ev::gpu::LongSumsShared shared;
  const SummedTable& table = tables[blockIdx.y];
  ev::gpu::PooledGradients gradients;
  gradients.ends = ends + table.first_key;
  gradients.samples = samples + table.first_id;
  gradients.factors = table.factors;
  gradients.grads = table.grads;
  gradients.grad_type = table.grad_type;
  const bool is_aligned =
      table.dim % 4 == 0 && reinterpret_cast<uintptr_t>(table.grads) %
                                    (4 * ev::FloatBytes(table.grad_type)) ==
                                0;
  if (is_aligned) {
    ev::gpu::SumLongKeys<float4>(gradients, table.num_keys, table.num_ids,
                                 table.dim, table.long_sums, &shared);
  } else {
    ev::gpu::SumLongKeys<float>(gradients, table.num_keys, table.num_ids,
                                table.dim, table.long_sums, &shared);
  }
}

template <WireType kWire>
__global__ void __launch_bounds__(kThreads)
    SumKernel(const SummedTable* tables, const int32_t* ends,
              const int32_t* samples, typename Wire<kWire>::Number* message) {
  const SummedTable table = tables[blockIdx.y];
  if (table.by_fours) {
    SumTable<kWire, 4>(table, ends, samples, message);
  } else {
    SumTable<kWire, 1>(table, ends, samples, message);
  }
}

struct SumLaunch {
  const SummedTable* tables;
  const int32_t* ends;
  const int32_t* samples;
  char* message;
  dim3 grid;
  cudaStream_t stream;
  template <WireType kWire>
  void Run() const {
    SumKernel<kWire><<<grid, kThreads, 0, stream>>>(
        tables, ends, samples,
        reinterpret_cast<typename Wire<kWire>::Number*>(message));
  }
};

}  // namespace

void AddTable(const SummedTable& table, SummedTables* all) {
  ++all->num_tables;
  all->num_ids += table.num_ids;
  all->num_keys += table.num_keys;
  all->most_ids = std::max(all->most_ids, table.num_ids);
  all->most_sums = std::max(all->most_sums, table.num_keys * table.dim);
  all->most_long_blocks = std::max(
      all->most_long_blocks, ev::gpu::LongSumBlocks(table.num_ids, table.dim));
}

Status SortScratchBytes(int64_t num_ids, int64_t num_keys, size_t* bytes) {
  *bytes = 0;
  if (num_ids == 0) return Status::OK();
  EV_CUDA_RETURN_IF_ERROR(
      Sort(num_ids, num_keys, GroupScratch(), bytes, nullptr, nullptr));
  return Status::OK();
}

Status LaunchGroupRoute(const SummedTables& all, const GroupScratch& scratch,
                        int32_t* ends, int32_t* samples,
                        ev::gpu::StreamView stream) {
  if (all.num_ids == 0) return Status::OK();
  const dim3 grid(BlocksFor(all.most_ids, kMaxBlocks),
                  static_cast<unsigned>(all.num_tables));
  KeysKernel<<<grid, kThreads, 0, stream.get()>>>(all.tables, scratch.keys,
                                                  scratch.samples);
  EV_CUDA_RETURN_IF_LAUNCH_FAILED("KeysKernel");
  size_t bytes = scratch.sort_bytes;
  EV_CUDA_RETURN_IF_ERROR(
      Sort(all.num_ids, all.num_keys, scratch, &bytes, samples, stream.get()));
  EndsKernel<<<grid, kThreads, 0, stream.get()>>>(all.tables,
                                                  scratch.sorted_keys, ends);
  EV_CUDA_RETURN_IF_LAUNCH_FAILED("EndsKernel");
  return Status::OK();
}

Status LaunchSumRoute(const SummedTables& all, const int32_t* ends,
                      const int32_t* samples, WireType wire, char* message,
                      ev::gpu::StreamView stream) {
  if (all.most_sums == 0) return Status::OK();
  if (all.most_long_blocks > 0) {
    const dim3 grid(
        static_cast<unsigned>(std::min(kMaxBlocks, all.most_long_blocks)),
        static_cast<unsigned>(all.num_tables));
    LongSumsKernel<<<grid, ev::gpu::kSumThreads, 0, stream.get()>>>(
        all.tables, ends, samples);
    EV_CUDA_RETURN_IF_LAUNCH_FAILED("LongSumsKernel");
  }
  SumLaunch launch;
  launch.tables = all.tables;
  launch.ends = ends;
  launch.samples = samples;
  launch.message = message;
  launch.grid = dim3(BlocksFor(all.most_sums / 4 + 1, kMaxBlocks),
                     static_cast<unsigned>(all.num_tables));
  launch.stream = stream.get();
  ForWire(wire, launch);
  EV_CUDA_RETURN_IF_LAUNCH_FAILED("SumKernel");
  return Status::OK();
}

}  // namespace gpu
}  // namespace sok
