// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Batches of samples that are in columns, as Parquet's are, with one key in
// each slot.

#ifndef ADDONS_HUGECTR_READER_COLUMNS_H_
#define ADDONS_HUGECTR_READER_COLUMNS_H_

#include <cstdint>
#include <vector>

#include "addons/hugectr/reader/batch.h"

namespace hugectr {

// Samples that lie together. labels, dense: row by row. keys: of each slot of
// the layout, one a sample; added: what is added to the keys of each slot.
struct ColumnPiece {
  int64_t count = 0;
  const float* labels = nullptr;
  const float* dense = nullptr;
  const int64_t* const* keys = nullptr;
  const int64_t* added = nullptr;
};

// Puts pieces one behind the other into a batch, whose size is theirs together.
void FillFromColumns(const std::vector<ColumnPiece>& pieces, Batch* batch);

}  // namespace hugectr

#endif  // ADDONS_HUGECTR_READER_COLUMNS_H_
