// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Pooling: combines the rows of each sample into one row.
//
// Rows are given as one pointer per distinct id and are looked up through the
// inverse, so this code depends on neither tables nor handles. An absent key
// has a pointer to its default row. A sample's rows are combined in registers,
// in the order of its ids, so a result depends on its sample alone. A mean
// divides once per sample, after summing, as stock TensorFlow does.
//
// Cost per id: one inverse (4 bytes), one pointer (8 bytes, from the L2 cache)
// and one row. Only the row misses the caches. It is prefetched some ids ahead:
// because of the two dependent loads before it, a core alone would reach it too
// late when samples are long or rows are wide.

#ifndef KERNELS_ENGINE_COMBINE_POOLING_H_
#define KERNELS_ENGINE_COMBINE_POOLING_H_

#include <cstdint>

#include "kernels/engine/base/float_type.h"
#include "kernels/engine/combine/combiner.h"

namespace ev {

// One table's batch. Row of id i: rows[inverse[i]], dim floats. Ids of sample
// s: [offsets[s], offsets[s + 1]).
struct PoolingBatch {
  const float* const* rows = nullptr;  // [U]
  // Type of the numbers at those addresses.
  FloatType row_type = FloatType::kFloat32;
  const int32_t* inverse = nullptr;  // [N]
  const int32_t* offsets = nullptr;  // [B + 1]
  const float* weights = nullptr;    // [N], or null: all ones
  int64_t dim = 0;
  Combiner combiner = Combiner::kSum;
  // Result of a sample whose divisor is 0, which happens only with weights and
  // a combiner that divides. True: the sample's result is zeros, and so are the
  // gradients of its rows and weights. False: NaN or infinity, as TensorFlow's
  // division gives.
  bool no_nan = false;
};

// Computes out[s] for s in [begin, end); out points to sample 0's row. Sums are
// float32; a narrow result is rounded once, when it is stored. The result of a
// sample without ids is zeros. Other threads may write rows during the call
// (base/row_math.h).
void PoolSamples(const PoolingBatch& batch, int64_t begin, int64_t end,
                 MutableFloats out);

// Returns the divisor (combiner.h) of the sample with ids [begin, end); 1 if
// the sample is empty. weights: [N], or null. The terms of the weights are
// added in the order of the ids.
float SampleDivisor(Combiner combiner, const float* weights, int64_t begin,
                    int64_t end);

// Copies dim numbers of rows[i], which are of that type, to out[i], for i in
// [begin, end). Other threads may write rows during the call.
void CopyRows(const float* const* rows, int64_t begin, int64_t end, int64_t dim,
              float* out, FloatType type = FloatType::kFloat32);

}  // namespace ev

#endif  // KERNELS_ENGINE_COMBINE_POOLING_H_
