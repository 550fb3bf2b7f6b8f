// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// One table's ids of one batch: as a caller gives them, and as they are
// planned.

#ifndef KERNELS_ENGINE_IDS_TABLE_IDS_H_
#define KERNELS_ENGINE_IDS_TABLE_IDS_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "kernels/engine/base/scratch.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/ids/device_distinct.h"
#include "kernels/engine/ids/sharded_ids.h"

namespace ev {

// Exactly one of ids64, ids32 is set; exactly one of row_splits and coo_indices
// is set. What would have no element may be null. N and B must be below
// 2^31 - 1. on_device: ids and samples are in the memory of a device that
// deduplicates them there (IdsOnDevice), or of a table that a step takes there
// (rows/gpu_step.h).
struct IdsInput {
  int64_t batch_size = 0;  // B, samples
  int64_t num_ids = 0;     // N
  const int64_t* ids64 = nullptr;
  const int32_t* ids32 = nullptr;
  const int64_t* row_splits = nullptr;   // [B + 1]
  const int64_t* coo_indices = nullptr;  // [N, 2] row-major, sorted by sample;
                                         // columns are ignored
  const float* weights = nullptr;        // [N], or null: all ones
  bool on_device = false;
};

// Whether two tables' ids have the same samples: by the same arrays.
inline bool HaveSameSamples(const IdsInput& a, const IdsInput& b) {
  return a.row_splits == b.row_splits && a.coo_indices == b.coo_indices &&
         a.on_device == b.on_device && a.num_ids == b.num_ids &&
         a.batch_size == b.batch_size;
}

// InvalidArgument, with the table's name, unless the sizes are in range and the
// arrays are those that IdsInput asks for. Reads no array.
Status CheckIds(const IdsInput& in, const std::string& table);

// The status with the table's name.
Status NamedAfter(const std::string& table, const Status& status);

// What a plan (of a lookup, of a route) knows of one table's ids. The plan owns
// the arrays.
struct TableIds {
  std::string name;  // of the table, for errors
  int64_t batch_size = 0;
  int64_t num_ids = 0;
  int64_t num_unique = 0;
  bool has_weights = false;
  bool is_sharded = false;               // 'shards' groups the occurrences
  std::atomic<bool> has_factors{false};  // a sample's gradient factor is not 1

  int32_t* offsets = nullptr;  // [B + 1]: where each sample's ids begin
  // Not so: 'distinct' has them (DeviceDistinct::Samples), until the plan
  // fetches.
  mutable bool has_offsets = true;
  // [N]: the number of each id's key. Mutable: a plan may get it when the first
  // reader asks for it.
  mutable int32_t* inverse = nullptr;
  float* factors = nullptr;   // [B]: 1 / the sample's divisor
  float* weights = nullptr;   // [N], with has_weights
  int64_t* unique = nullptr;  // [U]: distinct keys
  int32_t* counts = nullptr;  // [U]: occurrences of each

  // Not null where a device deduplicates: the plan says which of inverse,
  // unique and counts are there.
  std::unique_ptr<DeviceDistinct> distinct;
  // Of a plan that fetches from 'distinct' what a reader asks for, once.
  mutable std::mutex fetch;
  mutable bool is_fetched = false;

  ShardedIds shards;

  // Then the distinct ids are the ids, in the same order.
  bool all_unique() const { return num_unique == num_ids; }

  // The sizes of a new batch; nothing is planned, and 'distinct' is unchanged.
  void Begin(const IdsInput& in, const std::string& table);

  // Where in a block the arrays begin, in bytes. Offsets and inverse come
  // first and are one stretch.
  struct Layout {
    size_t offsets, inverse, end_of_inverse, factors, weights, unique, counts;
  };
  // Adds room for N ids (for B samples as Begin has them) to a layout that is
  // empty.
  Layout AddTo(ArrayLayout* layout, int64_t num_ids) const;
  void PointInto(char* block, const Layout& layout);
};

// What one table's batch costs to plan, in ids.
inline int64_t PlanWeight(int64_t num_ids, int64_t batch_size) {
  return num_ids + batch_size / 4;
}

}  // namespace ev

#endif  // KERNELS_ENGINE_IDS_TABLE_IDS_H_
