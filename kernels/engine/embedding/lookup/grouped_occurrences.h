// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// A planned table's occurrences grouped by row, which every gradient of a
// pooled lookup begins with (combine/pooling_gradient.h).

#ifndef KERNELS_ENGINE_EMBEDDING_LOOKUP_GROUPED_OCCURRENCES_H_
#define KERNELS_ENGINE_EMBEDDING_LOOKUP_GROUPED_OCCURRENCES_H_

#include <cstdint>

#include "kernels/engine/base/scratch.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/embedding/lookup/planned_table.h"

namespace ev {

struct Grouped {
  LineBuffer arrays;
  int32_t* ends = nullptr;     // [U]
  int32_t* samples = nullptr;  // [N]
  float* weights = nullptr;    // [N], weight * factor, with weights only

  // Throws std::bad_alloc.
  void Reserve(const PlannedTable& planned);
};

Recycler<Grouped>& GroupedPool();

// What scales gradients; null: ones.
const float* FactorsOf(const PlannedTable& planned);  // [B]
const float* WeightsOf(const PlannedTable& planned);  // [N]

// Parts that can be grouped at once, by several threads. Where a device has
// deduplicated it groups too: one part, and the only one that can fail.
int64_t NumParts(const PlannedTable& planned);
Status GroupPartOf(const PlannedTable& planned, int64_t part, Grouped* grouped);

}  // namespace ev

#endif  // KERNELS_ENGINE_EMBEDDING_LOOKUP_GROUPED_OCCURRENCES_H_
