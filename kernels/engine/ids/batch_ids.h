// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Plans the ids of a batch, for lookups and for routes: the offsets of samples,
// the distinct keys, the inverse (the key of each id) and the counts of keys.
// Needs no rows.
//
// A small table is planned by one task; a larger one by two, one for its
// samples and one for its keys. The keys of tables beyond ShardedIds::kMaxWhole
// are split among all threads: always with kShardByShard, otherwise only if
// that is faster. If a table has a 'distinct', tasks copy its ids and
// samples to the device. The result does not depend on 'parallel'.

#ifndef KERNELS_ENGINE_IDS_BATCH_IDS_H_
#define KERNELS_ENGINE_IDS_BATCH_IDS_H_

#include <cstdint>
#include <functional>

#include "kernels/engine/base/parallel.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/base/tasks.h"
#include "kernels/engine/ids/distinct_queue.h"
#include "kernels/engine/ids/table_ids.h"

namespace ev {

enum class Samples {
  kAsGiven,    // from row splits or indices, which are validated
  kOneIdEach,  // sample i is id i; batch_size == num_ids
};

struct PlanIdsOptions {
  Samples samples = Samples::kAsGiven;
  // Order of the keys of tables beyond ShardedIds::kMaxWhole; smaller tables
  // always have kFirstOccurrence. kShardByShard fills TableIds::shards, which
  // the gradient uses.
  DistinctOrder order = DistinctOrder::kShardByShard;
  int64_t ids_per_task = 2048;
  int64_t ids_per_put = 65536;  // ids per copy to a device

  // Callbacks, each called once for each table t, on any thread. Empty: no-op.
  //
  // 'check' is called before the samples of table t are read.
  std::function<Status(int t)> check;
  // Called when the samples of table t have been read: its weights are filled,
  // and its offsets unless has_offsets is false.
  std::function<Status(int t)> samples_known;
  // Called when the keys of table t are filled. The samples of a small table
  // are filled by then, too; those of a larger one may not be. Not called for a
  // table that a device deduplicates. 'parallel' is null if the call is made
  // within a task.
  std::function<Status(int t, Parallel* parallel)> keys_known;

  // Tasks of the caller that run in the same pass, before those of the call.
  // Their items are negative; 'do_other' does a piece of them. May be null.
  const TaskList* other = nullptr;
  std::function<Status(const Piece& piece)> do_other;
};

// Returns whether one task plans the whole table.
inline bool IsSmall(const TableIds& ids, int64_t ids_per_task) {
  return ids.distinct == nullptr &&
         PlanWeight(ids.num_ids, ids.batch_size) <= ids_per_task;
}

// Fills offsets, weights, unique, inverse, counts and num_unique of *tables[t]
// from *inputs[t], for all t. Errors name the table. Throws std::bad_alloc.
//
// If tables[t]->distinct is set, a device deduplicates the table: the ids are
// copied to it, it is started and reported to 'queue', and each task for such a
// table ends with a call of queue->Advance. Of the arrays, only offsets and
// weights are then filled. If the ids are in device memory, the offsets are not
// filled either, and has_offsets is false.
//
// 'queue' may be null if no table has a 'distinct'; 'parallel' may always be
// null. REQUIRES: CheckIds(*inputs[t]) returned OK;
// tables[t]->Begin(*inputs[t]) was called and the arrays have room; an input
// that is on_device has a 'distinct' made from it.
Status PlanIds(Span<const IdsInput* const> inputs, Span<TableIds* const> tables,
               const PlanIdsOptions& options, DistinctQueue* queue,
               Parallel* parallel);

// Fills offsets and weights of *ids from 'in'.
Status FindSamples(const IdsInput& in, Samples samples, TableIds* ids);

// Fills unique, inverse, counts and num_unique of *ids from the ids of 'in',
// with the keys in order of first occurrence. 'parallel' may be null. Throws
// std::bad_alloc.
Status FindDistinct(const IdsInput& in, Parallel* parallel, TableIds* ids);

}  // namespace ev

#endif  // KERNELS_ENGINE_IDS_BATCH_IDS_H_
