// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Row handles: the interface between the index (key -> handle) and the storage
// (handle -> row).

#ifndef KERNELS_ENGINE_BASE_ROW_HANDLE_H_
#define KERNELS_ENGINE_BASE_ROW_HANDLE_H_

#include <cstdint>

namespace ev {

// Number of a row of one table in CPU memory. Values >= kFirstReservedHandle
// are no row: they encode states of a key without a row in CPU memory (an
// admission counter, a row on a slower tier).
using RowHandle = uint32_t;
constexpr RowHandle kNoRow = 0xFFFFFFFFu;
constexpr RowHandle kFirstReservedHandle = 0x80000000u;

}  // namespace ev

#endif  // KERNELS_ENGINE_BASE_ROW_HANDLE_H_
