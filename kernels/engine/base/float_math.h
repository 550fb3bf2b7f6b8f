// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Conversions between float32 and narrower numbers, for CPU and GPU, of one
// number or of a vector of numbers. They have no branches, and give the same
// bits on every machine and with every mode for subnormal numbers.
//
// Rounding is to nearest, ties to even. To float16: magnitudes from 65520 on
// become infinite, up to 2^-25 zero. NaN stays NaN, with its sign. These are
// the results of tf.cast, except perhaps for the other bits of a NaN.

#ifndef KERNELS_ENGINE_BASE_FLOAT_MATH_H_
#define KERNELS_ENGINE_BASE_FLOAT_MATH_H_

#include <cstdint>
#include <cstring>

#include "kernels/engine/base/float_type.h"
#include "kernels/engine/base/host_device.h"

namespace ev {

// F is float and U uint32_t, or both are vectors of as many of them.
template <typename U, typename F>
EV_HOST_DEVICE U BitsOfFloats(F f) {
  static_assert(sizeof(U) == sizeof(F), "the bits of the same numbers");
  U u;
  memcpy(&u, &f, sizeof(u));
  return u;
}

// The bits of the rounded number, in the lower half of each element.
template <typename U, typename F>
EV_HOST_DEVICE U RoundToBFloat16(F f) {
  const U u = BitsOfFloats<U>(f);
  const U rounded = (u + 0x7FFFu + ((u >> 16) & 1u)) >> 16;
  // Rounding could turn a NaN into zero. Setting the quiet bit keeps it a NaN
  // with its sign.
  const U nan = (u >> 16) | 0x40u;
  return f == f ? rounded : nan;
}

template <typename U, typename F>
EV_HOST_DEVICE U RoundToFloat16(F f) {
  const U u = BitsOfFloats<U>(f);
  const U sign = (u >> 16) & 0x8000u;
  const U a = u & 0x7FFFFFFFu;
  const U infinity = a * 0u + 0x7C00u;
  // Normal results: rebias the exponent and round to even at bit 13. From 65520
  // on the carry reaches exponent 31 (infinity) or more: clamp.
  const U moved = (a - 0x38000000u + 0xFFFu + ((a >> 13) & 1u)) >> 13;
  const U normal = moved < 0x7C00u ? moved : infinity;
  // Subnormal results: adding 0.5 makes the addition itself round at 2^-24.
  const U small = BitsOfFloats<U>(BitsOfFloats<F>(a) + 0.5f) - 0x3F000000u;
  const U finite = a < 0x38800000u ? small : normal;
  const U large = a > 0x7F800000u ? infinity + 0x200u : infinity;
  return sign | (a < 0x7F800000u ? finite : large);
}

// h: the bits of a float16 in the lower half of each element.
template <typename F, typename U>
EV_HOST_DEVICE F WidenFloat16(U h) {
  const U sign = (h & 0x8000u) << 16;
  const U a = h & 0x7FFFu;
  const U normal = (a << 13) + 0x38000000u;
  const U infinite = (a << 13) | 0x7F800000u;
  // Below 2^-14 the bits count units of 2^-24, the spacing of floats at 0.5.
  const U small = BitsOfFloats<U>(BitsOfFloats<F>(a + 0x3F000000u) - 0.5f);
  const U finite = a < 0x0400u ? small : normal;
  return BitsOfFloats<F>(sign | (a < 0x7C00u ? finite : infinite));
}

template <typename F, typename U>
EV_HOST_DEVICE F WidenBFloat16(U h) {
  return BitsOfFloats<F>(h << 16);
}

EV_HOST_DEVICE uint16_t ToBFloat16(float f) {
  return static_cast<uint16_t>(RoundToBFloat16<uint32_t>(f));
}
EV_HOST_DEVICE uint16_t ToFloat16(float f) {
  return static_cast<uint16_t>(RoundToFloat16<uint32_t>(f));
}
EV_HOST_DEVICE float FromFloat16(uint16_t h) {
  return WidenFloat16<float>(uint32_t{h});
}
EV_HOST_DEVICE float FromBFloat16(uint16_t h) {
  return WidenBFloat16<float>(uint32_t{h});
}

// The same for a narrow type that is given at run time.
EV_HOST_DEVICE uint16_t RoundTo(FloatType type, float f) {
  return type == FloatType::kFloat16 ? ToFloat16(f) : ToBFloat16(f);
}
EV_HOST_DEVICE float WidenAs(FloatType type, uint16_t h) {
  return type == FloatType::kFloat16 ? FromFloat16(h) : FromBFloat16(h);
}

EV_HOST_DEVICE float Widen(float x) { return x; }
EV_HOST_DEVICE float Widen(Float16 x) { return FromFloat16(x.bits); }
EV_HOST_DEVICE float Widen(BFloat16 x) { return FromBFloat16(x.bits); }

EV_HOST_DEVICE void Narrow(float x, float* to) { *to = x; }
EV_HOST_DEVICE void Narrow(float x, Float16* to) { to->bits = ToFloat16(x); }
EV_HOST_DEVICE void Narrow(float x, BFloat16* to) { to->bits = ToBFloat16(x); }

}  // namespace ev

#endif  // KERNELS_ENGINE_BASE_FLOAT_MATH_H_
