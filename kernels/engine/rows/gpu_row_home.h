// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The home whose rows are all in the memory of this process's GPU, as the
// GPU's code implements it. A program that links that code has such homes.
//
// Beside what every home does, a GPU's home moves whole rows and makes old rows
// new again: the home with two memories (hbm_dram/device_cache.h) keeps the
// rows of many handles in the few rows of a GPU's home.

#ifndef KERNELS_ENGINE_ROWS_GPU_ROW_HOME_H_
#define KERNELS_ENGINE_ROWS_GPU_ROW_HOME_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "kernels/engine/base/row_handle.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/rows/gpu_compute.h"
#include "kernels/engine/rows/row_home.h"

namespace ev {

// NEW ROWS are queued: NewRow only makes room and remembers the handle, and
// Flush writes all that are queued at once. Every call that touches rows
// flushes first, so a queued row is never seen unwritten.
class GpuRowHome : public RowHome, public GpuTableCompute {
 public:
  GpuRowCompute* gpu() final { return this; }
  GpuTableCompute* gpu_table() final { return this; }
  const RowHomeCosts& costs() const final;
  // A GPU's memory cannot be addressed: *held is false.
  Status Hold(Span<const RowHandle> handles, const float** rows,
              std::unique_ptr<RowHold>* hold, bool* held) final;

  virtual Status Flush() = 0;
  // The row that is there becomes what NewRow makes, and is queued as that is;
  // takes no memory. Not twice for one handle before a Flush.
  virtual Status RenewRow(RowHandle handle, int64_t default_row) = 0;

  // Whole rows, value and slots one after the other: stretch by stretch, in
  // order, fill makes those of handles [begin, begin + n) where the device
  // takes them from, and take finds them where it puts them, [n, floats of a
  // row], while it is busy with the next or the last stretch. Handles are rows;
  // in WriteWhole each named once.
  using FillRows = std::function<void(size_t begin, size_t n, float* rows)>;
  using TakeRows =
      std::function<void(size_t begin, size_t n, const float* rows)>;
  virtual Status WriteWhole(Span<const RowHandle> handles,
                            const FillRows& fill) = 0;
  virtual Status ReadWhole(Span<const RowHandle> handles,
                           const TakeRows& take) = 0;
};

struct GpuRowHomeOptions {
  int64_t dim = 0;
  // [R, dim], R below 2^31; copied. Rows that no key is made of may be among
  // them.
  Span<const float> default_rows;
  bool keeps_tally = false;  // gpu_compute.h; 16 bytes more for each row
};

using GpuRowHomeFactory = Status (*)(const GpuRowHomeOptions& options,
                                     std::unique_ptr<GpuRowHome>* home);

// Called by a static initializer of the GPU code that a program links, or with
// the factory of a CUDA library that was loaded. Returns true.
bool RegisterGpuRowHome(GpuRowHomeFactory factory);
// Null: none is registered. Loads no CUDA library.
GpuRowHomeFactory RegisteredGpuRowHome();

// Rows on this process's GPU: the only one it sees, or the one of its local
// rank. Loads the CUDA library if no factory is registered.
// FailedPrecondition: this build has no GPU code, there is no driver or no GPU,
// or one that the code was not compiled for; Internal: the CUDA library cannot
// be loaded; ResourceExhausted.
Status MakeGpuRowHome(const GpuRowHomeOptions& options,
                      std::unique_ptr<GpuRowHome>* home);

}  // namespace ev

#endif  // KERNELS_ENGINE_ROWS_GPU_ROW_HOME_H_
