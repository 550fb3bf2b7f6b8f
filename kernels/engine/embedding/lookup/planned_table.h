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
#include "kernels/engine/rows/gpu_step.h"

namespace ev {

struct PlannedTable : PooledIds {
  std::shared_ptr<EmbeddingTable> owner;  // null if the caller keeps the table
  EmbeddingTable* table = nullptr;
  std::atomic<int64_t> num_absent{0};  // of the unique keys, at the forward
  uint64_t generation = 0;             // of the table, at the forward
  // A table of a step (rows/gpu_step.h) has a 'distinct'. Its inverse is not
  // set, and unique, counts and handles are the step's arrays, null until
  // LookupPlan::Fetch.
  //
  // [K], of a step: kNoRow for each key that had no row at the forward. Valid,
  // like num_absent, after LookupPlan::Settle or Fetch.
  RowHandle* unknown_handles = nullptr;

  RowHandle* handles = nullptr;  // [U]
  // [U]. During the forward, the rows. Afterwards, if keeps_rows(), copies of
  // their values at the forward, because the update may run before the
  // gradient; otherwise invalid.
  const float** rows = nullptr;
  // The step of a table that has no 'distinct' but was pooled by the names of
  // its rows (named_step.h), and the table's number in it; null if there is
  // none.
  std::shared_ptr<GpuStep> named_step;
  int named_number = 0;
  // [U]: names of the distinct keys' rows. Used during the forward only.
  RowHandle* key_names = nullptr;
  // [U]: occurrences of each key, if ids stand for several occurrences each
  // (row_lookup.h). Null: counts has them. In a step, set by LookupPlan::Fetch.
  int32_t* occurrences = nullptr;

  // Whether values of the rows are kept for the gradient: that of the weights,
  // or of a combiner that selects.
  bool keeps_rows() const { return has_weights || Selects(combiner); }

  // Makes room for 'ids' ids and batch_size samples. Throws std::bad_alloc.
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

  // Sets the arrays after Wait of 'distinct'. REQUIRES: Reserve was called with
  // 0 ids.
  void TakeDistinct() {
    num_unique = distinct->num_unique();
    unique = nullptr;
    counts = nullptr;
    handles = nullptr;
    unknown_handles = nullptr;
  }
  // Sets the arrays of unknown keys after Settle of 'distinct'.
  void TakeUnknown() {
    unknown_handles = key_arrays.ReserveOf<RowHandle>(distinct->num_unknown());
  }
  // Sets the arrays of distinct keys after Fetch of 'distinct'.
  void TakeFetched() {
    num_unique = distinct->num_unique();
    unique = distinct->keys();
    counts = distinct->counts();
    handles = distinct->names();
  }

  // Sets 'occurrences' of each distinct key to the sum of of_ids [N] over its
  // ids, at most 2^31 - 1. inverse [N]. Throws std::bad_alloc.
  template <typename Count>
  void SumOccurrences(const Count* of_ids, const int32_t* inverse) {
    occurrences = occurrence_counts.ReserveOf<int32_t>(num_unique);
    std::fill_n(occurrences, num_unique, 0);
    for (int64_t i = 0; i < num_ids; ++i) {
      AddOccurrences(of_ids[i], &occurrences[inverse[i]]);
    }
  }

  // Returns memory for copies of the rows, [U, dim]; the same memory each time.
  // Thread-safe once num_unique is set. Throws std::bad_alloc.
  float* ReserveCopies() {
    std::lock_guard<std::mutex> lock(copies_mu);
    return row_copies.ReserveOf<float>(num_unique * dim);
  }

  PoolingBatch batch() const { return PooledIds::batch(rows); }

  size_t bytes() const {
    return arrays.bytes() + key_arrays.bytes() + row_copies.bytes() +
           key_name_memory.bytes() + occurrence_counts.bytes() + shards.bytes();
  }

  LineBuffer arrays;
  LineBuffer key_arrays;
  LineBuffer row_copies;  // of ReserveCopies
  std::mutex copies_mu;
  LineBuffer key_name_memory;
  LineBuffer occurrence_counts;
};

}  // namespace ev

#endif  // KERNELS_ENGINE_EMBEDDING_LOOKUP_PLANNED_TABLE_H_
