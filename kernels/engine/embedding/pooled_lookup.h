// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The fused lookup of many tables: deduplicate, find, gather, pool; and its
// gradient. What the forward found out is kept in a LookupPlan and serves the
// gradient and the update. (API sketch.)

#ifndef KERNELS_ENGINE_EMBEDDING_POOLED_LOOKUP_H_
#define KERNELS_ENGINE_EMBEDDING_POOLED_LOOKUP_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/engine/base/parallel.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/embedding/embedding_table.h"

namespace ev {

enum class Combiner { kSum, kMean, kSqrtN };

// One table's ids of one batch. Exactly one of ids64, ids32 is set; exactly one of
// row_splits (B + 1) and coo_indices (N x 2, row-major sorted by sample) is set.
struct PooledInput {
  EmbeddingTable* table = nullptr;
  Combiner combiner = Combiner::kMean;
  int64_t batch_size = 0;                // B
  int64_t num_ids = 0;                   // N
  const int64_t* ids64 = nullptr;
  const int32_t* ids32 = nullptr;
  const int64_t* row_splits = nullptr;
  const int64_t* coo_indices = nullptr;  // columns are ignored
  const float* weights = nullptr;        // N, or null: all ones
};

// Opaque; immutable once made; shared by forward, gradient and update. Keeps the
// tables alive. Its memory is recycled through a pool.
class LookupPlan {
 public:
  int num_tables() const;
  EmbeddingTable* table(int t) const;
  int64_t batch_size(int t) const;                // B of the forward
  int64_t num_ids(int t) const;                   // N of the forward
  Span<const int64_t> unique_keys(int t) const;   // in order of first occurrence
  Span<const int32_t> counts(int t) const;        // occurrences of each
};

// outputs[t]: [B_t, dim_t], overwritten. A sample without ids gives zeros. sum:
// sum of w*e; mean: sum(w*e)/sum(w); sqrtn: sum(w*e)/sqrt(sum(w^2)). Keys that
// are absent read their default row; nothing is inserted. All inputs are checked
// before anything is written (unsorted indices, sample out of range, bad splits,
// table not initialized), with the table's name in the message.
Status PooledForward(Span<const PooledInput> inputs,
                     const std::vector<std::shared_ptr<EmbeddingTable>>& owners,
                     Span<float* const> outputs, Parallel* parallel,
                     std::shared_ptr<const LookupPlan>* plan);

// grads[t]: d loss / d outputs[t], [B_t, dim_t]. unique_grads[t]: [U_t, dim_t],
// the sum over every occurrence of each unique key in order of occurrence.
Status PooledBackward(const LookupPlan& plan, Span<const float* const> grads,
                      Span<float* const> unique_grads, Parallel* parallel);

// d loss / d weights of table t, [N_t]; outputs[t] is the forward's result.
Status PooledWeightGrad(const LookupPlan& plan, int t, const float* grad,
                        const float* output, float* weight_grad,
                        Parallel* parallel);

}  // namespace ev

#endif  // KERNELS_ENGINE_EMBEDDING_POOLED_LOOKUP_H_
