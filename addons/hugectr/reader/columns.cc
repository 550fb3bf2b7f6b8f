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

void CopyKeys(const int64_t* const* columns, const Input& input, int64_t count,
              int64_t sample, int64_t size, int64_t* keys) {
  if (input.is_slot_major) {
    for (int64_t s = 0; s < input.count; ++s) {
      std::memcpy(keys + s * size + sample, columns[input.first + s],
                  count * sizeof(int64_t));
    }
    return;
  }
  for (int64_t done = 0; done < count; done += kBlock) {
    const int64_t block = std::min(kBlock, count - done);
    for (int64_t s = 0; s < input.count; ++s) {
      const int64_t* from = columns[input.first + s] + done;
      int64_t* to = keys + (sample + done) * input.count + s;
      for (int64_t r = 0; r < block; ++r) to[r * input.count] = from[r];
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
    std::memcpy(batch->labels.as<float>() + sample * layout.label_dim,
                piece.labels, piece.count * layout.label_dim * sizeof(float));
    std::memcpy(batch->dense.as<float>() + sample * layout.dense_dim,
                piece.dense, piece.count * layout.dense_dim * sizeof(float));
    for (size_t i = 0; i < layout.inputs.size(); ++i) {
      CopyKeys(piece.keys, layout.inputs[i], piece.count, sample, batch->size,
               batch->inputs[i].keys.as<int64_t>());
    }
    sample += piece.count;
  }
}

}  // namespace hugectr
