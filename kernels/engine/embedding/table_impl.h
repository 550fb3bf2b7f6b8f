// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Implementation of EmbeddingTable, for the files of this folder only.

#ifndef KERNELS_ENGINE_EMBEDDING_TABLE_IMPL_H_
#define KERNELS_ENGINE_EMBEDDING_TABLE_IMPL_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "kernels/engine/base/modulo.h"
#include "kernels/engine/base/row_handle.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/embedding/embedding_table.h"
#include "kernels/engine/embedding/parts/admission_filter.h"
#include "kernels/engine/embedding/parts/eviction_hand.h"
#include "kernels/engine/embedding/parts/table_changes.h"
#include "kernels/engine/embedding/parts/table_lock.h"
#include "kernels/engine/embedding/table_journal.h"
#include "kernels/engine/ids/key_partition.h"
#include "kernels/engine/policy/eviction_rank.h"
#include "kernels/engine/rows/gpu_compute.h"
#include "kernels/engine/rows/row_home.h"
#include "kernels/engine/storage/dram/row_handles.h"
#include "kernels/engine/table/cpu/hash_index.h"

namespace ev {

class FrozenRows;

// Members without a lock of their own are written only by the call that is
// alone under the table lock and read by calls that share it.
class EmbeddingTable::Impl : public RowSource {
 public:
  explicit Impl(const TableOptions& options);

  // "table 'name'", for error messages.
  std::string QuotedName() const { return "table '" + options.name + "'"; }
  Status CheckInitialized() const;
  // Returns InvalidArgument, with the first such key, if a key is not of the
  // table's type. Almost free if that is int64.
  Status CheckKeys(Span<const int64_t> keys) const {
    return options.int32_keys ? CheckInt32Keys(keys) : Status::OK();
  }
  Status CheckInt32Keys(Span<const int64_t> keys) const;

  // Begins a call that updates rows, and returns its number.
  UpdateCall BeginCall(int64_t step);

  // --- REQUIRE an initialized table and the table lock: in any mode for reads,
  // updating or alone for writes ---

  int64_t dim() const { return options.dim; }
  bool is_narrow() const { return options.value_type != FloatType::kFloat32; }
  // FailedPrecondition unless all rows are in a GPU's memory.
  Status CheckTakesDeviceTensors(const char* what) const;
  const float* DefaultRow(int64_t key) const {
    return defaults.data() + FloorMod(key, num_defaults) * dim();
  }
  // The row that lookups return for a key without a row.
  const float* AbsentRow(int64_t key) const {
    return filter == nullptr ? DefaultRow(key)
                             : defaults.data() + num_defaults * dim();
  }
  Span<const float> default_rows() const {
    return Span<const float>(defaults.data(), num_defaults * dim());
  }
  // Floats of a column: 0 for the value, 1 + c for slot column c.
  int64_t WidthOf(int column) const {
    return column == 0 ? dim() : slots[column - 1].WidthIn(dim());
  }
  // Returns the slot's column, or -1 if there is no such slot.
  int FindSlot(const std::string& name) const;
  // Finds the columns of all slots. Returns false if one is missing.
  bool FindSlots(Span<const SlotSpec> wanted, std::vector<int>* columns) const;

  // Finds keys and makes their rows addressable (RowHome::Hold): rows[i] points
  // to the row of keys[i], or to its AbsentRow, in the rows' type, if it has
  // none. *absent: how many have none. *held is false if the home cannot hold
  // them; handles are found even then.
  Status FindAndHold(Span<const int64_t> keys, RowHandle* handles,
                     const float** rows, int64_t* absent,
                     std::unique_ptr<RowHold>* hold, bool* held) const;
  // Sets out[i, :] to the value of keys[i], or to AbsentRow if it has no row.
  // REQUIRES: handles of the keys were found before.
  Status ReadValues(Span<const int64_t> keys, const RowHandle* handles,
                    float* out) const;
  // Copies columns of rows: out[c][i, :] = columns[c] of the row at handles[i],
  // [N, width] (0: the value, 1 + c: slot column c). REQUIRES: all handles have
  // rows, and no call updates them.
  Status CopyColumns(Span<const RowHandle> handles, Span<const int> columns,
                     Span<float* const> out) const;
  // Appends the table's name to the message of an error.
  Status WithName(const Status& status) const;

  // Finds the handles of all keys, and inserts absent keys. part: null, or
  // records the inserted keys, even if the call fails.
  Status FindOrInsert(Span<const int64_t> keys, RowHandle* handles,
                      JournalPart* part = nullptr);

  // FindOrInsert for an update (table_admission.cc), in two steps that must not
  // overlap. CountAbsent, which is needed with a Bloom filter only, counts all
  // absent keys of the update. Then AdmitAbsent inserts the absent keys that
  // the filter admits; the handles of the others stay kNoRow. handles: kNoRow
  // for keys that were absent when last looked up. counts: null means 1 each.
  // part: records what is done, even if the call fails. Both throw
  // std::bad_alloc.
  void CountAbsent(Span<const int64_t> keys, const int32_t* counts,
                   const RowHandle* handles, JournalPart* part);
  Status AdmitAbsent(Span<const int64_t> keys, const int32_t* counts,
                     int64_t step, RowHandle* handles, JournalPart* part);
  // Removes the filter's counters of keys that a call has admitted, given by
  // one part of its journal. Called when the call is sure to succeed.
  void ForgetAdmitted(Span<const int64_t> keys);
  // Removes the filter's counters of keys that have a row now.
  void ForgetCounted(Span<const int64_t> keys);

  // RowSource: creates a row with its default row as value and the slots'
  // initial values.
  Status NewRow(int64_t key, RowHandle* handle) override;

  // Erases the rows of keys; returns how many there were. Throws
  // std::bad_alloc, and erases none then. REQUIRES: alone under the table lock.
  int64_t EraseRows(Span<const int64_t> keys);

  // Must be called before existing rows are changed in any way; handles without
  // a row are ignored. May wait for a save (frozen_rows.h), so the caller must
  // not hold a stripe. REQUIRES: updating.
  void BeforeChange(Span<const RowHandle> handles) {
    if (!frozen_rows.empty()) KeepFrozen(handles);
  }
  void KeepFrozen(Span<const RowHandle> handles);

  // Null unless the GPU accesses some of the rows and not all.
  RowsBelow* rows_below() const {
    GpuRowCompute* const gpu = home->gpu();
    return gpu == nullptr ? nullptr : gpu->below();
  }

  // Whether an update has to record anything about its rows.
  bool records_meta() const {
    return options.record_frequency || options.record_version ||
           changes != nullptr;
  }
  // Whether the GPU keeps pending counters of what updates in steps count.
  bool keeps_counters() const {
    const GpuTableCompute* const gpu = home->gpu_table();
    return gpu != nullptr && gpu->keeps_counters();
  }
  // Whether there may be pending counters to take.
  bool has_counters() const {
    return keeps_counters() && home->gpu_table()->has_counters();
  }
  // Whether the CPU needs the metadata updates of a row that is updated in a
  // step.
  bool needs_meta_updates() const {
    return records_meta() && !keeps_counters();
  }
  // Counts ids that were looked up or updated, by the GPU that has the rows or
  // by the CPU. No-op if the rows are not on a GPU.
  void CountIds(int64_t ids, bool by_gpu) const {
    if (home->gpu_table() == nullptr) return;
    (by_gpu ? ids_by_gpu : ids_by_cpu)
        .fetch_add(ids, std::memory_order_relaxed);
  }

  // Prefetches the memory that AddToMeta writes.
  void PrefetchMeta(RowHandle handle) const {
    const RowMeta* const meta = rows->Meta(handle);
    if (meta != nullptr) __builtin_prefetch(meta, /*rw=*/1);
    if (changes != nullptr) changes->PrefetchMark(handle);
  }
  // Records an update of the row in its metadata.
  void AddToMeta(RowHandle handle, int64_t occurrences, const UpdateCall& call);
  // Adds the GPU's pending counters to the metadata and marks those rows as
  // changed. Must be called before metadata or change marks are read or
  // overwritten, and before rows are removed. REQUIRES: the table lock frozen
  // or alone. Errors name the table.
  Status TakeCounters();
  // Adds the pending counters of one row. now: the number of the last call that
  // has begun.
  void AddCounters(RowHandle handle, const RowMeta& counters, uint32_t now);
  // Records any other change of the row.
  void MarkChanged(RowHandle handle) {
    if (changes != nullptr) changes->Mark(handle);
  }

  // --- REQUIRE: alone under the table lock ---

  // Finds the keys of rows to be evicted by weight.
  Status FindWeak(float threshold, std::vector<int64_t>* keys) const;

  // Frees rows that are no longer in the index.
  void FreeRows(Span<const RowHandle> handles);

  // Returns the call number for imported rows: 0, unless rows keep their first
  // call. Imports without a call between them share a number, so that all rows
  // of a checkpoint have the same age.
  uint32_t ImportCall();

  // Removes all keys.
  void Clear();

  // Evicts the rows beyond the capacity; none if there is no memory to choose
  // them. before: null, or called with the rows to be evicted while they still
  // exist; if it fails, nothing is evicted. call: as for EvictExcess.
  using BeforeEviction = std::function<Status(Span<const int64_t> keys,
                                              Span<const RowHandle> handles)>;
  Status EvictExcessAlone(const UpdateCall& call, const BeforeEviction& before);
  // Rows that came, or were updated, too many calls ago would become the newest
  // ones when call numbers wrap: AgeCalls gives them the oldest number.
  bool CallsAreOld() const;  // may share the table lock
  void AgeCalls();
  // Like TakeBack. only_untouched: false to erase the inserted keys whatever
  // their rows contain.
  void TakeBackAlone(const TableJournal& journal, bool only_untouched = true);

  // --- REQUIRE: this thread does not hold the table lock ---

  // Moves the rows of keys, which may repeat, to where the GPU accesses them
  // (RowsBelow::Bring), and makes room for new rows. *all: whether the GPU
  // accessed all of them afterwards. It is false during a snapshot, and if
  // there is no room for them.
  Status BringRows(Span<const int64_t> keys, Parallel* parallel, bool* all);
  // The same if the GPU does not access some of the rows, or room is needed;
  // otherwise a no-op.
  Status BringRowsBelow(Span<const int64_t> keys, Parallel* parallel);
  // Like index.Find, on several threads.
  void FindHandles(Span<const int64_t> keys, Parallel* parallel,
                   std::vector<RowHandle>* handles) const;

  // Number of rows that the capacity allows; the largest int64 without one.
  int64_t MaxRows() const;
  // Evicts the rows beyond the capacity. call: the one that has filled the
  // table. If there is no memory to choose rows, the next call evicts them.
  void EvictExcess(const UpdateCall& call);
  // Undoes the inserts and counts of a call that failed before it changed a
  // row. A key stays if another call has changed its row since.
  void TakeBack(const TableJournal& journal);

  // Sets the filter's counter of a key. REQUIRES: the key's stripe.
  Status WriteCounter(int64_t key, int64_t count, int64_t version);

  const TableOptions options;
  const uint64_t
      number;  // unique among tables; table locks are taken in this order
  mutable TableLock table_lock;
  UpdateLock update_lock;
  std::atomic<bool> initialized{false};
  std::atomic<int64_t> inserted_rows{0};
  mutable std::atomic<int64_t> ids_by_gpu{0}, ids_by_cpu{0};  // of CountIds
  std::atomic<uint32_t> calls{0};  // number of the last updating call; skips 0
  uint32_t last_aged = 0;    // 'calls' at the last AgeCalls; changed alone
  uint32_t last_import = 0;  // of ImportCall

  // Changes whenever handles that were found before may have become invalid.
  uint64_t generation = 0;
  // [num_defaults, dim]. With a filter there is one more row, which is returned
  // for keys without a row. The home reads them too. Numbers of the values'
  // type; narrow_defaults are the same ones, if it is narrow.
  std::vector<float> defaults;
  std::vector<char> narrow_defaults;
  int64_t num_defaults = 0;
  std::vector<SlotSpec> slots;              // by column
  std::unique_ptr<AdmissionFilter> filter;  // null: every key is admitted
  EvictionHand hand;
  // One for each snapshot being read; changed by the call that begins or ends
  // one.
  std::vector<FrozenRows*> frozen_rows;
  std::unique_ptr<TableChanges> changes;  // null until CutChanges
  std::mutex
      export_changes;  // one ExportChanges at a time, before the table lock
  std::atomic<int64_t> evicted_rows{0};
  HashIndex index;
  // Allocates handles and stores row metadata.
  std::unique_ptr<RowHandles> rows;  // null until initialized
  std::mutex unused_handles_mu;
  // Handles that no key got because the home had no memory for the row; freed
  // when the failed call is undone.
  std::vector<RowHandle> unused_handles;
  std::unique_ptr<RowHome> home;  // where the rows are; null until initialized
  // Seed of stochastic rounding, and the number of updates so far, which with
  // it determines the random bits.
  std::atomic<uint64_t> rounding_seed;
  std::atomic<int64_t> rounded_updates{0};
  RowStorage storage = RowStorage::kDram;  // the home's
  std::string why_not_on_gpu;  // with kAuto; empty if rows are on a GPU
};

// Reserves room for rows to be written, until it is destroyed.
class RowRoom {
 public:
  RowRoom() {}
  ~RowRoom() {
    if (table_ != nullptr) table_->home->Unreserve(rows_);
  }
  RowRoom(const RowRoom&) = delete;
  RowRoom& operator=(const RowRoom&) = delete;

  // Reserves room for this many rows. REQUIRES: the table lock until
  // destruction.
  Status Reserve(EmbeddingTable::Impl* table, int64_t rows) {
    EV_RETURN_IF_ERROR(table->WithName(table->home->Reserve(rows)));
    table_ = table;
    rows_ = rows;
    return Status::OK();
  }

 private:
  EmbeddingTable::Impl* table_ = nullptr;
  int64_t rows_ = 0;
};

// Holds the locks of several tables, taken in the global order. A table may
// be given several times.
class SharedTableLocks {
 public:
  enum class Purpose { kReading, kUpdating };

  SharedTableLocks(std::vector<EmbeddingTable::Impl*> tables, Purpose purpose);
  ~SharedTableLocks();
  SharedTableLocks(const SharedTableLocks&) = delete;
  SharedTableLocks& operator=(const SharedTableLocks&) = delete;

  // Each table once, in the global order.
  const std::vector<EmbeddingTable::Impl*>& tables() const { return tables_; }

 private:
  std::vector<EmbeddingTable::Impl*> tables_;
  const Purpose purpose_;
};

// Holds the update locks of tables. REQUIRES: the tables are distinct and in
// the global order, and their table locks are held.
class UpdateLocks {
 public:
  explicit UpdateLocks(const std::vector<EmbeddingTable::Impl*>& tables);
  ~UpdateLocks();
  UpdateLocks(const UpdateLocks&) = delete;
  UpdateLocks& operator=(const UpdateLocks&) = delete;

  bool solo(const EmbeddingTable::Impl* table) const;

 private:
  const std::vector<EmbeddingTable::Impl*>& tables_;
  std::vector<UpdateLock::Mode> modes_;
};

}  // namespace ev

#endif  // KERNELS_ENGINE_EMBEDDING_TABLE_IMPL_H_
