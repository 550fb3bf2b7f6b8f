// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The gradient of a combiner that selects (kSelects of combiner.h): each
// element of a sample's pooled row is the element of one of its rows, or of
// several that tie.
//
// The gradient of that element goes to all ids of the sample whose row has it,
// in equal shares, as TensorFlow's segment_max does it; an id that occurs twice
// has two shares. Where the pooled element is not a number no row gets any. The
// rows must be those that the forward pooled: the selection is made again,
// which costs another pooling and needs no memory between the passes but a copy
// of the rows.

#ifndef KERNELS_ENGINE_COMBINE_SELECTED_GRADIENT_H_
#define KERNELS_ENGINE_COMBINE_SELECTED_GRADIENT_H_

#include <cstdint>

#include "kernels/engine/base/scratch.h"
#include "kernels/engine/combine/pooling.h"
#include "kernels/engine/combine/pooling_gradient.h"

namespace ev {

// What each id of a sample that has the pooled element gets of its gradient.
struct SelectedShares {
  float* pooled = nullptr;  // [B, dim]
  float* shares = nullptr;  // [B, dim]; unspecified for samples without ids

  // Throws std::bad_alloc.
  void Reserve(int64_t batch_size, int64_t dim);

 private:
  LineBuffer floats_;
};

// Fills *selected for samples [begin, end). grads: [B, dim].
void ShareGradients(const PoolingBatch& batch, const float* grads,
                    int64_t begin, int64_t end, SelectedShares* selected);

// out[u - begin] = the sum of the shares of row u over its occurrences, in
// their order, u in [begin, end). rows: as PoolingBatch::rows.
void SumShares(const Occurrences& occurrences, const float* const* rows,
               const SelectedShares& selected, int64_t dim, int64_t begin,
               int64_t end, float* out);

// The transpose of the two above, for the gradient of the gradient. out[s], for
// s in [begin, end): each element is the mean of that element of given[u] over
// the sample's ids whose row u has the pooled element; 0 where none has it.
// given: [U], as PoolingBatch::rows. out points to sample 0's row.
void PoolSelected(const PoolingBatch& batch, const float* const* given,
                  int64_t begin, int64_t end, float* out);

}  // namespace ev

#endif  // KERNELS_ENGINE_COMBINE_SELECTED_GRADIENT_H_
