// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The gradient of pooling, for the rows and for the weights.
//
// Every occurrence of a row adds (its weight / its sample's divisor) times its
// sample's gradient. Two passes give each distinct row its sum, in the order of
// its occurrences, however the work is divided:
//
//   group  a counting sort of the occurrences by row (the lookup counted them
//          already): sample numbers, and weights if there are any, lie together
//          per row. 4 bytes per id written at random within the second cache.
//   sum    per row, its samples' gradients are added in registers and written
//          once; rows are independent, so this part is cut at will.
//
// When no row occurs twice there is nothing to group: row i's sum is its one
// sample's gradient, copied.

#ifndef KERNELS_ENGINE_COMBINE_POOLING_GRADIENT_H_
#define KERNELS_ENGINE_COMBINE_POOLING_GRADIENT_H_

#include <cstdint>

#include "kernels/engine/combine/pooling.h"

namespace ev {

// factors[s] = 1 / divisor of sample s, the factor of its gradient, for s in
// [begin, end). Returns whether any is not 1; if none is, factors need not be
// read. no_nan: as in PoolingBatch; the factor is then 0 where the divisor is.
bool SampleFactors(Combiner combiner, const int32_t* offsets,
                   const float* weights, bool no_nan, int64_t begin,
                   int64_t end, float* factors);

// Occurrences of each distinct row, in order: those of row u are
// [ends[u - 1], ends[u]), from 0 for the first.
struct Occurrences {
  const int32_t* ends = nullptr;     // [U]
  const int32_t* samples = nullptr;  // [N]
  const float* weights = nullptr;    // [N] weight * factor, or null: no weights
};

// Fills ends [U], samples [N] and (when weights is not null) grouped_weights
// [N]. counts: occurrences of each row. factors: null when all are 1.
void GroupOccurrences(const int32_t* inverse, const int32_t* counts,
                      int64_t num_unique, const int32_t* offsets,
                      int64_t num_samples, const float* weights,
                      const float* factors, int32_t* ends, int32_t* samples,
                      float* grouped_weights);

// The same for a part of the batch that has rows [row_begin, row_end) to
// itself: its occurrences k in [begin, end), in order, are of row rows[k],
// sample samples[k] and weight weights[positions[k]]. Fills the part's ranges
// of ends, grouped_samples and grouped_weights; all of these arrays are the
// batch's.
struct OccurrencePart {
  const int32_t* rows = nullptr;
  const int32_t* samples = nullptr;
  const int32_t* positions = nullptr;
  int64_t begin = 0, end = 0;
  int64_t row_begin = 0, row_end = 0;
};
void GroupPart(const OccurrencePart& part, const int32_t* counts,
               const float* weights, const float* factors, int32_t* ends,
               int32_t* grouped_samples, float* grouped_weights);

// out[u - begin] = sum over the occurrences of row u, u in [begin, end).
// factors as above; not used when there are weights. grads: [B, dim].
void SumOccurrences(const Occurrences& occurrences, const float* factors,
                    const float* grads, int64_t dim, int64_t begin, int64_t end,
                    float* out);

// When every row occurs once, in order: out[i] = the gradient of id i's sample
// times its weight and factor, for the ids of samples [begin, end). out points
// to id 0's row.
void SpreadGradients(const int32_t* offsets, const float* weights,
                     const float* factors, const float* grads, int64_t dim,
                     int64_t begin, int64_t end, float* out);

// weight_grad[i] for the ids of samples [begin, end), from the gradient and the
// forward's result of the batch (WeightGradient of combiner.h).
void WeightGradients(const PoolingBatch& batch, const float* grads,
                     const float* outputs, int64_t begin, int64_t end,
                     float* weight_grad);

}  // namespace ev

#endif  // KERNELS_ENGINE_COMBINE_POOLING_GRADIENT_H_
