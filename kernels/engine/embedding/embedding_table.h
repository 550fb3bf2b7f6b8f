// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// One embedding variable: index, rows and meta under one façade. Index and meta
// are in CPU memory (a GPU may have counted what the meta has not taken yet,
// rows/gpu_compute.h), rows there, in the memory of a GPU, in both, or partly
// on an SSD.
//
// Every member may be called by any number of threads at once. A table-wide
// gate (table_gate.h) orders them: lookups, updates, inserts and counters run
// at once; Initialize, EnsureSlots that changes something, Erase, Clear and
// Import are alone. Export, and a TableReader (table_reader.h) for as long as
// it lives, give one frozen snapshot of keys, values, slots and meta while all
// calls go on that need not be alone; a delta keeps updates and inserts out,
// and so do an export, a reader's beginning and GetMeta while they take what a
// GPU has counted. A call on several tables enters their gates in one global
// order. Two updates of the same row at once each apply whole, in some order; a
// reader may see a row between the writes of two elements, never between two
// bytes of one element.
//
// Any int64 is a key, or any int32. A key is in the table once it has been
// updated, written or imported; until then it reads its default row,
// floormod(key, R) of R. With an admission filter, an update inserts only keys
// that have occurred often enough, counted by updates alone; the gradients of
// the others are dropped, and every lookup reads them as
// admission.no_permission. Lookups neither insert nor count.
//
// A table with a capacity holds no more rows when an update, a write or an
// import has returned. What is too much goes by rank (policy/cache_strategy.h)
// among a sample of eight times as many keys, or among all in a small table;
// which sample depends on nothing but the order of evictions, so the same steps
// evict the same keys. A row that the evicting call has updated goes only when
// those are too many. Cost: a look at eight keys per evicted row, alone in the
// gate.
//
// Errors name the table. Unless a comment says more, a call that fails has
// changed nothing, but that it may have added slots. Every call but Initialize
// is FailedPrecondition before Initialize; ResourceExhausted can come from any
// call that needs memory.

#ifndef KERNELS_ENGINE_EMBEDDING_EMBEDDING_TABLE_H_
#define KERNELS_ENGINE_EMBEDDING_EMBEDDING_TABLE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/engine/base/device_stream.h"
#include "kernels/engine/base/parallel.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/policy/admission.h"
#include "kernels/engine/policy/cache_strategy.h"
#include "kernels/engine/policy/capacity.h"
#include "kernels/engine/rows/row_home.h"
#include "kernels/engine/rows/row_storage.h"

namespace ev {

// Initialize fails when the rows' home cannot be made (row_storage.h).
struct TableOptions : RowStorageOptions {
  std::string name;  // for messages
  int64_t dim = 0;   // >= 1
  bool record_frequency = false;
  bool record_version = false;
  // Keys are int32: any other is InvalidArgument, whichever way it comes in.
  bool int32_keys = false;
  // Steps that updates are stamped with are no steps but times: several calls
  // may have one. Which of them was the later one decides what is evicted.
  bool versions_are_times = false;
  // Updates are expected to be steps of a GPU that has the rows (rows/
  // gpu_step.h): it tallies what they count, in 16 bytes for each row, instead
  // of telling it to the CPU each time. Of a table without a capacity whose
  // strategy keeps no first call.
  bool tallies_on_gpu = false;
  AdmissionOptions admission;
  CapacityOptions capacity;

  // With what the policies need to be recorded: a filter the frequency, a
  // capacity the version, and the frequency if its strategy needs it.
  TableOptions Completed() const;
};

// One optimizer slot of the rows: its name ("Adagrad", "Adam_1") and the
// constant that a new row starts with.
struct SlotSpec {
  std::string name;
  float initial_value;
};

// What Export gives: keys in ascending order of (floormod(key, 1000), key), so
// the same table gives the same bytes whatever the insertion order.
struct TableSnapshot {
  std::vector<int64_t> keys;              // [N]
  std::vector<float> values;              // [N, dim]
  std::vector<std::vector<float>> slots;  // one [N, dim] per requested slot
  std::vector<int64_t>
      versions;  // [N], or [0] when not recorded; -1: never updated
  std::vector<int64_t> frequencies;       // [N], or [0] when not recorded
  std::vector<int32_t> partition_offset;  // [1001]
  // The keys that an exact filter counts and has not admitted, in the same
  // order.
  std::vector<int64_t> filtered_keys;         // [M]
  std::vector<int64_t> filtered_versions;     // [M], or [0] when not recorded
  std::vector<int64_t> filtered_frequencies;  // [M]
  std::vector<int32_t> filtered_partition_offset;  // [1001]
};

// What ExportChanges gives.
struct TableDelta {
  // The table is to be emptied first: 'changed' is all of it.
  bool replaces = false;
  // Keys to erase first, row and filter's count, in the order of a snapshot.
  std::vector<int64_t> erased;
  TableSnapshot changed;  // rows and counts to insert or overwrite
  int64_t cut = 0;        // to ask for what comes after this delta
};

struct TableStats {
  // row_bytes: in memory, a GPU's and the CPU's, also where rows are on an SSD.
  int64_t rows, index_bytes, row_bytes;
  // Since creation. A call adds its rows when it ends: while one is under way,
  // 'rows' may be ahead.
  int64_t inserted_rows;
  int64_t filtered_keys, filter_bytes;
  int64_t evicted_rows;  // since creation, by capacity, step or weight
};

struct ImportedNumbers;

class EmbeddingTable {
 public:
  // Allocates next to nothing.
  explicit EmbeddingTable(const TableOptions& options);
  ~EmbeddingTable();
  EmbeddingTable(const EmbeddingTable&) = delete;
  EmbeddingTable& operator=(const EmbeddingTable&) = delete;

  // Sets the default rows [num_default_rows, dim] that new keys copy (row
  // floormod(key, num_default_rows)), forgets all keys and all slots, and makes
  // the table usable. Calling it again empties the table. InvalidArgument: dim
  // below 1, no default row, a size that does not fit, or policies that make no
  // sense.
  Status Initialize(Span<const float> default_rows, int64_t num_default_rows);
  bool initialized() const;
  // Where the rows are since Initialize: anything but kAuto. 'why' (null: not
  // wanted): what kept those of a table with kAuto out of a GPU, else empty.
  RowStorage storage(std::string* why = nullptr) const;
  // Whether a device pools samples, of lookups without weights and with a
  // combiner that adds: outputs in base/transfer_memory.h are written by the
  // device itself. As Initialize found it.
  bool pools_on_device() const;
  // Whether lookups without weights, and with a combiner that adds, put their
  // output into memory of the device that has the rows, and updates read
  // gradients there (base/device_stream.h). As Initialize found it.
  bool takes_device_tensors() const;

  const TableOptions& options() const;
  int64_t size() const;  // keys; 0 before Initialize
  // InvalidArgument unless all are keys of the table's type.
  Status CheckKeys(Span<const int64_t> keys) const;
  TableStats stats() const;
  TierStats tier_stats() const;  // zeros where all rows are in CPU memory
  // Names and initial values by column.
  std::vector<SlotSpec> slots() const;
  // What Initialize got, [R, dim]; empty before.
  std::vector<float> default_rows() const;

  // Makes the rows hold these slots (adding what is missing, filled with the
  // initial value in rows that exist) and gives their columns (null: not
  // wanted). Cheap when all are there. A slot that exists with another initial
  // value takes the new one, for rows made from now on. InvalidArgument: a name
  // twice or empty. Adding moves every row once, slab by slab.
  Status EnsureSlots(Span<const SlotSpec> slots, std::vector<int>* columns);

  // out[i] = value of keys[i], or its default row when absent. Inserts nothing.
  // out: [N, dim]. Any duplicates.
  Status Gather(Span<const int64_t> keys, float* out, Parallel* parallel) const;

  // The same into the memory of the device that has the rows, which takes such
  // tensors (FailedPrecondition otherwise). Fewer than 2^31 keys. Written when
  // it returns.
  Status GatherOnDevice(Span<const int64_t> keys, const DeviceStream& stream,
                        float* out, Parallel* parallel) const;

  // frequency 0 and version -1 for a key that is absent or when not recorded.
  // For a key that the filter keeps out, what the filter counted. Where a GPU
  // has counted what was not taken yet, 16 bytes of every row are read there.
  Status GetMeta(Span<const int64_t> keys, int64_t* frequencies,
                 int64_t* versions) const;

  // Reads value and slots of keys, absent keys as a new row would be; adds the
  // slots to the table when missing. values [M, dim], slot_values: one [M, dim]
  // per slot.
  Status ReadRows(Span<const int64_t> keys, Span<const SlotSpec> slots,
                  float* values, Span<float* const> slot_values,
                  Parallel* parallel);
  // Which of 'keys', by position and ascending, may be trained now; counts the
  // occurrences (null: 1 each) of the others. A key that is admitted by this
  // call has its default row then. All of them without a filter, and nothing is
  // inserted. For the generic optimizer path, before ReadRows; keys are
  // distinct.
  Status Admit(Span<const int64_t> keys, const int64_t* counts, int64_t step,
               std::vector<int32_t>* admitted);

  // Inserts or overwrites rows (value and the named slots; other slots stay, or
  // start at their initial value), stamps version = step and adds counts[i]
  // (null: 1 each) to the frequency. For the generic optimizer path.
  // InvalidArgument when a key comes twice.
  Status WriteRows(Span<const int64_t> keys, Span<const SlotSpec> slots,
                   const float* values, Span<const float* const> slot_values,
                   const int64_t* counts, int64_t step, Parallel* parallel);

  // Inserts what is absent and reads the rows, out [N, dim], as they are before
  // rows are evicted for want of capacity; gives the keys and values [E, dim]
  // of those that this call has evicted, among them perhaps some of 'keys'. The
  // rows get version 'step', and each occurrence counts. An admission filter is
  // not asked. Alone in the gate.
  Status ReadAndEvict(Span<const int64_t> keys, int64_t step, float* out,
                      std::vector<int64_t>* evicted_keys,
                      std::vector<float>* evicted_values);

  // Forgets these keys, also what a filter counted, and gives their memory
  // back. *erased_rows, unless null: how many had a row. Keys of another type
  // than the table's have none. Of a table that is not initialized nothing is
  // there.
  Status Erase(Span<const int64_t> keys, int64_t* erased_rows = nullptr);

  // Evicts rows, and keys that the filter counts, that no update touched for
  // more than steps_to_live steps before 'step'. A row that was never updated
  // is stamped with 'step' instead. FailedPrecondition: versions are not
  // recorded.
  Status EvictStale(int64_t step, int64_t steps_to_live, int64_t* evicted_rows);
  // Evicts rows with half of the sum of the value's squares below the
  // threshold.
  Status EvictWeak(float threshold, int64_t* evicted_rows);

  // Forgets all keys; default rows and slot columns stay. FailedPrecondition
  // before Initialize.
  Status Clear();

  // Forgets all keys, and that the table was initialized: after a restore that
  // failed half-way no call takes what is there for whole.
  void Uninitialize();

  // NotFound: no such slot. Of one moment; updates go on meanwhile.
  Status Export(Span<const std::string> slots, TableSnapshot* snapshot) const;

  // Inserts or overwrites; of a key that comes twice the last counts. Slots
  // that are not given get their initial value; versions / frequencies may be
  // empty (then -1 / 0). With a filter all are admitted, with a frequency of at
  // least its threshold. Keeps only keys with floormod(floormod(key, 1000),
  // num_parts) == part (num_parts 1: all). ResourceExhausted leaves what was
  // imported so far.
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
  // Overwrites one slot of the keys that have a row, wherever the others are to
  // be found; a key that comes twice takes the last. Adds the slot when
  // missing. values: [N, dim].
  Status ImportSlot(Span<const int64_t> keys, const SlotSpec& slot,
                    const float* values);
  // Takes over what another table's filter counted. Keys that have a row are
  // left alone; those that the threshold now admits get their default row;
  // without a filter nothing happens. versions may be empty (-1), frequencies
  // too (1).
  Status ImportFiltered(Span<const int64_t> keys, Span<const int64_t> versions,
                        Span<const int64_t> frequencies, int part,
                        int num_parts);

  // Changes (table_changes.h; the following three are in table_delta.cc).

  // Ends an epoch and gives its number: ExportChanges(*cut) gives what changes
  // from now on. The first call begins to record changes, at 4 bytes a row and
  // a store per updated row; it goes on for as long as the table lives.
  Status CutChanges(int64_t* cut);
  // One frozen moment of what changed since a cut, for a copy that was as the
  // table then: erase, then import rows, then import the filter's counts (a
  // Bloom filter's are not part of it, as they are not of Export), and the copy
  // is as the table is now. Looking changes nothing: a caller that has lost the
  // answer asks again since the same cut. A call tells that what was before
  // 'since' is needed no more; a caller that asks for it nevertheless, for what
  // was before the recording, or from before the table was emptied, gets all of
  // the table. FailedPrecondition: nothing is recorded. InvalidArgument: a cut
  // that did not happen. NotFound: no such slot. Cost: a look at every key of
  // the table and a copy of the rows that changed; lookups go on meanwhile,
  // updates wait.
  Status ExportChanges(int64_t since, Span<const std::string> slots,
                       TableDelta* delta);
  // As Export, but of rows with a version of at least 'version'; the filter's
  // counts are left out. FailedPrecondition: versions are not recorded. Cost:
  // a look at every row's meta and a copy of those rows; lookups go on
  // meanwhile, updates wait.
  Status ExportNewer(int64_t version, Span<const std::string> slots,
                     TableSnapshot* snapshot) const;

  class Impl;  // for this room's files
  Impl* impl() const { return impl_.get(); }

 private:
  const std::unique_ptr<Impl> impl_;
};

}  // namespace ev

#endif  // KERNELS_ENGINE_EMBEDDING_EMBEDDING_TABLE_H_
