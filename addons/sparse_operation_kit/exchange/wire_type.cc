// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Conversions without a branch, so that the compiler makes vectors of them.

#include "addons/sparse_operation_kit/exchange/wire_type.h"

#include <cstring>

namespace sok {
namespace {

inline uint32_t Bits(float f) {
  uint32_t u;
  std::memcpy(&u, &f, sizeof(u));
  return u;
}

inline float Float(uint32_t u) {
  float f;
  std::memcpy(&f, &u, sizeof(f));
  return f;
}

inline uint16_t ToBFloat16(float f) {
  const uint32_t u = Bits(f);
  const uint32_t rounded = (u + 0x7FFFu + ((u >> 16) & 1)) >> 16;
  // Rounding could carry a NaN over to zero; a quiet one keeps its sign.
  const uint32_t nan = (u >> 16) | 0x40u;
  return static_cast<uint16_t>((u & 0x7FFFFFFFu) > 0x7F800000u ? nan : rounded);
}

inline uint16_t ToFloat16(float f) {
  const uint32_t u = Bits(f);
  const uint32_t sign = (u >> 16) & 0x8000u;
  const uint32_t a = u & 0x7FFFFFFFu;
  // Normal results: move the exponent, round to even at bit 13. From 65520 on
  // this carries into the exponent 31, an infinity, or beyond: clamped.
  const uint32_t moved = (a - 0x38000000u + 0xFFFu + ((a >> 13) & 1)) >> 13;
  const uint32_t normal = moved < 0x7C00u ? moved : 0x7C00u;
  // Subnormal results: adding 0.5 lets the processor round at 2^-24.
  const uint32_t small = Bits(Float(a) + 0.5f) - 0x3F000000u;
  const uint32_t finite = a < 0x38800000u ? small : normal;
  const uint32_t large = a > 0x7F800000u ? 0x7E00u : 0x7C00u;
  return static_cast<uint16_t>(sign | (a < 0x7F800000u ? finite : large));
}

inline float FromFloat16(uint16_t h) {
  const uint32_t sign = static_cast<uint32_t>(h & 0x8000u) << 16;
  const uint32_t a = h & 0x7FFFu;
  const uint32_t normal = (a << 13) + 0x38000000u;
  const uint32_t infinite = (a << 13) | 0x7F800000u;
  // Below 2^-14: a count of 2^-24.
  const uint32_t small = Bits(static_cast<float>(a) * 5.9604644775390625e-8f);
  const uint32_t finite = a < 0x0400u ? small : normal;
  return Float(sign | (a < 0x7C00u ? finite : infinite));
}

inline float FromBFloat16(uint16_t h) {
  return Float(static_cast<uint32_t>(h) << 16);
}

}  // namespace

void ToWire(const float* __restrict__ from, int64_t count, WireType type,
            void* __restrict__ to) {
  uint16_t* out = static_cast<uint16_t*>(to);
  switch (type) {
    case WireType::kFloat32:
      if (count > 0) std::memcpy(to, from, count * sizeof(float));
      break;
    case WireType::kFloat16:
      for (int64_t i = 0; i < count; ++i) out[i] = ToFloat16(from[i]);
      break;
    case WireType::kBFloat16:
      for (int64_t i = 0; i < count; ++i) out[i] = ToBFloat16(from[i]);
      break;
  }
}

void FromWire(const void* __restrict__ from, int64_t count, WireType type,
              float* __restrict__ to) {
  const uint16_t* in = static_cast<const uint16_t*>(from);
  switch (type) {
    case WireType::kFloat32:
      if (count > 0) std::memcpy(to, from, count * sizeof(float));
      break;
    case WireType::kFloat16:
      for (int64_t i = 0; i < count; ++i) to[i] = FromFloat16(in[i]);
      break;
    case WireType::kBFloat16:
      for (int64_t i = 0; i < count; ++i) to[i] = FromBFloat16(in[i]);
      break;
  }
}

}  // namespace sok
