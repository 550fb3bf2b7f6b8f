// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Conversions of one number to and from its wire type, for CPU and GPU. They
// have no branches, so that the compiler can vectorize loops over them.

#ifndef ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_WIRE_MATH_H_
#define ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_WIRE_MATH_H_

#include <cstdint>
#include <cstring>

#ifdef __CUDACC__
#define SOK_HOST_DEVICE __host__ __device__ __forceinline__
#else
#define SOK_HOST_DEVICE inline
#endif

namespace sok {

SOK_HOST_DEVICE uint32_t BitsOf(float f) {
  uint32_t u;
  memcpy(&u, &f, sizeof(u));
  return u;
}

SOK_HOST_DEVICE float FloatOf(uint32_t u) {
  float f;
  memcpy(&f, &u, sizeof(f));
  return f;
}

SOK_HOST_DEVICE uint16_t ToBFloat16(float f) {
  const uint32_t u = BitsOf(f);
  const uint32_t rounded = (u + 0x7FFFu + ((u >> 16) & 1)) >> 16;
  // Rounding could turn a NaN into zero. Setting the quiet bit keeps it a NaN
  // with its sign.
  const uint32_t nan = (u >> 16) | 0x40u;
  return static_cast<uint16_t>((u & 0x7FFFFFFFu) > 0x7F800000u ? nan : rounded);
}

SOK_HOST_DEVICE uint16_t ToFloat16(float f) {
  const uint32_t u = BitsOf(f);
  const uint32_t sign = (u >> 16) & 0x8000u;
  const uint32_t a = u & 0x7FFFFFFFu;
  // Normal results: rebias the exponent and round to even at bit 13. From 65520
  // on the carry reaches exponent 31 (infinity) or more: clamp.
  const uint32_t moved = (a - 0x38000000u + 0xFFFu + ((a >> 13) & 1)) >> 13;
  const uint32_t normal = moved < 0x7C00u ? moved : 0x7C00u;
  // Subnormal results: adding 0.5 makes the addition itself round at 2^-24.
  const uint32_t small = BitsOf(FloatOf(a) + 0.5f) - 0x3F000000u;
  const uint32_t finite = a < 0x38800000u ? small : normal;
  const uint32_t large = a > 0x7F800000u ? 0x7E00u : 0x7C00u;
  return static_cast<uint16_t>(sign | (a < 0x7F800000u ? finite : large));
}

SOK_HOST_DEVICE float FromFloat16(uint16_t h) {
  const uint32_t sign = static_cast<uint32_t>(h & 0x8000u) << 16;
  const uint32_t a = h & 0x7FFFu;
  const uint32_t normal = (a << 13) + 0x38000000u;
  const uint32_t infinite = (a << 13) | 0x7F800000u;
  // Below 2^-14 the bits count units of 2^-24.
  const uint32_t small = BitsOf(static_cast<float>(a) * 5.9604644775390625e-8f);
  const uint32_t finite = a < 0x0400u ? small : normal;
  return FloatOf(sign | (a < 0x7C00u ? finite : infinite));
}

SOK_HOST_DEVICE float FromBFloat16(uint16_t h) {
  return FloatOf(static_cast<uint32_t>(h) << 16);
}

}  // namespace sok

#endif  // ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_WIRE_MATH_H_
