// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Columns of a row by their types (base/row_shape.h).

#ifndef KERNELS_ENGINE_BASE_TYPED_COLUMNS_H_
#define KERNELS_ENGINE_BASE_TYPED_COLUMNS_H_

#include <cstdint>

#include "kernels/engine/base/float_math.h"
#include "kernels/engine/base/float_type.h"
#include "kernels/engine/base/row_shape.h"

namespace ev {

// Returns a column of the row.
inline MutableFloats ColumnOf(const RowShape& shape, float* row, int column) {
  return MutableFloats(reinterpret_cast<char*>(row + shape.offset(column)),
                       shape.type(column));
}
inline ConstFloats ColumnOf(const RowShape& shape, const float* row,
                            int column) {
  return ConstFloats(reinterpret_cast<const char*>(row + shape.offset(column)),
                     shape.type(column));
}

// Copies n numbers, rounded to nearest.
inline void WriteNumbers(const float* from, int64_t n, MutableFloats to) {
  VisitFloats(to, [&](auto* numbers) {
    for (int64_t j = 0; j < n; ++j) Narrow(from[j], numbers + j);
  });
}

// Copies n numbers.
inline void ReadNumbers(ConstFloats from, int64_t n, float* to) {
  VisitFloats(from, [&](const auto* numbers) {
    for (int64_t j = 0; j < n; ++j) to[j] = Widen(numbers[j]);
  });
}

}  // namespace ev

#endif  // KERNELS_ENGINE_BASE_TYPED_COLUMNS_H_
