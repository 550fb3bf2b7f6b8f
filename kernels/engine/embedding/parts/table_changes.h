// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Records what changed in a table, and when, for incremental checkpoints.
//
// Time is counted in epochs. A cut ends one and begins the next; a saver
// remembers the cut of its last save and exports what changed since. A changed
// row is stamped with its epoch, 4 bytes per row, which the update writes; rows
// in a device's pending counters are stamped before the epoch ends. Erased keys
// go to a log. An export consumes nothing: after a failed save, the next one
// exports from the same cut again. The log is shortened by the next export,
// whose cut implies that earlier changes have been saved.
//
// If the record does not reach back to a cut, the whole table counts as
// changed. That is never wrong, only long. The reasons may be that the cut is
// from before the recording began or the table was emptied, that the log grew
// longer than the table, or that there was no memory for stamps.

#ifndef KERNELS_ENGINE_EMBEDDING_PARTS_TABLE_CHANGES_H_
#define KERNELS_ENGINE_EMBEDDING_PARTS_TABLE_CHANGES_H_

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "kernels/engine/base/row_handle.h"
#include "kernels/engine/base/span.h"

namespace ev {

// Stores an epoch per handle, 0 until it is set. Any number of threads may call
// Set for distinct handles. Memory is allocated in blocks of 256 KiB, for
// ranges of handles in use.
class HandleEpochs {
 public:
  HandleEpochs();
  ~HandleEpochs();
  HandleEpochs(const HandleEpochs&) = delete;
  HandleEpochs& operator=(const HandleEpochs&) = delete;

  // Returns false if there is no memory.
  bool Set(RowHandle handle, uint32_t epoch) {
    std::atomic<uint32_t>* piece =
        pieces_[handle >> kPieceLog2].load(std::memory_order_acquire);
    if (piece == nullptr) {
      piece = MakePiece(handle >> kPieceLog2);
      if (piece == nullptr) return false;
    }
    piece[handle & kPieceMask].store(epoch, std::memory_order_relaxed);
    return true;
  }
  uint32_t Get(RowHandle handle) const {
    const std::atomic<uint32_t>* piece =
        pieces_[handle >> kPieceLog2].load(std::memory_order_acquire);
    return piece == nullptr
               ? 0
               : piece[handle & kPieceMask].load(std::memory_order_relaxed);
  }
  // Prefetches the memory of a handle that will be set soon.
  void Prefetch(RowHandle handle) const {
    const std::atomic<uint32_t>* piece =
        pieces_[handle >> kPieceLog2].load(std::memory_order_relaxed);
    if (piece != nullptr) __builtin_prefetch(piece + (handle & kPieceMask), 1);
  }
  // REQUIRES: no other call is running.
  void Clear();
  int64_t bytes() const;

 private:
  static constexpr int kPieceLog2 = 16;
  static constexpr uint32_t kPieceMask = (1u << kPieceLog2) - 1;
  static constexpr size_t kPieces = kFirstReservedHandle >> kPieceLog2;

  std::atomic<uint32_t>* MakePiece(size_t index);

  // 256 KiB of address space, of which only touched pages take memory.
  std::atomic<std::atomic<uint32_t>*>* const pieces_;
  std::atomic<int64_t> num_pieces_{0};
};

// Synchronized by the table lock. Mark and MarkCounter are called by any
// number of updating threads, or by one that has shut updates out; Erased and
// Emptied by a thread that is alone; bytes by any thread under the table lock.
// The others are called by one thread at a time that is alone or keeps the
// table frozen.
class TableChanges {
 public:
  void Mark(RowHandle handle) {
    if (!rows_.Set(handle, epoch_)) lost_.store(true);
  }
  void PrefetchMark(RowHandle handle) const { rows_.Prefetch(handle); }
  // Marks the admission filter's counters, which have handles of their own.
  void MarkCounter(RowHandle handle) {
    if (!counters_.Set(handle, epoch_)) lost_.store(true);
  }

  // Records keys that have lost their row or counter. rows_left: rows of the
  // table afterwards.
  void Erased(Span<const int64_t> keys, int64_t rows_left);
  // Records that the table has been emptied.
  void Emptied();

  // The current epoch.
  int64_t epoch() const { return epoch_; }
  // Ends the current epoch and returns its number, at least 1.
  int64_t Cut();
  // Returns whether the record does not reach back to a cut.
  bool NeedsEverything(int64_t since) const;
  // REQUIRES !NeedsEverything(since).
  bool RowChanged(RowHandle handle, int64_t since) const {
    return rows_.Get(handle) > since;
  }
  bool CounterChanged(RowHandle handle, int64_t since) const {
    return counters_.Get(handle) > since;
  }
  // Returns the keys that were erased since a cut, each once, even if they were
  // inserted again.
  std::vector<int64_t> ErasedSince(int64_t since) const;
  // Drops the record of what changed before 'since'.
  void Forget(int64_t since);

  int64_t bytes() const;

 private:
  struct Erasure {
    uint32_t epoch;
    int64_t key;
  };
  void LoseAll();

  uint32_t epoch_ = 1;
  // The oldest cut that the record reaches back to.
  int64_t first_cut_ = 1;
  std::atomic<bool> lost_{
      false};  // a change since the last cut was not recorded
  HandleEpochs rows_, counters_;
  mutable std::mutex mu_;        // guards erased_ for bytes()
  std::vector<Erasure> erased_;  // ascending epochs
};

}  // namespace ev

#endif  // KERNELS_ENGINE_EMBEDDING_PARTS_TABLE_CHANGES_H_
