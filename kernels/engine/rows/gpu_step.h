// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// One lookup of one or many tables whose rows are all in one GPU's memory, and
// its update. All tables share the same kernel launches.
//
// The GPU has a key table of each embedding table, which holds every key that
// has a row (GpuTableCompute::NewKeyedRow). A key that is not in it has no row,
// so the GPU reads the key's default row, and the CPU waits for nothing. The
// update copies the keys without a row to the host, to admit or insert them
// (Settle of the table's DeviceDistinct).
//
//   Put, Start   of each table's DeviceDistinct: ids and samples are copied to
//                the GPU. The last table's Start launches the lookup.
//   Wait         of each: the samples are valid.
//   Pool         orders the outputs before later work of the caller's stream.
//   TakeOutput   of each table with an output in host memory: writes it.
//   Settle       of each table to update: its keys without a row are in host
//                memory.
//   Update       updates some or all tables together.
//
// Ids are not deduplicated: an id is found as often as it occurs. Fetch of the
// table's DeviceDistinct deduplicates them for callers that need distinct keys.
//
// Ids in memory that the GPU reads in place (base/transfer_memory.h) are not
// put; DeviceDistinct::needs_put is false for them.
//
// Ids and samples in GPU memory are not put either, and Start is called without
// samples. The GPU checks that such samples are sorted; Wait returns
// Unimplemented if they are not, and the caller copies them to the host to find
// out which.
//
// ORDER. Work continues after the calls return. It runs after the work that the
// given stream had before the call, and before the work that this stream gets
// later. Calls on the same rows run in the order in which they were made. If
// there is no stream, outputs and gradients are in host memory.

#ifndef KERNELS_ENGINE_ROWS_GPU_STEP_H_
#define KERNELS_ENGINE_ROWS_GPU_STEP_H_

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

class DeviceGradients;  // gpu_compute.h
class GpuTableCompute;  // gpu_compute.h

// Ids of all tables of a step together, at most.
constexpr int64_t kMaxStepIds = (int64_t{1} << 31) - 1;

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
  // num_defaults). num_defaults >= 1.
  int64_t first_default = 0, num_defaults = 1;
  // [B, dim]: the output, in GPU memory. In host memory if the step has no
  // stream; TakeOutput writes it then.
  float* out = nullptr;
  // Instead, if each sample is one id and the step has a stream: the outputs of
  // all samples, in order, in pieces.
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
  // [K]: handles of the keys that had no row at the lookup; kNoRow for keys
  // that still have none.
  Span<const RowHandle> unknown_handles;
  const float* grads = nullptr;  // [B, dim], in GPU memory
  // Instead: gradients that were copied from host memory.
  DeviceGradients* put_grads = nullptr;
  bool notes_rows = false;  // GpuStepNotes has the table's
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

  // After Wait of all tables: the outputs are written, bit for bit as by
  // PoolSamples, before later work of the step's stream. InvalidArgument: an
  // output is in another GPU's memory.
  virtual Status Pool() = 0;
  // After Pool of a step without a stream: waits for the GPU, and for the
  // output of table t in host memory. Once for each table; calls for different
  // tables may be concurrent.
  virtual Status TakeOutput(int t) = 0;

  // After Pool, at most once: what the step could do towards its update by
  // then, which takes a processor some 50 us. To be called by any thread, or
  // dropped: an update that comes before does it itself. null: nothing. It
  // keeps the step alive.
  virtual std::function<void()> TakeRest() { return nullptr; }

  // Whether Update knows the rule, and rows with its slots in these columns.
  virtual bool CanUpdate(const std::string& rule,
                         Span<const int> slot_columns) const = 0;
  // Begins an update, after Pool. Gradients are summed per key in the order of
  // its occurrences. Keys without a row are skipped. stream: of gradients in
  // GPU memory; null if all were copied from host memory. *notes: null where no
  // table of the update notes its rows. InvalidArgument: as Pool. Updates of
  // different tables may be begun at once.
  virtual Status Update(const std::string& rule, Span<const float> hyper,
                        Span<const GpuStepUpdate> updates,
                        const DeviceStream* stream,
                        std::unique_ptr<GpuStepNotes>* notes) = 0;
};

}  // namespace ev

#endif  // KERNELS_ENGINE_ROWS_GPU_STEP_H_
