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
#include <cstring>

#include "kernels/engine/base/float_math.h"
#include "kernels/engine/base/random_rounding.h"
#include "kernels/engine/gpu_step/step_plan.cuh"

namespace ev {
namespace gpu {

// W narrow numbers, loaded and stored by one instruction.
template <int W>
struct alignas(2 * W) NarrowPack {
  uint16_t x[W];
};

// Returns two numbers rounded to nearest, the first in the lower half.
__device__ __forceinline__ uint32_t RoundPair(FloatType type, float low,
                                              float high) {
  uint32_t both;
  if (type == FloatType::kFloat16) {
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  } else {
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  }
  // The instruction drops the sign of a NaN.
  if (low != low || high != high) {
    both = RoundTo(type, low) | static_cast<uint32_t>(RoundTo(type, high))
                                    << 16;
  }
  return both;
}

template <int W>
__device__ __forceinline__ NarrowPack<W> RoundPack(FloatType type,
                                                   const Pack<W>& v) {
  NarrowPack<W> narrow;
  if constexpr (W == 4) {
    const uint2 bits = make_uint2(RoundPair(type, v.x[0], v.x[1]),
                                  RoundPair(type, v.x[2], v.x[3]));
    memcpy(&narrow, &bits, sizeof(narrow));
  } else {
    narrow.x[0] = RoundTo(type, v.x[0]);
  }
  return narrow;
}

// Rounds columns [c, c + W) of a row, stochastically or to nearest. Returns
// whether that has made a finite number infinite.
template <int W>
__device__ __forceinline__ bool RoundColumns(FloatType type, const Pack<W>& v,
                                             bool randomly, uint64_t salt,
                                             uint32_t c,
                                             NarrowPack<W>* narrow) {
  bool are_ordinary = true;
#pragma unroll
  for (int x = 0; x < W; ++x) are_ordinary &= IsOrdinary(type, v.x[x]);
  if (!randomly) {
    *narrow = RoundPack<W>(type, v);
  } else if (are_ordinary) {
#pragma unroll
    for (int x = 0; x < W; ++x) {
      narrow->x[x] =
          RoundOrdinary(type, v.x[x], RandomBitsOfColumn(salt, c + x));
    }
  } else {
#pragma unroll
    for (int x = 0; x < W; ++x) {
      narrow->x[x] =
          RoundRandomlyTo(type, v.x[x], RandomBitsOfColumn(salt, c + x));
    }
  }
  if (are_ordinary) return false;
  bool overflows = false;
#pragma unroll
  for (int x = 0; x < W; ++x) {
    overflows |= Overflows(type, v.x[x], narrow->x[x]);
  }
  return overflows;
}

// Stores numbers that are not read again soon. REQUIRES: 'out' is aligned to W
// numbers, and the type is narrow.
template <int W>
__device__ __forceinline__ void StoreNarrow(unsigned short* out, FloatType type,
                                            const Pack<W>& v) {
  const NarrowPack<W> narrow = RoundPack<W>(type, v);
  if constexpr (W == 4) {
    __stcs(reinterpret_cast<uint2*>(out),
           *reinterpret_cast<const uint2*>(&narrow));
  } else {
    __stcs(out, narrow.x[0]);
  }
}

// Loads W numbers from number 'at' on, which is aligned to W numbers. Narrow
// ones stay as they are in the first W / 2 elements, so that several loads can
// be in flight; Widened converts them.
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

// Returns narrow number x of a pack that LoadRaw has loaded.
__device__ __forceinline__ uint16_t HalfOf(const Pack<4>& raw, int x) {
  const unsigned bits = __float_as_uint(raw.x[x / 2]);
  return static_cast<uint16_t>(x % 2 == 0 ? bits : bits >> 16);
}

// The same as WidenAs, except that the sign of a NaN may be lost.
__device__ __forceinline__ float WidenByHardware(FloatType type, uint16_t h) {
  if (type == FloatType::kBFloat16) return FromBFloat16(h);
  float wide;
  asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(h));
  return wide;
}

template <int W>
__device__ __forceinline__ Pack<W> Widened(const Pack<W>& raw, FloatType type) {
  if (type == FloatType::kFloat32) return raw;
  Pack<W> wide;
  if constexpr (W == 4) {
    bool has_nan = false;
#pragma unroll
    for (int x = 0; x < W; ++x) {
      wide.x[x] = WidenByHardware(type, HalfOf(raw, x));
      has_nan |= wide.x[x] != wide.x[x];
    }
    if (has_nan) {
#pragma unroll
      for (int x = 0; x < W; ++x) wide.x[x] = WidenAs(type, HalfOf(raw, x));
    }
  } else {
    wide.x[0] = WidenAs(type, static_cast<uint16_t>(__float_as_uint(raw.x[0])));
  }
  return wide;
}

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_GPU_STEP_NARROW_PACK_CUH_
