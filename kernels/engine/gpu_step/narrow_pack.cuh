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

__device__ __forceinline__ unsigned short RoundTo(FloatType type, float x) {
  return type == FloatType::kFloat16 ? ToFloat16(x) : ToBFloat16(x);
}
__device__ __forceinline__ float WidenAs(FloatType type, unsigned bits) {
  return type == FloatType::kFloat16 ? WidenFloat16<float>(bits)
                                     : WidenBFloat16<float>(bits);
}

// REQUIRES: 'out' is aligned to W numbers, and the type is narrow.
template <int W>
__device__ __forceinline__ void StoreNarrow(unsigned short* out, FloatType type,
                                            const Pack<W>& v) {
  if constexpr (W == 4) {
    uint2 bits;
    bits.x = RoundTo(type, v.x[0]) |
             static_cast<unsigned>(RoundTo(type, v.x[1])) << 16;
    bits.y = RoundTo(type, v.x[2]) |
             static_cast<unsigned>(RoundTo(type, v.x[3])) << 16;
    __stcs(reinterpret_cast<uint2*>(out), bits);
  } else {
    __stcs(out, RoundTo(type, v.x[0]));
  }
}

// Loads W numbers of a gradient from number 'at' on, which is aligned to W
// numbers. Narrow ones stay as they are in the first W / 2 elements, so that
// several loads can be in flight; Widened converts them.
template <int W>
__device__ __forceinline__ Pack<W> LoadRaw(const float* grads, FloatType type,
                                           int64_t at) {
  if (type == FloatType::kFloat32) return LoadPack<W>(grads + at);
  const unsigned short* const narrow =
      reinterpret_cast<const unsigned short*>(grads) + at;
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
      wide.x[2 * k] = WidenAs(type, bits & 0xFFFF);
      wide.x[2 * k + 1] = WidenAs(type, bits >> 16);
    }
  } else {
    wide.x[0] = WidenAs(type, __float_as_uint(raw.x[0]));
  }
  return wide;
}

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_GPU_STEP_NARROW_PACK_CUH_
