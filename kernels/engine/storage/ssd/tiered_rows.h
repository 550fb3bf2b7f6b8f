// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The rows of one table: the hot ones in memory, the others in a file
// (row_file.h). One row state per handle has the location of its
// row (storage/tiered/row_states.h): none, fresh (default row and initial slot
// values, stored nowhere), in a cache slot of the memory, in a record of the
// file, or being moved.
//
// To use rows a caller HOLDS them. Rows in the file are read into memory, all
// rows of a call at once, and held rows stay until they are released. Rows that
// are evicted for them are written first, unless the file still has their
// contents. They are written to a buffer, so the caller waits for the disk only
// if all buffers wait to be written.
//
// Calls are numbered. A call holds a row by writing the call's number to the
// row's cache slot, and releases all of its rows at once when the number
// expires (storage/tiered/hold_numbers.h). So a row in memory costs the call
// two loads of its row state and some plain stores to one cache line of the
// cache slot. A number expires only after older ones. So there are two series
// of numbers, one for rows that are held briefly (Hold) and one for rows that
// are held for long (Keep). With one series, a Keep would also hold the rows
// that other calls used meanwhile.
//
// MOVES. A thread that moves a row sets the row's state to kMoving first; then
// no other thread changes the row state, and threads that need the row wait.
// They do not wait long, because no thread waits for a cache slot or for a held
// row while it has set a row state to kMoving. A row leaves the memory in this
// order. The thread sets the row state to kMoving and checks that no call holds
// the row; otherwise it restores the state. It copies the floats to a buffer of
// the file, unless the file still has them, and sets the state to the record.
// A row arrives in this order: the thread sets the row state to kMoving, writes
// the floats and the number of the call that needs them to a cache slot, and
// sets the row state to that slot.
//
// EVICTION. A clock hand goes round the cache slots
// (storage/tiered/victim_hand.h), and the cache strategy
// (policy/cache_strategy.h) chooses among the rows that it visits. A row keeps
// its rank in the file.
//
// FILE. When too many of its records are dead (RowFile::IsSparse), the file is
// compacted: the rows of the segments with the smallest shares of live records
// are appended again. The compaction thread does that, or the caller of Compact
// if compacts_in_thread is false.

#ifndef KERNELS_ENGINE_STORAGE_SSD_TIERED_ROWS_H_
#define KERNELS_ENGINE_STORAGE_SSD_TIERED_ROWS_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "kernels/engine/base/float_type.h"
#include "kernels/engine/base/row_handle.h"
#include "kernels/engine/base/row_shape.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/policy/cache_strategy.h"
#include "kernels/engine/storage/dram/slab_array.h"
#include "kernels/engine/storage/ssd/row_file.h"
#include "kernels/engine/storage/tiered/background_thread.h"
#include "kernels/engine/storage/tiered/fresh_rows.h"
#include "kernels/engine/storage/tiered/hold_numbers.h"
#include "kernels/engine/storage/tiered/row_states.h"
#include "kernels/engine/storage/tiered/use_ranks.h"
#include "kernels/engine/storage/tiered/victim_hand.h"

namespace ev {

struct TieredRowsOptions {
  int64_t dim = 0;
  FloatType value_type = FloatType::kFloat32;
  Span<const float> default_rows;  // [R, dim], copied
  std::shared_ptr<RowDirectory> directory;
  int64_t memory_bytes = 0;  // for rows in memory; at least one row
  CacheStrategy strategy = CacheStrategy::kLfu;
  bool direct = false;  // bypass the system's page cache
  bool compacts_in_thread = true;
};

// Counted since creation, except for the first three. A row that is being
// stored may count as in memory and in the file at once.
struct TieredRowsStats {
  int64_t memory_rows = 0, file_rows = 0, file_bytes = 0;
  // Rows held that were in memory, and that were read from the file. Fresh
  // rows, and rows that another call was moving, may count as neither.
  int64_t hits = 0, misses = 0;
  int64_t evicted_rows = 0, written_bytes = 0, compacted_rows = 0;
};

class TieredRows {
 public:
  using CacheSlot = uint32_t;
  static constexpr CacheSlot kNoCacheSlot = 0xFFFFFFFFu;

  static Status Create(const TieredRowsOptions& options,
                       std::unique_ptr<TieredRows>* rows);
  ~TieredRows();
  TieredRows(const TieredRows&) = delete;
  TieredRows& operator=(const TieredRows&) = delete;

  // The rows that a call holds, until it is released or destroyed.
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

  // --- Thread-safe: any number of threads may call these at once. They may
  // throw std::bad_alloc: then no row's contents have changed, and a Holding
  // that was passed must be released ---

  // Gives the handle a fresh row, which takes no memory except its row state.
  // ResourceExhausted.
  Status NewRow(RowHandle handle, int64_t default_row);

  // Holds the rows of the first *held handles, as many as there is room for; at
  // least one if handles is not empty. Releases what *holding held before.
  // rows[i]: value, then slots. cache_slots[i]: argument for Wrote. A handle
  // without a row (row_handle.h) gets null and kNoCacheSlot. is_reserved:
  // Reserve was called for the evictions.
  //
  // ResourceExhausted: the disk is full. DataLoss: the file does not hold what
  // was written. No row is held then.
  //
  // A thread must hold the rows of only one call at a time. Otherwise two
  // threads can wait for each other's rows forever.
  Status Hold(Span<const RowHandle> handles, bool is_reserved, float** rows,
              CacheSlot* cache_slots, size_t* held, Holding* holding);
  // Marks held rows as modified.
  void Wrote(Span<const CacheSlot> cache_slots);

  // Holds rows for longer: any thread may release them, and calls in between
  // are unrestricted. rows[i] is unchanged for a handle without a row. At most
  // half of the memory is held in this way, so that other calls always have
  // room. If the limit would be exceeded, *all is false and none of these rows
  // is held. Released rows still count towards the limit until the calls that
  // kept rows at the same time have released theirs, too.
  Status Keep(Span<const RowHandle> handles, const float** rows, bool* all,
              Holding* holding);

  // Copies floats [offset, offset + count) of each row to out without moving
  // the row into memory. A copy of a row that is written meanwhile may have
  // some elements from before the write and some from after it.
  Status Copy(Span<const RowHandle> handles, int64_t offset, int64_t count,
              float* out);

  // Reserves disk space for the rows that can be evicted while that many rows
  // are held and modified, and makes a first cache slot.
  Status Reserve(int64_t rows);
  void Unreserve(int64_t rows) { file_->Unreserve(rows + kEvictAtOnce); }

  // Returns whether a use of the row would read the file.
  bool IsStored(RowHandle handle) const;

  // Compacts the file if it is sparse, or wakes the thread that does. To be
  // called now and then, while holding nothing.
  void Compact();

  TieredRowsStats stats() const;
  int64_t memory_bytes() const;  // rows, cache slots, row states and buffers
  int64_t capacity() const { return capacity_; }
  const std::string& file_name() const { return file_->name(); }

  // --- REQUIRE that no other call is running and nothing is held ---

  // Sets the slots of rows; existing slots come first. Moves
  // all rows to the file. After an error nothing has changed.
  Status SetSlots(Span<const SlotShape> slots);
  // Deletes the rows of these handles and frees memory that holds no row.
  void Forget(Span<const RowHandle> handles);
  void Clear();
  // Moves all rows to the file, and waits until the system has taken all
  // writes. It does not wait for the disk, unless the file is direct.
  Status Flush();

 private:
  static constexpr int64_t kEvictAtOnce = 64;

  struct Entry;
  struct Absent;
  class Incoming;

  explicit TieredRows(const TieredRowsOptions& options);
  static std::unique_ptr<SlabArray> NewRowMemory(int64_t floats);
  void UseRowMemory(std::unique_ptr<SlabArray> rows);
  void DropCacheSlots();
  int64_t floats() const { return fresh_.floats(); }
  std::atomic<uint32_t>* row_state(RowHandle handle) const {
    return row_states_.at(handle);
  }
  Entry* entry(CacheSlot cache_slot) const;
  std::atomic<RowHandle>* handle_of(CacheSlot cache_slot) const;
  float* row(CacheSlot cache_slot) const;

  void AdvanceTime();
  void Enter(Holding* holding);
  void Stamp(const Holding& holding, CacheSlot cache_slot);
  bool MayBeHeld(const Entry& in) const;
  void Find(Span<const RowHandle> handles, const Holding& holding, float** rows,
            CacheSlot* cache_slots, std::vector<Absent>* absent,
            std::vector<size_t>* busy);
  Status HoldSome(Span<const RowHandle> handles, bool is_reserved,
                  const Holding& holding, float** rows, CacheSlot* cache_slots,
                  size_t* held);
  enum class Got { kHeld, kBusy, kElsewhere };
  Got TryHold(RowHandle handle, const Holding& holding, CacheSlot* cache_slot);
  bool MoveIn(RowHandle handle, const Absent& absent, const Holding& holding,
              Incoming* incoming, float** rows, CacheSlot* cache_slots);
  Status LoadAll(const Holding& holding, Incoming* incoming, float** rows,
                 CacheSlot* cache_slots);
  void Complete(int64_t from_floats, float* row) const;
  size_t TakeCacheSlots(bool is_reserved, Span<CacheSlot> cache_slots,
                        Status* status);
  Status MakeCacheSlot(CacheSlot* cache_slot);
  size_t ChooseVictims(Span<CacheSlot> victims);
  size_t Claim(Span<CacheSlot> victims);
  size_t WriteOut(Span<CacheSlot> cache_slots, bool is_reserved,
                  Status* status);
  void GiveBack(Span<const CacheSlot> cache_slots);
  Status WriteAllOut();
  Status MakeFreshRows();
  Status CompactOne(bool* found);
  void CompactWhileSparse();
  Status MoveRecord(const RowFile::Record& record);

  const int64_t budget_;
  const bool compacts_in_thread_;
  FreshRows fresh_;
  // by slot, for rows written before the slot was added
  std::vector<float> added_;
  std::unique_ptr<RowFile> file_;

  RowStates row_states_;
  UseRanks ranks_;
  std::atomic<uint32_t> aged_{0};  // of UseRanks::IsTimeToAge
  HoldNumbers briefly_, kept_;

  mutable std::mutex cache_slots_mu_;
  int64_t capacity_ = 0;
  std::unique_ptr<SlabArray> rows_;  // by cache slot, like the next two
  SlabArray entries_, handles_;
  int64_t used_ = 0;  // cache slots that were ever used
  std::vector<CacheSlot> free_;
  VictimHand hand_;

  // held by a compaction, and by calls that exclude compactions
  std::mutex compact_mu_;
  std::atomic<int64_t> hits_{0}, misses_{0}, evicted_{0}, compacted_{0};
  BackgroundThread compactor_;
};

}  // namespace ev

#endif  // KERNELS_ENGINE_STORAGE_SSD_TIERED_ROWS_H_
