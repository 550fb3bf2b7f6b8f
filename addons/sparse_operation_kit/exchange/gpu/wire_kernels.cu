// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Each chunk or table has a row of blocks. A thread handles one number, or four
// adjacent ones. Sums are computed in float32, in the order of the CPU code
// (combine/pooling.h).

#include <cuda_runtime.h>

#include "addons/sparse_operation_kit/exchange/gpu/wire_kernels.h"
#include "addons/sparse_operation_kit/exchange/gpu/wire_pack.cuh"
#include "kernels/engine/base/gpu/cuda_error.h"

namespace sok {
namespace gpu {
namespace {

using ev::Status;

template <WireType kWire>
__global__ void __launch_bounds__(kThreads)
    ToWireKernel(const float* from, int64_t count, uint16_t* to) {
  for (int64_t i = FirstIndex(); i < count; i += IndexStep()) {
    to[i] = Wire<kWire>::To(from[i]);
  }
}

template <WireType kWire>
__global__ void __launch_bounds__(kThreads)
    FromWireKernel(const typename Wire<kWire>::Number* from,
                   const WireChunk* chunks, float scale, float* to) {
  const WireChunk chunk = chunks[blockIdx.y];
  if ((chunk.from | chunk.to | chunk.count) % 4 == 0) {
    for (int64_t i = FirstIndex(); i < chunk.count / 4; i += IndexStep()) {
      Pack<4> pack = Load<kWire, 4>(from + chunk.from + 4 * i);
#pragma unroll
      for (int k = 0; k < 4; ++k) pack.x[k] = pack.x[k] * scale;
      Store<4>(pack, to + chunk.to + 4 * i);
    }
    return;
  }
  for (int64_t i = FirstIndex(); i < chunk.count; i += IndexStep()) {
    to[chunk.to + i] = Wire<kWire>::From(from[chunk.from + i]) * scale;
  }
}

// Returns the row of key u.
template <typename Number>
__device__ __forceinline__ const Number* RowOf(const PooledTable& table,
                                               const Number* rows, int64_t u) {
  int r = 0;
  while (u >= table.starts[r + 1]) ++r;
  return rows + table.chunks[r] + (u - table.starts[r]) * table.dim;
}

template <WireType kWire, int kWidth>
__device__ __forceinline__ void PoolTable(
    const PooledTable& table, const typename Wire<kWire>::Number* rows) {
  const int64_t dim = table.dim / kWidth;
  const int64_t n = table.num_samples * dim;
  for (int64_t e = FirstIndex(); e < n; e += IndexStep()) {
    const int64_t s = e / dim;
    const int64_t c = (e - s * dim) * kWidth;
    const int32_t begin = table.offsets[s], end = table.offsets[s + 1];
    Pack<kWidth> sum = {};
    for (int32_t i = begin; i < end; ++i) {
      int32_t u = table.inverse[i];
      if (table.places != nullptr) u = table.places[u];
      const Pack<kWidth> row = Load<kWire, kWidth>(RowOf(table, rows, u) + c);
#pragma unroll
      for (int k = 0; k < kWidth; ++k) {
        // Do not add the first row to zero: -0 would become +0.
        sum.x[k] = i == begin ? row.x[k] : sum.x[k] + row.x[k];
      }
    }
    if (ev::Divides(table.combiner) && begin != end) {
      const float divisor =
          ev::DivisorOf(table.combiner, static_cast<float>(end - begin));
      if (divisor != 1.0f) {
#pragma unroll
        for (int k = 0; k < kWidth; ++k) sum.x[k] = sum.x[k] / divisor;
      }
    }
    StoreTyped<kWidth>(sum, table.out, table.out_type, e * kWidth);
  }
}

template <WireType kWire>
__global__ void __launch_bounds__(kThreads)
    PoolKernel(const PooledTable* tables,
               const typename Wire<kWire>::Number* rows) {
  const PooledTable table = tables[blockIdx.y];
  if (table.by_fours) {
    PoolTable<kWire, 4>(table, rows);
  } else {
    PoolTable<kWire, 1>(table, rows);
  }
}

struct FromWireLaunch {
  const char* from;
  const WireChunk* chunks;
  float scale;
  float* to;
  dim3 grid;
  cudaStream_t stream;
  template <WireType kWire>
  void Run() const {
    FromWireKernel<kWire><<<grid, kThreads, 0, stream>>>(
        reinterpret_cast<const typename Wire<kWire>::Number*>(from), chunks,
        scale, to);
  }
};

struct PoolLaunch {
  const PooledTable* tables;
  const char* rows;
  dim3 grid;
  cudaStream_t stream;
  template <WireType kWire>
  void Run() const {
    PoolKernel<kWire><<<grid, kThreads, 0, stream>>>(
        tables, reinterpret_cast<const typename Wire<kWire>::Number*>(rows));
  }
};

}  // namespace

Status LaunchToWire(const float* from, int64_t count, WireType wire, char* to,
                    ev::gpu::StreamView stream) {
  if (count == 0) return Status::OK();
  if (wire == WireType::kFloat32) {
    EV_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(to, from, count * sizeof(float),
                                            cudaMemcpyDeviceToDevice,
                                            stream.get()));
    return Status::OK();
  }
  const unsigned blocks = BlocksFor(count, 1 << 20);
  uint16_t* const out = reinterpret_cast<uint16_t*>(to);
  if (wire == WireType::kFloat16) {
    ToWireKernel<WireType::kFloat16>
        <<<blocks, kThreads, 0, stream.get()>>>(from, count, out);
  } else {
    ToWireKernel<WireType::kBFloat16>
        <<<blocks, kThreads, 0, stream.get()>>>(from, count, out);
  }
  EV_CUDA_RETURN_IF_LAUNCH_FAILED("ToWireKernel");
  return Status::OK();
}

Status LaunchFromWire(const char* from, WireType wire, const WireChunk* chunks,
                      int64_t num_chunks, int64_t most, float scale, float* to,
                      ev::gpu::StreamView stream) {
  if (num_chunks == 0 || most == 0) return Status::OK();
  FromWireLaunch launch;
  launch.from = from;
  launch.chunks = chunks;
  launch.scale = scale;
  launch.to = to;
  launch.grid = dim3(BlocksFor(most / 4 + 1, kMaxBlocks),
                     static_cast<unsigned>(num_chunks));
  launch.stream = stream.get();
  ForWire(wire, launch);
  EV_CUDA_RETURN_IF_LAUNCH_FAILED("FromWireKernel");
  return Status::OK();
}

Status LaunchPoolReceived(const PooledTable* tables, int64_t num_tables,
                          int64_t most, const char* rows, WireType wire,
                          ev::gpu::StreamView stream) {
  if (num_tables == 0 || most == 0) return Status::OK();
  PoolLaunch launch;
  launch.tables = tables;
  launch.rows = rows;
  launch.grid = dim3(BlocksFor(most / 4 + 1, kMaxBlocks),
                     static_cast<unsigned>(num_tables));
  launch.stream = stream.get();
  ForWire(wire, launch);
  EV_CUDA_RETURN_IF_LAUNCH_FAILED("PoolKernel");
  return Status::OK();
}

}  // namespace gpu
}  // namespace sok
