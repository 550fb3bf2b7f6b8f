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
#include <utility>
#include <vector>

#include "kernels/engine/base/row_shape.h"
#include "kernels/engine/base/span.h"

namespace ev {

// Thread-safe except for SetShape.
class FreshRows {
 public:
  // default_rows: [R, dim], copied. Rows start without slots.
  FreshRows(int64_t dim, Span<const float> default_rows)
      : shape_(dim), defaults_(default_rows.begin(), default_rows.end()) {}

  const RowShape& shape() const { return shape_; }
  int64_t dim() const { return shape_.dim(); }
  int64_t floats() const { return shape_.floats(); }
  const float* default_row(int64_t r) const {
    return defaults_.data() + r * dim();
  }

  // Writes the initial contents to row: [floats()].
  void Fill(int64_t default_row, float* row) const {
    std::copy_n(this->default_row(default_row), dim(), row);
    shape_.FillSlots(0, row);
  }

  // Returns whether the existing slots keep their initial values, bit by bit.
  // slots: at least as many as there are slots.
  bool KeepsSlots(Span<const SlotShape> slots) const {
    for (size_t s = 0; s < shape_.num_slots(); ++s) {
      if (std::memcmp(&shape_.slots()[s].initial_value, &slots[s].initial_value,
                      sizeof(float)) != 0) {
        return false;
      }
    }
    return true;
  }
  // Cannot fail.
  void SetShape(RowShape shape) { shape_ = std::move(shape); }

 private:
  RowShape shape_;
  const std::vector<float> defaults_;
};

}  // namespace ev

#endif  // KERNELS_ENGINE_STORAGE_TIERED_FRESH_ROWS_H_
