// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Creates the home of a table's rows, of any kind. To add a kind, create a
// folder beside dram/, a value of RowStorage and a line in make_row_home.cc.

#ifndef KERNELS_ENGINE_ROWS_MAKE_ROW_HOME_H_
#define KERNELS_ENGINE_ROWS_MAKE_ROW_HOME_H_

#include <cstdint>
#include <memory>
#include <string>

#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/rows/row_home.h"
#include "kernels/engine/rows/row_storage.h"
#include "kernels/engine/storage/dram/row_handles.h"

namespace ev {

struct RowHomeOptions : RowStorageOptions {
  std::string name;  // of the table; distinguishes its files on an SSD
  int64_t dim = 0;   // >= 1
  // [R, dim]; may include rows that no key uses. Must outlive the home.
  Span<const float> default_rows;
  bool with_meta = false;  // whether each handle has a RowMeta
  // For kHbm: whether to keep a tally (gpu_compute.h). Ignored by other homes.
  bool keeps_tally = false;
};

// The rows of one table and their handles.
struct TableRows {
  // Allocates handles and keeps each row's RowMeta. For CPU memory it is a
  // RowStore, which also holds the home's rows.
  std::unique_ptr<RowHandles> handles;
  std::unique_ptr<RowHome> home;  // for those handles; destroyed before them
  RowStorage storage = RowStorage::kDram;  // never kAuto
  // With kAuto in CPU memory: the reason for not using a GPU. Else empty.
  std::string why_not_on_gpu;
};

// Returns errors as in RowStorageOptions, and ResourceExhausted; they do not
// name the table. kAuto uses GPU memory unless that is a FailedPrecondition,
// and CPU memory then. After an error *rows is unchanged. Throws
// std::bad_alloc.
Status MakeRowHome(const RowHomeOptions& options, TableRows* rows);

}  // namespace ev

#endif  // KERNELS_ENGINE_ROWS_MAKE_ROW_HOME_H_
