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

#include "kernels/engine/base/float_type.h"
#include "kernels/engine/base/row_shape.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/typed_columns.h"

namespace ev {

// Thread-safe except for SetShape.
class FreshRows {
 public:
  // shape: without slots. default_rows: [R, dim], copied.
  FreshRows(const RowShape& shape, Span<const float> default_rows)
      : shape_(shape),
        defaults_(default_rows.size() * FloatBytes(shape.value_type())) {
    WriteNumbers(default_rows.data(), static_cast<int64_t>(default_rows.size()),
                 MutableFloats(defaults_.data(), shape.value_type()));
  }

  const RowShape& shape() const { return shape_; }
  int64_t dim() const { return shape_.dim(); }
  int64_t floats() const { return shape_.floats(); }

  // Writes the initial contents to row: [floats()].
  void Fill(int64_t default_row, float* row) const {
    const int64_t bytes = dim() * FloatBytes(shape_.value_type());
    row[shape_.offset(1) - 1] = 0.0f;  // padding, if the value has some
    std::memcpy(row, defaults_.data() + default_row * bytes, bytes);
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
  std::vector<char> defaults_;  // numbers of the values' type
};

}  // namespace ev

#endif  // KERNELS_ENGINE_STORAGE_TIERED_FRESH_ROWS_H_
