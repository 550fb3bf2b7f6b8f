// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// RowPieces: growable storage for rows in memory that kernels access: device
// memory, or pinned host memory from some piece on. Memory is allocated in
// pieces of equal size. The upper bits of a row's place are the number of its
// piece, so growing allocates one more piece and moves no row. A table of the
// pieces' addresses is in device memory.
//
// The place of a row is its handle, unless the table has RowPlaces
// (row_places.h).
//
// A piece of host memory takes the driver milliseconds (DeviceBuffer), so a
// thread prepares the next one while the rows of the last one are used.

#ifndef KERNELS_ENGINE_ROWS_GPU_ROW_PIECES_H_
#define KERNELS_ENGINE_ROWS_GPU_ROW_PIECES_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "kernels/engine/base/gpu/device_buffer.h"
#include "kernels/engine/base/row_handle.h"
#include "kernels/engine/base/status.h"

namespace ev {
namespace gpu {

struct PlaceState;  // row_places.h
struct RowRecord;   // row_places.h

// For kernels: the places of a table's rows (row_places.h). Null, and unused,
// if the place of each row is its handle.
struct PlacesView {
  uint32_t* const* places = nullptr;
  RowRecord* const* records = nullptr;
  PlaceState* state = nullptr;
  uint32_t num_on_gpu = 0;  // places below are in GPU memory
};

// For kernels. The row at a place is at
//   pieces[place >> rows_log2] + (place & (1 << rows_log2) - 1) * stride.
struct PiecesView {
  float* const* pieces = nullptr;
  int rows_log2 = 0;
  int64_t stride = 0;  // floats
  PlacesView placed;
};

struct NextPiece;

// Thread-safe, except Clear. REQUIRES: in every Reserve the same device is
// current.
class RowPieces {
 public:
  static constexpr int64_t kPieceBytes = 8 << 20;
  static constexpr size_t kNone = std::numeric_limits<size_t>::max();

  // Rows of 'stride' floats. A piece has 2^rows_log2 rows; with rows_log2 = -1,
  // as many rows as fit into kPieceBytes, at least one. are_zeros: new pieces
  // are zeroed, otherwise they are uninitialized. first_on_host: number of the
  // first piece in host memory. Allocates nothing.
  // what: the plural for errors.
  explicit RowPieces(int64_t stride, int rows_log2 = -1, bool are_zeros = false,
                     size_t first_on_host = kNone, const char* what = "rows");
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
  bool IsOnHost(size_t piece) const { return piece >= first_on_host_; }
  // Number of places in device memory.
  int64_t num_on_gpu() const {
    return first_on_host_ == kNone
               ? std::numeric_limits<int64_t>::max()
               : static_cast<int64_t>(first_on_host_) << rows_log2_;
  }
  // Returns the addresses of all pieces; null for a piece that has no memory.
  std::vector<float*> pieces() const;
  int64_t bytes() const;

  // Removes a piece and returns its memory.
  DeviceBuffer Take(size_t piece);
  // Allocates memory of the kind and size that the piece has.
  Status Allocate(size_t piece, const std::string& what,
                  DeviceBuffer* memory) const;
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
  Status AllocateNext(size_t piece, DeviceBuffer* memory);
  void PrepareNext();
  // Writes a piece's address to the table in device memory.
  Status SetAddress(size_t piece, float* address);

  const int64_t stride_;
  const int rows_log2_;
  const bool are_zeros_;
  const size_t first_on_host_;
  const char* const what_;
  mutable std::mutex mu_;
  std::vector<DeviceBuffer> pieces_;
  // Versions of the address table. The last one is current. Kernels in flight
  // may still read earlier ones, each at most half as long as the next.
  std::vector<DeviceBuffer> tables_;
  size_t table_size_ = 0;
  int64_t bytes_ = 0;
  // The next piece of host memory, which a thread prepares; may be null.
  std::shared_ptr<NextPiece> next_;
};

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_ROWS_GPU_ROW_PIECES_H_
