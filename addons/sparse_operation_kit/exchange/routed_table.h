// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// One table's part of a RoutePlan.

#ifndef ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_ROUTED_TABLE_H_
#define ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_ROUTED_TABLE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/engine/combine/combiner.h"
#include "kernels/engine/combine/pooling.h"
#include "kernels/engine/embedding/scratch.h"
#include "kernels/engine/embedding/transfer_scratch.h"

namespace sok {

struct RoutedTable {
  std::string name;
  ev::Combiner combiner = ev::Combiner::kSum;
  int64_t dim = 0;
  int64_t batch_size = 0;
  int64_t num_ids = 0;
  int64_t num_unique = 0;
  bool has_weights = false;
  bool has_factors = false;

  int32_t* offsets = nullptr;   // [B + 1]
  float* factors = nullptr;     // [B]
  int32_t* inverse = nullptr;   // [N] into the keys
  float* weights = nullptr;     // [N]
  int64_t* keys = nullptr;      // [U] in send order
  int32_t* counts = nullptr;    // [U]
  std::vector<int32_t> starts;  // [W + 1]: keys of rank r are [starts[r], ...)

  void Reserve(int64_t ids, int64_t samples) {
    ev::ArrayLayout layout;
    const size_t n = ids, b = samples;
    const size_t offsets_at = layout.Add<int32_t>(b + 1);
    const size_t inverse_at = layout.Add<int32_t>(n);
    for_pooling_bytes = layout.bytes();
    const size_t factors_at = layout.Add<float>(b);
    const size_t weights_at = layout.Add<float>(has_weights ? n : 0);
    const size_t keys_at = layout.Add<int64_t>(n);
    const size_t counts_at = layout.Add<int32_t>(n);
    char* base = static_cast<char*>(arrays.Reserve(layout.bytes()));
    offsets = reinterpret_cast<int32_t*>(base + offsets_at);
    factors = reinterpret_cast<float*>(base + factors_at);
    inverse = reinterpret_cast<int32_t*>(base + inverse_at);
    weights = reinterpret_cast<float*>(base + weights_at);
    keys = reinterpret_cast<int64_t*>(base + keys_at);
    counts = reinterpret_cast<int32_t*>(base + counts_at);
  }

  // rows: [U] addresses.
  ev::PoolingBatch batch(const float* const* rows) const {
    ev::PoolingBatch batch;
    batch.rows = rows;
    batch.inverse = inverse;
    batch.offsets = offsets;
    batch.weights = has_weights ? weights : nullptr;
    batch.dim = dim;
    batch.combiner = combiner;
    return batch;
  }

  // Offsets and inverse are one stretch, the first of these bytes, that a
  // device can read by itself.
  size_t for_pooling_bytes = 0;
  ev::TransferScratch arrays;
};

}  // namespace sok

#endif  // ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_ROUTED_TABLE_H_
