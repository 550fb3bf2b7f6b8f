// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The one place that knows every home of rows. A new home is a folder beside
// dram/, its value of RowStorage and a line in make_row_home.cc.

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
  std::string name;  // of the table: its files on an SSD are told apart by it
  int64_t dim = 0;   // >= 1
  // [R, dim]. Rows that no key is made of may be among them. They outlive the
  // home.
  Span<const float> default_rows;
  bool with_meta = false;  // the handles have a RowMeta each
  // Of kHbm: a tally is kept (gpu_compute.h). Other homes keep none.
  bool keeps_tally = false;
};

// Where the rows of one table are, and what names them.
struct TableRows {
  // Gives out handles and keeps what rows count about themselves. In CPU
  // memory it is a RowStore, whose rows are the home's.
  std::unique_ptr<RowHandles> handles;
  std::unique_ptr<RowHome> home;  // for those handles; destroyed before them
  RowStorage storage = RowStorage::kDram;  // never kAuto
  // With kAuto in CPU memory: why not in a GPU's. Else empty.
  std::string why_not_on_gpu;
};

// Errors as of RowStorageOptions, and ResourceExhausted; they do not name the
// table. kAuto: rows are in a GPU's memory unless that is a FailedPrecondition,
// else in the CPU's. After an error *rows is as
// it was. Throws std::bad_alloc.
Status MakeRowHome(const RowHomeOptions& options, TableRows* rows);

}  // namespace ev

#endif  // KERNELS_ENGINE_ROWS_MAKE_ROW_HOME_H_
