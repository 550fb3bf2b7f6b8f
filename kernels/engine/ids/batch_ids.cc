// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/ids/batch_ids.h"

#include <algorithm>
#include <atomic>
#include <numeric>
#include <vector>

#include "kernels/engine/base/tasks.h"
#include "kernels/engine/ids/sample_offsets.h"
#include "kernels/engine/ids/sharded_ids.h"
#include "kernels/engine/ids/unique_pool.h"

namespace ev {
namespace {

// Total work of a dedup that is split among threads, relative to one pass.
constexpr int64_t kPriceOfSharing = 2;

// Returns for each table whether its keys are split among all threads. With
// kShardByShard the order of keys is visible, so the size alone decides.
// Otherwise the result is the same either way, and a long table is split if it
// would keep the other threads waiting: if it is most of a thread's share of
// the work.
std::vector<bool> AreShared(Span<TableIds* const> tables,
                            const PlanIdsOptions& options,
                            const Parallel* parallel) {
  const int64_t threads = parallel == nullptr ? 1 : parallel->num_threads();
  int64_t all_ids = 0;
  for (const TableIds* ids : tables) {
    if (ids->distinct == nullptr) all_ids += ids->num_ids;
  }
  std::vector<bool> shared;
  for (const TableIds* ids : tables) {
    shared.push_back(ids->distinct == nullptr &&
                     ids->num_ids > ShardedIds::kMaxWhole &&
                     (options.order == DistinctOrder::kShardByShard ||
                      ids->num_ids > kPriceOfSharing * all_ids / threads));
  }
  return shared;
}

// Pool for batches whose shards are not used after the dedup. Never destroyed,
// because calls may be in flight while the process exits.
Recycler<ShardedIds>& ShardedIdsPool() {
  static Recycler<ShardedIds>* const pool = new Recycler<ShardedIds>(4);
  return *pool;
}

template <typename Id>
Status DeduplicateIds(Span<const Id> given, TableIds* ids) {
  return UniquePool().Acquire()->Run(given, ids->unique, ids->inverse,
                                     ids->counts, &ids->num_unique);
}

Status Deduplicate(const IdsInput& in, TableIds* ids) {
  return in.ids64 != nullptr
             ? DeduplicateIds(Span<const int64_t>(in.ids64, in.num_ids), ids)
             : DeduplicateIds(Span<const int32_t>(in.ids32, in.num_ids), ids);
}

Status DeduplicateInShards(const IdsInput& in, DistinctOrder order,
                           Parallel* parallel, TableIds* ids) {
  const auto run = [&](ShardedIds* shards) {
    return shards->Run(
        in.ids64, in.ids32, in.num_ids, ids->offsets, in.batch_size, order,
        {ids->unique, ids->inverse, ids->counts}, parallel, &ids->num_unique);
  };
  if (order == DistinctOrder::kFirstOccurrence) {
    return run(&*ShardedIdsPool().Acquire());
  }
  EV_RETURN_IF_ERROR(run(&ids->shards));
  ids->is_sharded = !ids->all_unique();
  return Status::OK();
}

// Copies ids [begin, end) to the device.
Status PutIds(const IdsInput& in, int64_t begin, int64_t end,
              const TableIds& ids) {
  const size_t n = end - begin;
  return NamedAfter(
      ids.name,
      in.ids64 != nullptr
          ? ids.distinct->Put(begin, Span<const int64_t>(in.ids64 + begin, n))
          : ids.distinct->Put(begin, Span<const int32_t>(in.ids32 + begin, n)));
}

Status StartDevice(const TableIds& ids) {
  return NamedAfter(
      ids.name,
      ids.distinct->Start(
          ids.has_offsets ? Span<const int32_t>(ids.offsets, ids.batch_size + 1)
                          : Span<const int32_t>()));
}

// Returns the tasks of a call with T tables, after those of the caller. Item t
// stands for the samples of table t, and for the keys too if it is small. Item
// T + t stands for its keys, item 2 T + t for ids to copy to a device. Tables
// with a device come first, so that copies start early; then the longest work.
TaskList TasksOf(Span<TableIds* const> tables, const std::vector<bool>& shared,
                 const PlanIdsOptions& options) {
  const int num_tables = static_cast<int>(tables.size());
  TaskList tasks = options.other == nullptr ? TaskList(options.ids_per_task)
                                            : *options.other;
  for (int t = 0; t < num_tables; ++t) {
    const TableIds& ids = *tables[t];
    if (ids.distinct == nullptr) continue;
    tasks.AddWhole(t, options.ids_per_task);
    if (!ids.distinct->needs_put()) continue;
    tasks.AddAlone(2 * num_tables + t, ids.num_ids, options.ids_per_put);
  }
  for (int t = 0; t < num_tables; ++t) {
    const TableIds& ids = *tables[t];
    if (ids.distinct != nullptr || shared[t] ||
        IsSmall(ids, options.ids_per_task)) {
      continue;
    }
    tasks.AddWhole(num_tables + t, options.ids_per_task);
  }
  for (int t = 0; t < num_tables; ++t) {
    const TableIds& ids = *tables[t];
    if (ids.distinct != nullptr) continue;
    const bool small = IsSmall(ids, options.ids_per_task);
    tasks.AddWhole(t, PlanWeight(small ? ids.num_ids : 0, ids.batch_size));
  }
  return tasks;
}

}  // namespace

Status FindSamples(const IdsInput& in, Samples samples, TableIds* ids) {
  if (ids->has_weights) std::copy_n(in.weights, in.num_ids, ids->weights);
  if (samples == Samples::kOneIdEach) {
    std::iota(ids->offsets, ids->offsets + in.num_ids + 1, 0);
    return Status::OK();
  }
  return in.row_splits != nullptr
             ? OffsetsFromSplits(in.row_splits, in.batch_size, in.num_ids,
                                 ids->name, ids->offsets)
             : OffsetsFromIndices(in.coo_indices, in.batch_size, in.num_ids,
                                  ids->name, ids->offsets);
}

Status FindDistinct(const IdsInput& in, Parallel* parallel, TableIds* ids) {
  return in.num_ids > ShardedIds::kMaxWhole && parallel != nullptr
             ? DeduplicateInShards(in, DistinctOrder::kFirstOccurrence,
                                   parallel, ids)
             : Deduplicate(in, ids);
}

Status PlanIds(Span<const IdsInput* const> inputs, Span<TableIds* const> tables,
               const PlanIdsOptions& options, DistinctQueue* queue,
               Parallel* parallel) {
  const int num_tables = static_cast<int>(inputs.size());
  const std::vector<bool> shared = AreShared(tables, options, parallel);
  const auto keys_known = [&](int t, Parallel* within) {
    return options.keys_known ? options.keys_known(t, within) : Status::OK();
  };
  // Work left for each table before its device can start: its samples (1) and
  // the ids to copy.
  std::vector<std::atomic<int64_t>> left(num_tables);
  for (int t = 0; t < num_tables; ++t) {
    const DeviceDistinct* const distinct = tables[t]->distinct.get();
    if (distinct == nullptr) continue;
    left[t] = 1 + (distinct->needs_put() ? inputs[t]->num_ids : 0);
  }
  // Subtracts 'count' from left[t], and starts the device at 0.
  const auto done = [&](int t, int64_t count) {
    if (left[t].fetch_sub(count, std::memory_order_acq_rel) == count) {
      EV_RETURN_IF_ERROR(StartDevice(*tables[t]));
      queue->Started(t);
    }
    return queue->Advance();
  };
  const auto find_keys = [&](int t) {
    EV_RETURN_IF_ERROR(Deduplicate(*inputs[t], tables[t]));
    return keys_known(t, nullptr);
  };
  const TaskList tasks = TasksOf(tables, shared, options);
  EV_RETURN_IF_ERROR(RunPieces(parallel, tasks, [&](const Piece& piece) {
    if (piece.item < 0) return options.do_other(piece);
    const int t = piece.item % num_tables;
    if (piece.item >= 2 * num_tables) {
      EV_RETURN_IF_ERROR(
          PutIds(*inputs[t], piece.begin, piece.end, *tables[t]));
      return done(t, piece.end - piece.begin);
    }
    if (piece.item >= num_tables) return find_keys(t);
    if (options.check) EV_RETURN_IF_ERROR(options.check(t));
    tables[t]->has_offsets = !inputs[t]->on_device;
    if (tables[t]->has_offsets) {
      EV_RETURN_IF_ERROR(FindSamples(*inputs[t], options.samples, tables[t]));
    }
    if (options.samples_known) EV_RETURN_IF_ERROR(options.samples_known(t));
    if (tables[t]->distinct != nullptr) return done(t, 1);
    return IsSmall(*tables[t], options.ids_per_task) ? find_keys(t)
                                                     : Status::OK();
  }));
  for (int t = 0; t < num_tables; ++t) {
    if (!shared[t]) continue;
    EV_RETURN_IF_ERROR(
        DeduplicateInShards(*inputs[t], options.order, parallel, tables[t]));
    EV_RETURN_IF_ERROR(keys_known(t, parallel));
  }
  return Status::OK();
}

}  // namespace ev
