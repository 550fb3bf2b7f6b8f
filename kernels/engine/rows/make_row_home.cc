// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/rows/make_row_home.h"

#include <string>
#include <utility>

#include "kernels/engine/rows/dram/dram_rows.h"
#include "kernels/engine/rows/gpu_row_home.h"
#include "kernels/engine/rows/hbm_dram_ssd/hbm_dram_ssd_rows.h"
#include "kernels/engine/rows/ssd/ssd_rows.h"
#include "kernels/engine/storage/dram/row_store.h"

namespace ev {
namespace {

constexpr int64_t kMinGpuRows = 64;

// InvalidArgument: memory_bytes is too small for rows in GPU memory and another
// one.
Status CheckGpuBudget(const RowHomeOptions& options) {
  const int64_t least =
      kMinGpuRows * options.dim * static_cast<int64_t>(sizeof(float));
  if (options.memory_bytes >= least) return Status::OK();
  return InvalidArgument("rows in GPU and CPU memory need at least " +
                         std::to_string(least) + " bytes in GPU memory, " +
                         std::to_string(kMinGpuRows) + " rows of dim " +
                         std::to_string(options.dim) + ", got " +
                         std::to_string(options.memory_bytes));
}

Status MakeDram(const RowHomeOptions& options, TableRows* made) {
  const RowShape shape(options.dim, {}, 1, options.value_type);
  std::unique_ptr<RowStore> store(
      new RowStore(shape.floats(), options.with_meta));
  made->home.reset(new DramRows(shape, options.default_rows, store.get()));
  made->handles = std::move(store);
  made->storage = RowStorage::kDram;
  return Status::OK();
}

Status MakeHbm(const RowHomeOptions& options, TableRows* made) {
  GpuRowHomeOptions gpu;
  gpu.dim = options.dim;
  gpu.default_rows = options.default_rows;
  gpu.value_type = options.value_type;
  gpu.keeps_counters = options.keeps_counters;
  if (options.storage == RowStorage::kHbmDram) {
    EV_RETURN_IF_ERROR(CheckGpuBudget(options));
    gpu.gpu_bytes = options.memory_bytes;
    gpu.tier_strategy = options.tier_strategy;
  }
  std::unique_ptr<GpuRowHome> home;
  EV_RETURN_IF_ERROR(MakeGpuRowHome(gpu, &home));
  made->home = std::move(home);
  if (options.storage != RowStorage::kHbmDram) made->storage = RowStorage::kHbm;
  return Status::OK();
}

Status MakeAuto(const RowHomeOptions& options, TableRows* made) {
  const Status status = MakeHbm(options, made);
  if (status.code() != StatusCode::kFailedPrecondition) return status;
  made->why_not_on_gpu = status.message();
  return MakeDram(options, made);
}

Status Make(const RowHomeOptions& options, TableRows* made) {
  if (options.storage == RowStorage::kDram) return MakeDram(options, made);
  if (options.storage == RowStorage::kAuto) return MakeAuto(options, made);
  switch (options.storage) {
    case RowStorage::kDram:
    case RowStorage::kAuto:
      break;
    case RowStorage::kHbm:
    case RowStorage::kHbmDram:
      return MakeHbm(options, made);
    case RowStorage::kDramSsd:
      return MakeSsdRows(options, &made->home);
    case RowStorage::kHbmDramSsd:
      EV_RETURN_IF_ERROR(CheckGpuBudget(options));
      return MakeHbmDramSsdRows(options, &made->home);
  }
  return InvalidArgument("unknown storage of rows");
}

}  // namespace

Status MakeRowHome(const RowHomeOptions& options, TableRows* rows) {
  TableRows made;
  made.storage = options.storage;
  EV_RETURN_IF_ERROR(Make(options, &made));
  if (made.handles == nullptr) {
    made.handles.reset(new RowHandles(options.with_meta));
  }
  *rows = std::move(made);
  return Status::OK();
}

}  // namespace ev
