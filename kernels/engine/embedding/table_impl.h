// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// What is inside an EmbeddingTable; for the files of this room only.

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
#include "kernels/engine/embedding/parts/table_gate.h"
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
// alone in the gate and read by calls that share it.
class EmbeddingTable::Impl : public RowSource {
 public:
  explicit Impl(const TableOptions& options);

  // "table 'name'", for error messages.
  std::string QuotedName() const { return "table '" + options.name + "'"; }
  Status CheckInitialized() const;
  // InvalidArgument, with the first such key, unless all are keys of the
  // table's type. Next to nothing where that is int64.
  Status CheckKeys(Span<const int64_t> keys) const {
    return options.int32_keys ? CheckInt32Keys(keys) : Status::OK();
  }
  Status CheckInt32Keys(Span<const int64_t> keys) const;

  // The next call that updates rows.
  UpdateCall BeginCall(int64_t step);

  // --- REQUIRE the gate in any way, updating or alone for what writes, and an
  // initialized table ---

  int64_t dim() const { return options.dim; }
  // FailedPrecondition unless all rows are in a GPU's memory.
  Status CheckTakesDeviceTensors(const char* what) const;
  const float* DefaultRow(int64_t key) const {
    return defaults.data() + FloorMod(key, num_defaults) * dim();
  }
  // Which of 'defaults' a lookup reads of a key without a row.
  int64_t AbsentDefault(int64_t key) const {
    return filter == nullptr ? FloorMod(key, num_defaults) : num_defaults;
  }
  const float* AbsentRow(int64_t key) const {
    return defaults.data() + AbsentDefault(key) * dim();
  }
  Span<const float> default_rows() const {
    return Span<const float>(defaults.data(), num_defaults * dim());
  }
  // Offset in floats of a slot's column in a row.
  int64_t SlotOffset(int column) const { return (1 + column) * dim(); }
  // -1: no such slot.
  int FindSlot(const std::string& name) const;
  // Columns of all the slots, or false when one is missing.
  bool FindSlots(Span<const SlotSpec> wanted, std::vector<int>* columns) const;

  // As AbsentRow, for a GPU (DevicePooling::rows).
  RowHandle AbsentOnGpu(int64_t key) const {
    return AbsentAs(AbsentDefault(key));
  }
  // Finds keys and makes their rows addressable (RowHome::Hold): rows[i] is
  // that of keys[i], AbsentRow where it has none. *absent: how many have none.
  // *held is false where they cannot be held; handles are found then too.
  Status FindAndHold(Span<const int64_t> keys, RowHandle* handles,
                     const float** rows, int64_t* absent,
                     std::unique_ptr<RowHold>* hold, bool* held) const;
  // out[i, :] = the value of keys[i], whose handles were found before;
  // AbsentRow where it has none.
  Status ReadValues(Span<const int64_t> keys, const RowHandle* handles,
                    float* out) const;
  // out[c][i, :] = columns[c] of the row at handles[i], [N, dim] (0: the value,
  // 1 + c: slot column c); handles are rows. REQUIRES that no call updates
  // them.
  Status CopyColumns(Span<const RowHandle> handles, Span<const int> columns,
                     Span<float* const> out) const;
  // The same status, the table's name added to the message of an error.
  Status WithName(const Status& status) const;

  // handles of all keys, inserting those that are absent. part: null, or gets
  // what is inserted, also by a call that fails.
  Status FindOrInsert(Span<const int64_t> keys, RowHandle* handles,
                      JournalPart* part = nullptr);

  // The same for an update (table_admission.cc), in two steps that must not
  // overlap. handles: known ones, kNoRow where a key was absent when it was
  // last looked for. First, with a Bloom filter only, all absent keys of the
  // update are counted; then they get their rows, or stay kNoRow. counts: null:
  // 1 each. part: gets what is done, also by a call that fails. Both throw
  // std::bad_alloc.
  void CountAbsent(Span<const int64_t> keys, const int32_t* counts,
                   const RowHandle* handles, JournalPart* part);
  Status AdmitAbsent(Span<const int64_t> keys, const int32_t* counts,
                     int64_t step, RowHandle* handles, JournalPart* part);
  // When a call is sure to succeed: what the filter counted of keys that it has
  // admitted, of one part of the journal.
  void ForgetAdmitted(Span<const int64_t> keys);
  // What the filter counted of keys that have a row now.
  void ForgetCounted(Span<const int64_t> keys);

  // RowSource: a new row is its default row and the slots' initial values.
  Status NewRow(int64_t key, RowHandle* handle) override;

  // Forgets rows whose keys these are; returns how many there were. REQUIRES
  // the gate alone.
  int64_t EraseRows(Span<const int64_t> keys);

  // REQUIRES updating. To be called before rows that are there are changed, in
  // any way; handles may be of no row. Waits for a save if need be
  // (frozen_rows.h), so no stripe is to be held.
  void BeforeChange(Span<const RowHandle> handles) {
    if (!frozen_rows.empty()) KeepFrozen(handles);
  }
  void KeepFrozen(Span<const RowHandle> handles);

  // Whether an update has anything to note about its rows.
  bool notes_updates() const {
    return options.record_frequency || options.record_version ||
           changes != nullptr;
  }
  // Whether the GPU keeps a tally of what updates of steps count.
  bool keeps_tally() const {
    const GpuTableCompute* const gpu = home->gpu_table();
    return gpu != nullptr && gpu->keeps_tally();
  }
  // Whether TakeTally has something to take.
  bool has_tally() const {
    return keeps_tally() && home->gpu_table()->has_tally();
  }
  // Whether an update of a step has to tell what it notes.
  bool hears_of_updates() const { return notes_updates() && !keeps_tally(); }
  // So many ids were looked up or updated, by a GPU that has the rows or not.
  void CountIds(int64_t ids, bool by_gpu) const {
    if (home->gpu_table() == nullptr) return;
    (by_gpu ? ids_by_gpu : ids_by_cpu)
        .fetch_add(ids, std::memory_order_relaxed);
  }

  // Asks for the memory that AddToMeta writes.
  void PrefetchMeta(RowHandle handle) const {
    const RowMeta* const meta = rows->Meta(handle);
    if (meta != nullptr) __builtin_prefetch(meta, /*rw=*/1);
    if (changes != nullptr) changes->PrefetchMark(handle);
  }
  // An update changed the row.
  void AddToMeta(RowHandle handle, int64_t occurrences, const UpdateCall& call);
  // Rows count what the GPU has tallied, as if they had counted it at once.
  // Before anything reads or overwrites what rows count, or which have changed,
  // and before rows go. REQUIRES the gate frozen or alone. The table's name is
  // in an error.
  Status TakeTally();
  // Of one row. now: the number of the last call that has begun.
  void AddTally(RowHandle handle, const RowMeta& tally, uint32_t now);
  // Another change of the row.
  void MarkChanged(RowHandle handle) {
    if (changes != nullptr) changes->Mark(handle);
  }

  // --- REQUIRE the gate alone ---

  // Keys of rows to be evicted by weight.
  Status FindWeak(float threshold, std::vector<int64_t>* keys) const;

  // Gives back rows that the index names no more.
  void FreeRows(Span<const RowHandle> handles);

  // The call that rows are given which are imported: 0, unless rows keep their
  // first call. Imports between which no call began have one number, so that
  // rows of one checkpoint are of one age.
  uint32_t ImportCall();

  // Forgets all keys.
  void Clear();

  // Evicts what is beyond the capacity; without memory to choose by, nothing.
  // before: null, or called with those that will go, still there; when it
  // fails, nothing has been evicted. call: as EvictExcess.
  using BeforeEviction = std::function<Status(Span<const int64_t> keys,
                                              Span<const RowHandle> handles)>;
  Status EvictExcessAlone(const UpdateCall& call, const BeforeEviction& before);
  // As TakeBack.
  void TakeBackAlone(const TableJournal& journal);

  // --- REQUIRE that this thread is not in the gate ---

  // How many rows the capacity allows; the largest number without one.
  int64_t MaxRows() const;
  // Evicts what is beyond the capacity. call: the one that has filled the
  // table. Without memory to choose by, the next call does it.
  void EvictExcess(const UpdateCall& call);
  // After a call that failed before it changed a row: the keys that it has
  // inserted and counted are as they were. A key stays whose row another call
  // has changed since.
  void TakeBack(const TableJournal& journal);

  // Sets what the filter counted of a key; REQUIRES the key's stripe.
  Status WriteCounter(int64_t key, int64_t count, int64_t version);

  const TableOptions options;
  const uint64_t number;  // of this table among all: the order of locking
  mutable TableGate gate;
  UpdateLock update_lock;
  std::atomic<bool> initialized{false};
  std::atomic<int64_t> inserted_rows{0};
  mutable std::atomic<int64_t> ids_by_gpu{0}, ids_by_cpu{0};  // of CountIds
  std::atomic<uint32_t> calls{0};  // that have updated rows, but for 0
  uint32_t last_import = 0;        // of ImportCall

  // Changes whenever a handle that was found before may no longer be right.
  uint64_t generation = 0;
  // [num_defaults, dim]; with a filter one more, which a key without a row
  // reads. The home reads them too.
  std::vector<float> defaults;
  int64_t num_defaults = 0;
  std::vector<SlotSpec> slots;              // by column
  std::unique_ptr<AdmissionFilter> filter;  // null: every key is admitted
  EvictionHand hand;
  // Of each snapshot that is being read; changed by the call that begins or
  // ends one.
  std::vector<FrozenRows*> frozen_rows;
  std::unique_ptr<TableChanges> changes;  // null until CutChanges
  std::mutex export_changes;  // one ExportChanges at a time, before the gate
  std::atomic<int64_t> evicted_rows{0};
  HashIndex index;
  // Gives out handles and keeps what rows count about themselves.
  std::unique_ptr<RowHandles> rows;  // null until initialized
  std::mutex unused_handles_mu;
  // Handles that no key got because their home had no memory for a row: given
  // back by the call that takes the failed call back.
  std::vector<RowHandle> unused_handles;
  std::unique_ptr<RowHome> home;  // where the rows are; null until initialized
  RowStorage storage = RowStorage::kDram;  // the home's
  std::string why_not_on_gpu;  // with kAuto; empty when rows are there
};

// Room for rows to be written, for as long as this lives.
class RowRoom {
 public:
  RowRoom() {}
  ~RowRoom() {
    if (table_ != nullptr) table_->home->Unreserve(rows_);
  }
  RowRoom(const RowRoom&) = delete;
  RowRoom& operator=(const RowRoom&) = delete;

  // For so many rows. REQUIRES the gate for as long as this lives.
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

// The gates of several tables, which may be named several times, entered in the
// global order.
class SharedGates {
 public:
  enum class Purpose { kReading, kUpdating };

  SharedGates(std::vector<EmbeddingTable::Impl*> tables, Purpose purpose);
  ~SharedGates();
  SharedGates(const SharedGates&) = delete;
  SharedGates& operator=(const SharedGates&) = delete;

  // Each table once, in the global order.
  const std::vector<EmbeddingTable::Impl*>& tables() const { return tables_; }

 private:
  std::vector<EmbeddingTable::Impl*> tables_;
  const Purpose purpose_;
};

// The update locks of tables that are distinct and in the global order, whose
// gates are held.
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
