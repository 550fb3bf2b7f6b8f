// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include <string>

#include "addons/hierarchical_parameter_server/cache/gpu/cache_kernels.h"
#include "kernels/engine/base/gpu/cuda_error.h"
#include "kernels/engine/base/gpu/warp.cuh"

namespace hps {
namespace {

using ev::gpu::kAllLanes;
using ev::gpu::kWarp;

constexpr int kBlock = 256;
constexpr int64_t kMostBlocks = 1 << 16;

unsigned BlocksFor(int64_t threads) {
  const int64_t blocks = (threads + kBlock - 1) / kBlock;
  return static_cast<unsigned>(blocks < kMostBlocks ? blocks : kMostBlocks);
}

__global__ void __launch_bounds__(kBlock)
    WidenKernel(const int32_t* __restrict__ ids, int64_t count,
                int64_t* __restrict__ keys) {
  for (int64_t i = int64_t{blockIdx.x} * kBlock + threadIdx.x; i < count;
       i += int64_t{gridDim.x} * kBlock) {
    keys[i] = ids[i];
  }
}

// Each warp writes one word. REQUIRES: `threads` is `count` rounded up to whole
// warps.
__global__ void __launch_bounds__(kBlock)
    MissBitsKernel(const int64_t* __restrict__ slots, int64_t count,
                   int64_t threads, uint32_t* __restrict__ bits) {
  for (int64_t i = int64_t{blockIdx.x} * kBlock + threadIdx.x; i < threads;
       i += int64_t{gridDim.x} * kBlock) {
    const unsigned word =
        __ballot_sync(kAllLanes, i < count && __ldcs(slots + i) < 0);
    if (i % kWarp == 0) bits[i / kWarp] = word;
  }
}

// Calls copy(row, piece) for all pieces of `count` rows.
template <typename Copy>
__device__ __forceinline__ void ForEachPiece(int64_t count, int pieces,
                                             const Copy& copy) {
  const int64_t all = count * pieces;
  for (int64_t i = int64_t{blockIdx.x} * kBlock + threadIdx.x; i < all;
       i += int64_t{gridDim.x} * kBlock) {
    const int64_t row = i / pieces;
    copy(row, static_cast<int>(i - row * pieces));
  }
}

template <typename Piece>
__global__ void __launch_bounds__(kBlock)
    ScatterKernel(const Piece* __restrict__ staged,
                  const int64_t* __restrict__ positions, int64_t count,
                  int pieces, Piece* __restrict__ out) {
  ForEachPiece(count, pieces, [&](int64_t row, int piece) {
    out[positions[row] * pieces + piece] = staged[row * pieces + piece];
  });
}

// Numbers of a stored row, read in words of several numbers.
struct Float16Rows {
  static constexpr int kOfWord = 2;
  __device__ __forceinline__ void Read(const uint32_t* row, int /*width*/,
                                       int word, float* out) const {
    const uint32_t bits = row[word];
    out[0] = ev::FromFloat16(static_cast<uint16_t>(bits));
    out[1] = ev::FromFloat16(static_cast<uint16_t>(bits >> 16));
  }
};
struct Uint8Rows {
  static constexpr int kOfWord = 4;
  __device__ __forceinline__ void Read(const uint32_t* row, int width, int word,
                                       float* out) const {
    const uint32_t bits = row[word], end = row[width - 1];
    const float scale = ev::FromFloat16(static_cast<uint16_t>(end));
    const float offset = ev::FromFloat16(static_cast<uint16_t>(end >> 16));
    for (int k = 0; k < 4; ++k) {
      out[k] =
          UnpackedUint8(static_cast<uint8_t>(bits >> (8 * k)), scale, offset);
    }
  }
};

template <typename Rows>
__global__ void __launch_bounds__(kBlock)
    UnpackKernel(const uint32_t* __restrict__ staged, int width,
                 const int64_t* __restrict__ positions, int64_t count, int dim,
                 float* __restrict__ out) {
  constexpr int kOfWord = Rows::kOfWord;
  const int words = (dim + kOfWord - 1) / kOfWord;
  ForEachPiece(count, words, [&](int64_t row, int word) {
    float numbers[kOfWord];
    Rows().Read(staged + row * width, width, word, numbers);
    float* const to = out +
                      (positions == nullptr ? row : positions[row]) * dim +
                      word * kOfWord;
    if (kOfWord == 4 && dim % 4 == 0) {
      *reinterpret_cast<float4*>(to) = make_float4(
          numbers[0], numbers[1], numbers[kOfWord - 2], numbers[kOfWord - 1]);
    } else {
      const int left = dim - word * kOfWord;
      for (int k = 0; k < kOfWord && k < left; ++k) to[k] = numbers[k];
    }
  });
}

template <typename Piece>
__global__ void __launch_bounds__(kBlock)
    StoreNewKernel(const Piece* __restrict__ staged,
                   const int32_t* __restrict__ sources,
                   const int64_t* __restrict__ slots,
                   const uint8_t* __restrict__ is_new, int64_t count,
                   int pieces, const int64_t* evicted, Piece* __restrict__ rows,
                   CacheCounters* counters) {
  if (blockIdx.x == 0 && threadIdx.x == 0 && evicted != nullptr) {
    atomicAdd(&counters->evicted, static_cast<unsigned long long>(*evicted));
  }
  ForEachPiece(count, pieces, [&](int64_t row, int piece) {
    const int64_t slot = slots[row];
    const bool stores = is_new[row] != 0 && slot >= 0;
    if (stores) {
      rows[slot * pieces + piece] =
          staged[int64_t{sources[row]} * pieces + piece];
    }
    if (stores && piece == 0) atomicAdd(&counters->inserted, 1ULL);
  });
}

template <typename Piece>
__global__ void __launch_bounds__(kBlock)
    RefreshKernel(const Piece* __restrict__ staged,
                  const int32_t* __restrict__ sources,
                  const int64_t* __restrict__ slots, int64_t count, int pieces,
                  Piece* __restrict__ rows, CacheCounters* counters) {
  ForEachPiece(count, pieces, [&](int64_t row, int piece) {
    const int64_t slot = slots[row];
    const int64_t from = sources == nullptr ? row : sources[row];
    if (slot >= 0) rows[slot * pieces + piece] = staged[from * pieces + piece];
    if (slot >= 0 && piece == 0) atomicAdd(&counters->refreshed, 1ULL);
  });
}

__global__ void __launch_bounds__(kBlock)
    CountErasedKernel(const int64_t* __restrict__ slots, int64_t count,
                      CacheCounters* counters) {
  for (int64_t i = int64_t{blockIdx.x} * kBlock + threadIdx.x; i < count;
       i += int64_t{gridDim.x} * kBlock) {
    if (slots[i] >= 0) atomicAdd(&counters->erased, 1ULL);
  }
}

__global__ void CountClearedKernel(CacheCounters* counters) {
  counters->erased = counters->inserted - counters->evicted;
}

}  // namespace

ev::Status CheckDeviceRunsCache() {
  cudaFuncAttributes attributes;
  const cudaError_t error =
      cudaFuncGetAttributes(&attributes, CountClearedKernel);
  if (error == cudaSuccess) return ev::Status::OK();
  cudaGetLastError();  // Clears the error, which is reported below.
  const ev::Status failed =
      ev::gpu::CudaStatus(error, "cudaFuncGetAttributes", __FILE__, __LINE__);
  // Any other failure is not about the GPU's compute capability.
  if (failed.code() != ev::StatusCode::kFailedPrecondition) return failed;
  return ev::FailedPrecondition(
      "the GPU does not run this library's code for a cache, which is for "
      "compute capability 8.0 and higher (" +
      std::string(cudaGetErrorString(error)) + ")");
}

ev::Status WidenIds(const int32_t* ids, int64_t count, int64_t* keys,
                    cudaStream_t stream) {
  if (count == 0) return ev::Status::OK();
  WidenKernel<<<BlocksFor(count), kBlock, 0, stream>>>(ids, count, keys);
  EV_CUDA_RETURN_IF_LAUNCH_FAILED("WidenKernel");
  return ev::Status::OK();
}

ev::Status MissBits(const int64_t* slots, int64_t count, uint32_t* bits,
                    cudaStream_t stream) {
  if (count == 0) return ev::Status::OK();
  const int64_t threads = (count + kWarp - 1) / kWarp * kWarp;
  MissBitsKernel<<<BlocksFor(threads), kBlock, 0, stream>>>(slots, count,
                                                            threads, bits);
  EV_CUDA_RETURN_IF_LAUNCH_FAILED("MissBitsKernel");
  return ev::Status::OK();
}

ev::Status ScatterRows(const float* staged, const int64_t* positions,
                       int64_t count, int width, float* out,
                       cudaStream_t stream) {
  if (count == 0) return ev::Status::OK();
  if (width % 4 == 0) {
    ScatterKernel<<<BlocksFor(count * width / 4), kBlock, 0, stream>>>(
        reinterpret_cast<const float4*>(staged), positions, count, width / 4,
        reinterpret_cast<float4*>(out));
  } else {
    ScatterKernel<<<BlocksFor(count * width), kBlock, 0, stream>>>(
        staged, positions, count, width, out);
  }
  EV_CUDA_RETURN_IF_LAUNCH_FAILED("ScatterKernel");
  return ev::Status::OK();
}

ev::Status UnpackRowsTo(const RowFormat& format, const float* staged,
                        const int64_t* positions, int64_t count, float* out,
                        cudaStream_t stream) {
  if (count == 0) return ev::Status::OK();
  const unsigned blocks = BlocksFor(count * format.width());
  const uint32_t* const words = reinterpret_cast<const uint32_t*>(staged);
  if (format.type == RowType::kUint8) {
    UnpackKernel<Uint8Rows><<<blocks, kBlock, 0, stream>>>(
        words, format.width(), positions, count, format.dim, out);
  } else {
    UnpackKernel<Float16Rows><<<blocks, kBlock, 0, stream>>>(
        words, format.width(), positions, count, format.dim, out);
  }
  EV_CUDA_RETURN_IF_LAUNCH_FAILED("UnpackKernel");
  return ev::Status::OK();
}

ev::Status StoreNewRows(const float* staged, const int32_t* sources,
                        const int64_t* slots, const uint8_t* is_new,
                        int64_t count, int width, const int64_t* evicted,
                        float* rows, CacheCounters* counters,
                        cudaStream_t stream) {
  if (count == 0) return ev::Status::OK();
  if (width % 4 == 0) {
    StoreNewKernel<<<BlocksFor(count * width / 4), kBlock, 0, stream>>>(
        reinterpret_cast<const float4*>(staged), sources, slots, is_new, count,
        width / 4, evicted, reinterpret_cast<float4*>(rows), counters);
  } else {
    StoreNewKernel<<<BlocksFor(count * width), kBlock, 0, stream>>>(
        staged, sources, slots, is_new, count, width, evicted, rows, counters);
  }
  EV_CUDA_RETURN_IF_LAUNCH_FAILED("StoreNewKernel");
  return ev::Status::OK();
}

ev::Status RefreshRows(const float* staged, const int32_t* sources,
                       const int64_t* slots, int64_t count, int width,
                       float* rows, CacheCounters* counters,
                       cudaStream_t stream) {
  if (count == 0) return ev::Status::OK();
  if (width % 4 == 0) {
    RefreshKernel<<<BlocksFor(count * width / 4), kBlock, 0, stream>>>(
        reinterpret_cast<const float4*>(staged), sources, slots, count,
        width / 4, reinterpret_cast<float4*>(rows), counters);
  } else {
    RefreshKernel<<<BlocksFor(count * width), kBlock, 0, stream>>>(
        staged, sources, slots, count, width, rows, counters);
  }
  EV_CUDA_RETURN_IF_LAUNCH_FAILED("RefreshKernel");
  return ev::Status::OK();
}

ev::Status CountErased(const int64_t* slots, int64_t count,
                       CacheCounters* counters, cudaStream_t stream) {
  if (count == 0) return ev::Status::OK();
  CountErasedKernel<<<BlocksFor(count), kBlock, 0, stream>>>(slots, count,
                                                             counters);
  EV_CUDA_RETURN_IF_LAUNCH_FAILED("CountErasedKernel");
  return ev::Status::OK();
}

ev::Status CountCleared(CacheCounters* counters, cudaStream_t stream) {
  CountClearedKernel<<<1, 1, 0, stream>>>(counters);
  EV_CUDA_RETURN_IF_LAUNCH_FAILED("CountClearedKernel");
  return ev::Status::OK();
}

}  // namespace hps
