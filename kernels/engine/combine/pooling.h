// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Pooling: the rows of each sample become one row.
//
// Rows come as one pointer per distinct id and are reached through the inverse,
// so this room knows neither tables nor handles, and an absent key is nothing
// but a pointer to its default row. A sample's rows are summed in registers, in
// the order of its ids: the result depends on nothing but the sample. The
// division of a mean is done once per sample, on the sum, as stock TensorFlow
// does it.
//
// Cost: per id one inverse (4 bytes), one pointer (8 bytes, from the
// second-level cache) and one row. The row is the only miss; it is asked for
// some ids ahead, since the two dependent loads before it keep the core from
// getting there early enough by itself when samples are long or rows are wide.

#ifndef KERNELS_ENGINE_COMBINE_POOLING_H_
#define KERNELS_ENGINE_COMBINE_POOLING_H_

#include <cstdint>

#include "kernels/engine/combine/combiner.h"

namespace ev {

// One table's batch. Row of id i: rows[inverse[i]], dim floats. Ids of sample
// s: [offsets[s], offsets[s + 1]).
struct PoolingBatch {
  const float* const* rows = nullptr;  // [U]
  const int32_t* inverse = nullptr;    // [N]
  const int32_t* offsets = nullptr;    // [B + 1]
  const float* weights = nullptr;      // [N], or null: all ones
  int64_t dim = 0;
  Combiner combiner = Combiner::kSum;
  // Matters only with weights and a combiner that divides, for a sample whose
  // divisor is 0. True: the sample gives zeros, and so are the gradients of its
  // rows and weights. False: as TensorFlow's division, NaN or infinity.
  bool no_nan = false;
};

// out[s] for s in [begin, end); out points to sample 0's row. A sample without
// ids gives zeros. Rows may be written meanwhile (row_math.h).
void PoolSamples(const PoolingBatch& batch, int64_t begin, int64_t end,
                 float* out);

// What divides the joined rows of the sample with ids [begin, end)
// (combiner.h); 1 when the sample is empty. weights: [N], or null. The terms of
// the weights are added in the order of the ids.
float SampleDivisor(Combiner combiner, const float* weights, int64_t begin,
                    int64_t end);

// out[i] = dim floats of rows[i], i in [begin, end). Rows may be written
// meanwhile.
void CopyRows(const float* const* rows, int64_t begin, int64_t end, int64_t dim,
              float* out);

}  // namespace ev

#endif  // KERNELS_ENGINE_COMBINE_POOLING_H_
