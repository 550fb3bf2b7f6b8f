// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Loads and stores of eight numbers at any address, for rows that other threads
// may be writing, and for outputs and gradients of any type.
//
// A forward pass does not block the updates of other threads. It may read a row
// of which some elements are new and some old, but never a torn element. An
// aligned 4-byte load or store is atomic on every machine that TensorFlow runs
// on, and a vector load is a set of those. In C++ this is a data race, so
// functions that read rows are marked EV_READS_LIVE_ROWS. ThreadSanitizer skips
// the loads of these functions and still checks everything else, above all
// writers against each other. Their helpers must be EV_READS_LIVE_ROWS_INLINE,
// or ThreadSanitizer checks them. It always checks memcpy, so rows are copied
// by these loads instead.

#ifndef KERNELS_ENGINE_BASE_ROW_MATH_H_
#define KERNELS_ENGINE_BASE_ROW_MATH_H_

#include <cstdint>

#include "kernels/engine/base/float_math.h"

#if defined(__SANITIZE_THREAD__)
#define EV_READS_LIVE_ROWS __attribute__((no_sanitize_thread, noinline))
#define EV_READS_LIVE_ROWS_INLINE \
  inline __attribute__((no_sanitize_thread, always_inline))
#else
#define EV_READS_LIVE_ROWS
#define EV_READS_LIVE_ROWS_INLINE inline __attribute__((always_inline))
#endif

namespace ev {

// Eight floats at any address, with any aliasing.
typedef float F8 __attribute__((vector_size(32), aligned(4), may_alias));

EV_READS_LIVE_ROWS_INLINE F8 Load8(const float* p) {
  return *reinterpret_cast<const F8*>(p);
}

EV_READS_LIVE_ROWS_INLINE void Store8(float* p, F8 v) {
  *reinterpret_cast<F8*>(p) = v;
}

// Narrow numbers at any address. Their arithmetic is done in fours, since AVX
// has no integer arithmetic on vectors of eight.
typedef uint16_t H8 __attribute__((vector_size(16), aligned(2), may_alias));
typedef uint16_t H4 __attribute__((vector_size(8), aligned(2), may_alias));
typedef uint32_t U4 __attribute__((vector_size(16)));
typedef float F4 __attribute__((vector_size(16), aligned(4), may_alias));

// Whether the processor converts float16 by instructions. (Those with AVX that
// do not are from 2011 and 2012.)
inline const bool kConvertsFloat16 = [] {
  __builtin_cpu_init();
  return __builtin_cpu_supports("f16c") != 0;
}();

// The same for narrow numbers. They round and widen as base/float_math.h does,
// except perhaps for the bits of a NaN.
EV_READS_LIVE_ROWS inline __attribute__((noinline)) F8 WidenInFours(
    const Float16* p) {
  float wide[8];
  for (int k = 0; k < 8; k += 4) {
    const H4 bits = *reinterpret_cast<const H4*>(p + k);
    *reinterpret_cast<F4*>(wide + k) =
        WidenFloat16<F4>(__builtin_convertvector(bits, U4));
  }
  return Load8(wide);
}
EV_READS_LIVE_ROWS_INLINE F8 Load8(const Float16* p) {
  if (!kConvertsFloat16) return WidenInFours(p);
  F8 wide;
  asm("vcvtph2ps %1, %0" : "=x"(wide) : "m"(*reinterpret_cast<const H8*>(p)));
  return wide;
}
EV_READS_LIVE_ROWS_INLINE F8 Load8(const BFloat16* p) {
  // The upper halves of floats whose lower halves are zero.
  const H8 zeros = {}, halves = *reinterpret_cast<const H8*>(p);
  const H8 low = __builtin_shuffle(zeros, halves, H8{0, 8, 1, 9, 2, 10, 3, 11});
  const H8 high =
      __builtin_shuffle(zeros, halves, H8{4, 12, 5, 13, 6, 14, 7, 15});
  const F4 a = BitsOfFloats<F4>(low), b = BitsOfFloats<F4>(high);
  return F8{a[0], a[1], a[2], a[3], b[0], b[1], b[2], b[3]};
}

template <typename Round>
inline __attribute__((always_inline)) void StoreFours(void* p, F8 v,
                                                      const Round& round) {
  for (int k = 0; k < 8; k += 4) {
    const F4 four = {v[k], v[k + 1], v[k + 2], v[k + 3]};
    const U4 bits = round(four);
    *reinterpret_cast<H4*>(static_cast<uint16_t*>(p) + k) =
        __builtin_convertvector(bits, H4);
  }
}
inline __attribute__((always_inline)) void Store8(Float16* p, F8 v) {
  if (!kConvertsFloat16) {
    return StoreFours(p, v, [](F4 four) { return RoundToFloat16<U4>(four); });
  }
  asm("vcvtps2ph $0, %1, %0"  // to nearest, ties to even
      : "=m"(*reinterpret_cast<H8*>(p))
      : "x"(v));
}
inline __attribute__((always_inline)) void Store8(BFloat16* p, F8 v) {
  StoreFours(p, v, [](F4 four) { return RoundToBFloat16<U4>(four); });
}

// Prefetches the cache lines of 'count' numbers.
template <typename Number>
EV_READS_LIVE_ROWS_INLINE void PrefetchFloats(const Number* p, int64_t count) {
  constexpr int64_t kPerLine = 64 / sizeof(Number);
  for (int64_t c = 0; c < count; c += kPerLine) {
    __builtin_prefetch(p + c, 0, 3);
  }
}

// Returns how many rows ahead to prefetch: a core keeps about 24 lines in
// flight.
inline int64_t RowsAhead(int64_t dim) {
  const int64_t lines = (dim + 15) / 16;
  return lines >= 12 ? 2 : 24 / lines;
}

}  // namespace ev

#endif  // KERNELS_ENGINE_BASE_ROW_MATH_H_
