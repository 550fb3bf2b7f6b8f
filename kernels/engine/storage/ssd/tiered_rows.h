// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The rows of one table, the hot ones in memory, the others in a file
// (row_file.h). Where a handle's row is, one word tells (../tiered
// /handle_words.h): nowhere, not made yet, in a place of the memory, or in a
// record of the file.
//
// To use rows a caller HOLDS them: those in the file are read into memory, all
// that one call wants at once, and held rows stay until they are released.
// What must go for them is written first, unless the file still has it; it goes
// to a buffer, so the disk's time is not the caller's.
//
// A row is held by the number of the call (../tiered/hold_numbers.h), written
// to its place: a row in memory costs a caller two loads of its word and some
// plain stores to a line of the place. There are two series of numbers, of rows
// that are held briefly and of those that are kept: a call that keeps rows for
// long must not keep what others used meanwhile as well.
//
// A THREAD THAT MOVES A ROW has changed its word from what it was to kMoving,
// and no other thread changes the word then. A thread that wants the row waits,
// which is short: no thread waits for a place, or for a row that is held, while
// it has a word that says kMoving. So a row leaves in this order: its word says
// kMoving, no call holds it (if one does the word says again what it said), its
// floats are copied, the word names the record. It comes in this order:
// kMoving, its floats and the stamp of the call that wants it, the word names
// the place.
//
// WHICH ROWS GO. A hand goes round the places (../tiered/victim_hand.h); of the
// rows that it meets the cache strategy chooses (policy/cache_strategy.h). A
// row takes its rank with it into the file and back.
//
// FILE. When more than half of its records are dead, the rows of the segments
// with the fewest live ones are appended again, by a thread or, if so asked, by
// the caller of Compact.

#ifndef KERNELS_ENGINE_STORAGE_SSD_TIERED_ROWS_H_
#define KERNELS_ENGINE_STORAGE_SSD_TIERED_ROWS_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "kernels/engine/base/row_handle.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/policy/cache_strategy.h"
#include "kernels/engine/storage/dram/slab_array.h"
#include "kernels/engine/storage/ssd/row_file.h"
#include "kernels/engine/storage/tiered/background_thread.h"
#include "kernels/engine/storage/tiered/fresh_rows.h"
#include "kernels/engine/storage/tiered/handle_words.h"
#include "kernels/engine/storage/tiered/hold_numbers.h"
#include "kernels/engine/storage/tiered/use_ranks.h"
#include "kernels/engine/storage/tiered/victim_hand.h"

namespace ev {

struct TieredRowsOptions {
  int64_t dim = 0;
  Span<const float> default_rows;  // [R, dim], copied
  std::shared_ptr<RowDirectory> directory;
  int64_t memory_bytes = 0;  // for rows in memory; one row at least
  CacheStrategy strategy = CacheStrategy::kLfu;
  bool direct = false;  // around the system's page cache
  bool compacts_in_thread = true;
};

// Since creation, but for the first three. A row that is just being stored may
// be counted as one in memory and one of the file.
struct TieredRowsStats {
  int64_t memory_rows = 0, file_rows = 0, file_bytes = 0;
  int64_t hits = 0, misses = 0;  // rows held that were, and were not, in memory
  int64_t evicted_rows = 0, written_bytes = 0, compacted_rows = 0;
};

class TieredRows {
 public:
  using Place = uint32_t;
  static constexpr Place kNoPlace = 0xFFFFFFFFu;

  static Status Create(const TieredRowsOptions& options,
                       std::unique_ptr<TieredRows>* rows);
  ~TieredRows();
  TieredRows(const TieredRows&) = delete;
  TieredRows& operator=(const TieredRows&) = delete;

  // The rows that a call holds: until it is released or destroyed.
  class Holding {
   public:
    Holding() {}
    ~Holding() { Release(); }
    Holding(const Holding&) = delete;
    Holding& operator=(const Holding&) = delete;
    void Release() {
      if (numbers_ != nullptr) numbers_->Leave(number_);
      numbers_ = nullptr;
    }

   private:
    friend class TieredRows;
    HoldNumbers* numbers_ = nullptr;
    HoldNumbers::Number number_ = HoldNumbers::kNever;
  };

  // --- May be called by any number of threads at once ---
  // std::bad_alloc leaves everything as it was.

  // Gives the handle a row. Takes no memory but a word. ResourceExhausted.
  Status NewRow(RowHandle handle, int64_t default_row);

  // Holds the rows of the first *held of handles, as many as there is room for,
  // one at least if there are any, and releases what *holding has. rows[i]:
  // value, then slots; places[i] names it below. Null and kNoPlace for a handle
  // of no row (row_handle.h). is_reserved: what goes for them was reserved.
  // ResourceExhausted: the disk is full; DataLoss: it does not have what was
  // written. Nothing is held then.
  //
  // A thread holds the rows of one call at a time, or two can wait for each
  // other's for ever.
  Status Hold(Span<const RowHandle> handles, bool is_reserved, float** rows,
              Place* places, size_t* held, Holding* holding);
  // The rows were written, while they are held.
  void Wrote(Span<const Place> places);

  // Holds rows for longer: any thread may release them, and do anything else
  // before that. rows[i] is unchanged for a handle of no row. Not more than
  // half of the memory is held in this way, so that there is always room for
  // others; *all false: it would be, and none of these rows is held. Rows count
  // until the calls that kept some at the same time have released theirs too.
  Status Keep(Span<const RowHandle> handles, const float** rows, bool* all,
              Holding* holding);

  // Copies floats [offset, offset + count) of a row to out without bringing it
  // into memory.
  Status Copy(Span<const RowHandle> handles, int64_t offset, int64_t count,
              float* out);

  // Room on the disk for what goes when so many rows are held and written.
  Status Reserve(int64_t rows) { return file_->Reserve(rows + kEvictAtOnce); }
  void Unreserve(int64_t rows) { file_->Unreserve(rows + kEvictAtOnce); }

  // Whether a use of the row would read the file.
  bool IsStored(RowHandle handle) const;

  // To be called now and then by a caller that holds nothing: sees to the file,
  // or makes the thread do it.
  void Compact();

  TieredRowsStats stats() const;
  int64_t memory_bytes() const;  // rows, places, words and buffers
  int64_t capacity() const { return capacity_; }
  const std::string& file_name() const { return file_->name(); }

  // --- REQUIRE that no other call is running and nothing is held ---

  // Rows have these slots from now on, of which the first are those they have.
  // Brings all rows to the file. After an error nothing has changed.
  Status SetSlots(Span<const float> initial_values);
  // Memory in which no row is left is given back.
  void Forget(Span<const RowHandle> handles);
  void Clear();
  // Brings all rows to the file, and the file to the disk.
  Status Flush();

 private:
  static constexpr int64_t kEvictAtOnce = 64;

  struct Entry;
  struct Absent;
  class Incoming;

  explicit TieredRows(const TieredRowsOptions& options);
  void MakeMemory();
  int64_t floats() const { return fresh_.floats(); }
  std::atomic<uint32_t>* word(RowHandle handle) const {
    return words_.at(handle);
  }
  Entry* entry(Place place) const;
  std::atomic<RowHandle>* handle_of(Place place) const;
  float* row(Place place) const;

  void Enter(Holding* holding);
  void Stamp(const Holding& holding, Place place);
  bool MayBeHeld(const Entry& in) const;
  void Find(Span<const RowHandle> handles, const Holding& holding, float** rows,
            Place* places, std::vector<Absent>* absent,
            std::vector<size_t>* busy);
  Status HoldSome(Span<const RowHandle> handles, bool is_reserved,
                  const Holding& holding, float** rows, Place* places,
                  size_t* held);
  enum class Got { kHeld, kBusy, kElsewhere };
  Got TryHold(RowHandle handle, const Holding& holding, Place* place);
  bool MoveIn(RowHandle handle, const Absent& absent, const Holding& holding,
              Incoming* incoming, float** rows, Place* places);
  Status LoadAll(const Holding& holding, Incoming* incoming, float** rows,
                 Place* places);
  void Complete(int64_t from_floats, float* row) const;
  size_t TakePlaces(bool is_reserved, Span<Place> places, Status* status);
  Status MakePlace(Place* place);
  size_t ChooseVictims(Span<Place> victims);
  size_t Claim(Span<Place> victims);
  size_t WriteOut(Span<Place> places, bool is_reserved, Status* status);
  void GiveBack(Span<const Place> places);
  Status WriteAllOut();
  Status MakeFreshRows();
  Status CompactOne(bool* found);
  void CompactWhileSparse();
  Status MoveRecord(const RowFile::Record& record);

  const int64_t budget_;
  const bool compacts_in_thread_;
  FreshRows fresh_;
  std::vector<float> added_;  // by slot, of rows older than the slot
  std::unique_ptr<RowFile> file_;

  HandleWords words_;
  UseRanks ranks_;
  HoldNumbers briefly_, kept_;

  mutable std::mutex places_mu_;
  int64_t capacity_ = 0;
  std::unique_ptr<SlabArray> rows_, entries_, handles_;  // by place
  int64_t used_ = 0;  // places that were ever taken
  std::vector<Place> free_;
  VictimHand hand_;

  std::mutex compact_mu_;  // one at a time, and not while alone
  std::atomic<int64_t> hits_{0}, misses_{0}, evicted_{0}, compacted_{0};
  BackgroundThread compactor_;
};

}  // namespace ev

#endif  // KERNELS_ENGINE_STORAGE_SSD_TIERED_ROWS_H_
