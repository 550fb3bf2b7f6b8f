// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Norm files: a header of eight int64 (1 with checksums, else 0; number of
// records; label_dim; dense_dim; slots; three reserved), then the records. A
// record has float32 labels and dense features, then for each slot an int32
// count and that many keys, uint32 or int64. With checksums, an int32 before a
// record gives its size in bytes, and one byte after it the sum of its bytes
// modulo 256.

#ifndef ADDONS_HUGECTR_READER_NORM_FORMAT_H_
#define ADDONS_HUGECTR_READER_NORM_FORMAT_H_

#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "addons/hugectr/reader/layout.h"

namespace hugectr {

constexpr int64_t kNormHeader = 64;

// Bytes of a number in the file, and of the parts of the frame around a record.
constexpr int64_t kWord = 4;
constexpr int64_t kLengthBytes = 4;
constexpr int64_t kSumBytes = 1;

struct NormFormat {
  Layout layout;
  int64_t key_bytes = 8;
  bool with_sums = false;

  int64_t before() const { return with_sums ? kLengthBytes : 0; }
  int64_t after() const { return with_sums ? kSumBytes : 0; }
};

// Reads a number that may start at any byte.
inline int32_t WordAt(const char* at) {
  int32_t word;
  std::memcpy(&word, at, sizeof(word));
  return word;
}

inline int64_t KeyAt(const char* at, int64_t key_bytes) {
  if (key_bytes == 4) return static_cast<uint32_t>(WordAt(at));
  int64_t key;
  std::memcpy(&key, at, sizeof(key));
  return key;
}

inline uint8_t ByteSum(const char* at, int64_t bytes) {
  uint64_t sum = 0;
  int64_t i = 0;
#if defined(__SSE2__)
  __m128i sums = _mm_setzero_si128();
  for (; i + 16 <= bytes; i += 16) {
    const __m128i part =
        _mm_loadu_si128(reinterpret_cast<const __m128i*>(at + i));
    sums = _mm_add_epi64(sums, _mm_sad_epu8(part, _mm_setzero_si128()));
  }
  sum = _mm_cvtsi128_si64(sums) +
        _mm_cvtsi128_si64(_mm_unpackhi_epi64(sums, sums));
#endif
  for (; i < bytes; ++i) sum += static_cast<uint8_t>(at[i]);
  return static_cast<uint8_t>(sum);
}

}  // namespace hugectr

#endif  // ADDONS_HUGECTR_READER_NORM_FORMAT_H_
