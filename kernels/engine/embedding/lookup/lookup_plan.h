// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef KERNELS_ENGINE_EMBEDDING_LOOKUP_LOOKUP_PLAN_H_
#define KERNELS_ENGINE_EMBEDDING_LOOKUP_LOOKUP_PLAN_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/engine/base/parallel.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/embedding/embedding_table.h"

namespace ev {

struct PlannedTable;  // planned_table.h, for the files of this folder

// Results of a forward that its gradient and update reuse: per table the
// distinct keys, the row of each id, and the samples. Opaque; immutable once
// made, except for what it fetches on first use. Keeps the tables alive. Its
// memory is recycled for later forwards of the process.
//
// The ids and handles of a table in a step (rows/gpu_step.h) stay in device
// memory; its distinct keys are computed when a caller fetches them.
//
// Row handles are valid as long as no key of the table has been erased since.
// The update checks that, and otherwise finds the rows again.
class LookupPlan {
 public:
  LookupPlan();
  ~LookupPlan();
  LookupPlan(const LookupPlan&) = delete;
  LookupPlan& operator=(const LookupPlan&) = delete;

  int num_tables() const { return num_tables_; }
  EmbeddingTable* table(int t) const;
  int64_t batch_size(int t) const;  // B of the forward
  int64_t num_ids(int t) const;     // N of the forward
  // Whether the gradients of table t's samples are summed on the CPU, and so
  // must be in CPU memory, because its combiner selects (combiner.h).
  bool sums_on_cpu(int t) const;

  // Copies the keys of table t without a row to the host if they are only in a
  // step; otherwise a no-op. Thread-safe.
  Status Settle(int t) const;
  // Copies ids and handles of these tables to the host and deduplicates the
  // ids. No-op for tables that are in no step, or have been fetched.
  // Thread-safe.
  Status Fetch(Span<const int> tables, Parallel* parallel) const;
  // Fetches, then sets *keys to the distinct ids in order of first occurrence,
  // or by shard if they were deduplicated in shards (sharded_ids.h). The order
  // depends on the batch alone. Unless 'counts' is null, *counts is set to the
  // occurrences of each distinct id. If Fetch fails, nothing is set.
  Status UniqueKeys(int t, Span<const int64_t>* keys,
                    Span<const int32_t>* counts = nullptr) const;

  // Returns an empty plan, recycled if possible. It is recycled again when it
  // is released.
  static std::shared_ptr<LookupPlan> Make(int num_tables);

  // For the files of this folder.
  const PlannedTable& planned(int t) const { return *tables_[t]; }
  PlannedTable* mutable_planned(int t) { return tables_[t].get(); }

  // For RecycledPlan (ids/recycled_plan.h): the memory that the plan keeps, and
  // the release of everything else.
  size_t bytes() const;
  void GiveBack();

 private:
  // REQUIRES the table's lock.
  Status SettleLocked(PlannedTable* planned) const;
  Status FetchOne(int t, Parallel* parallel) const;

  int num_tables_ = 0;
  std::vector<std::unique_ptr<PlannedTable>> tables_;  // >= num_tables_
};

}  // namespace ev

#endif  // KERNELS_ENGINE_EMBEDDING_LOOKUP_LOOKUP_PLAN_H_
