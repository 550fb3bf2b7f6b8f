// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The contents of a sample, and the order of keys in a batch.

#ifndef ADDONS_HUGECTR_READER_LAYOUT_H_
#define ADDONS_HUGECTR_READER_LAYOUT_H_

#include <algorithm>
#include <cstdint>
#include <vector>

namespace hugectr {

// A range of slots that one embedding reads. Slot-major: all keys of the first
// slot, then all of the second. Otherwise all keys of the first sample, then of
// the second.
struct Input {
  int64_t first;
  int64_t count;
  bool is_slot_major;
};

struct Layout {
  int64_t label_dim = 0;
  int64_t dense_dim = 0;
  int64_t slots = 0;
  std::vector<Input> inputs;

  // Count of numbers in a record before its first slot.
  int64_t fixed() const { return label_dim + dense_dim; }
};

// One rank's samples [low, high) of a batch of `count`.
struct Span {
  int64_t count = 0;
  int64_t low = 0;
  int64_t high = 0;

  int64_t size() const { return high - low; }
};

// Sizes differ by at most one sample; the larger shares come first.
inline Span SpanOfRank(int64_t count, int64_t rank, int64_t ranks) {
  const int64_t share = count / ranks, more = count % ranks;
  Span span;
  span.count = count;
  span.low = rank * share + std::min(rank, more);
  span.high = span.low + share + (rank < more ? 1 : 0);
  return span;
}

// Start of a batch. Norm: the file, the number of the record in the file, and
// the record's first byte. Raw: `file` is the number of the pass, and `record`
// the number of the sample in its order.
struct Place {
  int64_t file = 0;
  int64_t record = 0;
  int64_t byte = 0;
};

inline bool operator==(const Place& a, const Place& b) {
  return a.file == b.file && a.record == b.record && a.byte == b.byte;
}

}  // namespace hugectr

#endif  // ADDONS_HUGECTR_READER_LAYOUT_H_
