// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// RowTally: a table's tally (rows/gpu_compute.h) in GPU memory. It has a
// RowMeta for each row, in RowPieces of its own. Steps add to it
// (rows/gpu_step/step_tally.h), on streams whose work is ordered.
//
// MEMORY: 16 bytes per handle, in pieces of 1 MiB, which stay until the table
// is emptied because handles are reused; and 64 KiB of host memory.

#ifndef KERNELS_ENGINE_ROWS_GPU_ROW_TALLY_H_
#define KERNELS_ENGINE_ROWS_GPU_ROW_TALLY_H_

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
constexpr int kTallyRowsLog2 = 16;

// Thread-safe, except Clear. REQUIRES: the table's device is current in every
// call.
class RowTally {
 public:
  // Allocates nothing on the device. Throws std::bad_alloc.
  RowTally();

  // Like the methods of RowPieces. A row's tally starts as zeros.
  bool Has(RowHandle handle) const { return pieces_.Has(handle); }
  Status Reserve(RowHandle handle) { return pieces_.Reserve(handle); }
  void Clear();  // removes all tallies
  int64_t bytes() const { return pieces_.bytes(); }

  // For kernels. The tally of row h is the (h mod 2^kTallyRowsLog2)-th RowMeta
  // at pieces[h >> kTallyRowsLog2]. Valid for the rows that are reserved when
  // this is called.
  float* const* pieces() const { return pieces_.view().pieces; }

  // Call before a kernel adds to the tally.
  void WillHave() { has_any_.store(true); }
  bool has_any() const { return has_any_.load(); }
  // Like GpuTableCompute::TakeTally. REQUIRES: the device has finished all
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

#endif  // KERNELS_ENGINE_ROWS_GPU_ROW_TALLY_H_
