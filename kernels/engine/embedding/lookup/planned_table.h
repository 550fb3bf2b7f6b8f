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

#include "kernels/engine/base/parallel.h"
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

  // The step (rows/gpu_step.h) that pooled the table, and the table's number in
  // it; null if the CPU pooled it.
  std::shared_ptr<GpuStep> step;
  int step_number = 0;
  // Whether there is a step. The ids are then in it only: num_unique is
  // num_ids, and the arrays are null until LookupPlan::Fetch.
  bool step_finds_rows = false;
  // If step_finds_rows, valid like num_absent after LookupPlan::Settle: the
  // keys that had no row at the forward, and kNoRow for each.
  bool is_settled = false;
  GpuStepUnknown unknown;
  RowHandle* unknown_handles = nullptr;  // [K]

  // [U]. Those that a step has found are its own (GpuRowCompute::below).
  RowHandle* handles = nullptr;
  // [U]. During the forward, the rows. Afterwards, if keeps_rows(), copies of
  // their values at the forward, because the update may run before the
  // gradient; otherwise invalid.
  const float** rows = nullptr;
  // [U]: occurrences of each key, if ids stand for several occurrences each
  // (row_lookup.h). Null: counts has them.
  int32_t* occurrences = nullptr;

  // Whether values of the rows are kept for the gradient: that of the weights,
  // or of a combiner that selects.
  bool keeps_rows() const { return has_weights || Selects(combiner); }
  // Type of the numbers at 'rows'.
  FloatType row_type() const {
    return keeps_rows() ? FloatType::kFloat32 : table->options().value_type;
  }

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

  // Begins the plan of a table whose rows a step finds. REQUIRES: Reserve was
  // called with 0 ids.
  void BeginStep(const std::shared_ptr<GpuStep>& in_step, int number) {
    step = in_step;
    step_number = number;
    num_unique = num_ids;
    unique = nullptr;
    inverse = counts = nullptr;
    handles = unknown_handles = nullptr;
    is_settled = false;
  }
  // Copies ids, samples and handles of such a table from the step, and
  // deduplicates the ids. 'parallel' may be null. Throws std::bad_alloc.
  Status BringIds(Parallel* parallel);

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

  PoolingBatch batch() const { return PooledIds::batch(rows, row_type()); }

  size_t bytes() const {
    return arrays.bytes() + key_arrays.bytes() + row_copies.bytes() +
           occurrence_counts.bytes() + brought.bytes() + shards.bytes();
  }

  LineBuffer arrays;
  LineBuffer key_arrays;
  LineBuffer row_copies;  // of ReserveCopies
  std::mutex copies_mu;
  LineBuffer occurrence_counts;
  LineBuffer brought;  // of BringIds
};

}  // namespace ev

#endif  // KERNELS_ENGINE_EMBEDDING_LOOKUP_PLANNED_TABLE_H_
