// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// What changed in a table, and since when: the record behind incremental
// checkpoints.
//
// Time is counted in epochs. A cut ends one and begins the next; a saver
// remembers the cut it saved at and asks for what changed since. A changed row
// is stamped with the epoch it changed in (what a device has tallied is stamped
// before the epoch ends), four bytes per row that an update writes beside the
// row; erased keys go to a log. So nothing is taken away by looking: a save
// that fails has lost nothing, the next one asks since the same cut again. The
// log is shortened by the next question, which tells that what was before is
// safe.
//
// Questions that the record cannot answer (from before it began or the table
// was emptied; the log grew longer than the table; no memory for stamps) are
// answered by "everything": the table as a whole is the change. That is never
// wrong, only long.

#ifndef KERNELS_ENGINE_EMBEDDING_PARTS_TABLE_CHANGES_H_
#define KERNELS_ENGINE_EMBEDDING_PARTS_TABLE_CHANGES_H_

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "kernels/engine/base/row_handle.h"
#include "kernels/engine/base/span.h"

namespace ev {

// An epoch for each handle, 0 until it is set. Set may be called by any number
// of threads for distinct handles; memory comes in pieces of 256 KiB, for
// handles that are used.
class HandleEpochs {
 public:
  HandleEpochs();
  ~HandleEpochs();
  HandleEpochs(const HandleEpochs&) = delete;
  HandleEpochs& operator=(const HandleEpochs&) = delete;

  // False without memory.
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
  // Asks for the memory of a handle that will be set soon.
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

  // Address space of 256 KiB, memory only where pieces are.
  std::atomic<std::atomic<uint32_t>*>* const pieces_;
  std::atomic<int64_t> num_pieces_{0};
};

// Thread-safe as the table's gate says: Mark and MarkCounter by any number of
// updating threads, or by one that has shut updates out, Erased and Emptied by
// a thread that is alone. The others by one thread at a time that is alone or
// keeps the table frozen; bytes by any thread in the gate.
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

  // Keys that have no row, or no counter, any more. rows_left: of the table.
  void Erased(Span<const int64_t> keys, int64_t rows_left);
  // All that was there is gone.
  void Emptied();

  // The epoch that is going on.
  int64_t epoch() const { return epoch_; }
  // Ends it and returns its number, at least 1.
  int64_t Cut();
  // Whether only "everything" describes what changed since a cut.
  bool NeedsEverything(int64_t since) const;
  // REQUIRES !NeedsEverything(since).
  bool RowChanged(RowHandle handle, int64_t since) const {
    return rows_.Get(handle) > since;
  }
  bool CounterChanged(RowHandle handle, int64_t since) const {
    return counters_.Get(handle) > since;
  }
  // Each key once that was erased since, whatever became of it afterwards.
  std::vector<int64_t> ErasedSince(int64_t since) const;
  // No caller asks for anything before 'since' any more.
  void Forget(int64_t since);

  int64_t bytes() const;

 private:
  struct Erasure {
    uint32_t epoch;
    int64_t key;
  };
  void LoseAll();

  uint32_t epoch_ = 1;
  // The oldest cut that can be asked for.
  int64_t first_cut_ = 1;
  std::atomic<bool> lost_{false};  // a change since the last cut
  HandleEpochs rows_, counters_;
  mutable std::mutex mu_;        // of erased_, for bytes()
  std::vector<Erasure> erased_;  // ascending epochs
};

}  // namespace ev

#endif  // KERNELS_ENGINE_EMBEDDING_PARTS_TABLE_CHANGES_H_
