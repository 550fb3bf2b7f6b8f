// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/embedding/lookup/grouped_occurrences.h"

#include <atomic>

#include "kernels/engine/combine/pooling_gradient.h"
#include "kernels/engine/embedding/table_impl.h"

namespace ev {

void Grouped::Reserve(const PlannedTable& planned) {
  ArrayLayout layout;
  const size_t ends_at = layout.Add<int32_t>(planned.num_unique);
  const size_t samples_at = layout.Add<int32_t>(planned.num_ids);
  const size_t weights_at =
      layout.Add<float>(planned.has_weights ? planned.num_ids : 0);
  char* base = static_cast<char*>(arrays.Reserve(layout.bytes()));
  ends = reinterpret_cast<int32_t*>(base + ends_at);
  samples = reinterpret_cast<int32_t*>(base + samples_at);
  weights = reinterpret_cast<float*>(base + weights_at);
}

Recycler<Grouped>& GroupedPool() {
  static Recycler<Grouped>* const pool = new Recycler<Grouped>(256);
  return *pool;
}

const float* FactorsOf(const PlannedTable& planned) {
  return planned.has_factors.load(std::memory_order_relaxed) ? planned.factors
                                                             : nullptr;
}

const float* WeightsOf(const PlannedTable& planned) {
  return planned.has_weights ? planned.weights : nullptr;
}

int64_t NumParts(const PlannedTable& planned) {
  return planned.is_sharded ? planned.shards.num_shards() : 1;
}

Status GroupPartOf(const PlannedTable& planned, int64_t number,
                   Grouped* grouped) {
  if (planned.distinct != nullptr) {
    int32_t end = 0;
    for (int64_t u = 0; u < planned.num_unique; ++u) {
      grouped->ends[u] = end += planned.counts[u];
    }
    return planned.table->impl()->Named(
        planned.distinct->Occurrences(grouped->samples));
  }
  if (!planned.is_sharded) {
    GroupOccurrences(planned.inverse, planned.counts, planned.num_unique,
                     planned.offsets, planned.batch_size, WeightsOf(planned),
                     FactorsOf(planned), grouped->ends, grouped->samples,
                     grouped->weights);
    return Status::OK();
  }
  const ShardedIds& shards = planned.shards;
  OccurrencePart part;
  part.rows = shards.rows();
  part.samples = shards.samples();
  part.positions = shards.positions();
  part.begin = shards.begin(number);
  part.end = shards.begin(number + 1);
  part.row_begin = shards.row_begin(number);
  part.row_end = shards.row_begin(number + 1);
  GroupPart(part, planned.counts, WeightsOf(planned), FactorsOf(planned),
            grouped->ends, grouped->samples, grouped->weights);
  return Status::OK();
}

}  // namespace ev
