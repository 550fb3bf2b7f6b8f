// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// A table's tally in the memory of its GPU (rows/gpu_compute.h): a RowMeta for
// each row, in pieces beside those of the rows. Steps add to it
// (step_tally.h), on streams that come after each other.
//
// MEMORY: 16 bytes for each row that a piece has room for, and 256 KiB in CPU
// memory.

#ifndef KERNELS_ENGINE_ROWS_GPU_ROW_TALLY_H_
#define KERNELS_ENGINE_ROWS_GPU_ROW_TALLY_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>

#include "kernels/engine/base/row_handle.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/rows/gpu/row_pieces.h"
#include "kernels/engine/storage/dram/row_meta.h"

namespace ev {
namespace gpu {

// Thread-safe, but for Free and Clear. The device is current in every call.
class RowTally {
 public:
  // 2^rows_log2 rows to a piece. Allocates nothing on the device. Throws
  // std::bad_alloc.
  explicit RowTally(int rows_log2);

  // As of RowPieces; a row's tally is zeros at first. What Free and Clear give
  // back is forgotten.
  Status Reserve(RowHandle handle) { return pieces_.Reserve(handle); }
  void Free(size_t piece) { pieces_.Free(piece); }
  void Clear();
  int64_t bytes() const { return pieces_.bytes(); }

  // For kernels: row h's is at pieces[h >> rows_log2] + 16 * (the rest of h)
  // bytes, rows_log2 that of the rows.
  float* const* pieces() const { return pieces_.view().pieces; }

  // To be called before something is added to the tally.
  void WillHave() { has_any_.store(true); }
  bool has_any() const { return has_any_.load(); }
  // As GpuTableCompute::TakeTally. REQUIRES that the device is through with
  // what has been added. After an error some of the rows have been taken.
  Status Take(const std::function<void(RowHandle, const RowMeta&)>& take);

 private:
  Status TakeSome(RowHandle first, RowMeta* there, int64_t count,
                  const std::function<void(RowHandle, const RowMeta&)>& take);

  RowPieces pieces_;
  std::atomic<bool> has_any_{false};
  std::mutex mu_;  // of Take
  const std::unique_ptr<RowMeta[]> here_;
};

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_ROWS_GPU_ROW_TALLY_H_
