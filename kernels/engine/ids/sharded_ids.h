// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Deduplication of one table's batch that is too long for one task.
//
// Ids are first dealt out to shards by their hash, keeping their order; then
// each shard is deduplicated by itself. All occurrences of an id are in one
// shard, so shards have nothing in common, in the gradient's grouping as little
// as here. The number of shards depends on the number of ids alone.
//
// Distinct ids come shard after shard, in order of first occurrence within a
// shard; or, when no id occurs twice, simply in the order of the batch, which
// makes the gradient a copy. A caller that needs the order of one pass, which
// is that of first occurrence in the batch, asks for it.
//
// The price over one pass: each id is hashed twice, moved once (16 bytes) and
// its number written at random; about a third of the whole dedup. It is worth
// that only where a serial pass would keep the other cores waiting, so batches
// up to kMaxWhole are not sharded.

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

  // Where the result goes; as ids/unique.h.
  struct Output {
    int64_t* unique;   // [N]
    int32_t* inverse;  // [N]
    int32_t* counts;   // [N]
  };

  // offsets [num_samples + 1]: the ids of each sample, which say of which
  // sample an id is. Not read for kFirstOccurrence. Throws std::bad_alloc.
  Status Run(const int64_t* ids64, const int32_t* ids32, int64_t num_ids,
             const int32_t* offsets, int64_t num_samples, DistinctOrder order,
             Output output, Parallel* parallel, int64_t* num_unique);

  // After Run with kShardByShard, when some id has occurred twice: occurrence
  // k, in shard order, is id positions()[k] of the batch, of sample
  // samples()[k] and distinct id rows()[k].
  int num_shards() const { return num_shards_; }
  int64_t begin(int shard) const { return begins_[shard]; }  // of k
  int64_t row_begin(int shard) const { return row_begins_[shard]; }
  const int32_t* positions() const { return positions_; }
  const int32_t* samples() const { return samples_; }
  const int32_t* rows() const { return rows_; }

  size_t bytes() const { return arrays_.bytes(); }

 private:
  // What is known when each shard has been deduplicated by itself.
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
