// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/ids/sharded_ids.h"

#include <algorithm>
#include <cstring>

#include "kernels/engine/base/hash.h"
#include "kernels/engine/base/tasks.h"
#include "kernels/engine/ids/unique_pool.h"

namespace ev {
namespace {

constexpr int64_t kIdsPerChunk = 32 * 1024;
constexpr int kMaxShards = 256;

}  // namespace

Status ShardedIds::Run(const int64_t* ids64, const int32_t* ids32,
                       int64_t num_ids, const int32_t* offsets,
                       int64_t num_samples, Output output, Parallel* parallel,
                       int64_t* num_unique) {
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

  // The size of each shard's share of each chunk; then where it begins.
  std::vector<int64_t> next(chunks * shards, 0);
  RunTasks(parallel, chunks, [&](int64_t chunk) {
    int64_t* sizes = next.data() + chunk * shards;
    const int64_t end = std::min(num_ids, (chunk + 1) * kIdsPerChunk);
    for (int64_t i = chunk * kIdsPerChunk; i < end; ++i) {
      // The high bits: the dedup of a shard takes the low ones.
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
  RunTasks(parallel, shards, [&](int64_t s) {
    const int64_t row = row_begins_[s];
    std::copy_n(unique + begins_[s], distinct[s], output.unique + row);
    std::copy_n(counts + begins_[s], distinct[s], output.counts + row);
    for (int64_t k = begins_[s]; k < begins_[s + 1]; ++k) {
      rows_[k] += static_cast<int32_t>(row);
      output.inverse[positions_[k]] = rows_[k];
    }
  });
  return Status::OK();
}

}  // namespace ev
