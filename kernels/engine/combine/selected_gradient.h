// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Gradient of a combiner that selects (kSelects in combiner.h): each element of
// a sample's pooled row equals that element of one of its rows, or of several
// that tie.
//
// The gradient of a pooled element is divided equally among the ids of the
// sample whose rows have that value, as in TensorFlow's segment_max; an id that
// occurs twice gets two shares. If the pooled element is NaN, no row gets a
// share. The rows must be those that the forward pooled, because the selection
// is computed again. That costs another pooling; only a copy of the rows is
// kept between the passes.

#ifndef KERNELS_ENGINE_COMBINE_SELECTED_GRADIENT_H_
#define KERNELS_ENGINE_COMBINE_SELECTED_GRADIENT_H_

#include <cstdint>

#include "kernels/engine/base/scratch.h"
#include "kernels/engine/combine/pooling.h"
#include "kernels/engine/combine/pooling_gradient.h"

namespace ev {

// The pooled rows, and the share of the gradient that an id gets for each
// element in which its row equals the pooled row.
struct SelectedShares {
  float* pooled = nullptr;  // [B, dim]
  float* shares = nullptr;  // [B, dim]; unspecified for samples without ids

  // Throws std::bad_alloc.
  void Reserve(int64_t batch_size, int64_t dim);

 private:
  LineBuffer floats_;
};

// Fills *selected for samples [begin, end). grads: [B, dim].
void ShareGradients(const PoolingBatch& batch, ConstFloats grads, int64_t begin,
                    int64_t end, SelectedShares* selected);

// Computes out[u - begin] = the sum of the shares of row u over its
// occurrences, in order, for u in [begin, end). rows: as PoolingBatch::rows.
void SumShares(const Occurrences& occurrences, const float* const* rows,
               const SelectedShares& selected, int64_t dim, int64_t begin,
               int64_t end, float* out);

// The transpose of ShareGradients and SumShares, for the gradient of the
// gradient. For s in [begin, end), each element of out[s] is the mean of that
// element of given[u] over the sample's ids whose row u has the pooled element;
// 0 if none has it. given: [U], as PoolingBatch::rows. out points to sample 0's
// row.
void PoolSelected(const PoolingBatch& batch, const float* const* given,
                  int64_t begin, int64_t end, float* out);

}  // namespace ev

#endif  // KERNELS_ENGINE_COMBINE_SELECTED_GRADIENT_H_
