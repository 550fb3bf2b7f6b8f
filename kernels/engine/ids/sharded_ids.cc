// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/ids/sharded_ids.h"

#include <algorithm>
#include <numeric>

#include "kernels/engine/base/hash.h"
#include "kernels/engine/base/tasks.h"
#include "kernels/engine/ids/unique_pool.h"

namespace ev {
namespace {

constexpr int64_t kIdsPerChunk = 32 * 1024;
constexpr int kMaxShards = 256;

}  // namespace

struct ShardedIds::Shards {
  const int64_t* ids64;
  const int32_t* ids32;
  int64_t num_ids;
  const int64_t* unique;            // those of shard s begin at begins_[s]
  const int32_t* counts;            // likewise
  std::vector<int64_t> num_unique;  // [shards]
  // [N], free for reuse.
  uint8_t* spare_bytes;
  int32_t* spare_numbers;

  int64_t id(int64_t i) const { return ids64 != nullptr ? ids64[i] : ids32[i]; }
};

Status ShardedIds::Run(const int64_t* ids64, const int32_t* ids32,
                       int64_t num_ids, const int32_t* offsets,
                       int64_t num_samples, DistinctOrder order, Output output,
                       Parallel* parallel, int64_t* num_unique) {
  int shard_bits = 1;
  while ((1 << shard_bits) < kMaxShards &&
         (num_ids >> shard_bits) > kIdsPerChunk) {
    ++shard_bits;
  }
  num_shards_ = 1 << shard_bits;
  const int shards = num_shards_;
  const int64_t chunks = (num_ids + kIdsPerChunk - 1) / kIdsPerChunk;

  ArrayLayout layout;
  const size_t shard_of_at = layout.Add<uint8_t>(num_ids);
  const size_t keys_at = layout.Add<int64_t>(num_ids);
  const size_t unique_at = layout.Add<int64_t>(num_ids);
  const size_t counts_at = layout.Add<int32_t>(num_ids);
  const size_t positions_at = layout.Add<int32_t>(num_ids);
  const size_t samples_at = layout.Add<int32_t>(num_ids);
  const size_t rows_at = layout.Add<int32_t>(num_ids);
  char* base = static_cast<char*>(arrays_.Reserve(layout.bytes()));
  uint8_t* shard_of = reinterpret_cast<uint8_t*>(base + shard_of_at);
  int64_t* keys = reinterpret_cast<int64_t*>(base + keys_at);
  int64_t* unique = reinterpret_cast<int64_t*>(base + unique_at);
  int32_t* counts = reinterpret_cast<int32_t*>(base + counts_at);
  positions_ = reinterpret_cast<int32_t*>(base + positions_at);
  samples_ = reinterpret_cast<int32_t*>(base + samples_at);
  rows_ = reinterpret_cast<int32_t*>(base + rows_at);

  const auto id_at = [&](int64_t i) {
    return ids64 != nullptr ? ids64[i] : int64_t{ids32[i]};
  };

  // Per chunk and shard: first the number of ids, then where they begin.
  std::vector<int64_t> next(chunks * shards, 0);
  RunTasks(parallel, chunks, [&](int64_t chunk) {
    int64_t* sizes = next.data() + chunk * shards;
    const int64_t end = std::min(num_ids, (chunk + 1) * kIdsPerChunk);
    for (int64_t i = chunk * kIdsPerChunk; i < end; ++i) {
      const uint8_t shard =
          static_cast<uint8_t>(MixKey(id_at(i)) >> (64 - shard_bits));
      shard_of[i] = shard;
      ++sizes[shard];
    }
  });
  begins_.assign(shards + 1, 0);
  int64_t begin = 0;
  for (int s = 0; s < shards; ++s) {
    begins_[s] = begin;
    for (int64_t chunk = 0; chunk < chunks; ++chunk) {
      const int64_t size = next[chunk * shards + s];
      next[chunk * shards + s] = begin;
      begin += size;
    }
  }
  begins_[shards] = begin;

  RunTasks(parallel, chunks, [&](int64_t chunk) {
    int64_t* to = next.data() + chunk * shards;
    const int64_t first = chunk * kIdsPerChunk;
    const int64_t end = std::min(num_ids, first + kIdsPerChunk);
    if (order == DistinctOrder::kFirstOccurrence) {
      for (int64_t i = first; i < end; ++i) {
        const int64_t k = to[shard_of[i]]++;
        keys[k] = id_at(i);
        positions_[k] = static_cast<int32_t>(i);
      }
      return;
    }
    int64_t sample =
        std::upper_bound(offsets, offsets + num_samples + 1, first) - offsets -
        1;
    for (int64_t i = first; i < end; ++i) {
      while (offsets[sample + 1] <= i) ++sample;
      const int64_t k = to[shard_of[i]]++;
      keys[k] = id_at(i);
      positions_[k] = static_cast<int32_t>(i);
      samples_[k] = static_cast<int32_t>(sample);
    }
  });

  std::vector<int64_t> distinct(shards, 0);
  EV_RETURN_IF_ERROR(RunTasksWithStatus(parallel, shards, [&](int64_t s) {
    const int64_t k = begins_[s];
    return UniquePool().Acquire()->Run(
        Span<const int64_t>(keys + k, begins_[s + 1] - k), unique + k,
        rows_ + k, counts + k, &distinct[s]);
  }));
  row_begins_.assign(shards + 1, 0);
  for (int s = 0; s < shards; ++s) {
    row_begins_[s + 1] = row_begins_[s] + distinct[s];
  }
  *num_unique = row_begins_[shards];

  if (*num_unique == num_ids) {
    RunTasks(parallel, chunks, [&](int64_t chunk) {
      const int64_t end = std::min(num_ids, (chunk + 1) * kIdsPerChunk);
      for (int64_t i = chunk * kIdsPerChunk; i < end; ++i) {
        output.unique[i] = id_at(i);
        output.inverse[i] = static_cast<int32_t>(i);
        output.counts[i] = 1;
      }
    });
    return Status::OK();
  }
  const Shards found = {ids64,  ids32,    num_ids,  unique,
                        counts, distinct, shard_of, samples_};
  if (order == DistinctOrder::kFirstOccurrence) {
    WriteInBatchOrder(found, output, parallel);
  } else {
    WriteInShardOrder(found, output, parallel);
  }
  return Status::OK();
}

void ShardedIds::WriteInShardOrder(const Shards& shards, Output output,
                                   Parallel* parallel) {
  RunTasks(parallel, num_shards_, [&](int64_t s) {
    const int64_t row = row_begins_[s];
    const int64_t n = shards.num_unique[s];
    std::copy_n(shards.unique + begins_[s], n, output.unique + row);
    std::copy_n(shards.counts + begins_[s], n, output.counts + row);
    for (int64_t k = begins_[s]; k < begins_[s + 1]; ++k) {
      rows_[k] += static_cast<int32_t>(row);
      output.inverse[positions_[k]] = rows_[k];
    }
  });
}

void ShardedIds::WriteInBatchOrder(const Shards& shards, Output output,
                                   Parallel* parallel) {
  const int64_t num_ids = shards.num_ids;
  const int64_t chunks = (num_ids + kIdsPerChunk - 1) / kIdsPerChunk;
  // is_first marks the positions of first occurrences. At such a position,
  // inverse temporarily holds the index of the key in the shards' arrays:
  // begins_ of the shard plus the number of the key in the shard.
  uint8_t* const is_first = shards.spare_bytes;
  ForRanges(parallel, num_ids, kIdsPerChunk, [&](int64_t begin, int64_t end) {
    std::fill(is_first + begin, is_first + end, 0);
  });
  RunTasks(parallel, num_shards_, [&](int64_t s) {
    int32_t next = 0;
    for (int64_t k = begins_[s]; k < begins_[s + 1]; ++k) {
      if (rows_[k] != next) continue;
      is_first[positions_[k]] = 1;
      output.inverse[positions_[k]] = static_cast<int32_t>(begins_[s] + next++);
    }
  });
  // Per chunk: first the number of keys that first occur in it, then the number
  // before it.
  std::vector<int32_t> before(chunks + 1, 0);
  RunTasks(parallel, chunks, [&](int64_t chunk) {
    const int64_t end = std::min(num_ids, (chunk + 1) * kIdsPerChunk);
    before[chunk + 1] = static_cast<int32_t>(
        std::count(is_first + chunk * kIdsPerChunk, is_first + end, 1));
  });
  std::partial_sum(before.begin(), before.end(), before.begin());
  int32_t* const numbers = shards.spare_numbers;
  RunTasks(parallel, chunks, [&](int64_t chunk) {
    int32_t number = before[chunk];
    const int64_t end = std::min(num_ids, (chunk + 1) * kIdsPerChunk);
    for (int64_t i = chunk * kIdsPerChunk; i < end; ++i) {
      if (!is_first[i]) continue;
      const int32_t key = output.inverse[i];
      output.unique[number] = shards.id(i);
      output.counts[number] = shards.counts[key];
      numbers[key] = number++;
    }
  });
  RunTasks(parallel, num_shards_, [&](int64_t s) {
    const int32_t* const of_shard = numbers + begins_[s];
    for (int64_t k = begins_[s]; k < begins_[s + 1]; ++k) {
      output.inverse[positions_[k]] = of_shard[rows_[k]];
    }
  });
}

}  // namespace ev
