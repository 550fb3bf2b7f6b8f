// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Eight floats at a time, at any address, and the one place that says why a row
// may be read while it is written.
//
// A forward pass does not stop the updates of other threads: it may see a row
// of which some elements are new and some old, never a torn element (an aligned
// 4-byte load or store is whole on every machine TensorFlow runs on, and a
// vector load is a set of those). That is a data race in the language's terms,
// so the functions that read rows are marked EV_READS_LIVE_ROWS:
// ThreadSanitizer skips their loads and still checks everything else, the
// writers among themselves above all. A helper of such a function is
// EV_READS_LIVE_ROWS_INLINE, or it would be checked again; memcpy always is, so
// rows are copied by these loads.

#ifndef KERNELS_ENGINE_COMBINE_ROW_MATH_H_
#define KERNELS_ENGINE_COMBINE_ROW_MATH_H_

#include <cstdint>

#if defined(__SANITIZE_THREAD__)
#define EV_READS_LIVE_ROWS __attribute__((no_sanitize_thread, noinline))
#define EV_READS_LIVE_ROWS_INLINE \
  inline __attribute__((no_sanitize_thread, always_inline))
#else
#define EV_READS_LIVE_ROWS
#define EV_READS_LIVE_ROWS_INLINE inline __attribute__((always_inline))
#endif

namespace ev {

// Any address, any aliasing.
typedef float F8 __attribute__((vector_size(32), aligned(4), may_alias));

EV_READS_LIVE_ROWS_INLINE F8 Load8(const float* p) {
  return *reinterpret_cast<const F8*>(p);
}

EV_READS_LIVE_ROWS_INLINE void Store8(float* p, F8 v) {
  *reinterpret_cast<F8*>(p) = v;
}

// Asks for the lines of 'count' floats.
EV_READS_LIVE_ROWS_INLINE void PrefetchFloats(const float* p, int64_t count) {
  for (int64_t c = 0; c < count; c += 16) __builtin_prefetch(p + c, 0, 3);
}

// How many rows ahead to ask for them: a core keeps about 24 lines in flight.
inline int64_t RowsAhead(int64_t dim) {
  const int64_t lines = (dim + 15) / 16;
  return lines >= 12 ? 2 : 24 / lines;
}

}  // namespace ev

#endif  // KERNELS_ENGINE_COMBINE_ROW_MATH_H_
