// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/embedding/lookup/grouped_occurrences.h"

#include "kernels/engine/embedding/lookup/pooled_ids.h"

namespace ev {

void Grouped::Reserve(const TableIds& ids) {
  ArrayLayout layout;
  const size_t ends_at = layout.Add<int32_t>(ids.num_unique);
  const size_t samples_at = layout.Add<int32_t>(ids.num_ids);
  const size_t weights_at =
      layout.Add<float>(ids.has_weights ? ids.num_ids : 0);
  char* base = static_cast<char*>(arrays.Reserve(layout.bytes()));
  ends = reinterpret_cast<int32_t*>(base + ends_at);
  samples = reinterpret_cast<int32_t*>(base + samples_at);
  weights =
      ids.has_weights ? reinterpret_cast<float*>(base + weights_at) : nullptr;
}

Recycler<Grouped>& GroupedPool() {
  static Recycler<Grouped>* const pool = new Recycler<Grouped>(256);
  return *pool;
}

int64_t NumParts(const TableIds& ids) {
  return ids.is_sharded ? ids.shards.num_shards() : 1;
}

void GroupByInverse(const TableIds& ids, Grouped* grouped) {
  GroupOccurrences(ids.inverse, ids.counts, ids.num_unique, ids.offsets,
                   ids.batch_size, WeightsOf(ids), FactorsOf(ids),
                   grouped->ends, grouped->samples, grouped->weights);
}

void GroupPartOf(const TableIds& ids, int64_t number, Grouped* grouped) {
  if (!ids.is_sharded) return GroupByInverse(ids, grouped);
  const ShardedIds& shards = ids.shards;
  OccurrencePart part;
  part.rows = shards.rows();
  part.samples = shards.samples();
  part.positions = shards.positions();
  part.begin = shards.begin(number);
  part.end = shards.begin(number + 1);
  part.row_begin = shards.row_begin(number);
  part.row_end = shards.row_begin(number + 1);
  GroupPart(part, ids.counts, WeightsOf(ids), FactorsOf(ids), grouped->ends,
            grouped->samples, grouped->weights);
}

}  // namespace ev
