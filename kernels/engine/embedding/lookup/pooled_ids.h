// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// One table's planned ids (ids/table_ids.h), with what pooling needs.

#ifndef KERNELS_ENGINE_EMBEDDING_LOOKUP_POOLED_IDS_H_
#define KERNELS_ENGINE_EMBEDDING_LOOKUP_POOLED_IDS_H_

#include <cstdint>

#include "kernels/engine/combine/combiner.h"
#include "kernels/engine/combine/pooling.h"
#include "kernels/engine/ids/table_ids.h"

namespace ev {

struct PooledIds : TableIds {
  Combiner combiner = Combiner::kSum;
  bool no_nan = false;  // as PoolingBatch::no_nan
  int64_t dim = 0;

  // rows: [U] addresses.
  PoolingBatch batch(const float* const* rows,
                     FloatType row_type = FloatType::kFloat32) const {
    PoolingBatch batch;
    batch.rows = rows;
    batch.row_type = row_type;
    batch.inverse = inverse;
    batch.offsets = offsets;
    batch.weights = has_weights ? weights : nullptr;
    batch.dim = dim;
    batch.combiner = combiner;
    batch.no_nan = no_nan;
    return batch;
  }
};

// Factors and weights of gradients; null if all are 1.
inline const float* FactorsOf(const TableIds& ids) {  // [B]
  return ids.has_factors.load(std::memory_order_relaxed) ? ids.factors
                                                         : nullptr;
}
inline const float* WeightsOf(const TableIds& ids) {  // [N]
  return ids.has_weights ? ids.weights : nullptr;
}

}  // namespace ev

#endif  // KERNELS_ENGINE_EMBEDDING_LOOKUP_POOLED_IDS_H_
