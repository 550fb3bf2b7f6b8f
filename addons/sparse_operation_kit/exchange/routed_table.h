// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// One table's part of a RoutePlan.

#ifndef ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_ROUTED_TABLE_H_
#define ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_ROUTED_TABLE_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "kernels/engine/base/scratch.h"
#include "kernels/engine/base/transfer_scratch.h"
#include "kernels/engine/combine/combiner.h"
#include "kernels/engine/combine/pooling.h"
#include "kernels/engine/ids/device_distinct.h"

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

  int32_t* offsets = nullptr;  // [B + 1]
  float* factors = nullptr;    // [B]
  // [N] into the keys. With 'distinct' it is null until FetchInverse.
  mutable int32_t* inverse = nullptr;
  float* weights = nullptr;  // [N]
  int64_t* keys = nullptr;   // [U] in send order
  // [U]. With 'distinct' unspecified until FetchInverse, or where the message
  // says them.
  int32_t* counts = nullptr;
  std::vector<int32_t> starts;  // [W + 1]: keys of rank r are [starts[r], ...)

  // Not null where a device has deduplicated. It numbers keys in the order of
  // first occurrence: key u of its is places[u] here.
  std::unique_ptr<ev::DeviceDistinct> distinct;
  int32_t* places = nullptr;  // [U]

  void Reserve(int64_t ids, int64_t samples) {
    ev::ArrayLayout layout;
    const size_t n = ids, b = samples;
    const size_t offsets_at = layout.Add<int32_t>(b + 1);
    const size_t inverse_at = layout.Add<int32_t>(n);
    samples_bytes = layout.bytes();
    const size_t factors_at = layout.Add<float>(b);
    const size_t weights_at = layout.Add<float>(has_weights ? n : 0);
    const size_t keys_at = layout.Add<int64_t>(n);
    const size_t counts_at = layout.Add<int32_t>(n);
    char* base = static_cast<char*>(arrays.Reserve(layout.bytes()));
    offsets = reinterpret_cast<int32_t*>(base + offsets_at);
    factors = reinterpret_cast<float*>(base + factors_at);
    inverse = places = reinterpret_cast<int32_t*>(base + inverse_at);
    if (distinct != nullptr) {
      inverse = nullptr;
    } else {
      places = nullptr;
    }
    is_fetched = false;
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

  // What a device that pools is to be told, in memory that it can read by
  // itself: offsets and inverse, which are one stretch; with 'distinct',
  // places.
  const char* for_pooling() const {
    return reinterpret_cast<const char*>(distinct != nullptr ? places
                                                             : offsets);
  }
  size_t for_pooling_bytes() const {
    return distinct != nullptr ? num_unique * sizeof(int32_t) : samples_bytes;
  }
  size_t samples_bytes = 0;  // of offsets and inverse
  ev::TransferScratch arrays;

  // Of FetchInverse.
  mutable std::mutex fetch;
  mutable bool is_fetched = false;
  mutable ev::LineBuffer fetched;
};

}  // namespace sok

#endif  // ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_ROUTED_TABLE_H_
