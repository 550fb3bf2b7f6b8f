// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Copies many numbers at a time by AVX-512. Results equal those of the plain
// loops of the callers, and no other byte is read or written.

#ifndef ADDONS_HUGECTR_READER_WIDE_H_
#define ADDONS_HUGECTR_READER_WIDE_H_

#include <cstdint>

namespace hugectr {

// Returns whether this CPU has the instructions. Without them the functions
// below must not be called.
bool HasWide();

// Slots that are copied at a time. There must be at least that many; the
// functions that write columns take a multiple of as many samples.
constexpr int64_t kWideKeys = 8;

// Samples at equal distances, from the first slot to copy on.
struct WideRows {
  // Address in the first sample. It is that of the first slot's key count in a
  // Norm file, and that of its key in a Raw file.
  const char* from;
  // Bytes from one sample to the next.
  int64_t stride;
  int64_t samples;
  int64_t slots;
};

// Copies the key of each slot of Norm records; keys have key_bytes 4 or 8.
// Returns false if a slot does not have exactly one key.
// columns: sample r of slot s is written to to[s * column + r].
// rows: to to[r * slots + s].
bool WideNormColumns(const WideRows& rows, int64_t key_bytes, int64_t* to,
                     int64_t column);
bool WideNormRows(const WideRows& rows, int64_t key_bytes, int64_t* to);

// Copies the keys of Raw samples and adds each slot's offset. Returns false if
// a key of slot s is not in [0, last[s]].
bool WideRawColumns(const WideRows& rows, const int32_t* last,
                    const int64_t* offsets, int64_t* to, int64_t column);
bool WideRawRows(const WideRows& rows, const int32_t* last,
                 const int64_t* offsets, int64_t* to);

// Copies `words` 4-byte words of each of `count` samples, which are from_stride
// bytes apart, into contiguous memory.
void WideWords(const char* from, int64_t from_stride, int64_t count,
               int64_t words, char* to);

// Returns whether the byte after each of `count` records is the sum of the
// record's bytes modulo 256.
bool WideSumsAreRight(const char* records, int64_t stride, int64_t count,
                      int64_t bytes);

}  // namespace hugectr

#endif  // ADDONS_HUGECTR_READER_WIDE_H_
