// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Device helpers that load and store packs (step_plan.cuh) of numbers of a type
// that is given at run time. The type is that of a table, so that a branch on
// it mostly is one for the whole warp, and no kernel is compiled for each type.

#ifndef KERNELS_ENGINE_GPU_STEP_NARROW_PACK_CUH_
#define KERNELS_ENGINE_GPU_STEP_NARROW_PACK_CUH_

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/engine/base/float_math.h"
#include "kernels/engine/gpu_step/step_plan.cuh"

namespace ev {
namespace gpu {

// W narrow numbers, loaded and stored by one instruction.
template <int W>
struct alignas(2 * W) NarrowPack {
  uint16_t x[W];
};

// Stores numbers that are not read again soon. REQUIRES: 'out' is aligned to W
// numbers, and the type is narrow.
template <int W>
__device__ __forceinline__ void StoreNarrow(unsigned short* out, FloatType type,
                                            const Pack<W>& v) {
  NarrowPack<W> narrow;
#pragma unroll
  for (int x = 0; x < W; ++x) narrow.x[x] = RoundTo(type, v.x[x]);
  if constexpr (W == 4) {
    __stcs(reinterpret_cast<uint2*>(out),
           *reinterpret_cast<const uint2*>(&narrow));
  } else {
    __stcs(out, narrow.x[0]);
  }
}

// Loads W numbers from number 'at' on, which is aligned to W numbers. Narrow
// ones stay as they are in the first W / 2 elements, so that
// several loads can be in flight; Widened converts them.
template <int W>
__device__ __forceinline__ Pack<W> LoadRaw(const float* numbers, FloatType type,
                                           int64_t at) {
  if (type == FloatType::kFloat32) return LoadPack<W>(numbers + at);
  const unsigned short* const narrow =
      reinterpret_cast<const unsigned short*>(numbers) + at;
  Pack<W> raw;
  if constexpr (W == 4) {
    const uint2 bits = *reinterpret_cast<const uint2*>(narrow);
    raw.x[0] = __uint_as_float(bits.x);
    raw.x[1] = __uint_as_float(bits.y);
  } else {
    raw.x[0] = __uint_as_float(*narrow);
  }
  return raw;
}

template <int W>
__device__ __forceinline__ Pack<W> Widened(const Pack<W>& raw, FloatType type) {
  if (type == FloatType::kFloat32) return raw;
  Pack<W> wide;
  if constexpr (W == 4) {
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      const unsigned bits = __float_as_uint(raw.x[k]);
      wide.x[2 * k] = WidenAs(type, static_cast<uint16_t>(bits));
      wide.x[2 * k + 1] = WidenAs(type, static_cast<uint16_t>(bits >> 16));
    }
  } else {
    wide.x[0] = WidenAs(type, static_cast<uint16_t>(__float_as_uint(raw.x[0])));
  }
  return wide;
}

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_GPU_STEP_NARROW_PACK_CUH_
