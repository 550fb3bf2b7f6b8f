// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Rows in device memory that never move while others are added: a row's piece
// is the upper bits of its handle, so growing takes one more piece and copies
// nothing. The pieces' addresses are a table in device memory.

#ifndef KERNELS_ENGINE_ROWS_GPU_ROW_PIECES_H_
#define KERNELS_ENGINE_ROWS_GPU_ROW_PIECES_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "kernels/engine/base/gpu/device_buffer.h"
#include "kernels/engine/base/row_handle.h"
#include "kernels/engine/base/status.h"

namespace ev {
namespace gpu {

// For kernels: the row of a handle is at
//   pieces[handle >> rows_log2] + (handle & (1 << rows_log2) - 1) * stride.
struct PiecesView {
  float* const* pieces = nullptr;
  int rows_log2 = 0;
  int64_t stride = 0;  // floats
};

// Thread-safe, but for Clear. The device that is current in the first Reserve
// is to be current in all.
class RowPieces {
 public:
  static constexpr int64_t kPieceBytes = 8 << 20;

  // Rows of that many floats; as many to a piece as fit kPieceBytes, at least
  // one, unless rows_log2 says how many. are_zeros: a new piece is zeroed.
  // Allocates nothing.
  explicit RowPieces(int64_t stride, int rows_log2 = -1,
                     bool are_zeros = false);
  RowPieces(const RowPieces&) = delete;
  RowPieces& operator=(const RowPieces&) = delete;

  bool Has(RowHandle handle) const;
  // Has memory for the row of that handle: zeros, if they are to be, or not
  // initialised. ResourceExhausted names what is needed and free.
  Status Reserve(RowHandle handle);
  // Good for every handle that was reserved before, until Clear.
  PiecesView view() const;

  int rows_log2() const { return rows_log2_; }
  int64_t stride() const { return stride_; }
  int64_t rows_per_piece() const { return int64_t{1} << rows_log2_; }
  int64_t piece_bytes() const { return rows_per_piece() * stride_ * 4; }
  // Null where nothing was reserved.
  std::vector<float*> pieces() const;
  int64_t bytes() const;

  // Gives one piece's memory back, or all.
  void Free(size_t piece);
  void Clear();

 private:
  // REQUIRE mu_.
  bool HasPiece(size_t piece) const {
    return piece < pieces_.size() && pieces_[piece].data() != nullptr;
  }
  Status Grow(size_t piece);

  const int64_t stride_;
  const int rows_log2_;
  const bool are_zeros_;
  mutable std::mutex mu_;
  std::vector<DeviceBuffer> pieces_;
  // The last is in use; kernels under way may read an earlier one, each half as
  // long as the next.
  std::vector<DeviceBuffer> tables_;
  size_t table_size_ = 0;
  int64_t bytes_ = 0;
};

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_ROWS_GPU_ROW_PIECES_H_
