// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Uses SSE2, which every x86-64 processor has. Wider vectors would not help:
// these functions are bound by memory.

#include "kernels/engine/base/copy_past_caches.h"

#include <emmintrin.h>

#include <algorithm>
#include <cstring>

namespace ev {
namespace {

constexpr size_t kLine = 64, kWidth = sizeof(__m128i);

// Returns the bytes from 'to' up to the next cache line. From there on whole
// lines are written.
size_t BytesToLine(const void* to) {
  return (kLine - reinterpret_cast<uintptr_t>(to) % kLine) % kLine;
}

__m128i Load(const void* from) {
  return _mm_loadu_si128(static_cast<const __m128i*>(from));
}

// Returns four of the eight 32-bit halves: the lower or the upper half of each
// value.
template <int kHalves>
__m128i Halves(__m128i a, __m128i b) {
  return _mm_castps_si128(
      _mm_shuffle_ps(_mm_castsi128_ps(a), _mm_castsi128_ps(b), kHalves));
}

bool Fits(int64_t value) { return value == static_cast<int32_t>(value); }

bool NarrowSome(const int64_t* from, size_t count, int32_t* to) {
  bool fit = true;
  for (size_t i = 0; i < count; ++i) {
    fit &= Fits(from[i]);
    to[i] = static_cast<int32_t>(from[i]);
  }
  return fit;
}

}  // namespace

void CopyPastCaches(const void* from, size_t bytes, void* to) {
  const char* const in = static_cast<const char*>(from);
  char* const out = static_cast<char*>(to);
  const size_t head = std::min(bytes, BytesToLine(to));
  std::memcpy(out, in, head);
  size_t i = head;
  for (; i + kLine <= bytes; i += kLine) {
    __m128i line[kLine / kWidth];
    for (size_t k = 0; k < kLine / kWidth; ++k) {
      line[k] = Load(in + i + k * kWidth);
    }
    for (size_t k = 0; k < kLine / kWidth; ++k) {
      _mm_stream_si128(reinterpret_cast<__m128i*>(out + i + k * kWidth),
                       line[k]);
    }
  }
  std::memcpy(out + i, in + i, bytes - i);
  _mm_sfence();
}

bool NarrowPastCaches(const int64_t* from, size_t count, int32_t* to) {
  constexpr size_t kLineIds = kLine / sizeof(int32_t);
  constexpr size_t kIds = kWidth / sizeof(int32_t);
  const size_t head = std::min(count, BytesToLine(to) / sizeof(int32_t));
  bool fit = NarrowSome(from, head, to);
  __m128i misfits = _mm_setzero_si128();
  size_t i = head;
  for (; i + kLineIds <= count; i += kLineIds) {
    __m128i line[kLineIds / kIds];
    for (size_t k = 0; k < kLineIds / kIds; ++k) {
      const __m128i a = Load(from + i + k * kIds);
      const __m128i b = Load(from + i + k * kIds + kIds / 2);
      line[k] = Halves<_MM_SHUFFLE(2, 0, 2, 0)>(a, b);
      // A value fits if its upper half repeats the sign bit of its lower half.
      misfits = _mm_or_si128(
          misfits, _mm_xor_si128(Halves<_MM_SHUFFLE(3, 1, 3, 1)>(a, b),
                                 _mm_srai_epi32(line[k], 31)));
    }
    for (size_t k = 0; k < kLineIds / kIds; ++k) {
      _mm_stream_si128(reinterpret_cast<__m128i*>(to + i + k * kIds), line[k]);
    }
  }
  fit &= NarrowSome(from + i, count - i, to + i);
  _mm_sfence();
  return fit && _mm_movemask_epi8(
                    _mm_cmpeq_epi8(misfits, _mm_setzero_si128())) == 0xFFFF;
}

}  // namespace ev
