// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef KERNELS_ENGINE_EMBEDDING_LOOKUP_PLAN_H_
#define KERNELS_ENGINE_EMBEDDING_LOOKUP_PLAN_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/engine/base/span.h"
#include "kernels/engine/embedding/embedding_table.h"

namespace ev {

struct PlannedTable;  // planned_table.h, for this room's files

// What a forward found out about each of its tables: distinct keys, where each
// id's row is, how samples are made of ids. Opaque; immutable once made; shared
// by forward, gradient and update. Keeps the tables alive. Its memory is
// recycled: the next forward of the process uses it again.
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
  // Distinct ids, in order of first occurrence; of a batch that is deduplicated
  // in shards (sharded_ids.h), shard by shard. The same for the same batch.
  Span<const int64_t> unique_keys(int t) const;
  Span<const int32_t> counts(int t) const;  // occurrences of each

  // An empty plan, a used one if there is any; goes back by itself.
  static std::shared_ptr<LookupPlan> Make(int num_tables);

  // For this room's files.
  const PlannedTable& planned(int t) const { return *tables_[t]; }
  PlannedTable* mutable_planned(int t) { return tables_[t].get(); }

 private:
  size_t bytes() const;

  int num_tables_ = 0;
  std::vector<std::unique_ptr<PlannedTable>> tables_;  // >= num_tables_
};

}  // namespace ev

#endif  // KERNELS_ENGINE_EMBEDDING_LOOKUP_PLAN_H_
