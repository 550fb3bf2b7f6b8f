// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// What a sample holds and how the keys of a batch are ordered.

#ifndef ADDONS_HUGECTR_READER_LAYOUT_H_
#define ADDONS_HUGECTR_READER_LAYOUT_H_

#include <algorithm>
#include <cstdint>
#include <vector>

namespace hugectr {

// Some slots of the data, which one embedding takes. Slot-major: all keys of
// the first slot, then all of the second. Otherwise sample by sample.
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

  // Numbers of a record before its first slot.
  int64_t fixed() const { return label_dim + dense_dim; }
};

// Samples [low, high) of a batch of `count`: the part of one rank.
struct Span {
  int64_t count = 0;
  int64_t low = 0;
  int64_t high = 0;

  int64_t size() const { return high - low; }
};

// Parts differ by one sample at most, the larger ones first.
inline Span SpanOfRank(int64_t count, int64_t rank, int64_t ranks) {
  const int64_t share = count / ranks, more = count % ranks;
  Span span;
  span.count = count;
  span.low = rank * share + std::min(rank, more);
  span.high = span.low + share + (rank < more ? 1 : 0);
  return span;
}

// Where a batch begins. Norm: the file, the number of the record in the file,
// and the record's first byte. Raw: how often the file was read, and the number
// of the sample among those of this pass.
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
