// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/hugectr/reader/wide.h"

#if defined(__x86_64__)

#include <immintrin.h>

// For vectors that the compiler's headers leave undefined on purpose.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"

// Only functions of this file are compiled for AVX-512. They call no inline
// functions of headers except intrinsics: the linker might use this file's copy
// of such a function in the whole library.
#define HUGECTR_WIDE \
  __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl")))

namespace hugectr {
namespace {

// Accumulates the bits in which words of many records differ from 1.
class OtherThanOne {
 public:
  HUGECTR_WIDE void Clear() { bits_ = _mm512_setzero_si512(); }
  // bits | (words ^ 1) in one instruction
  HUGECTR_WIDE void Add(__m512i words) {
    bits_ = _mm512_ternarylogic_epi32(bits_, words, _mm512_set1_epi32(1), 0xf6);
  }
  HUGECTR_WIDE bool AreNone(__mmask16 words) const {
    return _mm512_mask_test_epi32_mask(words, bits_, bits_) == 0;
  }

 private:
  __m512i bits_;
};

// Loads 64 bytes exactly once. The compiler would load them for each use, and
// most of them span two cache lines.
HUGECTR_WIDE inline __attribute__((always_inline)) __m512i LoadOnce(
    const char* at) {
  __m512i words = _mm512_loadu_si512(at);
  asm("" : "+v"(words));
  return words;
}

// Loaders. Load returns the keys of 8 slots, beginning at the slot of SetSlot.
// IsRight returns whether everything loaded since Start is valid.

// Loads the keys of 8 slots of a Norm record, and checks that each slot has
// one.
template <int kKeyBytes>
struct NormLoader;

template <>
struct NormLoader<4> {
  static constexpr int64_t kSlotBytes = 8;

  HUGECTR_WIDE void Start() { counts.Clear(); }
  HUGECTR_WIDE void SetSlot(int64_t) {}
  HUGECTR_WIDE __m512i Load(const char* at) {
    const __m512i both = LoadOnce(at);
    counts.Add(both);
    return _mm512_srli_epi64(both, 32);
  }
  HUGECTR_WIDE bool IsRight() const { return counts.AreNone(0x5555); }

  OtherThanOne counts;
};

template <>
struct NormLoader<8> {
  static constexpr int64_t kSlotBytes = 12;

  HUGECTR_WIDE void Start() {
    low_counts.Clear();
    high_counts.Clear();
  }
  HUGECTR_WIDE void SetSlot(int64_t) {}
  HUGECTR_WIDE __m512i Load(const char* at) {
    // Words 0 to 15 and 8 to 23 of the 24 words of 8 slots. The first word of a
    // slot is its key count.
    const __m512i low = LoadOnce(at);
    const __m512i high = LoadOnce(at + 32);
    low_counts.Add(low);
    high_counts.Add(high);
    const __m512i keys = _mm512_setr_epi32(1, 2, 4, 5, 7, 8, 10, 11, 13, 14, 24,
                                           25, 27, 28, 30, 31);
    return _mm512_permutex2var_epi32(low, keys, high);
  }
  HUGECTR_WIDE bool IsRight() const {
    return low_counts.AreNone(0x9249) && high_counts.AreNone(0x2400);
  }

  OtherThanOne low_counts, high_counts;
};

struct RawLoader {
  static constexpr int64_t kSlotBytes = 4;

  HUGECTR_WIDE void Start() { wrong = _mm256_setzero_si256(); }
  HUGECTR_WIDE void SetSlot(int64_t slot) {
    last_keys =
        _mm256_loadu_si256(reinterpret_cast<const __m256i_u*>(last + slot));
    added = _mm512_loadu_si512(offsets + slot);
  }
  HUGECTR_WIDE __m512i Load(const char* at) {
    const __m256i keys =
        _mm256_loadu_si256(reinterpret_cast<const __m256i_u*>(at));
    // The sign bit is 1 if the key is negative or larger than the last valid
    // one.
    wrong = _mm256_ternarylogic_epi32(wrong, keys,
                                      _mm256_sub_epi32(last_keys, keys), 0xfe);
    return _mm512_add_epi64(_mm512_cvtepi32_epi64(keys), added);
  }
  HUGECTR_WIDE bool IsRight() const { return _mm256_movepi32_mask(wrong) == 0; }

  const int32_t* last;
  const int64_t* offsets;
  __m256i wrong;
  __m256i last_keys;
  __m512i added;
};

// Stores rows [first, 8) of the transpose of 8 rows of 8 keys.
HUGECTR_WIDE inline __attribute__((always_inline)) void StoreTransposed(
    const __m512i* rows, int first, int64_t* to, int64_t column) {
  __m512i pairs[8], fours[8], out[8];
  for (int i = 0; i < 4; ++i) {
    pairs[i] = _mm512_unpacklo_epi64(rows[2 * i], rows[2 * i + 1]);
    pairs[i + 4] = _mm512_unpackhi_epi64(rows[2 * i], rows[2 * i + 1]);
  }
  // Even columns come from pairs 0 to 3, odd ones from 4 to 7.
  for (int odd = 0; odd < 2; ++odd) {
    const __m512i* pair = pairs + 4 * odd;
    __m512i* four = fours + 4 * odd;
    four[0] = _mm512_shuffle_i64x2(pair[0], pair[1], 0x88);
    four[1] = _mm512_shuffle_i64x2(pair[2], pair[3], 0x88);
    four[2] = _mm512_shuffle_i64x2(pair[0], pair[1], 0xdd);
    four[3] = _mm512_shuffle_i64x2(pair[2], pair[3], 0xdd);
    out[odd] = _mm512_shuffle_i64x2(four[0], four[1], 0x88);
    out[odd + 4] = _mm512_shuffle_i64x2(four[0], four[1], 0xdd);
    out[odd + 2] = _mm512_shuffle_i64x2(four[2], four[3], 0x88);
    out[odd + 6] = _mm512_shuffle_i64x2(four[2], four[3], 0xdd);
  }
  for (int i = 0; i < 8; ++i) {
    if (i >= first) _mm512_storeu_si512(to + i * column, out[i]);
  }
}

// Start of a group of 8 slots; the last group overlaps slots already stored.
inline int64_t GroupOf(int64_t slot, int64_t slots) {
  return slot + kWideKeys <= slots ? slot : slots - kWideKeys;
}

template <typename Loader>
HUGECTR_WIDE bool Columns(const WideRows& rows, Loader loader, int64_t* to,
                          int64_t column) {
  const int64_t stride = rows.stride, slots = rows.slots;
  const int64_t samples = rows.samples;
  loader.Start();
  for (int64_t slot = 0; slot < slots; slot += kWideKeys) {
    const int64_t group = GroupOf(slot, slots);
    const int first = static_cast<int>(slot - group);
    loader.SetSlot(group);
    const char* from = rows.from + group * Loader::kSlotBytes;
    int64_t* out = to + group * column;
    for (int64_t r = 0; r < samples; r += 8) {
      __m512i keys[8];
      for (int i = 0; i < 8; ++i) keys[i] = loader.Load(from + i * stride);
      StoreTransposed(keys, first, out + r, column);
      from += 8 * stride;
    }
  }
  return loader.IsRight();
}

template <typename Loader>
HUGECTR_WIDE bool Rows(const WideRows& rows, Loader loader, int64_t* to) {
  loader.Start();
  for (int64_t slot = 0; slot < rows.slots; slot += kWideKeys) {
    const int64_t group = GroupOf(slot, rows.slots);
    loader.SetSlot(group);
    const char* from = rows.from + group * Loader::kSlotBytes;
    int64_t* out = to + group;
    for (int64_t r = 0; r < rows.samples; ++r) {
      _mm512_storeu_si512(out, loader.Load(from));
      from += rows.stride;
      out += rows.slots;
    }
  }
  return loader.IsRight();
}

// Returns 8 numbers whose sum is the sum of the bytes.
HUGECTR_WIDE inline __attribute__((always_inline)) __m512i SumParts(
    const char* at, int64_t bytes) {
  const __m512i zero = _mm512_setzero_si512();
  __m512i sums = zero;
  int64_t i = 0;
  for (; i + 64 <= bytes; i += 64) {
    sums = _mm512_add_epi64(sums,
                            _mm512_sad_epu8(_mm512_loadu_si512(at + i), zero));
  }
  const __mmask64 rest = (uint64_t{1} << (bytes - i)) - 1;
  return _mm512_add_epi64(
      sums, _mm512_sad_epu8(_mm512_maskz_loadu_epi8(rest, at + i), zero));
}

// Returns the sums of the 8 parts of each of 8 numbers.
HUGECTR_WIDE inline __attribute__((always_inline)) __m512i AddedParts(
    const __m512i* parts) {
  __m512i pairs[4];
  for (int i = 0; i < 4; ++i) {
    // Lanes: number 2i, number 2i + 1, alternating.
    pairs[i] =
        _mm512_add_epi64(_mm512_unpacklo_epi64(parts[2 * i], parts[2 * i + 1]),
                         _mm512_unpackhi_epi64(parts[2 * i], parts[2 * i + 1]));
  }
  __m512i fours[2];
  for (int i = 0; i < 2; ++i) {
    // Lanes of 128 bits: two of numbers 4i and 4i + 1, two of the next two.
    fours[i] = _mm512_add_epi64(
        _mm512_shuffle_i64x2(pairs[2 * i], pairs[2 * i + 1], 0x88),
        _mm512_shuffle_i64x2(pairs[2 * i], pairs[2 * i + 1], 0xdd));
  }
  return _mm512_add_epi64(_mm512_shuffle_i64x2(fours[0], fours[1], 0x88),
                          _mm512_shuffle_i64x2(fours[0], fours[1], 0xdd));
}

}  // namespace

bool HasWide() {
  static const bool has =
      __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  return has;
}

HUGECTR_WIDE bool WideNormColumns(const WideRows& rows, int64_t key_bytes,
                                  int64_t* to, int64_t column) {
  return key_bytes == 8 ? Columns(rows, NormLoader<8>(), to, column)
                        : Columns(rows, NormLoader<4>(), to, column);
}

HUGECTR_WIDE bool WideNormRows(const WideRows& rows, int64_t key_bytes,
                               int64_t* to) {
  return key_bytes == 8 ? Rows(rows, NormLoader<8>(), to)
                        : Rows(rows, NormLoader<4>(), to);
}

HUGECTR_WIDE bool WideRawColumns(const WideRows& rows, const int32_t* last,
                                 const int64_t* offsets, int64_t* to,
                                 int64_t column) {
  RawLoader loader;
  loader.last = last;
  loader.offsets = offsets;
  return Columns(rows, loader, to, column);
}

HUGECTR_WIDE bool WideRawRows(const WideRows& rows, const int32_t* last,
                              const int64_t* offsets, int64_t* to) {
  RawLoader loader;
  loader.last = last;
  loader.offsets = offsets;
  return Rows(rows, loader, to);
}

HUGECTR_WIDE void WideWords(const char* from, int64_t from_stride,
                            int64_t count, int64_t words, char* to) {
  const __mmask16 rest = static_cast<__mmask16>((1u << (words % 16)) - 1);
  for (int64_t r = 0; r < count; ++r, from += from_stride) {
    const char* in = from;
    for (int64_t left = words; left >= 16; left -= 16, in += 64, to += 64) {
      _mm512_storeu_si512(to, _mm512_loadu_si512(in));
    }
    if (rest != 0) {
      _mm512_mask_storeu_epi32(to, rest, _mm512_maskz_loadu_epi32(rest, in));
      to += words % 16 * 4;
    }
  }
}

HUGECTR_WIDE bool WideSumsAreRight(const char* records, int64_t stride,
                                   int64_t count, int64_t bytes) {
  bool is_right = true;
  for (int64_t r = 0; r < count; r += 8) {
    // Sums of 8 records, in 8 parts each; those beyond the last record are 0.
    const int left = count - r < 8 ? static_cast<int>(count - r) : 8;
    __m512i sums[8];
    alignas(64) uint64_t expected[8] = {};
    for (int i = 0; i < 8; ++i) {
      sums[i] = _mm512_setzero_si512();
      if (i >= left) continue;
      const char* record = records + (r + i) * stride;
      sums[i] = SumParts(record, bytes);
      expected[i] = static_cast<uint8_t>(record[bytes]);
    }
    const __m512i wrong =
        _mm512_sub_epi64(AddedParts(sums), _mm512_load_si512(expected));
    is_right &= _mm512_test_epi64_mask(wrong, _mm512_set1_epi64(0xff)) == 0;
  }
  return is_right;
}

}  // namespace hugectr

#else  // Not x86-64: callers use plain loops.

#include <cstdlib>

namespace hugectr {

bool HasWide() { return false; }

bool WideNormColumns(const WideRows&, int64_t, int64_t*, int64_t) { abort(); }
bool WideNormRows(const WideRows&, int64_t, int64_t*) { abort(); }
bool WideRawColumns(const WideRows&, const int32_t*, const int64_t*, int64_t*,
                    int64_t) {
  abort();
}
bool WideRawRows(const WideRows&, const int32_t*, const int64_t*, int64_t*) {
  abort();
}
void WideWords(const char*, int64_t, int64_t, int64_t, char*) { abort(); }
bool WideSumsAreRight(const char*, int64_t, int64_t, int64_t) { abort(); }

}  // namespace hugectr

#endif
