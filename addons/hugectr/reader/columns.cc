// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/hugectr/reader/columns.h"

#include <algorithm>

namespace hugectr {
namespace {

// Samples whose columns are written to rows at a time: the batch's cache lines
// stay in the L1 cache until they are complete.
constexpr int64_t kBlock = 32;

// Keys checked before the result is tested.
constexpr int64_t kChecked = 4096;

void CopyFloats(const FloatColumns& from, int64_t dim, int64_t count,
                float* to) {
  for (int64_t done = 0; done < count; done += kBlock) {
    const int64_t block = std::min(kBlock, count - done);
    for (int64_t d = 0; d < dim; ++d) {
      const float* column = from.columns[d] + done * from.stride;
      float* out = to + done * dim + d;
      for (int64_t r = 0; r < block; ++r) {
        out[r * dim] = column[r * from.stride];
      }
    }
  }
}

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
    // Arrays without samples may be null.
    if (piece.count == 0) continue;
    CopyFloats(piece.labels, layout.label_dim, piece.count,
               batch->labels.as<float>() + sample * layout.label_dim);
    CopyFloats(piece.dense, layout.dense_dim, piece.count,
               batch->dense.as<float>() + sample * layout.dense_dim);
    for (size_t i = 0; i < layout.inputs.size(); ++i) {
      CopyKeys(piece, layout.inputs[i], sample, batch->size,
               batch->inputs[i].keys.as<int64_t>());
    }
    sample += piece.count;
  }
}

int64_t FirstOutside(const int64_t* keys, int64_t count, int64_t size) {
  for (int64_t done = 0; done < count; done += kChecked) {
    const int64_t end = std::min(count, done + kChecked);
    // The sign bit is 1 if a key is negative or larger than the last valid one.
    uint64_t wrong = 0;
    for (int64_t i = done; i < end; ++i) {
      const uint64_t key = static_cast<uint64_t>(keys[i]);
      wrong |= key | (static_cast<uint64_t>(size) - 1 - key);
    }
    if (wrong >> 63 == 0) continue;
    for (int64_t i = done; i < end; ++i) {
      if (keys[i] < 0 || keys[i] >= size) return i;
    }
  }
  return -1;
}

}  // namespace hugectr
