// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// RowCounters: a table's pending counters (rows/gpu_compute.h) in GPU memory.
// It has a RowMeta for each row, in RowPieces of its own. Steps add to it
// (rows/gpu_step/step_counters.h), on streams whose work is ordered.
//
// MEMORY: 16 bytes per handle, in pieces of 1 MiB, which stay until the table
// is emptied because handles are reused; and 64 KiB of host memory.

#ifndef KERNELS_ENGINE_ROWS_GPU_ROW_COUNTERS_H_
#define KERNELS_ENGINE_ROWS_GPU_ROW_COUNTERS_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>

#include "kernels/engine/base/row_handle.h"
#include "kernels/engine/base/row_meta.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/rows/gpu/row_pieces.h"

namespace ev {
namespace gpu {

// Log2 of the rows per piece.
constexpr int kCounterRowsLog2 = 16;

// Thread-safe, except Clear. REQUIRES: the table's device is current in every
// call.
class RowCounters {
 public:
  // Allocates nothing on the device. Throws std::bad_alloc.
  RowCounters();

  // Like the methods of RowPieces. A row's pending counters start as zeros.
  bool Has(RowHandle handle) const { return pieces_.Has(handle); }
  Status Reserve(RowHandle handle) { return pieces_.Reserve(handle); }
  void Clear();  // removes all pending counters
  int64_t bytes() const { return pieces_.bytes(); }

  // For kernels. The pending counters of row h are the (h mod
  // 2^kCounterRowsLog2)-th RowMeta at pieces[h >> kCounterRowsLog2]. Valid for
  // the rows that are reserved when this is called.
  float* const* pieces() const { return pieces_.view().pieces; }

  // Call before a kernel adds to the pending counters.
  void WillHave() { has_any_.store(true); }
  bool has_any() const { return has_any_.load(); }
  // Like GpuTableCompute::TakeCounters. REQUIRES: the device has finished all
  // additions.
  Status Take(const std::function<void(RowHandle, const RowMeta&)>& take);

 private:
  Status TakeSome(RowHandle first, RowMeta* device_rows,
                  const std::function<void(RowHandle, const RowMeta&)>& take);

  RowPieces pieces_;
  std::atomic<bool> has_any_{false};
  std::mutex mu_;  // held by Take
  const std::unique_ptr<RowMeta[]> host_rows_;
};

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_ROWS_GPU_ROW_COUNTERS_H_
