// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Copies of many numbers at a time, for processors that have AVX-512. They give
// what the plain loops beside their callers give, and read and write no byte
// that those do not.

#ifndef ADDONS_HUGECTR_READER_WIDE_H_
#define ADDONS_HUGECTR_READER_WIDE_H_

#include <cstdint>

namespace hugectr {

// Whether this processor has the instructions. Without them the functions below
// must not be called.
bool HasWide();

// Slots that are moved side by side: the functions need as many, and those that
// write columns take a multiple of as many samples.
constexpr int64_t kWideKeys = 8;

// Samples at equal distances, seen from the first slot that is copied.
struct WideRows {
  // Of the first sample. Norm: where the first slot's number of keys is. Raw:
  // where its key is.
  const char* from;
  // Bytes from one sample to the next.
  int64_t stride;
  int64_t samples;
  int64_t slots;
};

// The key of each slot of Norm records, key_bytes 4 or 8 wide. False: a slot
// has not one key.
//   columns: sample r of slot s goes to to[s * column + r].
//   rows: to[r * slots + s].
bool WideNormColumns(const WideRows& rows, int64_t key_bytes, int64_t* to,
                     int64_t column);
bool WideNormRows(const WideRows& rows, int64_t key_bytes, int64_t* to);

// The same of Raw samples, each slot's offset added. False: a key of slot s is
// not in [0, last[s]].
bool WideRawColumns(const WideRows& rows, const int32_t* last,
                    const int64_t* offsets, int64_t* to, int64_t column);
bool WideRawRows(const WideRows& rows, const int32_t* last,
                 const int64_t* offsets, int64_t* to);

// Copies `words` words of 4 bytes of each of `count` samples, which are at
// distances of from_stride bytes, one behind the other.
void WideWords(const char* from, int64_t from_stride, int64_t count,
               int64_t words, char* to);

// Whether the byte behind each of `count` records is the sum, modulo 256, of
// the record's bytes.
bool WideSumsAreRight(const char* records, int64_t stride, int64_t count,
                      int64_t bytes);

}  // namespace hugectr

#endif  // ADDONS_HUGECTR_READER_WIDE_H_
