// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// RowPieces: growable storage for rows in device memory. Memory is allocated in
// pieces of equal size. The upper bits of a row's handle are the number of its
// piece, so growing allocates one more piece and moves no row. A table of the
// pieces' addresses is in device memory too.

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

// For kernels. The row of a handle is at
//   pieces[handle >> rows_log2] + (handle & (1 << rows_log2) - 1) * stride.
struct PiecesView {
  float* const* pieces = nullptr;
  int rows_log2 = 0;
  int64_t stride = 0;  // floats
};

// Thread-safe, except Clear. REQUIRES: in every Reserve the same device is
// current.
class RowPieces {
 public:
  static constexpr int64_t kPieceBytes = 8 << 20;

  // Rows of 'stride' floats. A piece has 2^rows_log2 rows; with rows_log2 = -1,
  // as many rows as fit into kPieceBytes, at least one. are_zeros: new pieces
  // are zeroed, otherwise they are uninitialized. Allocates nothing.
  explicit RowPieces(int64_t stride, int rows_log2 = -1,
                     bool are_zeros = false);
  RowPieces(const RowPieces&) = delete;
  RowPieces& operator=(const RowPieces&) = delete;

  bool Has(RowHandle handle) const;
  // Allocates the piece of a handle's row if it has none. ResourceExhausted:
  // the message contains the bytes needed and free.
  Status Reserve(RowHandle handle);
  // Returns a view that is valid for every handle reserved so far, until Clear.
  PiecesView view() const;

  int rows_log2() const { return rows_log2_; }
  int64_t stride() const { return stride_; }
  int64_t rows_per_piece() const { return int64_t{1} << rows_log2_; }
  int64_t piece_bytes() const { return rows_per_piece() * stride_ * 4; }
  // Returns the addresses of all pieces; null for a piece that has no memory.
  std::vector<float*> pieces() const;
  int64_t bytes() const;

  // Removes a piece and returns its memory.
  DeviceBuffer Take(size_t piece);
  // Swaps a piece's memory with *memory, whose contents become the piece's
  // rows. Allocates nothing. REQUIRES: the piece has or had memory; *memory has
  // at least piece_bytes() bytes. An error swaps nothing.
  Status Swap(size_t piece, DeviceBuffer* memory);
  // Return the address and the size of a piece's memory.
  float* address(size_t piece) const;
  int64_t allocated_bytes(size_t piece) const;

  // Frees one piece, or all.
  void Free(size_t piece);
  void Clear();

 private:
  // REQUIRE mu_.
  bool HasPiece(size_t piece) const {
    return piece < pieces_.size() && pieces_[piece].data() != nullptr;
  }
  Status Grow(size_t piece);
  // Writes a piece's address to the table in device memory.
  Status SetAddress(size_t piece, float* address);

  const int64_t stride_;
  const int rows_log2_;
  const bool are_zeros_;
  mutable std::mutex mu_;
  std::vector<DeviceBuffer> pieces_;
  // Versions of the address table. The last one is current. Kernels in flight
  // may still read earlier ones, each at most half as long as the next.
  std::vector<DeviceBuffer> tables_;
  size_t table_size_ = 0;
  int64_t bytes_ = 0;
};

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_ROWS_GPU_ROW_PIECES_H_
