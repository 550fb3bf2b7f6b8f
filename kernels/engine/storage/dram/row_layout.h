// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Distance between rows, and number of rows per slab.

#ifndef KERNELS_ENGINE_STORAGE_DRAM_ROW_LAYOUT_H_
#define KERNELS_ENGINE_STORAGE_DRAM_ROW_LAYOUT_H_

#include <cstddef>
#include <cstdint>

namespace ev {

// Returns the bytes from one row to the next. A random row costs one memory
// access per cache line it touches. So the stride in [row bytes, 4/3 of it] is
// chosen that makes rows touch the fewest lines on average; the smallest of
// equally good ones.
//   3 floats -> 16 bytes (never straddles), 16 -> 64, 20 -> 80 (two lines
//   always), 24 -> 96, 28 -> 128 (at 112, half of the rows would touch three).
size_t RowStride(int64_t floats_per_row);

// Returns log2 of the number of rows per slab. Chooses the smallest slab of at
// least 2 MiB that consists of whole huge pages, or is at least 16 MiB, where
// the incomplete last page no longer matters.
int SlabRowsLog2(size_t stride);

}  // namespace ev

#endif  // KERNELS_ENGINE_STORAGE_DRAM_ROW_LAYOUT_H_
