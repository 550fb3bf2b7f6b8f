// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// One number to and from its wire type, in lines that a GPU runs as well, and
// without a branch, so that the compiler makes vectors of them.

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
  // Rounding could carry a NaN over to zero; a quiet one keeps its sign.
  const uint32_t nan = (u >> 16) | 0x40u;
  return static_cast<uint16_t>((u & 0x7FFFFFFFu) > 0x7F800000u ? nan : rounded);
}

SOK_HOST_DEVICE uint16_t ToFloat16(float f) {
  const uint32_t u = BitsOf(f);
  const uint32_t sign = (u >> 16) & 0x8000u;
  const uint32_t a = u & 0x7FFFFFFFu;
  // Normal results: move the exponent, round to even at bit 13. From 65520 on
  // this carries into the exponent 31, an infinity, or beyond: clamped.
  const uint32_t moved = (a - 0x38000000u + 0xFFFu + ((a >> 13) & 1)) >> 13;
  const uint32_t normal = moved < 0x7C00u ? moved : 0x7C00u;
  // Subnormal results: adding 0.5 lets the processor round at 2^-24.
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
  // Below 2^-14: a count of 2^-24.
  const uint32_t small = BitsOf(static_cast<float>(a) * 5.9604644775390625e-8f);
  const uint32_t finite = a < 0x0400u ? small : normal;
  return FloatOf(sign | (a < 0x7C00u ? finite : infinite));
}

SOK_HOST_DEVICE float FromBFloat16(uint16_t h) {
  return FloatOf(static_cast<uint32_t>(h) << 16);
}

}  // namespace sok

#endif  // ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_WIRE_MATH_H_
