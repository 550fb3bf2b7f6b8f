// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Loads and products of both kernels for narrow vectors.
//
// A warp computes a sample, straight from global memory: registers alone hold
// the operands of its tensor cores. A product's depth, and the columns of its
// result, may be in any order that both operands share. The order is chosen so
// that each thread loads and stores 16 adjacent bytes of a vector.
//
// In an operand or result, a thread has rows 'group' and 'group' + 8, and two
// adjacent numbers of the depth, or of the result's columns, for its 'place'.

#ifndef KERNELS_ENGINE_INTERACTION_GPU_NARROW_BATCH_CUH_
#define KERNELS_ENGINE_INTERACTION_GPU_NARROW_BATCH_CUH_

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <cstdint>

#include "kernels/engine/base/gpu/cuda_error.h"
#include "kernels/engine/interaction/gpu/narrow_samples.h"
#include "kernels/engine/interaction/gpu/sample_launch.cuh"

namespace ev {
namespace gpu {

// With three blocks to a multiprocessor, a thread of the fast variants may have
// 168 registers.
constexpr int kWarpsOfBlock = 4;
// Vectors of a block of pairs, and of a block of gradients.
constexpr int kBlockSide = 32;
// With more blocks than this, each warp handles several items.
constexpr int64_t kMostNarrowBlocks = 1 << 16;

// A kernel parameter: with the others it must not exceed 4 KB.
struct NarrowBatch {
  const unsigned short* vectors[kMostVectors];
  int64_t num_samples;
  int num_vectors;
  int dim;
  bool by_eights;  // rows can be read, and written, 16 bytes at a time
};

// The thread in its warp.
struct Lane {
  int group;  // of eight
  int place;  // of four
};
__device__ __forceinline__ Lane ThisLane() {
  const int lane = threadIdx.x % 32;
  return Lane{lane / 4, lane % 4};
}

// Number of the warp in the grid, and of warps.
__device__ __forceinline__ int64_t ThisWarp() {
  return static_cast<int64_t>(blockIdx.x) * kWarpsOfBlock + threadIdx.x / 32;
}
__device__ __forceinline__ int64_t NumWarps() {
  return static_cast<int64_t>(gridDim.x) * kWarpsOfBlock;
}

// Null beyond the last vector.
__device__ __forceinline__ const unsigned short* RowOf(const NarrowBatch& in,
                                                       int vector,
                                                       int64_t sample) {
  return vector < in.num_vectors ? in.vectors[vector] + sample * in.dim
                                 : nullptr;
}

// Numbers [c, c + 8) of a row, zeros beyond the last and for a null row. kFast:
// the rows can be read 16 bytes at a time.
template <bool kFast>
__device__ __forceinline__ uint4 LoadEight(const NarrowBatch& in,
                                           const unsigned short* row, int c) {
  uint4 eight = {};
  if (row == nullptr || c >= in.dim) return eight;
  if (kFast || in.by_eights) {
    return __ldg(reinterpret_cast<const uint4*>(row + c));
  }
  unsigned bits[4] = {};
#pragma unroll
  for (int k = 0; k < 8; ++k) {
    if (c + k < in.dim) {
      bits[k / 2] |= static_cast<unsigned>(row[c + k]) << (k % 2 * 16);
    }
  }
  return make_uint4(bits[0], bits[1], bits[2], bits[3]);
}

__device__ __forceinline__ unsigned Word(const uint4& eight, int w) {
  return w == 0 ? eight.x : w == 1 ? eight.y : w == 2 ? eight.z : eight.w;
}

// Rounds two floats; the first is in the lower half.
template <FloatType kType>
__device__ __forceinline__ unsigned RoundedPair(float first, float second) {
  unsigned bits;
  if constexpr (kType == FloatType::kFloat16) {
    const __half2 pair = __floats2half2_rn(first, second);
    memcpy(&bits, &pair, sizeof(bits));
  } else {
    const __nv_bfloat162 pair = __floats2bfloat162_rn(first, second);
    memcpy(&bits, &pair, sizeof(bits));
  }
  return bits;
}

// sum [16, 8] += a [16, 16] * b [16, 8], in float32.
template <FloatType kType>
__device__ __forceinline__ void MultiplyAdd(unsigned a0, unsigned a1,
                                            unsigned a2, unsigned a3,
                                            unsigned b0, unsigned b1,
                                            float (&sum)[4]) {
  if constexpr (kType == FloatType::kFloat16) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
  } else {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
  }
}

inline bool CanReadEights(ConstFloats floats) {
  return reinterpret_cast<uintptr_t>(floats.data()) % 16 == 0;
}

inline NarrowBatch MakeNarrowBatch(const VectorBatch& batch) {
  NarrowBatch in = {};
  in.num_samples = batch.num_samples;
  in.num_vectors = static_cast<int>(batch.num_vectors());
  in.dim = static_cast<int>(batch.dim);
  in.by_eights = in.dim % 8 == 0;
  for (int v = 0; v < in.num_vectors; ++v) {
    in.vectors[v] =
        reinterpret_cast<const unsigned short*>(batch.vectors[v].data());
    in.by_eights = in.by_eights && CanReadEights(batch.vectors[v]);
  }
  return in;
}

// Whether a kernel's fast variant can run.
inline bool IsFast(const NarrowBatch& in) {
  return in.by_eights && in.num_vectors <= kBlockSide;
}

inline int64_t SidesOf(const NarrowBatch& in) {
  return (in.num_vectors + kBlockSide - 1) / kBlockSide;
}

// Blocks whose warps take an item each.
inline unsigned BlocksFor(int64_t items) {
  return static_cast<unsigned>(
      std::min((items + kWarpsOfBlock - 1) / kWarpsOfBlock, kMostNarrowBlocks));
}

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_INTERACTION_GPU_NARROW_BATCH_CUH_
