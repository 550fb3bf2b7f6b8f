// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// One table's part of a LookupPlan.

#ifndef KERNELS_ENGINE_EMBEDDING_LOOKUP_PLANNED_TABLE_H_
#define KERNELS_ENGINE_EMBEDDING_LOOKUP_PLANNED_TABLE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include "kernels/engine/base/row_handle.h"
#include "kernels/engine/base/scratch.h"
#include "kernels/engine/combine/combiner.h"
#include "kernels/engine/combine/pooling.h"
#include "kernels/engine/embedding/embedding_table.h"
#include "kernels/engine/ids/device_distinct.h"
#include "kernels/engine/ids/sharded_ids.h"

namespace ev {

struct PlannedTable {
  std::shared_ptr<EmbeddingTable> owner;  // may be null: the caller keeps it
  EmbeddingTable* table = nullptr;
  Combiner combiner = Combiner::kSum;
  int64_t dim = 0;
  int64_t batch_size = 0;
  int64_t num_ids = 0;
  int64_t num_unique = 0;
  std::atomic<int64_t> num_absent{0};  // of the unique keys, at the forward
  uint64_t generation = 0;             // of the table, at the forward
  bool has_weights = false;
  bool is_sharded = false;               // 'shards' groups the occurrences
  std::atomic<bool> has_factors{false};  // a sample's gradient factor is not 1
  // Not null where a device deduplicates: there is no inverse here, and unique,
  // counts and handles are its arrays, null until LookupPlan::Fetch.
  std::unique_ptr<DeviceDistinct> distinct;
  // [K], of the keys that the device did not know: the handles of those that
  // have a row, at the forward, else kNoRow.
  RowHandle* unknown_handles = nullptr;

  int32_t* offsets = nullptr;    // [B + 1]
  int32_t* inverse = nullptr;    // [N]
  float* weights = nullptr;      // [N]
  float* factors = nullptr;      // [B]
  int64_t* unique = nullptr;     // [U]
  int32_t* counts = nullptr;     // [U]
  RowHandle* handles = nullptr;  // [U]
  // [U]. During the forward, the rows; afterwards, with weights, copies of
  // their values at the forward (the gradient of the weights needs them, and by
  // then the update may have run), else not to be used.
  const float** rows = nullptr;
  // [U], where samples are pooled on a device: as DevicePooling::rows. With
  // 'distinct' [K]. Used during the forward only.
  RowHandle* on_device = nullptr;
  // [U], when each id stands for a number of occurrences of its own
  // (row_lookup.h); null: counts says it.
  int32_t* occurrences = nullptr;

  // Then the distinct ids are the ids, in the same order.
  bool all_unique() const { return num_unique == num_ids; }

  // Makes room for N ids and B samples. Throws std::bad_alloc.
  void Reserve(int64_t ids, int64_t samples) {
    ArrayLayout layout;
    const size_t n = ids, b = samples;
    const size_t offsets_at = layout.Add<int32_t>(b + 1);
    const size_t factors_at = layout.Add<float>(b);
    const size_t inverse_at = layout.Add<int32_t>(n);
    const size_t weights_at = layout.Add<float>(has_weights ? n : 0);
    const size_t unique_at = layout.Add<int64_t>(n);
    const size_t counts_at = layout.Add<int32_t>(n);
    const size_t handles_at = layout.Add<RowHandle>(n);
    const size_t rows_at = layout.Add<const float*>(n);
    char* base = static_cast<char*>(arrays.Reserve(layout.bytes()));
    offsets = reinterpret_cast<int32_t*>(base + offsets_at);
    factors = reinterpret_cast<float*>(base + factors_at);
    inverse = reinterpret_cast<int32_t*>(base + inverse_at);
    weights = reinterpret_cast<float*>(base + weights_at);
    unique = reinterpret_cast<int64_t*>(base + unique_at);
    counts = reinterpret_cast<int32_t*>(base + counts_at);
    handles = reinterpret_cast<RowHandle*>(base + handles_at);
    rows = reinterpret_cast<const float**>(base + rows_at);
    occurrences = nullptr;
  }

  // The same when 'distinct' was waited for; Reserve was called with 0 ids.
  void TakeDistinct() {
    num_unique = distinct->num_unique();
    unique = nullptr;
    counts = nullptr;
    handles = nullptr;
    unknown_handles = key_arrays.ReserveOf<RowHandle>(distinct->num_unknown());
    on_device = device_rows.ReserveOf<RowHandle>(distinct->num_unknown());
  }
  // The same when it was fetched.
  void TakeFetched() {
    unique = distinct->keys();
    counts = distinct->counts();
    handles = distinct->names();
  }

  // [U, dim], the same each time. By any thread, when the distinct ids are
  // known. Throws std::bad_alloc.
  float* ReserveCopies() {
    std::lock_guard<std::mutex> lock(copies_mu);
    return row_copies.ReserveOf<float>(num_unique * dim);
  }

  PoolingBatch batch() const {
    PoolingBatch batch;
    batch.rows = rows;
    batch.inverse = inverse;
    batch.offsets = offsets;
    batch.weights = has_weights ? weights : nullptr;
    batch.dim = dim;
    batch.combiner = combiner;
    return batch;
  }

  size_t bytes() const {
    return arrays.bytes() + key_arrays.bytes() + row_copies.bytes() +
           device_rows.bytes() + shards.bytes();
  }

  ShardedIds shards;
  LineBuffer arrays;
  LineBuffer key_arrays;
  LineBuffer row_copies;  // of ReserveCopies
  std::mutex copies_mu;
  LineBuffer device_rows;
  LineBuffer occurrence_counts;
  std::mutex fetch;  // of LookupPlan::Fetch
  bool is_fetched = false;
};

}  // namespace ev

#endif  // KERNELS_ENGINE_EMBEDDING_LOOKUP_PLANNED_TABLE_H_
