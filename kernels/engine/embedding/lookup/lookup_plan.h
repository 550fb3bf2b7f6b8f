// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef KERNELS_ENGINE_EMBEDDING_LOOKUP_LOOKUP_PLAN_H_
#define KERNELS_ENGINE_EMBEDDING_LOOKUP_LOOKUP_PLAN_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/embedding/embedding_table.h"

namespace ev {

struct PlannedTable;  // planned_table.h, for this room's files

// What a forward found out about each of its tables: distinct keys, where each
// id's row is, how samples are made of ids. Opaque; immutable once made, but
// for what it fetches; shared by forward, gradient and update. Keeps the tables
// alive. Its memory is recycled: the next forward of the process uses it again.
//
// Where a device has deduplicated, distinct keys, their counts and their
// handles stay there until a caller wants them here.
//
// Row handles in it are right as long as no key of the table was erased since;
// the update looks, and finds the rows anew otherwise.
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
  // Distinct ids. Fetches those of a step (rows/gpu_step.h); 0 when that fails.
  int64_t num_unique(int t) const;
  // Whether gradients of table t's samples must be in CPU memory, where they
  // are summed: its combiner selects (combiner.h).
  bool sums_on_cpu(int t) const;

  // Of a step that knew all keys (rows/gpu_step.h): those of table t without a
  // row are here afterwards. At once elsewhere. Thread-safe.
  Status Settle(int t) const;
  // Brings here what stayed on a device of table t; at once where nothing did,
  // or not any more. Thread-safe. Needs 16 bytes of the link per distinct id.
  Status Fetch(int t) const;
  // Distinct ids, in order of first occurrence; of a batch that is deduplicated
  // in shards (sharded_ids.h), shard by shard. The same for the same batch.
  // Fetches first; nothing when that fails: a caller that needs to know why
  // calls Fetch.
  Span<const int64_t> unique_keys(int t) const;
  // Occurrences of each, likewise.
  Span<const int32_t> counts(int t) const;

  // An empty plan, a used one if there is any; goes back by itself.
  static std::shared_ptr<LookupPlan> Make(int num_tables);

  // For this room's files.
  const PlannedTable& planned(int t) const { return *tables_[t]; }
  PlannedTable* mutable_planned(int t) { return tables_[t].get(); }

  // For RecycledPlan (ids/recycled_plan.h): memory that the plan keeps, and the
  // end of what it holds besides.
  size_t bytes() const;
  void GiveBack();

 private:
  // REQUIRES the table's lock.
  Status SettleLocked(PlannedTable* planned) const;

  int num_tables_ = 0;
  std::vector<std::unique_ptr<PlannedTable>> tables_;  // >= num_tables_
};

}  // namespace ev

#endif  // KERNELS_ENGINE_EMBEDDING_LOOKUP_LOOKUP_PLAN_H_
