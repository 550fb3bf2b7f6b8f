// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// A home whose rows are in memory that this process's GPU accesses: its own, or
// its own and, above a budget, pinned host memory. Also the registry of its
// implementation, which is in the GPU code.
//
// The home with rows also on an SSD (hbm_dram_ssd/hbm_dram_ssd_rows.h) keeps
// its most used rows in such a home.

#ifndef KERNELS_ENGINE_ROWS_GPU_ROW_HOME_H_
#define KERNELS_ENGINE_ROWS_GPU_ROW_HOME_H_

#include <cstdint>
#include <memory>

#include "kernels/engine/base/float_type.h"
#include "kernels/engine/base/row_handle.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/policy/cache_strategy.h"
#include "kernels/engine/rows/gpu_compute.h"
#include "kernels/engine/rows/row_home.h"

namespace ev {

// NEW ROWS are queued: NewRow only reserves memory and queues the handle; Flush
// writes all queued rows at once. Every call that reads or writes rows flushes
// first, so no call sees a row that is still queued.
class GpuRowHome : public RowHome, public GpuTableCompute {
 public:
  GpuRowCompute* gpu() final { return this; }
  GpuTableCompute* gpu_table() final { return this; }
  GpuTableCompute* step_rows() final { return this; }
  const RowHomeCosts& costs() const final;
  // Sets *held to false: the CPU cannot address GPU memory.
  Status Hold(Span<const RowHandle> handles, const float** rows,
              std::unique_ptr<RowHold>* hold, bool* held) final;

  virtual Status Flush() = 0;
  // With RowTiers: sets worth[i] to how much the row at handle first + i
  // deserves to be in GPU memory; 0: no lookup or update has used it lately.
  // Unspecified without a row.
  virtual Status ReadWorth(RowHandle first, Span<uint32_t> worth) = 0;
};

struct GpuRowHomeOptions {
  int64_t dim = 0;
  // [R, dim], R below 2^31; copied. It may include rows that no key uses.
  Span<const float> default_rows;
  // With narrow values a row has 8 bytes more, for stochastic rounding.
  FloatType value_type = FloatType::kFloat32;
  bool keeps_counters = false;  // gpu_compute.h; costs 16 bytes per row
  // Not 0: rows beyond this number of bytes of GPU memory are in host memory,
  // and the home has RowTiers. With slots at least 64 rows are in GPU memory.
  int64_t gpu_bytes = 0;
  // Decides which rows are in GPU memory.
  CacheStrategy tier_strategy = CacheStrategy::kLfu;
};

using GpuRowHomeFactory = Status (*)(const GpuRowHomeOptions& options,
                                     std::unique_ptr<GpuRowHome>* home);

// Registers the implementation. Called by a static initializer of GPU code that
// is linked into the program, or with the factory of a CUDA library that was
// loaded. Returns true.
bool RegisterGpuRowHome(GpuRowHomeFactory factory);
// Returns null if no factory is registered. Does not load the CUDA library.
GpuRowHomeFactory RegisteredGpuRowHome();

// Creates a home on this process's GPU: the only GPU that it sees, or the GPU
// of its local rank. Loads the CUDA library if no factory is registered.
// FailedPrecondition: this build has no GPU code, there is no driver or no GPU,
// or the code was not compiled for this GPU. Internal: the CUDA library cannot
// be loaded. ResourceExhausted: not enough memory.
Status MakeGpuRowHome(const GpuRowHomeOptions& options,
                      std::unique_ptr<GpuRowHome>* home);

}  // namespace ev

#endif  // KERNELS_ENGINE_ROWS_GPU_ROW_HOME_H_
