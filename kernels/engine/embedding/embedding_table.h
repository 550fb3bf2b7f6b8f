// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The table of one embedding variable: index, rows and row metadata. Index and
// metadata are in CPU memory; a GPU may hold counts that have not been added to
// the metadata yet (rows/gpu_compute.h). Rows are in CPU memory, in GPU memory,
// in both, or partly on an SSD.
//
// All members are thread-safe. A table lock (table_lock.h) orders the
// calls. Lookups, updates, inserts and counters run concurrently. Calls that
// move or remove rows run alone: Initialize, Uninitialize, Erase, Clear, all
// imports, evictions, and an EnsureSlots that changes something. CutChanges
// runs alone, too. A call on several tables takes their table locks in one
// global order. Two concurrent updates of one row are each applied whole, in
// some order. A reader may see a row between the writes of two elements, never
// between two bytes of one element.
//
// Export returns keys, values, slots and metadata as of one moment; a
// TableReader (table_reader.h) reads the same in pieces. Calls that run alone
// wait until the export or the reader has ended. Updates and inserts wait only
// while it starts, which includes copying counts from a GPU, and in the cases
// that table_reader.h lists. ExportChanges and ExportNewer block updates and
// inserts until they return. GetMeta blocks them only while it copies counts
// from a GPU.
//
// A key is any int64, or any int32 with int32_keys. It is in the table once it
// has been updated, written or imported. Until then lookups return its default
// row, number floormod(key, R) of R. With an admission filter they return
// admission.no_permission for each element instead, an update inserts only keys
// that have occurred often enough, and gradients of other keys are dropped.
// Only updates count occurrences; lookups neither insert nor count.
//
// A table with a capacity does not exceed it after an update, a write or an
// import. (If there is no memory for the eviction, the next call evicts.) The
// surplus is evicted by rank (policy/cache_strategy.h) from a sample of eight
// times as many keys, or from all keys of a small table. The sample depends
// only on the order of evictions, so the same steps evict the same keys. A call
// evicts rows that it has itself updated only if these rows alone are more than
// the capacity. Cost: reads eight keys per evicted row, alone under the table
// lock.
//
// Errors name the table. Unless documented otherwise, a failed call has changed
// nothing, except that it may have added slots and, after an error of a GPU or
// an SSD, that WriteRows may have written some of its rows. Before Initialize,
// calls return FailedPrecondition, unless documented otherwise. Any call that
// needs memory may return ResourceExhausted.

#ifndef KERNELS_ENGINE_EMBEDDING_EMBEDDING_TABLE_H_
#define KERNELS_ENGINE_EMBEDDING_EMBEDDING_TABLE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/engine/base/device_stream.h"
#include "kernels/engine/base/parallel.h"
#include "kernels/engine/base/slot_name.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/policy/admission.h"
#include "kernels/engine/policy/cache_strategy.h"
#include "kernels/engine/policy/capacity.h"
#include "kernels/engine/rows/row_home.h"
#include "kernels/engine/rows/row_storage.h"

namespace ev {

// Options of a table. Initialize fails if the rows' home cannot be created
// (rows/make_row_home.h).
struct TableOptions : RowStorageOptions {
  std::string name;  // for messages
  int64_t dim = 0;   // >= 1
  bool record_frequency = false;
  bool record_version = false;
  // Keys are int32; other keys are InvalidArgument, except in Erase and
  // ImportSlot, which ignore them, and keys of other parts in imports.
  bool int32_keys = false;
  // With a narrow value_type: updates round values to nearest. Otherwise
  // stochastically (base/random_rounding.h).
  bool rounds_to_nearest = false;
  int64_t rounding_seed =
      0;  // of the stochastic rounding; a restore replaces it
  // Versions are timestamps, not step numbers, so calls of different steps may
  // share one. If a table is full, LFU and FIFO then spare only the rows of the
  // evicting call, not all rows with its version.
  bool versions_are_times = false;
  // The GPU keeps the frequencies and versions that updates record in pending
  // counters of 16 bytes per row, instead of copying them to the CPU in each
  // update. For tables whose rows are in a GPU's memory and that are mostly
  // updated in steps of that GPU (rows/gpu_step.h). Ignored for a table that
  // has a capacity, or whose strategy has kKeepsFirstCall
  // (policy/cache_strategy.h).
  bool counts_on_gpu = false;
  AdmissionOptions admission;
  CapacityOptions capacity;

  // Returns these options, with record_frequency and record_version also set if
  // the policies need them: the frequency for a filter, the version for a
  // capacity, and the frequency for a capacity whose strategy needs it.
  TableOptions Completed() const;
};

// One optimizer slot of the rows: its name ("Adagrad", "Adam_1"), which
// determines its width, and the constant that a new row starts with.
struct SlotSpec {
  std::string name;
  float initial_value;

  bool is_per_row() const { return IsPerRowSlot(name); }
  int64_t WidthIn(int64_t dim) const { return SlotWidth(name, dim); }
};

// A tensor of the table as a whole (table_tensors.h).
struct TableTensor {
  std::vector<int64_t> shape;
  std::vector<char> bytes;  // elements in their memory layout
};

// Result of Export. Keys are in ascending order of (floormod(key, 1000), key),
// so the bytes do not depend on the order of inserts.
struct TableSnapshot {
  std::vector<int64_t> keys;              // [N]
  std::vector<float> values;              // [N, dim]
  std::vector<std::vector<float>> slots;  // one [N, width] per requested slot
  std::vector<int64_t>
      versions;  // [N], or [0] when not recorded; -1: never updated
  std::vector<int64_t> frequencies;       // [N], or [0] when not recorded
  std::vector<int32_t> partition_offset;  // [1001]
  // Keys that an exact filter has counted and not admitted, in the same order.
  std::vector<int64_t> filtered_keys;         // [M]
  std::vector<int64_t> filtered_versions;     // [M], or [0] when not recorded
  std::vector<int64_t> filtered_frequencies;  // [M]
  std::vector<int32_t> filtered_partition_offset;  // [1001]
  std::vector<TableTensor> tensors;  // empty in the result of ExportNewer
};

// Result of ExportChanges.
struct TableDelta {
  // True if the copy must be emptied first; 'changed' is then the whole table.
  bool replaces = false;
  // Keys to erase first, with their rows and filter counts, in snapshot order.
  std::vector<int64_t> erased;
  TableSnapshot changed;  // rows and counts to insert or overwrite
  int64_t cut = 0;        // 'since' of the delta that follows this one
};

struct TableStats {
  // row_bytes: bytes of rows in GPU and CPU memory; rows on an SSD are not
  // included.
  int64_t rows, index_bytes, row_bytes;
  // Rows inserted since creation. Increased after the rows are in the table, so
  // 'rows' may count rows of a call in flight that this does not.
  int64_t inserted_rows;
  int64_t filtered_keys, filter_bytes;
  int64_t evicted_rows;  // since creation, by capacity, step or weight
  int64_t overflows;     // RowHome::overflows
};

struct ImportedNumbers;

class EmbeddingTable {
 public:
  // Allocates almost nothing; Initialize does.
  explicit EmbeddingTable(const TableOptions& options);
  ~EmbeddingTable();
  EmbeddingTable(const EmbeddingTable&) = delete;
  EmbeddingTable& operator=(const EmbeddingTable&) = delete;

  // Sets the default rows [num_default_rows, dim] that new keys copy (row
  // floormod(key, num_default_rows)), removes all keys and all slots, and makes
  // the table usable. Calling it again empties the table. InvalidArgument: dim
  // below 1, no default row, a size that does not match, or invalid policies.
  Status Initialize(Span<const float> default_rows, int64_t num_default_rows);
  bool initialized() const;
  // Returns where Initialize placed the rows; never kAuto. If a table with
  // kAuto is not on a GPU, *why is the reason, otherwise it is empty; 'why' may
  // be null.
  RowStorage storage(std::string* why = nullptr) const;
  // Returns whether a device pools the samples of lookups that have no weights
  // and a combiner that adds. If so, the device writes outputs that are in
  // transfer memory (base/transfer_memory.h) directly. Fixed by Initialize.
  bool pools_on_device() const;
  // Returns whether lookups without weights whose combiner adds can write their
  // output to memory of the device that has the rows, and updates can read
  // gradients from it (base/device_stream.h). Fixed by Initialize.
  bool takes_device_tensors() const;

  const TableOptions& options() const;
  int64_t size() const;  // keys; 0 before Initialize
  // InvalidArgument unless all are keys of the table's type.
  Status CheckKeys(Span<const int64_t> keys) const;
  TableStats stats() const;
  // Counts of the two fastest tiers; zeros if all rows are in CPU memory.
  TierStats tier_stats() const;
  // Those of the second tier and the third; zeros if there are fewer.
  TierStats tier_stats_below() const;
  // Names and initial values by column.
  std::vector<SlotSpec> slots() const;
  // The default rows that Initialize got, [R, dim]; empty before.
  std::vector<float> default_rows() const;

  // Adds the slots that are missing; existing rows get their initial value.
  // Unless 'columns' is null, sets *columns to the column of each of 'slots'.
  // Cheap if none is missing. An existing slot with another initial value takes
  // the new one for rows created from now on. InvalidArgument: a name that is
  // empty or occurs twice. Adding slots moves every row once, slab by slab.
  Status EnsureSlots(Span<const SlotSpec> slots, std::vector<int>* columns);

  // out[i] = value of keys[i], or its default row if absent. Inserts nothing.
  // out: [N, dim]. Keys may repeat.
  Status Gather(Span<const int64_t> keys, float* out, Parallel* parallel) const;

  // Reads frequencies and versions: 0 and -1 for a key that is absent, or if
  // they are not recorded. For a key that the filter has counted and not
  // admitted, reads the filter's count. If a GPU has pending counters that are
  // not in the metadata yet, copies it first, 16 bytes per row of the table.
  Status GetMeta(Span<const int64_t> keys, int64_t* frequencies,
                 int64_t* versions) const;

  // Reads value and slots of keys; absent keys read as a new row would. Adds
  // slots that the table lacks. values [M, dim], slot_values: one [M, width]
  // per slot.
  Status ReadRows(Span<const int64_t> keys, Span<const SlotSpec> slots,
                  float* values, Span<float* const> slot_values,
                  Parallel* parallel);
  // Decides which keys may be trained now, and sets *admitted to their
  // positions, ascending. Of the other keys, adds counts[i] (null: 1 each) to
  // the filter's count; WriteRows counts those of admitted keys. A key that
  // this call admits gets its default row. Without a filter all keys are
  // admitted and nothing is inserted. For the generic optimizer path, before
  // ReadRows; keys are distinct.
  Status Admit(Span<const int64_t> keys, const int64_t* counts, int64_t step,
               std::vector<int32_t>* admitted);

  // Inserts or overwrites rows (value and the named slots; other slots stay, or
  // start at their initial value), stamps version = step and adds counts[i]
  // (null: 1 each) to the frequency. For the generic optimizer path.
  // InvalidArgument if a key occurs twice.
  Status WriteRows(Span<const int64_t> keys, Span<const SlotSpec> slots,
                   const float* values, Span<const float* const> slot_values,
                   const int64_t* counts, int64_t step, Parallel* parallel);

  // Inserts absent keys and reads the rows into out [N, dim], then evicts rows
  // beyond the capacity. Returns keys and values [E, dim] of the evicted rows,
  // possibly including some of 'keys'. The rows get version 'step', and each
  // occurrence of a key adds one to its frequency. Bypasses an admission
  // filter. Runs alone under the table lock.
  Status ReadAndEvict(Span<const int64_t> keys, int64_t step, float* out,
                      std::vector<int64_t>* evicted_keys,
                      std::vector<float>* evicted_values);

  // Removes keys with their rows and filter counts, and frees the memory.
  // *erased_rows, unless null: how many keys had a row. Keys beyond the table's
  // key type are ignored. No-op if the table is not initialized.
  Status Erase(Span<const int64_t> keys, int64_t* erased_rows = nullptr);

  // Evicts rows, and keys that the filter counts, whose last update is more
  // than steps_to_live steps before 'step'. A row that was never updated gets
  // version 'step' instead. FailedPrecondition: versions are not recorded.
  Status EvictStale(int64_t step, int64_t steps_to_live, int64_t* evicted_rows);
  // Evicts rows for which half of the sum of the value's squares is below the
  // threshold.
  Status EvictWeak(float threshold, int64_t* evicted_rows);

  // Removes all keys; default rows and slot columns stay. FailedPrecondition
  // before Initialize.
  Status Clear();

  // Removes all keys and makes the table uninitialized again, so that no call
  // takes the partial contents of a failed restore for the whole table.
  void Uninitialize();

  // Exports the table as of one moment; updates go on meanwhile. NotFound: no
  // such slot.
  Status Export(Span<const std::string> slots, TableSnapshot* snapshot) const;

  // Inserts or overwrites rows; if a key occurs twice, the last one counts.
  // Slots that are not given get their initial value; versions and frequencies
  // may be empty (then -1 and 0). All keys count as admitted: with a filter, a
  // key whose frequency is below the threshold gets the threshold. Imports only
  // keys with floormod(floormod(key, 1000), num_parts) == part (num_parts 1:
  // all). After an error that is not one of the arguments, rows imported so far
  // remain; so do those of ImportSlot and ImportFiltered.
  Status Import(Span<const int64_t> keys, const float* values,
                Span<const SlotSpec> slots,
                Span<const float* const> slot_values,
                Span<const int64_t> versions, Span<const int64_t> frequencies,
                int part, int num_parts);
  // The same with all numbers of the rows (row_numbers.h).
  Status Import(Span<const int64_t> keys, const float* values,
                Span<const SlotSpec> slots,
                Span<const float* const> slot_values,
                const ImportedNumbers& numbers, int part, int num_parts);
  // Overwrites one slot of the keys that have a row, and skips the others. If a
  // key occurs twice, the last one counts. Adds the slot if it is missing.
  // values: [N, width].
  Status ImportSlot(Span<const int64_t> keys, const SlotSpec& slot,
                    const float* values);
  // Imports the counts of another table's filter. Keys that have a row are
  // skipped; keys that this table's threshold admits get their default row.
  // No-op without a filter. versions and frequencies may be empty (then -1 and
  // 1).
  Status ImportFiltered(Span<const int64_t> keys, Span<const int64_t> versions,
                        Span<const int64_t> frequencies, int part,
                        int num_parts);

  // Changes, for incremental checkpoints (table_changes.h, table_delta.cc).

  // Ends an epoch and sets *cut to its number; ExportChanges(*cut) exports what
  // changes from now on. The first call starts the recording of changes, which
  // costs 4 bytes per row and a store per updated row and lasts as long as the
  // table.
  Status CutChanges(int64_t* cut);
  // Exports what changed since the cut 'since', as of one moment. To bring a
  // copy of the table from that cut up to date, erase keys, then import rows,
  // then import the filter's counts (a Bloom filter's are not exported, as in
  // Export). Exporting does not consume the changes: a caller that has lost a
  // delta can export it again from the same cut. The record of changes before
  // 'since' is dropped. The whole table is exported if the record does not
  // reach back to 'since': an export from a later cut has dropped that part,
  // the recording began later, or the table has been emptied since.
  // FailedPrecondition: changes are not recorded. InvalidArgument: a cut that
  // does not exist. NotFound: no such slot. Cost: reads every key of the table
  // and copies the rows that changed; lookups go on meanwhile, updates wait.
  Status ExportChanges(int64_t since, Span<const std::string> slots,
                       TableDelta* delta);
  // Like Export, but only rows with a version of at least 'version', and
  // without the filter's counts. FailedPrecondition: versions are not recorded.
  // Cost: reads every row's metadata and copies those rows; lookups go on
  // meanwhile, updates wait.
  Status ExportNewer(int64_t version, Span<const std::string> slots,
                     TableSnapshot* snapshot) const;

  class Impl;  // for the files of this folder
  Impl* impl() const { return impl_.get(); }

 private:
  const std::unique_ptr<Impl> impl_;
};

}  // namespace ev

#endif  // KERNELS_ENGINE_EMBEDDING_EMBEDDING_TABLE_H_
