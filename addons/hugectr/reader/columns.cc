// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/hugectr/reader/columns.h"

#include <algorithm>
#include <cstring>

namespace hugectr {
namespace {

// Samples whose keys are written slot by slot: the lines of the batch that they
// are in stay in the first cache until they are whole.
constexpr int64_t kBlock = 32;

void CopyKeys(const ColumnPiece& piece, const Input& input, int64_t sample,
              int64_t size, int64_t* keys) {
  const int64_t* const* columns = piece.keys + input.first;
  const int64_t* added = piece.added + input.first;
  if (input.is_slot_major) {
    for (int64_t s = 0; s < input.count; ++s) {
      int64_t* to = keys + s * size + sample;
      for (int64_t r = 0; r < piece.count; ++r)
        to[r] = columns[s][r] + added[s];
    }
    return;
  }
  for (int64_t done = 0; done < piece.count; done += kBlock) {
    const int64_t block = std::min(kBlock, piece.count - done);
    for (int64_t s = 0; s < input.count; ++s) {
      const int64_t* from = columns[s] + done;
      int64_t* to = keys + (sample + done) * input.count + s;
      for (int64_t r = 0; r < block; ++r)
        to[r * input.count] = from[r] + added[s];
    }
  }
}

}  // namespace

void FillFromColumns(const std::vector<ColumnPiece>& pieces, Batch* batch) {
  const Layout& layout = batch->pool->layout();
  for (size_t i = 0; i < layout.inputs.size(); ++i) {
    const Input& input = layout.inputs[i];
    InputKeys& out = batch->inputs[i];
    out.num_keys = batch->size * input.count;
    out.keys.Reserve(out.num_keys * sizeof(int64_t));
    out.num_splits = NumSplits(input, batch->size);
    out.one_key_splits = batch->pool->OneKeySplits(input, batch->size);
  }
  int64_t sample = 0;
  for (const ColumnPiece& piece : pieces) {
    // Arrays of no samples may be null.
    if (piece.count == 0) continue;
    std::memcpy(batch->labels.as<float>() + sample * layout.label_dim,
                piece.labels, piece.count * layout.label_dim * sizeof(float));
    std::memcpy(batch->dense.as<float>() + sample * layout.dense_dim,
                piece.dense, piece.count * layout.dense_dim * sizeof(float));
    for (size_t i = 0; i < layout.inputs.size(); ++i) {
      CopyKeys(piece, layout.inputs[i], sample, batch->size,
               batch->inputs[i].keys.as<int64_t>());
    }
    sample += piece.count;
  }
}

}  // namespace hugectr
