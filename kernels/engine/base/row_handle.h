// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The seam between the index (key -> handle) and the storage (handle -> row).

#ifndef KERNELS_ENGINE_BASE_ROW_HANDLE_H_
#define KERNELS_ENGINE_BASE_ROW_HANDLE_H_

#include <cstdint>

namespace ev {

// Names a row of one table in CPU memory. Values >= kFirstReservedHandle name
// no row: the top half is kept for states of a key that has no row (an
// admission counter, a row on a slower tier).
using RowHandle = uint32_t;
constexpr RowHandle kNoRow = 0xFFFFFFFFu;
constexpr RowHandle kFirstReservedHandle = 0x80000000u;

}  // namespace ev

#endif  // KERNELS_ENGINE_BASE_ROW_HANDLE_H_
