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
#include "kernels/engine/base/host_device.h"
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
// padded to whole floats. The key's hash, if a row has one, is at its end.
class RowShape {
 public:
  // unit: every offset is a multiple of this many floats. A memory that is
  // accessed in vectors of that size pads narrow columns. has_hash: a row ends
  // with MixKey of its key (base/hash.h), 8 bytes.
  explicit RowShape(int64_t dim, Span<const SlotShape> slots = {},
                    int64_t unit = 1,
                    FloatType value_type = FloatType::kFloat32,
                    bool has_hash = false)
      : dim_(dim),
        value_type_(value_type),
        slots_(slots.begin(), slots.end()),
        unit_(unit),
        has_hash_(has_hash),
        offsets_{0} {
    offsets_.reserve(2 + slots_.size());
    int64_t used = (dim * FloatBytes(value_type) + 3) / 4;
    offsets_.push_back(Padded(used, unit_));
    for (const SlotShape& slot : slots_) {
      used = offsets_.back() + slot.width;
      offsets_.push_back(Padded(used, unit_));
    }
    floats_ = offsets_.back();
    if (!has_hash) return;
    // The hash may be in the padding of the last column.
    floats_ = Padded(used + kHashFloats, std::max<int64_t>(unit_, 2));
    // A GPU writes whole sectors, of 8 floats, faster than parts.
    const int64_t sectors = Padded(floats_, 8);
    if (sectors - floats_ <= floats_ / 16) floats_ = sectors;
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
  int64_t floats() const { return floats_; }
  bool has_hash() const { return has_hash_; }
  static constexpr int64_t kHashFloats = 2;

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
    return RowShape(dim_, slots, unit_, value_type_, has_hash_);
  }

 private:
  static int64_t Padded(int64_t floats, int64_t unit) {
    return (floats + unit - 1) / unit * unit;
  }

  int64_t dim_;
  FloatType value_type_;
  std::vector<SlotShape> slots_;
  int64_t unit_;
  bool has_hash_;
  std::vector<int64_t> offsets_;  // by column, then the end
  int64_t floats_;
};

// Returns the address of the key's hash in a row of that many floats.
EV_HOST_DEVICE uint64_t* HashOf(float* row, int64_t floats) {
  return reinterpret_cast<uint64_t*>(row + floats) - 1;
}

}  // namespace ev

#endif  // KERNELS_ENGINE_BASE_ROW_SHAPE_H_
