// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Ids of one table in one batch: the caller's input, and the plan made from it.

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

// Exactly one of ids64 and ids32 is set, and exactly one of row_splits and
// coo_indices. An array without elements may be null. N and B must be below
// 2^31 - 1. on_device: ids and samples are in the memory of a device, which
// deduplicates them (IdsOnDevice) or looks them up.
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

// Returns whether two tables' ids have the same samples, given by the same
// arrays.
inline bool HaveSameSamples(const IdsInput& a, const IdsInput& b) {
  return a.row_splits == b.row_splits && a.coo_indices == b.coo_indices &&
         a.on_device == b.on_device && a.num_ids == b.num_ids &&
         a.batch_size == b.batch_size;
}

// Checks that sizes are in range and that the arrays are set as IdsInput
// requires. Reads no array. InvalidArgument names the table.
Status CheckIds(const IdsInput& in, const std::string& table);

// Appends the table's name to the message of an error.
Status NamedAfter(const std::string& table, const Status& status);

// Planned ids of one table, for a lookup or a route. The plan owns the arrays.
struct TableIds {
  std::string name;  // of the table, for errors
  int64_t batch_size = 0;
  int64_t num_ids = 0;
  int64_t num_unique = 0;
  bool has_weights = false;
  bool is_sharded = false;               // 'shards' groups the occurrences
  std::atomic<bool> has_factors{false};  // some gradient factor is not 1

  int32_t* offsets = nullptr;  // [B + 1]: where each sample's ids begin
  // False while only a device has the offsets, until the plan fetches them.
  mutable bool has_offsets = true;
  // [N]: index of each id's key in 'unique'. Mutable because a plan may fetch
  // it on first use.
  mutable int32_t* inverse = nullptr;
  float* factors = nullptr;   // [B]: 1 / the sample's divisor
  float* weights = nullptr;   // [N], with has_weights
  int64_t* unique = nullptr;  // [U]: distinct keys
  int32_t* counts = nullptr;  // [U]: occurrences of each

  // Not null if a device deduplicates; the plan fills inverse, unique and
  // counts from it.
  std::unique_ptr<DeviceDistinct> distinct;
  // Guards is_fetched in plans that fetch from a device on first use.
  mutable std::mutex fetch;
  mutable bool is_fetched = false;

  ShardedIds shards;

  // Returns whether no id occurs twice. The distinct ids are then the ids, in
  // the same order.
  bool all_unique() const { return num_unique == num_ids; }

  // Sets the sizes for a new batch. Nothing is planned afterwards, and
  // 'distinct' is unchanged.
  void Begin(const IdsInput& in, const std::string& table);

  // Offsets of the arrays within a block, in bytes. 'offsets' and 'inverse'
  // come first and are adjacent.
  struct Layout {
    size_t offsets, inverse, end_of_inverse, factors, weights, unique, counts;
  };
  // Adds room for num_ids ids and batch_size samples to an empty layout.
  Layout AddTo(ArrayLayout* layout, int64_t num_ids) const;
  void PointInto(char* block, const Layout& layout);
};

// Estimated cost of planning one table's batch, in ids.
inline int64_t PlanWeight(int64_t num_ids, int64_t batch_size) {
  return num_ids + batch_size / 4;
}

}  // namespace ev

#endif  // KERNELS_ENGINE_IDS_TABLE_IDS_H_
