// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// How far apart rows lie, and how many share a slab.

#ifndef KERNELS_ENGINE_STORAGE_DRAM_ROW_LAYOUT_H_
#define KERNELS_ENGINE_STORAGE_DRAM_ROW_LAYOUT_H_

#include <cstddef>
#include <cstdint>

namespace ev {

// Bytes from one row to the next. A random row costs one memory access per
// cache line it touches, so a stride is chosen among [row bytes, 4/3 of it]
// that makes rows touch the fewest lines on average; of equals, the smallest.
//   3 floats -> 16 bytes (never straddles), 16 -> 64, 20 -> 80 (two lines
//   always), 24 -> 96, 28 -> 128 (at 112, half of the rows would touch three).
size_t RowStride(int64_t floats_per_row);

// log2 of the rows of a slab: the smallest slab of at least 2 MiB that is made
// of whole huge pages, or of at least 16 MiB, where the tail that is not a
// whole page no longer matters.
int SlabRowsLog2(size_t stride);

}  // namespace ev

#endif  // KERNELS_ENGINE_STORAGE_DRAM_ROW_LAYOUT_H_
