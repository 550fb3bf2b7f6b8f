// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The rows of one table, the hot ones in memory, the others in a file
// (row_file.h). A handle's row is in one of four places, which one atomic word
// tells: nowhere, not made yet (it is the default row and the slots' initial
// values), in a place of the memory, or in a record of the file.
//
// To use rows a caller HOLDS them: those in the file are read into memory, all
// that one call wants at once, and held rows stay until they are released.
// What must go for them is written first, unless the file still has it; it goes
// to a buffer, so the disk's time is not the caller's.
//
// WHICH ROWS GO. A hand goes round the places. A row that was used since it was
// last there is passed over; of the others some dozens are compared, and the
// lowest ranks go: the least used (kLfu; uses fade, and a row takes its count
// with it into the file and back) or the longest unused (kLru). So a row that
// is read once makes way before one that is read often, whichever came last.
//
// FILE. When more than half of its records are dead, the rows of the segments
// with the fewest live ones are appended again, by a thread or, if so asked, by
// whoever calls Compact.

#ifndef KERNELS_ENGINE_STORAGE_SSD_TIERED_ROWS_H_
#define KERNELS_ENGINE_STORAGE_SSD_TIERED_ROWS_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "kernels/engine/base/row_handle.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/policy/eviction.h"
#include "kernels/engine/storage/dram/slab_array.h"
#include "kernels/engine/storage/ssd/row_file.h"

namespace ev {

struct TieredRowsOptions {
  int64_t dim = 0;
  Span<const float> default_rows;  // [R, dim], copied
  std::shared_ptr<RowDirectory> directory;
  int64_t memory_bytes = 0;  // for rows in memory; 64 rows at least
  CacheStrategy strategy = CacheStrategy::kLfu;
  bool direct = false;  // around the system's page cache
  bool compacts_in_thread = true;
};

// Since creation, but for the first three.
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

  // --- May be called by any number of threads at once ---

  // Gives the handle a row. Takes no memory but a word. ResourceExhausted.
  Status NewRow(RowHandle handle, int64_t default_row);

  // Holds the rows of the first *held of handles, as many as there is room for,
  // one at least if there are any. rows[i]: value, then slots; places[i] names
  // it below. Null and kNoPlace for a handle of no row (row_handle.h). Of a
  // handle that comes twice the row is held twice. is_reserved: what goes for
  // them was reserved. ResourceExhausted: the disk is full; DataLoss: it does
  // not have what was written. Nothing is held then.
  //
  // A thread holds the rows of one call at a time, or two can wait for each
  // other's for ever.
  Status Hold(Span<const RowHandle> handles, bool is_reserved, float** rows,
              Place* places, size_t* held);
  // The row was written, while it is held.
  void Wrote(Place place);
  void Release(Span<const Place> places);

  // Holds rows for longer: any thread may release them, and do anything else
  // before that. rows[i] is unchanged for a handle of no row. Not more than
  // half of the memory is held in this way, so that there is always room for
  // others; *all false: it would be, and none of these rows is held.
  Status Keep(Span<const RowHandle> handles, const float** rows, Place* places,
              bool* all);
  void ReleaseKept(Span<const Place> places);

  // Copies floats [offset, offset + count) of a row to out without bringing it
  // into memory.
  Status Copy(Span<const RowHandle> handles, int64_t offset, int64_t count,
              float* out);

  // Room on the disk for what goes when so many rows are held and written.
  Status Reserve(int64_t rows) { return file_->Reserve(rows + kEvictAtOnce); }
  void Unreserve(int64_t rows) { file_->Unreserve(rows + kEvictAtOnce); }

  // Whether a use of the row would read the file.
  bool IsStored(RowHandle handle) const;

  // To be called now and then by someone who holds nothing: sees to the file,
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
  struct Load;

  explicit TieredRows(const TieredRowsOptions& options);
  void MakeMemory();
  int64_t floats() const { return dim_ * (1 + int64_t(initial_.size())); }
  void MakeWords();
  std::atomic<uint32_t>* word(RowHandle handle) const;
  bool HasWord(RowHandle handle) const;
  Entry* entry(Place place) const;
  float* row(Place place) const;

  enum class Touch { kNow, kLater };
  Status HoldFor(Touch touch, Span<const RowHandle> handles, bool is_reserved,
                 float** rows, Place* places, size_t* held);
  enum class Got { kHeld, kBusy, kElsewhere };
  Got TryHold(RowHandle handle, Place* place, uint32_t* elsewhere);
  bool MoveIn(RowHandle handle, uint32_t seen, Place place);
  void Use(Entry* entry);
  void FillFresh(int64_t default_row, float* row) const;
  void Complete(int64_t from_floats, float* row) const;
  Status LoadAll(Span<const RowHandle> handles, const std::vector<Load>& loads,
                 float** rows, Place* places);
  size_t TakePlaces(bool is_reserved, Span<Place> places, Status* status);
  size_t ChooseVictims(Span<Place> victims);
  size_t WriteOut(Span<Place> places, bool is_reserved, Status* status);
  void GiveBack(Span<const Place> places);
  Status WriteAllOut();
  Status MakeFreshRows();
  Status CompactOne(bool* found);
  void CompactInThread();
  Status MoveRecord(const RowFile::Record& record);

  const int64_t dim_;
  const int64_t budget_;
  const CacheStrategy strategy_;
  const bool compacts_in_thread_;
  std::vector<float> defaults_;
  std::vector<float> initial_;  // by slot, of new rows
  std::vector<float> added_;    // by slot, of rows older than the slot
  std::unique_ptr<RowFile> file_;

  std::mutex words_mu_;  // to add slabs
  std::unique_ptr<SlabArray> words_;
  std::unique_ptr<std::atomic<bool>[]> has_words_;  // by slab
  std::atomic<int64_t> word_bytes_{0};

  mutable std::mutex places_mu_;
  int64_t capacity_ = 0;
  std::unique_ptr<SlabArray> rows_, entries_;  // by place
  int64_t used_ = 0;                           // places that were ever taken
  std::vector<Place> free_;
  int64_t hand_ = 0;
  std::atomic<int64_t> kept_{0};  // handles
  std::atomic<uint32_t> now_{0};

  std::mutex compact_mu_;  // one at a time, and not while alone
  std::mutex thread_mu_;
  std::condition_variable wake_;
  bool wanted_ = false;
  std::atomic<bool> stop_{false};
  std::thread thread_;

  std::atomic<int64_t> hits_{0}, misses_{0}, evicted_{0}, compacted_{0};
};

}  // namespace ev

#endif  // KERNELS_ENGINE_STORAGE_SSD_TIERED_ROWS_H_
