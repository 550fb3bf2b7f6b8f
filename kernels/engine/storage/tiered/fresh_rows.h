// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Initial contents of new rows: a default row, then the initial value of each
// slot.

#ifndef KERNELS_ENGINE_STORAGE_TIERED_FRESH_ROWS_H_
#define KERNELS_ENGINE_STORAGE_TIERED_FRESH_ROWS_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "kernels/engine/base/span.h"

namespace ev {

// Thread-safe except for SetSlots.
class FreshRows {
 public:
  // default_rows: [R, dim], copied. Rows start without slots.
  FreshRows(int64_t dim, Span<const float> default_rows)
      : dim_(dim), defaults_(default_rows.begin(), default_rows.end()) {}

  int64_t dim() const { return dim_; }
  // Floats per row: its value, then its slots.
  int64_t floats() const { return dim_ * (1 + num_slots()); }
  int64_t num_slots() const { return static_cast<int64_t>(initial_.size()); }
  const float* default_row(int64_t r) const {
    return defaults_.data() + r * dim_;
  }
  float initial_value(int slot) const { return initial_[slot]; }

  // Writes the initial contents to row: [floats()].
  void Fill(int64_t default_row, float* row) const {
    std::copy_n(this->default_row(default_row), dim_, row);
    for (size_t s = 0; s < initial_.size(); ++s) {
      std::fill_n(row + (1 + s) * dim_, dim_, initial_[s]);
    }
  }

  // Returns whether the existing slots keep their initial values, bit by bit.
  // initial_values: at least as many as there are slots.
  bool KeepsSlots(Span<const float> initial_values) const {
    return initial_.empty() ||
           std::memcmp(initial_.data(), initial_values.data(),
                       initial_.size() * sizeof(float)) == 0;
  }
  // Makes a SetSlots with that many slots unable to fail. Throws
  // std::bad_alloc.
  void ReserveSlots(size_t count) { initial_.reserve(count); }
  void SetSlots(Span<const float> initial_values) {
    initial_.assign(initial_values.begin(), initial_values.end());
  }

 private:
  const int64_t dim_;
  const std::vector<float> defaults_;
  std::vector<float> initial_;  // by slot
};

}  // namespace ev

#endif  // KERNELS_ENGINE_STORAGE_TIERED_FRESH_ROWS_H_
