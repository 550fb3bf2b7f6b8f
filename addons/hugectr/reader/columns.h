// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Makes batches from columns, such as Parquet's, with one key per slot.

#ifndef ADDONS_HUGECTR_READER_COLUMNS_H_
#define ADDONS_HUGECTR_READER_COLUMNS_H_

#include <cstdint>
#include <vector>

#include "addons/hugectr/reader/batch.h"

namespace hugectr {

// Columns of floats: address of the first sample's number in each column;
// consecutive samples are `stride` numbers apart, so rows can be described too.
struct FloatColumns {
  const float* const* columns = nullptr;
  int64_t stride = 1;
};

// A run of samples. keys: one array per slot of the layout, one key per sample.
// added: offset to add to the keys of each slot.
struct ColumnPiece {
  int64_t count = 0;
  FloatColumns labels;
  FloatColumns dense;
  const int64_t* const* keys = nullptr;
  const int64_t* added = nullptr;
};

// Concatenates pieces into a batch. The batch must have their total size.
void FillFromColumns(const std::vector<ColumnPiece>& pieces, Batch* batch);

// Returns the position of the first key outside [0, size); -1 if there is none.
int64_t FirstOutside(const int64_t* keys, int64_t count, int64_t size);

}  // namespace hugectr

#endif  // ADDONS_HUGECTR_READER_COLUMNS_H_
