// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef KERNELS_ENGINE_BASE_ROW_META_H_
#define KERNELS_ENGINE_BASE_ROW_META_H_

#include <cstdint>

namespace ev {

// Counters of a row, 16 bytes. They are kept beside the table's handles in CPU
// memory, and only if the table records them. A GPU's pending counters
// (rows/gpu_compute.h) has the same layout.
struct RowMeta {
  // Global step of the last update + 1; 0: no update yet. Steps may be
  // timestamps, in milliseconds or finer.
  uint64_t version_plus1;
  uint32_t frequency;  // occurrences in training batches; saturates
  // Number of a call on the table: the one that updated the row last or, if the
  // table's cache strategy keeps the first, the one that brought the row into
  // the table. 0: none. It distinguishes calls with equal versions, and wraps
  // around.
  uint32_t call;

  int64_t version() const { return static_cast<int64_t>(version_plus1 - 1); }
  // Returns version_plus1 for a version; 0 for versions below 0, which mean
  // none.
  static uint64_t PlusOne(int64_t version) {
    return version < 0 ? 0 : static_cast<uint64_t>(version) + 1;
  }
};

}  // namespace ev

#endif  // KERNELS_ENGINE_BASE_ROW_META_H_
