// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The gradient of pooling, for the rows and for the weights.
//
// The gradient of a distinct row is a sum over its occurrences: each adds (its
// weight / its sample's divisor) times its sample's gradient. Two passes
// compute the sums in the order of the occurrences, however the work is split:
//
//   group  a counting sort of the occurrences by row, with the counts of the
//          lookup. A row's sample numbers, and weights if there are any, become
//          adjacent. Writes 4 bytes per id at random, within the L2 cache.
//   sum    adds the gradients of a row's samples in registers and writes each
//          sum once. Rows are independent, so this pass can be split anywhere.
//
// If no row occurs twice, nothing is grouped: the sum of a row is a scaled copy
// of its one sample's gradient.

#ifndef KERNELS_ENGINE_COMBINE_POOLING_GRADIENT_H_
#define KERNELS_ENGINE_COMBINE_POOLING_GRADIENT_H_

#include <cstdint>

#include "kernels/engine/combine/pooling.h"

namespace ev {

// Computes factors[s] = 1 / divisor of sample s, the factor of its gradient,
// for s in [begin, end). Returns whether any is not 1; if none is, factors may
// be left unwritten. no_nan: as in PoolingBatch; the factor of a divisor of 0
// is then 0.
bool SampleFactors(Combiner combiner, const int32_t* offsets,
                   const float* weights, bool no_nan, int64_t begin,
                   int64_t end, float* factors);

// Occurrences grouped by distinct row, in order. Those of row u are [ends[u -
// 1], ends[u]), or [0, ends[0]) for row 0.
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

// Groups a part of the batch: the rows [row_begin, row_end), which occur in no
// other part. Occurrence k of the part, k in [begin, end), is of row rows[k],
// sample samples[k] and weight weights[positions[k]]. Fills the part's ranges
// of ends, grouped_samples and grouped_weights; all arrays are those of the
// whole batch.
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

// Computes out[u - begin] = the sum over the occurrences of row u, for u in
// [begin, end). factors as above; not used if there are weights. grads: [B,
// dim]; narrow gradients are widened when they are loaded.
void SumOccurrences(const Occurrences& occurrences, const float* factors,
                    ConstFloats grads, int64_t dim, int64_t begin, int64_t end,
                    float* out);

// Computes the gradients of a batch in which every row occurs once, in order:
// out[i] = the gradient of id i's sample times its weight and factor, for the
// ids of samples [begin, end). out points to id 0's row.
void SpreadGradients(const int32_t* offsets, const float* weights,
                     const float* factors, ConstFloats grads, int64_t dim,
                     int64_t begin, int64_t end, float* out);

// Computes weight_grad[i] (WeightGradient in combiner.h) for the ids of samples
// [begin, end). grads, outputs: the gradient and the result of the forward.
void WeightGradients(const PoolingBatch& batch, const float* grads,
                     const float* outputs, int64_t begin, int64_t end,
                     float* weight_grad);

}  // namespace ev

#endif  // KERNELS_ENGINE_COMBINE_POOLING_GRADIENT_H_
