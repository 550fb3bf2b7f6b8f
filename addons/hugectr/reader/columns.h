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

// Numbers of samples: of each column where the first sample's is, and how many
// numbers further the next sample's. So rows are columns too.
struct FloatColumns {
  const float* const* columns = nullptr;
  int64_t stride = 1;
};

// Samples that lie together. keys: of each slot of the layout, one a sample;
// added: what is added to the keys of each slot.
struct ColumnPiece {
  int64_t count = 0;
  FloatColumns labels;
  FloatColumns dense;
  const int64_t* const* keys = nullptr;
  const int64_t* added = nullptr;
};

// Puts pieces one behind the other into a batch, whose size is theirs together.
void FillFromColumns(const std::vector<ColumnPiece>& pieces, Batch* batch);

// The place of the first key that is not in [0, size); -1: there is none.
int64_t FirstOutside(const int64_t* keys, int64_t count, int64_t size);

}  // namespace hugectr

#endif  // ADDONS_HUGECTR_READER_COLUMNS_H_
