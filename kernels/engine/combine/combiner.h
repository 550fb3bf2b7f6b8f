// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef KERNELS_ENGINE_COMBINE_COMBINER_H_
#define KERNELS_ENGINE_COMBINE_COMBINER_H_

namespace ev {

// How the rows e_i of a sample become one row; w_i are the weights, 1 if none.
enum class Combiner {
  kSum,    // sum w_i e_i
  kMean,   // sum w_i e_i / sum w_i
  kSqrtN,  // sum w_i e_i / sqrt(sum w_i^2)
};

}  // namespace ev

#endif  // KERNELS_ENGINE_COMBINE_COMBINER_H_
