// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Two marks per row handle, one bit each. Memory is allocated in blocks of 64
// KiB, only for ranges of handles in which one has a mark.

#ifndef KERNELS_ENGINE_EMBEDDING_PARTS_HANDLE_MARKS_H_
#define KERNELS_ENGINE_EMBEDDING_PARTS_HANDLE_MARKS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "kernels/engine/base/row_handle.h"

namespace ev {

// Thread-safe. A thread that sees a mark also sees everything that its setter
// wrote before.
class HandleMarks {
 public:
  enum Mark : unsigned { kFirst = 1, kSecond = 2 };

  // Takes 64 KiB of zeroed memory. Throws std::bad_alloc.
  HandleMarks();
  ~HandleMarks();
  HandleMarks(const HandleMarks&) = delete;
  HandleMarks& operator=(const HandleMarks&) = delete;

  // Sets a mark. Returns false if there is no memory.
  bool Set(RowHandle handle, Mark mark) {
    std::atomic<uint64_t>* piece =
        pieces_[handle >> kPieceLog2].load(std::memory_order_acquire);
    if (piece == nullptr) {
      piece = MakePiece(handle >> kPieceLog2);
      if (piece == nullptr) return false;
    }
    piece[WordOf(handle)].fetch_or(uint64_t{mark} << ShiftOf(handle),
                                   std::memory_order_release);
    return true;
  }
  // Returns the handle's marks, or'ed.
  unsigned Get(RowHandle handle) const {
    const std::atomic<uint64_t>* piece =
        pieces_[handle >> kPieceLog2].load(std::memory_order_acquire);
    if (piece == nullptr) return 0;
    return static_cast<unsigned>(
        piece[WordOf(handle)].load(std::memory_order_acquire) >>
            ShiftOf(handle) &
        3);
  }
  bool Has(RowHandle handle, Mark mark) const {
    return (Get(handle) & mark) != 0;
  }

 private:
  static constexpr int kPieceLog2 = 18;  // handles
  static constexpr int kPerWordLog2 = 5;
  static constexpr size_t kPieceWords = size_t{1}
                                        << (kPieceLog2 - kPerWordLog2);
  static constexpr size_t kPieces = (kFirstReservedHandle >> kPieceLog2) + 1;

  static size_t WordOf(RowHandle handle) {
    return (handle >> kPerWordLog2) & (kPieceWords - 1);
  }
  static int ShiftOf(RowHandle handle) {
    return 2 * static_cast<int>(handle & ((1u << kPerWordLog2) - 1));
  }
  std::atomic<uint64_t>* MakePiece(size_t index);

  std::atomic<std::atomic<uint64_t>*>* const pieces_;
};

}  // namespace ev

#endif  // KERNELS_ENGINE_EMBEDDING_PARTS_HANDLE_MARKS_H_
