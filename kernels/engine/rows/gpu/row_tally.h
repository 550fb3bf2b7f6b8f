// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// A table's tally in the memory of its GPU (rows/gpu_compute.h): a RowMeta for
// each row, in pieces of their own. Steps add to it (step_tally.h), on streams
// that come after each other.
//
// MEMORY: 16 bytes for each handle, in pieces of 1 MiB that stay until the
// table is emptied, since handles are given out again; and 64 KiB in CPU
// memory.

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

// Log2 of the rows of a piece.
constexpr int kTallyRowsLog2 = 16;

// Thread-safe, but for Clear. The device is current in every call.
class RowTally {
 public:
  // Allocates nothing on the device. Throws std::bad_alloc.
  RowTally();

  // As of RowPieces; a row's tally is zeros at first.
  bool Has(RowHandle handle) const { return pieces_.Has(handle); }
  Status Reserve(RowHandle handle) { return pieces_.Reserve(handle); }
  void Clear();  // forgets all
  int64_t bytes() const { return pieces_.bytes(); }

  // For kernels: that of row h is the (h modulo 2^kTallyRowsLog2)-th RowMeta at
  // pieces[h >> kTallyRowsLog2]. Good for the rows that have room by now.
  float* const* pieces() const { return pieces_.view().pieces; }

  // To be called before something is added to the tally.
  void WillHave() { has_any_.store(true); }
  bool has_any() const { return has_any_.load(); }
  // As GpuTableCompute::TakeTally. REQUIRES that the device is through with
  // what has been added.
  Status Take(const std::function<void(RowHandle, const RowMeta&)>& take);

 private:
  Status TakeSome(RowHandle first, RowMeta* there,
                  const std::function<void(RowHandle, const RowMeta&)>& take);

  RowPieces pieces_;
  std::atomic<bool> has_any_{false};
  std::mutex mu_;  // of Take
  const std::unique_ptr<RowMeta[]> here_;
};

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_ROWS_GPU_ROW_TALLY_H_
