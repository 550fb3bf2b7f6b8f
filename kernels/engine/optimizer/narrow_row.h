// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Values of narrow numbers in an update: they are widened, changed as float32,
// and rounded once.

#ifndef KERNELS_ENGINE_OPTIMIZER_NARROW_ROW_H_
#define KERNELS_ENGINE_OPTIMIZER_NARROW_ROW_H_

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "kernels/engine/base/random_rounding.h"
#include "kernels/engine/base/row_math.h"

namespace ev {

template <typename Number>
void WidenRow(const Number* from, int64_t dim, float* to) {
  const int64_t whole = dim / 8 * 8;
  for (int64_t j = 0; j < whole; j += 8) Store8(to + j, Load8(from + j));
  for (int64_t j = whole; j < dim; ++j) to[j] = Widen(from[j]);
}

// Vectors of four, or of eight with AVX2, since AVX has no integer arithmetic
// on vectors of eight.
struct Fours {
  using Floats = F4;
  using Bits = U4;
  using Halves = H4;
  static constexpr Bits kSteps = {0, kWordStep, 2 * kWordStep, 3 * kWordStep};
};
typedef uint32_t U8 __attribute__((vector_size(32)));
struct Eights {
  using Floats = F8;
  using Bits = U8;
  using Halves = H8;
  static constexpr Bits kSteps = {
      0,
      kWordStep,
      2 * kWordStep,
      3 * kWordStep,
      4 * kWordStep,
      5 * kWordStep,
      6 * kWordStep,
      7 * kWordStep,
  };
};

#define EV_INLINE inline __attribute__((always_inline))

// The differences between the types.
struct RoundingToFloat16 {
  using Number = Float16;
  // Magnitudes for which Ordinary is right: from the smallest normal number to
  // below the largest one.
  static constexpr uint32_t kLeast = 0x38800000, kEnd = 0x477FE000;
  static constexpr uint32_t kInfinity = 0x7C00;
  template <typename U>
  static EV_INLINE void Ordinary(const U& u, U* bits) {
    const U sum = u + (*bits >> 3);
    *bits =
        ((sum >> 16) & 0x8000u) | (((sum & 0x7FFFFFFFu) - 0x38000000u) >> 13);
  }
  template <typename U, typename F>
  static EV_INLINE void Random(const F& f, U* bits) {
    *bits = RoundRandomlyToFloat16(f, *bits);
  }
  template <typename U, typename F>
  static EV_INLINE void Nearest(const F& f, U* bits) {
    *bits = RoundToFloat16<U>(f);
  }
};
struct RoundingToBFloat16 {
  using Number = BFloat16;
  static constexpr uint32_t kLeast = 0, kEnd = 0x7F7F0000;
  static constexpr uint32_t kInfinity = 0x7F80;
  template <typename U>
  static EV_INLINE void Ordinary(const U& u, U* bits) {
    *bits = (u + *bits) >> 16;
  }
  template <typename U, typename F>
  static EV_INLINE void Random(const F& f, U* bits) {
    *bits = RoundRandomlyToBFloat16(f, *bits);
  }
  template <typename U, typename F>
  static EV_INLINE void Nearest(const F& f, U* bits) {
    *bits = RoundToBFloat16<U>(f);
  }
};

template <typename U>
EV_INLINE bool AnyOf(const U& mask) {
  uint64_t any = 0, parts[sizeof(U) / 8];
  memcpy(parts, &mask, sizeof(U));
  for (const uint64_t part : parts) any |= part;
  return any != 0;
}

// Numbers of one row that are rounded at a time: they share eight random words.
constexpr int kNumbersAtOnce = 16;

// Rounds that many numbers. Returns whether a finite one became infinite.
template <typename Rounding, typename Vectors>
EV_INLINE bool RoundNumbers(const float* from, const uint64_t* salt,
                            uint32_t first_word,
                            typename Rounding::Number* to) {
  using Bits = typename Vectors::Bits;
  using Floats = typename Vectors::Floats;
  constexpr int kLanes = sizeof(Bits) / 4;
  constexpr int kVectors = kNumbersAtOnce / kLanes;
  constexpr uint32_t kRange = Rounding::kEnd - Rounding::kLeast;
  Bits u[kVectors], bits[kVectors] = {}, extreme = {};
  for (int v = 0; v < kVectors; ++v) {
    memcpy(&u[v], from + kLanes * v, sizeof(Bits));
    extreme |= Bits((u[v] & 0x7FFFFFFFu) - Rounding::kLeast >= kRange);
  }
  const bool is_extreme = AnyOf(extreme);
  if (salt != nullptr) {
    for (int v = 0; v < kVectors / 2; ++v) {
      const Bits words = RandomBits(
          *salt, Vectors::kSteps + (first_word + kLanes * v) * kWordStep);
      bits[v] = words & 0xFFFFu;
      bits[v + kVectors / 2] = words >> 16;
    }
  }
  bool overflows = false;
  if (salt != nullptr && !is_extreme) {
    for (int v = 0; v < kVectors; ++v) Rounding::Ordinary(u[v], &bits[v]);
  } else {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      Floats f;
      memcpy(&f, &u[v], sizeof(f));
      if (salt != nullptr) {
        Rounding::Random(f, &bits[v]);
      } else {
        Rounding::Nearest(f, &bits[v]);
      }
    }
    if (is_extreme) {
      Bits infinite = {};
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        infinite |= Bits((bits[v] & 0x7FFFu) == Rounding::kInfinity) &
                    Bits((u[v] & 0x7FFFFFFFu) < 0x7F800000u);
      }
      overflows = AnyOf(infinite);
    }
  }
  for (int v = 0; v < kVectors; ++v) {
    *reinterpret_cast<typename Vectors::Halves*>(to + kLanes * v) =
        __builtin_convertvector(bits[v], typename Vectors::Halves);
  }
  return overflows;
}

template <typename Rounding, typename Vectors>
EV_INLINE bool RoundAll(const float* from, int64_t dim, const uint64_t* salt,
                        typename Rounding::Number* to) {
  bool overflows = false;
  uint32_t word = 0;
  int64_t j = 0;
  for (; j + kNumbersAtOnce <= dim; j += kNumbersAtOnce, word += 8) {
    overflows |= RoundNumbers<Rounding, Vectors>(from + j, salt, word, to + j);
  }
  if (j == dim) return overflows;
  float last[kNumbersAtOnce] = {};
  typename Rounding::Number rounded[kNumbersAtOnce];
  std::copy(from + j, from + dim, last);
  overflows |= RoundNumbers<Rounding, Vectors>(last, salt, word, rounded);
  std::copy_n(rounded, dim - j, to + j);
  return overflows;
}

template <typename Rounding>
__attribute__((target("avx2"))) bool RoundAllWithAvx2(
    const float* from, int64_t dim, const uint64_t* salt,
    typename Rounding::Number* to) {
  return RoundAll<Rounding, Eights>(from, dim, salt, to);
}

inline const bool kHasAvx2 = [] {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx2") != 0;
}();

// Rounds a row, stochastically with 'salt' or, if it is null, to nearest.
// Returns whether a finite number became infinite.
template <typename Rounding>
bool RoundRow(const float* from, int64_t dim, const uint64_t* salt,
              typename Rounding::Number* to) {
  return kHasAvx2 ? RoundAllWithAvx2<Rounding>(from, dim, salt, to)
                  : RoundAll<Rounding, Fours>(from, dim, salt, to);
}

}  // namespace ev

#endif  // KERNELS_ENGINE_OPTIMIZER_NARROW_ROW_H_
