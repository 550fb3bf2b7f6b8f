// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// One table's occurrences grouped by distinct key: the first step of every
// gradient of a pooled lookup (combine/pooling_gradient.h).

#ifndef KERNELS_ENGINE_EMBEDDING_LOOKUP_GROUPED_OCCURRENCES_H_
#define KERNELS_ENGINE_EMBEDDING_LOOKUP_GROUPED_OCCURRENCES_H_

#include <cstdint>

#include "kernels/engine/base/scratch.h"
#include "kernels/engine/combine/pooling_gradient.h"
#include "kernels/engine/ids/table_ids.h"

namespace ev {

struct Grouped {
  LineBuffer arrays;
  int32_t* ends = nullptr;     // [U]
  int32_t* samples = nullptr;  // [N]
  float* weights = nullptr;    // [N], weight * factor; null without weights

  // Makes room for the table's occurrences. Throws std::bad_alloc.
  void Reserve(const TableIds& ids);

  Occurrences occurrences() const {
    Occurrences all;
    all.ends = ends;
    all.samples = samples;
    all.weights = weights;
    return all;
  }
};

Recycler<Grouped>& GroupedPool();

// Number of parts that several threads can group at once. REQUIRES:
// grouped->Reserve(ids).
int64_t NumParts(const TableIds& ids);
void GroupPartOf(const TableIds& ids, int64_t part, Grouped* grouped);

// Groups all occurrences at once, by the inverse and counts in CPU memory.
void GroupByInverse(const TableIds& ids, Grouped* grouped);

}  // namespace ev

#endif  // KERNELS_ENGINE_EMBEDDING_LOOKUP_GROUPED_OCCURRENCES_H_
