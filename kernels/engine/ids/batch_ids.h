// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The planning of a batch's ids, for lookups and for routes: where samples
// begin, distinct keys, which key each id is, how often each occurs. Needs no
// rows.
//
// Small tables are planned whole in one task each; the samples and the keys of
// larger ones are two. The keys of tables beyond ShardedIds::kMaxWhole are
// shared out to all tasks: always with kShardByShard, else where that is
// faster. Where a device deduplicates, tasks put ids and samples there. The
// result does not depend on 'parallel'.

#ifndef KERNELS_ENGINE_IDS_BATCH_IDS_H_
#define KERNELS_ENGINE_IDS_BATCH_IDS_H_

#include <cstdint>
#include <functional>

#include "kernels/engine/base/parallel.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/ids/distinct_queue.h"
#include "kernels/engine/ids/table_ids.h"

namespace ev {

enum class Samples {
  kAsGiven,    // by row splits or indices, which are checked
  kOneIdEach,  // sample i is id i; batch_size == num_ids
};

struct PlanIdsOptions {
  Samples samples = Samples::kAsGiven;
  // Of tables beyond ShardedIds::kMaxWhole: kShardByShard leaves
  // TableIds::shards for the gradient. Others always have kFirstOccurrence.
  DistinctOrder order = DistinctOrder::kShardByShard;
  int64_t ids_per_task = 2048;
  int64_t ids_per_put = 65536;  // copied for a device at a time; of a step
                                // a quarter, as all its tables are waited for

  // What the caller does with table t, each once and by some thread; empty:
  // nothing.
  // Before its samples are looked at.
  std::function<Status(int t)> check;
  // Its offsets and weights are there, or has_offsets is false.
  std::function<Status(int t)> samples_known;
  // Its keys are there, and no device has found them; for a small table its
  // samples too. 'parallel' is null within a task.
  std::function<Status(int t, Parallel* parallel)> keys_known;
};

// Whether one task plans the table whole.
inline bool IsSmall(const TableIds& ids, int64_t ids_per_task) {
  return ids.distinct == nullptr &&
         PlanWeight(ids.num_ids, ids.batch_size) <= ids_per_task;
}

// Samples of a step's tables (rows/gpu_step.h) are looked at once where they
// are the same tensor, and not here at all where they are in the device's
// memory.
//
// Fills offsets, weights, unique, inverse, counts and num_unique of *tables[t]
// from *inputs[t], for all t; where tables[t]->distinct is set, offsets only,
// of a step and of ids in the device's memory as far as has_offsets says: it
// gets the ids, is started, and 'queue' is told, and let advance now and then.
// Errors name the table. 'queue' may be null when no table has a 'distinct',
// 'parallel' always. REQUIRES: CheckIds(*inputs[t]);
// tables[t]->Begin(*inputs[t]) was called and its arrays have room; of an input
// that is on_device a 'distinct' that was made of it. Throws std::bad_alloc.
Status PlanIds(Span<const IdsInput* const> inputs, Span<TableIds* const> tables,
               const PlanIdsOptions& options, DistinctQueue* queue,
               Parallel* parallel);

}  // namespace ev

#endif  // KERNELS_ENGINE_IDS_BATCH_IDS_H_
