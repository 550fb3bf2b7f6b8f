// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef KERNELS_ENGINE_BASE_ROW_META_H_
#define KERNELS_ENGINE_BASE_ROW_META_H_

#include <cstdint>

namespace ev {

// What a row counts about itself, 16 bytes, kept with the table's handles in
// CPU memory, only when the table records it. A GPU's tally
// (rows/gpu_compute.h) has the same form.
struct RowMeta {
  // Global step of the last update + 1; 0: none yet. Steps may be times, in
  // milliseconds or finer.
  uint64_t version_plus1;
  uint32_t frequency;  // occurrences in training batches; saturates
  // Number of a call of the table: the one that updated the row last, or, if
  // the table's cache strategy keeps the first, the one that gave the row to
  // the table; 0: none has. It tells calls apart whose versions are equal, and
  // wraps.
  uint32_t call;

  int64_t version() const { return static_cast<int64_t>(version_plus1 - 1); }
  // What version_plus1 is of a version; -1 and below: none.
  static uint64_t PlusOne(int64_t version) {
    return version < 0 ? 0 : static_cast<uint64_t>(version) + 1;
  }
};

}  // namespace ev

#endif  // KERNELS_ENGINE_BASE_ROW_META_H_
