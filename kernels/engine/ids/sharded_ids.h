// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Deduplicates one table's batch on several threads, if it is too long for one
// task.
//
// Ids are first split into shards by their hash, keeping their order; then each
// shard is deduplicated by itself. All occurrences of an id are in one shard,
// so shards are independent, and remain so when the gradient groups
// occurrences. The number of shards depends on the number of ids alone.
//
// Distinct ids are ordered by shard, and within a shard by first occurrence. If
// no id occurs twice they are in the order of the batch, which makes the
// gradient a copy. With kFirstOccurrence they are in order of first occurrence
// in the batch, as one pass over it would give them.
//
// Compared with one pass, each id is hashed twice and moved once (16 bytes),
// and its number is written at random: about a third of the whole dedup. That
// pays off only if a serial pass would keep the other cores waiting, so batches
// of up to kMaxWhole ids are not sharded.

#ifndef KERNELS_ENGINE_IDS_SHARDED_IDS_H_
#define KERNELS_ENGINE_IDS_SHARDED_IDS_H_

#include <cstdint>
#include <vector>

#include "kernels/engine/base/parallel.h"
#include "kernels/engine/base/scratch.h"
#include "kernels/engine/base/status.h"

namespace ev {

// The order of a long batch's distinct ids.
enum class DistinctOrder { kShardByShard, kFirstOccurrence };

class ShardedIds {
 public:
  static constexpr int64_t kMaxWhole = 128 * 1024;

  // Output arrays, as in ids/unique.h.
  struct Output {
    int64_t* unique;   // [N]
    int32_t* inverse;  // [N]
    int32_t* counts;   // [N]
  };

  // Deduplicates ids64 or ids32, whichever is not null. offsets [num_samples +
  // 1]: where the ids of each sample begin, from which the sample of an id
  // follows; not read for kFirstOccurrence. Throws std::bad_alloc.
  Status Run(const int64_t* ids64, const int32_t* ids32, int64_t num_ids,
             const int32_t* offsets, int64_t num_samples, DistinctOrder order,
             Output output, Parallel* parallel, int64_t* num_unique);

  // Occurrences in shard order, valid after Run with kShardByShard if some id
  // occurs twice. Occurrence k is id positions()[k] of the batch; it belongs to
  // sample samples()[k] and is distinct id rows()[k].
  int num_shards() const { return num_shards_; }
  int64_t begin(int shard) const { return begins_[shard]; }  // first k
  int64_t row_begin(int shard) const { return row_begins_[shard]; }
  const int32_t* positions() const { return positions_; }
  const int32_t* samples() const { return samples_; }
  const int32_t* rows() const { return rows_; }

  size_t bytes() const { return arrays_.bytes(); }

 private:
  // Result of deduplicating each shard by itself.
  struct Shards;
  void WriteInShardOrder(const Shards& shards, Output output,
                         Parallel* parallel);
  void WriteInBatchOrder(const Shards& shards, Output output,
                         Parallel* parallel);

  int num_shards_ = 0;
  std::vector<int64_t> begins_, row_begins_;  // [shards + 1]
  int32_t* positions_ = nullptr;              // [N]
  int32_t* samples_ = nullptr;                // [N]
  int32_t* rows_ = nullptr;                   // [N]
  LineBuffer arrays_;
};

}  // namespace ev

#endif  // KERNELS_ENGINE_IDS_SHARDED_IDS_H_
