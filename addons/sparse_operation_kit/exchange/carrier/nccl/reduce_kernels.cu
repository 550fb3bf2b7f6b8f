// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Each piece has a row of blocks that loop over it; if there are many pieces,
// the blocks loop over pieces too. A thread handles 16 bytes if the piece is
// aligned to them, else one number.

#include <cuda_runtime.h>

#include <algorithm>

#include "addons/sparse_operation_kit/exchange/carrier/nccl/reduce_kernels.h"
#include "kernels/engine/base/float_math.h"
#include "kernels/engine/base/gpu/cuda_error.h"

namespace sok {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kMaxBlocks = 512;
constexpr int64_t kMaxPieces = 65535;
constexpr int kFillBlocks = 16;

__device__ __forceinline__ float Scaled(float x, double scale) {
  return x * static_cast<float>(scale);
}
__device__ __forceinline__ double Scaled(double x, double scale) {
  return x * scale;
}
// x holds the bits of a float16.
__device__ __forceinline__ uint16_t Scaled(uint16_t x, double scale) {
  return ev::ToFloat16(ev::FromFloat16(x) * static_cast<float>(scale));
}

template <typename Number>
struct alignas(16) Line {
  static constexpr int kNumbers = 16 / sizeof(Number);
  Number x[kNumbers];
};

// Sets to[i] = of(from[i]).
template <typename Number, typename Function>
__device__ __forceinline__ void ForNumbers(const char* from, char* to,
                                           int64_t count, const Function& of) {
  const int64_t first =
      static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
  int64_t done = 0;
  if ((reinterpret_cast<uintptr_t>(from) | reinterpret_cast<uintptr_t>(to)) %
          16 ==
      0) {
    constexpr int kNumbers = Line<Number>::kNumbers;
    const int64_t lines = count / kNumbers;
    for (int64_t i = first; i < lines; i += step) {
      Line<Number> line = reinterpret_cast<const Line<Number>*>(from)[i];
#pragma unroll
      for (int k = 0; k < kNumbers; ++k) line.x[k] = of(line.x[k]);
      reinterpret_cast<Line<Number>*>(to)[i] = line;
    }
    done = lines * kNumbers;
  }
  for (int64_t i = done + first; i < count; i += step) {
    reinterpret_cast<Number*>(to)[i] =
        of(reinterpret_cast<const Number*>(from)[i]);
  }
}

__global__ void __launch_bounds__(kThreads)
    FuseKernel(FusedBlock block, char* fused) {
  for (int64_t p = blockIdx.y; p < block.num_pieces; p += gridDim.y) {
    const FusedPiece piece = block.pieces[p];
    ForNumbers<uint16_t>(piece.from, fused + piece.at, piece.bytes / 2,
                         [](uint16_t x) { return x; });
  }
}

template <typename Number>
__global__ void __launch_bounds__(kThreads)
    SpreadKernel(FusedBlock block, const char* fused, double scale) {
  for (int64_t p = blockIdx.y; p < block.num_pieces; p += gridDim.y) {
    const FusedPiece piece = block.pieces[p];
    const int64_t count = piece.bytes / sizeof(Number);
    if (scale == 1.0) {
      ForNumbers<Number>(fused + piece.at, piece.to, count,
                         [](Number x) { return x; });
    } else {
      ForNumbers<Number>(fused + piece.at, piece.to, count,
                         [=](Number x) { return Scaled(x, scale); });
    }
  }
}

__global__ void __launch_bounds__(kThreads)
    FillIfKernel(const int32_t* flag, char* to, int64_t bytes, char byte) {
  __shared__ int32_t is_set;
  if (threadIdx.x == 0) is_set = *const_cast<const volatile int32_t*>(flag);
  __syncthreads();
  if (is_set == 0) return;
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
       i < bytes; i += step) {
    to[i] = byte;
  }
}

dim3 GridOf(const FusedBlock& block) {
  const int64_t lines = block.most / 16 + 1;
  return dim3(static_cast<unsigned>(
                  std::min(kMaxBlocks, (lines + kThreads - 1) / kThreads)),
              static_cast<unsigned>(std::min(kMaxPieces, block.num_pieces)));
}

}  // namespace

ev::Status LaunchFuse(const FusedBlock& block, char* fused,
                      ev::gpu::StreamView stream) {
  FuseKernel<<<GridOf(block), kThreads, 0, stream.get()>>>(block, fused);
  EV_CUDA_RETURN_IF_LAUNCH_FAILED("FuseKernel");
  return ev::Status::OK();
}

ev::Status LaunchSpread(const FusedBlock& block, const char* fused,
                        ReducedType type, double scale,
                        ev::gpu::StreamView stream) {
  const dim3 grid = GridOf(block);
  switch (type) {
    case ReducedType::kFloat16:
      SpreadKernel<uint16_t>
          <<<grid, kThreads, 0, stream.get()>>>(block, fused, scale);
      break;
    case ReducedType::kFloat32:
      SpreadKernel<float>
          <<<grid, kThreads, 0, stream.get()>>>(block, fused, scale);
      break;
    case ReducedType::kFloat64:
      SpreadKernel<double>
          <<<grid, kThreads, 0, stream.get()>>>(block, fused, scale);
      break;
  }
  EV_CUDA_RETURN_IF_LAUNCH_FAILED("SpreadKernel");
  return ev::Status::OK();
}

ev::Status LaunchFillIf(const int32_t* flag, char* to, int64_t bytes, int byte,
                        ev::gpu::StreamView stream) {
  if (bytes == 0) return ev::Status::OK();
  FillIfKernel<<<kFillBlocks, kThreads, 0, stream.get()>>>(
      flag, to, bytes, static_cast<char>(byte));
  EV_CUDA_RETURN_IF_LAUNCH_FAILED("FillIfKernel");
  return ev::Status::OK();
}

}  // namespace sok
