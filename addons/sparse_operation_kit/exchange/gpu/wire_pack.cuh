// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Device helpers that load and store several numbers of a wire type as float32.

#ifndef ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_GPU_WIRE_PACK_CUH_
#define ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_GPU_WIRE_PACK_CUH_

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "addons/sparse_operation_kit/exchange/wire_type.h"
#include "kernels/engine/base/float_math.h"

namespace sok {
namespace gpu {

constexpr int kThreads = 256;
// Blocks per chunk or table; for longer ones a block loops.
constexpr int64_t kMaxBlocks = 2048;

__device__ __forceinline__ int64_t FirstIndex() {
  return static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
}
__device__ __forceinline__ int64_t IndexStep() {
  return static_cast<int64_t>(gridDim.x) * kThreads;
}
inline unsigned BlocksFor(int64_t n, int64_t most) {
  return static_cast<unsigned>(
      std::min(most, std::max<int64_t>(1, (n + kThreads - 1) / kThreads)));
}

template <WireType kWire>
struct Wire;
template <>
struct Wire<WireType::kFloat32> {
  using Number = float;
  __device__ static float From(float x) { return x; }
  __device__ static float To(float x) { return x; }
};
template <>
struct Wire<WireType::kFloat16> {
  using Number = uint16_t;
  __device__ static float From(uint16_t x) { return ev::FromFloat16(x); }
  __device__ static uint16_t To(float x) { return ev::ToFloat16(x); }
};
template <>
struct Wire<WireType::kBFloat16> {
  using Number = uint16_t;
  __device__ static float From(uint16_t x) { return ev::FromBFloat16(x); }
  __device__ static uint16_t To(float x) { return ev::ToBFloat16(x); }
};

template <int kWidth>
struct Pack {
  float x[kWidth];
};

// Loads kWidth numbers from 'from', aligned to kWidth numbers.
template <WireType kWire, int kWidth>
__device__ __forceinline__ Pack<kWidth> Load(
    const typename Wire<kWire>::Number* from) {
  using Number = typename Wire<kWire>::Number;
  struct alignas(sizeof(Number) * kWidth) Raw {
    Number x[kWidth];
  };
  const Raw raw = *reinterpret_cast<const Raw*>(from);
  Pack<kWidth> pack;
#pragma unroll
  for (int k = 0; k < kWidth; ++k) pack.x[k] = Wire<kWire>::From(raw.x[k]);
  return pack;
}

template <WireType kWire, int kWidth>
__device__ __forceinline__ void StoreAs(const Pack<kWidth>& pack,
                                        typename Wire<kWire>::Number* to) {
  using Number = typename Wire<kWire>::Number;
  struct alignas(sizeof(Number) * kWidth) Raw {
    Number x[kWidth];
  };
  Raw raw;
#pragma unroll
  for (int k = 0; k < kWidth; ++k) raw.x[k] = Wire<kWire>::To(pack.x[k]);
  *reinterpret_cast<Raw*>(to) = raw;
}
template <int kWidth>
__device__ __forceinline__ void Store(const Pack<kWidth>& pack, float* to) {
  StoreAs<WireType::kFloat32, kWidth>(pack, to);
}

// The same for a type that is given at run time, from or to number 'at'.
template <int kWidth>
__device__ __forceinline__ Pack<kWidth> LoadTyped(const void* from,
                                                  ev::FloatType type,
                                                  int64_t at) {
  const uint16_t* const narrow = static_cast<const uint16_t*>(from) + at;
  if (type == ev::FloatType::kFloat32) {
    return Load<WireType::kFloat32, kWidth>(static_cast<const float*>(from) +
                                            at);
  }
  return type == ev::FloatType::kFloat16
             ? Load<WireType::kFloat16, kWidth>(narrow)
             : Load<WireType::kBFloat16, kWidth>(narrow);
}
template <int kWidth>
__device__ __forceinline__ void StoreTyped(const Pack<kWidth>& pack, void* to,
                                           ev::FloatType type, int64_t at) {
  uint16_t* const narrow = static_cast<uint16_t*>(to) + at;
  if (type == ev::FloatType::kFloat32) {
    Store<kWidth>(pack, static_cast<float*>(to) + at);
  } else if (type == ev::FloatType::kFloat16) {
    StoreAs<WireType::kFloat16, kWidth>(pack, narrow);
  } else {
    StoreAs<WireType::kBFloat16, kWidth>(pack, narrow);
  }
}

// Calls function.Run<wire>().
template <typename Function>
void ForWire(WireType wire, const Function& function) {
  switch (wire) {
    case WireType::kFloat32:
      return function.template Run<WireType::kFloat32>();
    case WireType::kFloat16:
      return function.template Run<WireType::kFloat16>();
    case WireType::kBFloat16:
      return function.template Run<WireType::kBFloat16>();
  }
}

}  // namespace gpu
}  // namespace sok

#endif  // ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_GPU_WIRE_PACK_CUH_
