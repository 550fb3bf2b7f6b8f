// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// DLRM's interaction: the dot products of all pairs of a sample's vectors, and
// their gradient, in CPU memory. (Naumov et al., Deep Learning Recommendation
// Model for Personalization and Recommendation Systems, 2019.)
//
// Pairs (i, j), i > j, are in the order (1, 0), (2, 0), (2, 1), (3, 0), ...
// Sums are float32, in an order that depends on the shape alone, so results are
// bitwise equal whatever the number of threads. Vectors and results may be
// narrower numbers: the results are those of the widened vectors, rounded once.
// If a value is infinite or NaN, every result of its sample may be.

#ifndef KERNELS_ENGINE_INTERACTION_PAIR_DOTS_H_
#define KERNELS_ENGINE_INTERACTION_PAIR_DOTS_H_

#include <cstdint>

#include "kernels/engine/base/float_type.h"
#include "kernels/engine/base/parallel.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"

namespace ev {

inline int64_t NumPairs(int64_t num_vectors) {
  return num_vectors * (num_vectors - 1) / 2;
}

// The vectors of all samples of a batch; vectors[v] is [num_samples, dim]. They
// have one type, that of slopes and results.
struct VectorBatch {
  Span<const ConstFloats> vectors;
  int64_t num_samples = 0;
  int64_t dim = 0;

  int64_t num_vectors() const { return static_cast<int64_t>(vectors.size()); }
  int64_t num_pairs() const { return NumPairs(num_vectors()); }
  // REQUIRES: there are vectors.
  FloatType type() const { return vectors[0].type(); }
};

// Computes dots [num_samples, pairs]. ResourceExhausted.
Status PairDots(const VectorBatch& batch, MutableFloats dots,
                Parallel* parallel);

// Sets grads[i], [num_samples, dim], to the sum over j != i, in the order of j,
// of slopes[pair of i and j] * vectors[j]; slopes [num_samples, pairs].
// ResourceExhausted.
Status PairDotsGradient(const VectorBatch& batch, ConstFloats slopes,
                        Span<const MutableFloats> grads, Parallel* parallel);

}  // namespace ev

#endif  // KERNELS_ENGINE_INTERACTION_PAIR_DOTS_H_
