// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// One table's part of a LookupPlan.

#ifndef KERNELS_ENGINE_EMBEDDING_LOOKUP_PLANNED_TABLE_H_
#define KERNELS_ENGINE_EMBEDDING_LOOKUP_PLANNED_TABLE_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include "kernels/engine/base/row_handle.h"
#include "kernels/engine/base/scratch.h"
#include "kernels/engine/combine/pooling.h"
#include "kernels/engine/embedding/embedding_table.h"
#include "kernels/engine/embedding/lookup/pooled_ids.h"
#include "kernels/engine/ids/occurrences.h"

namespace ev {

struct PlannedTable : PooledIds {
  std::shared_ptr<EmbeddingTable> owner;  // may be null: the caller keeps it
  EmbeddingTable* table = nullptr;
  std::atomic<int64_t> num_absent{0};  // of the unique keys, at the forward
  uint64_t generation = 0;             // of the table, at the forward
  // With 'distinct' there is no inverse here, and unique, counts and handles
  // are the device's arrays, null until LookupPlan::Fetch.
  //
  // [K], of the keys that the device did not know: the handles of those that
  // have a row, at the forward, else kNoRow. Of a step that knew all keys
  // num_absent and this are right after LookupPlan::Settle or Fetch.
  RowHandle* unknown_handles = nullptr;

  RowHandle* handles = nullptr;  // [U]
  // [U]. During the forward, the rows; afterwards, where keeps_rows(), copies
  // of their values at the forward (by the time of the gradient the update may
  // have run), else not to be used.
  const float** rows = nullptr;
  // What the device reads for each key, where it pools samples: as
  // DevicePooling::rows, [U]; with 'distinct' [K], of the keys that it did not
  // know. Used during the forward only.
  RowHandle* device_rows = nullptr;
  // [U], when each id stands for a number of occurrences of its own
  // (row_lookup.h); null: counts says it. Of a step from LookupPlan::Fetch on.
  int32_t* occurrences = nullptr;

  // Whether the gradient of the weights, or of a combiner that selects, needs
  // the values of the rows.
  bool keeps_rows() const { return has_weights || Selects(combiner); }

  // Makes room for that many ids, and the samples that Begin told of. Throws
  // std::bad_alloc.
  void Reserve(int64_t ids) {
    ArrayLayout layout;
    const Layout at = AddTo(&layout, ids);
    const size_t handles_at = layout.Add<RowHandle>(ids);
    const size_t rows_at = layout.Add<const float*>(ids);
    char* base = static_cast<char*>(arrays.Reserve(layout.bytes()));
    PointInto(base, at);
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
    TakeUnknown();
  }
  // The same when it was settled.
  void TakeUnknown() {
    unknown_handles = key_arrays.ReserveOf<RowHandle>(distinct->num_unknown());
    device_rows =
        device_row_memory.ReserveOf<RowHandle>(distinct->num_unknown());
  }
  // The same when it was fetched.
  void TakeFetched() {
    num_unique = distinct->num_unique();
    unique = distinct->keys();
    counts = distinct->counts();
    handles = distinct->names();
  }

  // Sets occurrences: of each distinct key, summed over its ids, which stand
  // for of_ids [N] each; at most 2^31 - 1. inverse [N]. Throws std::bad_alloc.
  template <typename Count>
  void SumOccurrences(const Count* of_ids, const int32_t* inverse) {
    occurrences = occurrence_counts.ReserveOf<int32_t>(num_unique);
    std::fill_n(occurrences, num_unique, 0);
    for (int64_t i = 0; i < num_ids; ++i) {
      AddOccurrences(of_ids[i], &occurrences[inverse[i]]);
    }
  }

  // [U, dim], the same each time. By any thread, when the distinct ids are
  // known. Throws std::bad_alloc.
  float* ReserveCopies() {
    std::lock_guard<std::mutex> lock(copies_mu);
    return row_copies.ReserveOf<float>(num_unique * dim);
  }

  PoolingBatch batch() const { return PooledIds::batch(rows); }

  size_t bytes() const {
    return arrays.bytes() + key_arrays.bytes() + row_copies.bytes() +
           device_row_memory.bytes() + occurrence_counts.bytes() +
           shards.bytes();
  }

  LineBuffer arrays;
  LineBuffer key_arrays;
  LineBuffer row_copies;  // of ReserveCopies
  std::mutex copies_mu;
  LineBuffer device_row_memory;
  LineBuffer occurrence_counts;
};

}  // namespace ev

#endif  // KERNELS_ENGINE_EMBEDDING_LOOKUP_PLANNED_TABLE_H_
