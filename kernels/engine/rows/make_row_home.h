// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Creates the home of a table's rows, of any kind. To add a kind, create a
// folder beside dram/, and add its value and name to row_storage.h, its case to
// make_row_home.cc, its target to BUILD, and its properties to storages.py.

#ifndef KERNELS_ENGINE_ROWS_MAKE_ROW_HOME_H_
#define KERNELS_ENGINE_ROWS_MAKE_ROW_HOME_H_

#include <memory>
#include <string>

#include "kernels/engine/base/status.h"
#include "kernels/engine/rows/row_home.h"
#include "kernels/engine/rows/row_storage.h"
#include "kernels/engine/storage/dram/row_handles.h"

namespace ev {

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

// FailedPrecondition: kHbm, kHbmDram or kHbmDramSsd without GPU code, driver or
// GPU; kDramSsd or kHbmDramSsd with a directory that cannot be used; narrow
// values in GPU memory. InvalidArgument: memory_bytes is too small.
// ResourceExhausted. Errors do not name the table. kAuto uses GPU
// memory unless that is a FailedPrecondition, and CPU memory then. After an
// error *rows is unchanged. Throws std::bad_alloc.
Status MakeRowHome(const RowHomeOptions& options, TableRows* rows);

}  // namespace ev

#endif  // KERNELS_ENGINE_ROWS_MAKE_ROW_HOME_H_
