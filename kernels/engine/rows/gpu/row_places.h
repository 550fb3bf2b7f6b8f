// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// RowPlaces: where the rows of a table are that has more rows than its share of
// GPU memory. Kernels reach every row by its address, in GPU memory or, over
// the link, in pinned host memory. So a lookup or an update of such a table is
// an ordinary step, and no row must move to be used. Rows that are used often
// move to GPU memory.
//
// A PLACE is memory for one row (RowPieces). Places and handles are the same
// numbers: places below num_on_gpu are in GPU memory, and a row is made at the
// place with the number of its handle. A move swaps the rows of two handles.
// Thus the places of all handles are always a permutation, and nothing searches
// for a place. A handle without a row has its own place.
//
// MOVES. A step offers some of its ids (LaunchMoves). Of these rows, those that
// are in host memory and were offered before are compared with rows in GPU
// memory, some hundred of a table at a time, by the table's cache strategy
// (policy/cache_strategy.h):
//
//   LFU   the number of times that a row was offered, halved every kLfuMoves
//         calls, must be more than twice that of the other row, plus one
//   LRU   the row's use before this one must be later than the other row's last
//   FIFO  any other row gives way
//
// A clock hand goes round the places in GPU memory and offers the worst of
// kWindow rows. Whatever moves, results have the same bits.
//
// MEMORY: 12 bytes of GPU memory per handle, in pieces of 65,536 handles, and
// 96 KiB per table.

#ifndef KERNELS_ENGINE_ROWS_GPU_ROW_PLACES_H_
#define KERNELS_ENGINE_ROWS_GPU_ROW_PLACES_H_

#include <atomic>
#include <cstdint>
#include <mutex>

#include "kernels/engine/base/gpu/device_buffer.h"
#include "kernels/engine/base/gpu/stream.h"
#include "kernels/engine/base/row_handle.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/policy/cache_strategy.h"
#include "kernels/engine/rows/gpu/move_order.h"
#include "kernels/engine/rows/gpu/row_pieces.h"

namespace ev {
namespace gpu {

// Log2 of the handles per piece. The word of handle h is the (h mod
// 2^kPlacesLog2)-th of piece h >> kPlacesLog2. It is the exclusive or of handle
// and place, so that zeroed memory gives every handle its own place.
constexpr int kPlacesLog2 = 16;

// Above RowPlaces::MostMoves of every table.
constexpr int kMaxMoves = 8192;

// The uses of the row of handle h, and the handle whose row is at place h, as
// the exclusive or of both numbers.
struct RowRecord {
  uint32_t uses;
  uint32_t owner;
};

constexpr uint32_t kHasRow = 1u << 31;  // in RowRecord::uses: h has a row

// Counts since the table was created.
struct PlaceCounts {
  // Ids of lookups whose rows were in GPU memory, and in host memory, and
  // moves.
  unsigned long long hits, misses, moves;  // NOLINT: what atomicAdd takes
  // Rows of host memory that lookups have read, once for ids that share the
  // read, and those that updates have changed.
  unsigned long long fetched, updated;  // NOLINT: as above
};

// In GPU memory.
struct PlaceState : PlaceCounts {
  uint32_t hand;  // the place in GPU memory that is visited next
  // Number of rows in host memory that call c has chosen, or more: [c mod 2].
  uint32_t num_chosen[2];
  // These rows, what they are worth, and the rows with which they swap; kNoRow
  // for a row that stays.
  RowHandle chosen[kMaxMoves], victim[kMaxMoves];
  uint32_t worth[kMaxMoves];
};

class RowPlaces : public MoveOrder {
 public:
  // Allocates nothing on the device.
  explicit RowPlaces(CacheStrategy strategy);

  // --- Thread-safe. REQUIRE: the table's device is current ---

  bool Has(RowHandle handle) const { return records_.Has(handle); }
  // Allocates the memory for what is known about the row. ResourceExhausted.
  Status Reserve(RowHandle handle);
  // num_on_gpu: number of the places in GPU memory, from 0 on.
  PlacesView view(int64_t num_on_gpu) const;
  int64_t bytes() const;
  // Number of places that were reserved, from 0 on, or more.
  int64_t num_places() const { return end_; }
  // Reads the row's place after the work of the device that is finished.
  Status Find(RowHandle handle, uint32_t* place) const;
  // Reads how much the rows of handles from 'first' on deserve to be in GPU
  // memory, by the strategy; 0: never offered, or long ago.
  Status ReadWorth(RowHandle first, Span<uint32_t> worth) const;
  Status ReadCounts(PlaceCounts* counts) const;
  // Enqueues the return of these handles, [count], in device memory, which have
  // no rows any more, to their own places. The rows that are there move to the
  // places that become free. targets: [count], memory for the kernels. REQUIRES
  // that no other call is running.
  Status LaunchForget(const PiecesView& rows, const RowHandle* handles,
                      int64_t count, uint32_t* targets, StreamView stream);

  // --- REQUIRES that no other call is running ---

  // Every handle has its own place again.
  void Clear();

  // --- Moves ---

  // The ids that a step offers, [num_ids] handles in device memory.
  struct Offer {
    RowPlaces* places = nullptr;
    PiecesView rows;
    const RowHandle* handles = nullptr;
    int64_t num_ids = 0;
    // All of them move to GPU memory, as far as a call can move so many.
    bool is_forced = false;
  };
  // Number of rows of a table that one call can move to GPU memory.
  static int64_t MostMoves(int64_t num_on_gpu);
  // Enqueues the choice and the moves of all tables, three kernels for every 16
  // tables. REQUIRES: a Moving of each is closed; the stream waits for all work
  // on the rows, and later work on them waits for the stream.
  static Status LaunchMoves(Span<const Offer> offers, StreamView stream);

 private:
  const CacheStrategy strategy_;
  RowPieces places_, records_;
  mutable std::mutex mu_;  // guards state_ while it is made
  DeviceBuffer state_;
  std::atomic<int64_t> end_{0};     // above all handles that were reserved
  std::atomic<uint32_t> calls_{0};  // of LaunchMoves
};

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_ROWS_GPU_ROW_PLACES_H_
