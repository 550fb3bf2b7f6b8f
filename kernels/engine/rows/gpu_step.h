// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// A STEP: one lookup of one or many tables with rows that one GPU accesses, in
// its memory or in CPU memory, and its update. All tables share the same kernel
// launches.
//
// For each embedding table the GPU has a key table, which holds every key whose
// row the GPU accesses (GpuRowCompute::NewKeyedRow). For any other key the GPU
// reads the default row, without waiting for the CPU. Before an update, Settle
// copies these keys to the host, where the caller admits or inserts them. If
// the GPU does not access all rows of a table, the caller settles the lookup at
// once. It brings the rows of these keys (RowsBelow), and looks up again if
// there are any.
//
// The calls, in this order:
//
//   Put, Start   copy a table's ids and samples to the GPU. The last table's
//                Start launches the lookup.
//   Pool         waits until samples in GPU memory have been checked, and makes
//                later work of the caller's stream wait for the outputs.
//   TakeOutput   writes a table's output in host memory.
//   Settle       copies the keys without a row of a table that is to be updated
//                to host memory.
//   Update       updates some or all tables together.
//
// Ids are not deduplicated: each occurrence of an id is looked up. Callers that
// need distinct keys copy the ids to the host with BringIds.
//
// Ids in memory that the GPU reads in place (base/transfer_memory.h) are not
// put; needs_put is false for them.
//
// Ids and samples in GPU memory are not put either, and Start is called without
// samples. The GPU checks that such samples are sorted. If they are not, Pool
// returns Unimplemented, and the caller copies them to the host to find the
// wrong one.
//
// ORDER. Calls return while their work is in flight. The work waits for the
// earlier work of the given stream, and later work of that stream waits for it.
// Calls on the same rows run in the order in which they were made. If there is
// no stream, outputs and gradients are in host memory. Put, Start, TakeOutput,
// Settle and BringIds of different tables may be called concurrently, and so
// may several Puts of one table.

#ifndef KERNELS_ENGINE_ROWS_GPU_STEP_H_
#define KERNELS_ENGINE_ROWS_GPU_STEP_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernels/engine/base/device_stream.h"
#include "kernels/engine/base/float_type.h"
#include "kernels/engine/base/row_handle.h"
#include "kernels/engine/base/row_meta.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/combine/combiner.h"

namespace ev {

class DeviceGradients;  // gpu_compute.h
class GpuTableCompute;  // gpu_compute.h

// Maximum number of ids of all tables of a step together.
constexpr int64_t kMaxStepIds = (int64_t{1} << 31) - 1;

// A PIECE of a table's output: the rows of samples [begin, begin + count).
struct GpuStepPiece {
  int64_t begin = 0, count = 0;
  float* out = nullptr;  // [count, dim], in the GPU's memory
};

// One table of a lookup, without weights. A table comes at most once in a step,
// unless all of its inputs are handles.
struct GpuStepTable {
  GpuTableCompute* table = nullptr;
  int64_t num_ids = 0, num_samples = 0;  // N, B; >= 1
  bool is_narrow = false;                // ids are int32
  // True if the CPU has found the rows. The ids are their handles then: rows of
  // 'table', or AbsentAs(r), as int32. No key is looked up, and none is
  // unknown. REQUIRES: is_narrow, and not on_device.
  bool are_handles = false;
  Combiner combiner = Combiner::kSum;
  // [N]. The GPU may read them until Pool has returned or, if ids_owner is set,
  // as long as it lives.
  //
  // If on_device, ids are in GPU memory, and so is either splits [B + 1] or
  // indices [N, 2]; they may be read after the work in the stream of StartStep.
  // Otherwise splits and indices are null.
  const void* ids = nullptr;
  bool on_device = false;
  const int64_t* splits = nullptr;
  const int64_t* indices = nullptr;
  // Number of the first table of the step with the same samples; -1 if no
  // earlier table has them. If it is not -1, Start is called without samples.
  int samples_of = -1;
  // A key without a row reads default row first_default + floormod(key,
  // num_defaults). num_defaults >= 1.
  int64_t first_default = 0, num_defaults = 1;
  // [B, dim]: the output, in GPU memory. In host memory if the step has no
  // stream; TakeOutput writes it then. Sums are float32, and rounded once.
  MutableFloats out;
  // Used instead of 'out' if not empty: pieces that together cover all samples,
  // in order. REQUIRES: each sample is one id, and the step has a stream.
  std::vector<GpuStepPiece> pieces;
  // [N]: the number of occurrences that each id stands for; null: 1 each. It is
  // added to pending counters and to the counts of GpuStepRows and of unknown
  // keys. Values are clamped to [0, 2^31). Not read after the table's Start has
  // returned. REQUIRES: each sample is one id.
  const int64_t* occurrences = nullptr;
  // Keeps the memory of the ids alive, so that the GPU may read them after
  // Pool. May be null.
  std::shared_ptr<const void> ids_owner;
};

// The keys of a table that had no row at the lookup. Valid as long as the step.
struct GpuStepUnknown {
  Span<const int64_t> keys;         // [K], distinct, by first occurrence
  const int32_t* counts = nullptr;  // [K] GpuStepTable::occurrences of each
  int64_t num_ids_of_step = 0;      // ids without a row, of all tables
};

// Arrays of the caller, in host memory, that receive a table's ids.
struct GpuStepIds {
  int64_t* ids = nullptr;      // [N]
  int32_t* offsets = nullptr;  // [B + 1]: where the ids of each sample begin
  // [N]: the row of each id. AbsentAs(r) or kNoRow for a key without a row.
  RowHandle* handles = nullptr;
  // Set by the call: [N], as GpuStepTable::occurrences; null: 1 each. Valid as
  // long as the step.
  const int32_t* occurrences = nullptr;
};

// One table of an update by the gradients of its pooled samples.
struct GpuStepUpdate {
  int number = 0;  // the table's index in the step
  GpuTableCompute* table = nullptr;
  // [K]: handles of the keys that had no row at the lookup; kNoRow for keys
  // that still have none.
  Span<const RowHandle> unknown_handles;
  // [N]: the handles of the occurrences (GpuStepTable::are_handles), if the CPU
  // has found the rows again, or empty. They replace those of the lookup.
  // Values that are no row are skipped. Read until Update returns.
  Span<const RowHandle> handles;
  ConstFloats grads;  // [B, dim], in GPU memory
  // Used instead of 'grads': gradients that were copied from host memory.
  DeviceGradients* put_grads = nullptr;
  bool lists_rows = false;  // GpuMetaUpdates lists the rows of this table
  // If not null, each updated row's pending counters (gpu_compute.h) get this
  // version_plus1 and call, and its key's occurrences are added to the pending
  // counters' frequency. REQUIRES: lists_rows is false.
  const RowMeta* counters = nullptr;
  // With narrow values: the update's salt (base/random_rounding.h), or null for
  // rounding to nearest. Read until Update returns.
  const uint64_t* salt = nullptr;
};

// The rows that an update changes, each once, in any order: the table's index
// in the step, the row, and its key's occurrences (GpuStepTable::occurrences),
// at most 2^31 - 1. [R] each.
struct GpuStepRows {
  Span<const int32_t> numbers;
  Span<const RowHandle> rows;
  Span<const uint32_t> counts;
};

// The rows that an update of a step changes, of the tables with lists_rows. May
// outlive the step.
class GpuMetaUpdates {
 public:
  virtual ~GpuMetaUpdates() {}  // waits
  // Waits until the GPU has grouped the occurrences by row. That does not wait
  // for the update's own gradients, only for earlier updates of the same rows.
  // *rows is valid as long as this object lives.
  virtual Status Wait(GpuStepRows* rows) = 0;
};

class GpuStep {
 public:
  virtual ~GpuStep() {}

  // False if the GPU reads the table's ids in place: in pinned or GPU memory.
  virtual bool needs_put(int t) const = 0;
  // Copies ids [begin, begin + ids.size()) of table t to the GPU; the caller
  // may reuse the span afterwards. REQUIRES: each id is put once, with the type
  // that the table has.
  virtual Status Put(int t, int64_t begin, Span<const int64_t> ids) = 0;
  virtual Status Put(int t, int64_t begin, Span<const int32_t> ids) = 0;
  // Completes the input of table t, once all its ids are put. offsets [B + 1]:
  // where the ids of each sample begin; read before the call returns. Empty if
  // each sample is one id, if the samples are in GPU memory, or if they are
  // those of an earlier table (GpuStepTable::samples_of).
  virtual Status Start(int t, Span<const int32_t> offsets) = 0;

  // Writes the outputs, bit for bit the results of PoolSamples; later work of
  // the step's stream waits for them. Call after Start of all tables.
  // InvalidArgument: an output is in another GPU's memory. Unimplemented:
  // samples in GPU memory are not sorted.
  virtual Status Pool() = 0;
  // For a step without a stream, after Pool: waits for the GPU, and writes the
  // output of table t to host memory. Call once for each table; calls for
  // different tables may be concurrent.
  virtual Status TakeOutput(int t) = 0;

  // After Pool, at most once: returns the part of the update that needs no
  // gradients, or null if there is none. Any thread may call it, which takes
  // some 50 us of CPU time, or the caller may drop it; Update does the work if
  // it has not been done. The function keeps the step alive.
  virtual std::function<void()> TakeRest() { return nullptr; }

  // After Pool: waits for the lookup and sets *unknown to the keys of table t
  // without a row. Must not be called concurrently for one table.
  virtual Status Settle(int t, GpuStepUnknown* unknown) = 0;
  // After Pool: copies the ids of table t, their samples and rows to the host.
  // Reads 12 bytes per id and 4 per sample from GPU memory, less if they were
  // put.
  virtual Status BringIds(int t, GpuStepIds* ids) = 0;

  // Returns true if Update supports the rule with its slots in these columns.
  virtual bool CanUpdate(const std::string& rule,
                         Span<const int> slot_columns) const = 0;
  // Starts an update, after Pool. Gradients are summed per key in the order of
  // its occurrences. Keys without a row are skipped. stream: the stream of
  // gradients in GPU memory; null if all were copied from host memory.
  // *meta_updates: null if no table of the update has lists_rows.
  // InvalidArgument: a gradient is in another GPU's memory. Calls for different
  // tables may be concurrent.
  virtual Status Update(const std::string& rule, Span<const float> hyper,
                        Span<const GpuStepUpdate> updates,
                        const DeviceStream* stream,
                        std::unique_ptr<GpuMetaUpdates>* meta_updates) = 0;
};

}  // namespace ev

#endif  // KERNELS_ENGINE_ROWS_GPU_STEP_H_
