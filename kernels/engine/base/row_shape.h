// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Columns of a row: their widths, offsets and initial values, in floats.
// Slots are float32; the numbers of the value may be narrower.

#ifndef KERNELS_ENGINE_BASE_ROW_SHAPE_H_
#define KERNELS_ENGINE_BASE_ROW_SHAPE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/engine/base/float_type.h"
#include "kernels/engine/base/span.h"

namespace ev {

// A slot of every row of a table.
struct SlotShape {
  float initial_value;  // of every element in a new row
  int64_t width;        // the table's dim, or 1
};

// Returns slots as wide as the value.
inline std::vector<SlotShape> FullSlots(int64_t dim,
                                        Span<const float> initial_values) {
  std::vector<SlotShape> slots;
  for (const float value : initial_values) slots.push_back({value, dim});
  return slots;
}

// Column 0 of a row is the value, dim numbers of value_type; column 1 + k is
// slot k. Columns are adjacent, in this order. A narrow value of an odd dim is
// padded to whole floats.
class RowShape {
 public:
  // unit: every offset is a multiple of this many floats. A memory that is
  // accessed in vectors of that size pads narrow columns.
  explicit RowShape(int64_t dim, Span<const SlotShape> slots = {},
                    int64_t unit = 1,
                    FloatType value_type = FloatType::kFloat32)
      : dim_(dim),
        value_type_(value_type),
        slots_(slots.begin(), slots.end()),
        unit_(unit),
        offsets_{0} {
    offsets_.reserve(2 + slots_.size());
    offsets_.push_back((dim * FloatBytes(value_type) + 3) / 4);
    for (const SlotShape& slot : slots_) {
      offsets_.push_back(offsets_.back() +
                         (slot.width + unit_ - 1) / unit_ * unit_);
    }
  }

  int64_t dim() const { return dim_; }
  FloatType value_type() const { return value_type_; }
  FloatType type(int column) const {
    return column == 0 ? value_type_ : FloatType::kFloat32;
  }
  size_t num_slots() const { return slots_.size(); }
  const std::vector<SlotShape>& slots() const { return slots_; }
  int64_t width(int column) const {
    return column == 0 ? dim_ : slots_[column - 1].width;
  }
  int64_t offset(int column) const { return offsets_[column]; }
  // Floats of a row.
  int64_t floats() const { return offsets_.back(); }

  // Writes the initial values of the slots from slot 'first' on to a row.
  // Padding becomes zero.
  void FillSlots(size_t first, float* row) const {
    for (size_t s = first; s < slots_.size(); ++s) {
      float* const end = std::fill_n(row + offsets_[1 + s], slots_[s].width,
                                     slots_[s].initial_value);
      std::fill(end, row + offsets_[2 + s], 0.0f);
    }
  }

  // Returns this row with other slots.
  RowShape With(Span<const SlotShape> slots) const {
    return RowShape(dim_, slots, unit_, value_type_);
  }

 private:
  int64_t dim_;
  FloatType value_type_;
  std::vector<SlotShape> slots_;
  int64_t unit_;
  std::vector<int64_t> offsets_;  // by column, then the end
};

}  // namespace ev

#endif  // KERNELS_ENGINE_BASE_ROW_SHAPE_H_
