// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Stochastic rounding of float32 to narrower numbers, for CPU and GPU, of one
// number or of a vector of numbers (base/float_math.h). The result is one of
// the two neighbours, the nearer the likelier, so that its mean is the number
// itself. A training step smaller than half of a neighbour's distance, which
// rounding to nearest always drops, is kept on average.
//
// The random bits are a hash of the table's seed, the number of the table's
// update, the key and the column; there is no generator. So the same steps give
// the same bits in every memory, with any number of threads and ranks, and
// after a restore.

#ifndef KERNELS_ENGINE_BASE_RANDOM_ROUNDING_H_
#define KERNELS_ENGINE_BASE_RANDOM_ROUNDING_H_

#include <cstdint>

#include "kernels/engine/base/float_math.h"
#include "kernels/engine/base/hash.h"

namespace ev {

// Returns what RoundingSalt takes, for one update of a table.
inline uint64_t UpdateSalt(uint64_t seed, int64_t update) {
  return MixKey(static_cast<int64_t>(MixKey(static_cast<int64_t>(seed))) +
                update);
}

// Returns the salt of a row's rounding in an update. mixed_key: MixKey of the
// row's key.
EV_HOST_DEVICE uint64_t SaltOfMixed(uint64_t update_salt, uint64_t mixed_key) {
  return MixKey(static_cast<int64_t>(mixed_key ^ update_salt));
}
inline uint64_t RoundingSalt(uint64_t update_salt, int64_t key) {
  return SaltOfMixed(update_salt, MixKey(key));
}

// Returns random bits. The steps are those of a 32-bit finaliser:
// multiplications carry bits upwards, shifts bring them down. word: a number
// times kWordStep.
constexpr uint32_t kWordStep = 0x9E3779B9u;
template <typename U>
EV_HOST_DEVICE U RandomBits(uint64_t salt, U word) {
  U x = word + static_cast<uint32_t>(salt);
  x = (x ^ (x >> 16)) * 0x85EBCA6Bu;
  x = x ^ static_cast<uint32_t>(salt >> 32);
  x = (x ^ (x >> 13)) * 0xC2B2AE35u;
  return x ^ (x >> 16);
}

// Returns the 16 random bits of a column. Of 16 adjacent columns, the first
// eight take the lower halves of eight words, the others the upper halves.
EV_HOST_DEVICE uint32_t RandomBitsOfColumn(uint64_t salt, uint32_t column) {
  const uint32_t word = column / 16 * 8 + column % 8;
  return RandomBits(salt, word * kWordStep) >> (column & 8) * 2 & 0xFFFFu;
}

// The bits of the rounded number, in the lower half of each element. bits: 16
// random ones. Infinity and NaN stay.
template <typename U, typename F>
EV_HOST_DEVICE U RoundRandomlyToBFloat16(F f, U bits) {
  const U u = BitsOfFloats<U>(f);
  const U a = u & 0x7FFFFFFFu;
  const U large = a > 0x7F800000u ? (u >> 16) | 0x40u : u >> 16;
  return a < 0x7F800000u ? (u + bits) >> 16 : large;
}

// The neighbours of a magnitude above 65504 are 65504 and infinity.
template <typename U, typename F>
EV_HOST_DEVICE U RoundRandomlyToFloat16(F f, U bits) {
  const U u = BitsOfFloats<U>(f);
  const U sign = (u >> 16) & 0x8000u;
  const U a = u & 0x7FFFFFFFu;
  const U infinity = a * 0u + 0x7C00u;
  const U moved = (a - 0x38000000u + (bits >> 3)) >> 13;
  const U normal = moved < 0x7C00u ? moved : infinity;
  // Subnormal results count units of 2^-24: the nearest (RoundToFloat16), then
  // the one below, by the exact rest.
  constexpr float kUnit = 1.0f / (1 << 24);
  const F magnitude = BitsOfFloats<F>(a);
  const F nearest = magnitude + 0.5f;
  const U units = BitsOfFloats<U>(nearest) - 0x3F000000u;
  const F rest = magnitude - (nearest - 0.5f);
  const U below = rest < 0.0f ? units - 1u : units;
  const F part = rest < 0.0f ? rest + kUnit : rest;
  // An odd multiple of 2^-17 of a unit, so that chances are not biased.
  constexpr float kHalf = 1.0f / (1 << 17);
  const F chance = (BitsOfFloats<F>(((bits ^ 0xFFFFu) << 7) | 0x3F800000u) -
                    (1.0f - kHalf)) *
                   kUnit;
  const U small = part > chance ? below + 1u : below;
  const U finite = a < 0x38800000u ? small : normal;
  const U large = a > 0x7F800000u ? infinity + 0x200u : infinity;
  return sign | (a < 0x7F800000u ? finite : large);
}

// Returns whether a number and its neighbours are finite and normal as the
// narrow type. Neither rounding makes such a number infinite.
EV_HOST_DEVICE bool IsOrdinary(FloatType type, float f) {
  const uint32_t a = BitsOfFloats<uint32_t>(f) & 0x7FFFFFFFu;
  return type == FloatType::kFloat16 ? a - 0x38800000u < 0x0EFFE000u
                                     : a < 0x7F7F0000u;
}

// Returns the bits of a rounded ordinary number. bits: 16 random ones.
EV_HOST_DEVICE uint16_t RoundOrdinary(FloatType type, float f, uint32_t bits) {
  const uint32_t u = BitsOfFloats<uint32_t>(f);
  if (type == FloatType::kBFloat16) {
    return static_cast<uint16_t>((u + bits) >> 16);
  }
  const uint32_t sum = u + (bits >> 3);
  return static_cast<uint16_t>(((sum >> 16) & 0x8000u) |
                               (((sum & 0x7FFFFFFFu) - 0x38000000u) >> 13));
}

// The same for any number.
EV_HOST_DEVICE uint16_t RoundRandomlyTo(FloatType type, float f,
                                        uint32_t bits) {
  return static_cast<uint16_t>(type == FloatType::kFloat16
                                   ? RoundRandomlyToFloat16(f, bits)
                                   : RoundRandomlyToBFloat16(f, bits));
}

// Returns whether rounding to the narrow type has made a finite number
// infinite.
EV_HOST_DEVICE bool Overflows(FloatType type, float f, uint16_t rounded) {
  const uint32_t infinity = type == FloatType::kFloat16 ? 0x7C00u : 0x7F80u;
  return (rounded & 0x7FFFu) == infinity &&
         (BitsOfFloats<uint32_t>(f) & 0x7FFFFFFFu) < 0x7F800000u;
}

}  // namespace ev

#endif  // KERNELS_ENGINE_BASE_RANDOM_ROUNDING_H_
