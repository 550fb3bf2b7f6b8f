// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// One lookup of many tables whose rows are all in one GPU's memory, and its
// update: all tables in the same launches, whatever their number. Outputs and
// gradients are in the GPU's memory.
//
// Where the GPU KNOWS ALL keys of all tables (GpuTableCompute::NewKeyedRow), as
// it does unless it was short of memory, a key that it does not know has no
// row: the GPU reads the key's default row, and the processor waits for
// nothing. The keys without a row are brought here when the update asks for
// them (Settle of the table's DeviceDistinct).
//
//   Put, Start         of each table's DeviceDistinct: ids and samples go up.
//                      With the last table's Start the GPU looks for all ids.
//   Wait               of each: its unknown keys are here; none where the GPU
//                      knows all.
//   SetUnknownHandles  of each: which rows they have, or read.
//   Pool               is begun for all tables together.
//   Settle             of each that is updated: its keys without a row are
//                      here.
//   Update             is begun for some or all tables together.
//
// The GPU makes no id distinct for that: an id is found as often as it occurs.
// A caller that wants distinct keys after all calls Fetch of the table's
// DeviceDistinct, which then deduplicates.
//
// Ids in memory that the GPU reads by itself (base/transfer_memory.h) are not
// put, where DeviceDistinct::needs_put says so.
//
// Ids and samples that are in the GPU's memory are not put either, and Start is
// called without samples. Of those the GPU looks itself whether samples are in
// order, and a caller whose are not brings them here to hear which: Wait then
// gives Unimplemented.
//
// ORDER. What is begun goes on after the call. It comes after what the given
// stream was given before, and what that stream is given later comes after it;
// other calls on the same rows come in the order in which they were made.

#ifndef KERNELS_ENGINE_ROWS_GPU_STEP_H_
#define KERNELS_ENGINE_ROWS_GPU_STEP_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernels/engine/base/device_stream.h"
#include "kernels/engine/base/row_handle.h"
#include "kernels/engine/base/row_meta.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/combine/combiner.h"
#include "kernels/engine/ids/device_distinct.h"

namespace ev {

class GpuTableCompute;  // gpu_compute.h

// Ids of all tables of a step together, at most.
constexpr int64_t kMaxStepIds = (int64_t{1} << 31) - 1;

// What a table counts as, in ids, so that four tables are a step with any
// number of ids: with 256 samples each that was faster, with 64 as fast
// (docs/design/0005-gpu-table.md).
constexpr int64_t kIdsForATable = 8192;

// Whether a step of so many tables, with so many ids together, costs less than
// the tables one by one. min_ids: GpuTableCompute::min_ids_to_deduplicate, of
// which a table stands for a quarter at most.
inline bool IsWorthAStep(int64_t num_tables, int64_t num_ids, int64_t min_ids) {
  return num_ids + num_tables * std::min(kIdsForATable, min_ids / 4) >= min_ids;
}

// Samples [begin, begin + count) of a table, and where their rows go.
struct GpuStepPiece {
  int64_t begin = 0, count = 0;
  float* out = nullptr;  // [count, dim], in the GPU's memory
};

// One table of a lookup, without weights. Each table comes once.
struct GpuStepTable {
  GpuTableCompute* table = nullptr;
  int64_t num_ids = 0, num_samples = 0;  // N, B; >= 1
  bool is_narrow = false;                // ids are int32
  Combiner combiner = Combiner::kSum;
  // [N], which the GPU may read until Wait has returned, or while ids_owner
  // lives. on_device: in its
  // memory, as the stream of StartStep has it, and so is one of splits [B + 1]
  // and indices [N, 2]; elsewhere those are null.
  const void* ids = nullptr;
  bool on_device = false;
  const int64_t* splits = nullptr;
  const int64_t* indices = nullptr;
  // The first table of the step that has the same samples; -1 where none before
  // it has. Of others Start is called without samples.
  int samples_of = -1;
  // A key without a row reads default row first_default + floormod(key,
  // num_defaults); 0: that is not said, and the step asks for each.
  int64_t first_default = 0, num_defaults = 0;
  // [B, dim], in the GPU's memory: what Pool will be given, where the caller
  // knows it already; null: it does not. Rows may be pooled before Pool then.
  float* out = nullptr;
  // Instead, of samples of one id each: all of them, in order, in pieces.
  std::vector<GpuStepPiece> pieces;
  // [N] how many occurrences each id stands for, of samples of one id each, for
  // tallies and the counts of GpuStepRows and of unknown keys; null: 1 each.
  // Read when the table's Start returns. What is not in [0, 2^31) is the
  // nearest of those.
  const int64_t* occurrences = nullptr;
  // Keeps the ids for as long as it lives, so that the GPU may read them after
  // Wait; null: nothing does.
  std::shared_ptr<const void> ids_owner;
};

// One table of an update by the gradients of its pooled samples.
struct GpuStepUpdate {
  int number = 0;  // of the table in the step
  GpuTableCompute* table = nullptr;
  // [K] of the unknown keys, rows where the key has one by now; empty: as they
  // were set.
  Span<const RowHandle> unknown_handles;
  const float* grads = nullptr;  // [B, dim], in the GPU's memory
  bool notes_rows = false;       // GpuStepNotes has the table's
  // Not null, instead of notes_rows: in the table's tally (gpu_compute.h) each
  // row that is updated gets this version_plus1 and call, and how often its key
  // occurs is added to its frequency.
  const RowMeta* tally = nullptr;
};

// Rows that an update changes, each once, in any order: the number of the table
// in the step, the row, and how often its key occurs: what its ids stand for,
// at most 2^31 - 1. [R] each.
struct GpuStepRows {
  Span<const int32_t> numbers;
  Span<const RowHandle> rows;
  Span<const uint32_t> counts;
};

// What an update of a step tells of the tables that have said so. It may
// outlive the step.
class GpuStepNotes {
 public:
  virtual ~GpuStepNotes() {}  // waits
  // Waits until the GPU has grouped the occurrences, which needs no gradients
  // but those of earlier updates of the same rows. The rows stay as long as
  // this.
  virtual Status Wait(GpuStepRows* rows) = 0;
};

class GpuStep {
 public:
  virtual ~GpuStep() {}

  // Table t's ids (device_distinct.h), once for each table. It keeps the step
  // alive, and may outlive the rows.
  virtual std::unique_ptr<DeviceDistinct> Distinct(int t) = 0;

  // After Wait of table t's ids: handles [K] of its unknown keys then, as
  // DevicePooling::rows. The GPU knows those of rows from Pool on, as far as it
  // has memory for that. By any thread, once.
  virtual void SetUnknownHandles(int t, Span<const RowHandle> handles) = 0;

  // When all tables' keys have handles: begins to write outputs[t] [B, dim], in
  // the GPU's memory, as PoolSamples gives them, bit for bit; of a table with
  // pieces null, and those. InvalidArgument: an output is in another GPU's
  // memory.
  virtual Status Pool(Span<float* const> outputs,
                      const DeviceStream& stream) = 0;

  // After Pool, at most once: what the step could do towards its update by
  // then, which takes a processor some 50 us. To be called by any thread, or
  // dropped: an update that comes before does it itself. null: nothing. It
  // keeps the step alive.
  virtual std::function<void()> TakeRest() { return nullptr; }

  // Whether Update knows the rule, and rows with its slots in these columns.
  virtual bool CanUpdate(const std::string& rule,
                         Span<const int> slot_columns) const = 0;
  // Begins an update, after Pool. Gradients are summed per key in the order of
  // its occurrences. Keys that have no row are passed over. *notes: null where
  // no table of the update notes its rows. InvalidArgument: as Pool. Updates of
  // different tables may be begun at once.
  virtual Status Update(const std::string& rule, Span<const float> hyper,
                        Span<const GpuStepUpdate> updates,
                        const DeviceStream& stream,
                        std::unique_ptr<GpuStepNotes>* notes) = 0;
};

}  // namespace ev

#endif  // KERNELS_ENGINE_ROWS_GPU_STEP_H_
