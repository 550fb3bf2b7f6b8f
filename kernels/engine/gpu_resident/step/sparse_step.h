// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// One training step of several embedding tables whose rows are in device
// memory: ids in, pooled rows out; gradients in, rows updated.
//
// FORWARD (1 launch and 1 fill, or 2 when samples have several ids; + 1 per
// further class of row shapes)
//   find           each id's row in the hash tables, equal ids each for itself;
//                  with one id a sample, in the same kernel as
//   pool           rows go straight from the tables to the pooled outputs
// BACKWARD (9 launches, + 2 per further class)
//   insert         keys without a row get one
//   group          ids go to bins of rows that are neighbours (count, place,
//                  scatter), then a block groups a bin by key
//   update         per key the sum of its gradients, applied to the row: value
//                  and slots read once, written once
//   sort, long,    the same for keys of more than 16 occurrences: those in
//   huge           order, summed by a group of lanes or a block; on a stream of
//                  its own beside update, joined before Backward's work ends
//
// DETERMINISM. A key's occurrences are added in their order, which is the
// CPU's, and so are the bits.
//
// Nothing waits and nothing allocates after ReserveSync, but for a batch whose
// shape differs from the last: its table of offsets is copied up first, and
// when such changes come faster than the device, the host waits for the one
// before the last.
//
// MEMORY. Rows: slots * stride * 4 bytes; index: 8 bytes per slot; per id of
// the largest batch 54 bytes.

#ifndef KERNELS_ENGINE_GPU_RESIDENT_STEP_SPARSE_STEP_H_
#define KERNELS_ENGINE_GPU_RESIDENT_STEP_SPARSE_STEP_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/engine/base/gpu/stream.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/combine/combiner.h"
#include "kernels/engine/gpu_resident/table/table_set.h"

namespace ev {
namespace gpu {

struct StepTableOptions {
  std::string name;          // for messages
  int64_t capacity = 0;      // rows, up to 2^31 - 64; see TableOptions
  int64_t max_capacity = 0;  // that GrowSync may bring it to, likewise
  int dim = 0;               // floats of a row, >= 1
  Combiner combiner = Combiner::kSum;  // one that adds rows
  std::vector<float> default_rows;     // [R, dim], R >= 1: a key without a row
                                       // has row floormod(key, R)
};

struct SparseStepOptions {
  std::vector<StepTableOptions> tables;
  std::vector<float> slot_init;  // one per slot of the optimizer, at most 3
};

// What a step looks up. Pointers: device memory, alive until Backward's work is
// done; shapes: host memory, read during the call.
struct StepBatch {
  const int64_t* ids = nullptr;     // [sum num_ids], table after table
  Span<const int64_t> num_ids;      // [num_tables]
  Span<const int64_t> num_samples;  // [num_tables]
  // Per table num_samples + 1 ascending numbers from 0 to the table's num_ids,
  // not checked. Null: every sample has one id, num_ids equals num_samples.
  const int64_t* splits = nullptr;
  const float* weights = nullptr;  // [sum num_ids] or null: ones
};

// Not thread-safe: Forward and Backward alternate on one stream. Between them
// nothing may erase keys or clear the tables.
class SparseStep {
 public:
  // InvalidArgument: no table, 2^24 or more, a capacity or dim out of range,
  // default_rows that do not fit, more than 3 slots. ResourceExhausted: too
  // little memory, with what is needed and free.
  static Status Create(const SparseStepOptions& options, StreamView stream,
                       std::unique_ptr<SparseStep>* step);
  ~SparseStep();
  SparseStep(const SparseStep&) = delete;
  SparseStep& operator=(const SparseStep&) = delete;

  // Room for batches of that many ids and samples, over all tables. Waits.
  Status ReserveSync(int64_t max_ids, int64_t max_samples);

  // pooled: table t's [num_samples, dim] begins where table t - 1's ends, for a
  // dim that 4 divides at a multiple of 4 floats (tables of other dims come
  // last, or have samples in fours), and all of it is 16 byte aligned then. A
  // sample without ids gives zeros, a key without a row its default row;
  // nothing is inserted. training: a Backward follows. InvalidArgument: shapes
  // that do not fit each other or exceed what was reserved, a table that begins
  // elsewhere.
  Status Forward(const StepBatch& batch, bool training, float* pooled,
                 StreamView stream);

  // grads: as pooled. rule and hyper: see optimizer/rule.h. Keys without a row
  // are inserted, default row and slot_init updated. InvalidArgument: no such
  // rule, hyper or number of slots that do not fit it. FailedPrecondition: no
  // Forward with training since the last Backward.
  Status Backward(const float* grads, const std::string& rule,
                  Span<const float> hyper, StreamView stream);

  // Adds up to max_new_rows rows to a table, index and memory, as
  // TableSet::GrowSync adds slots: in multiples of 32, fewer where the table
  // doubles or has its max_capacity, so call again for more. Rows of keys that
  // move are moved; all answers stay the same. Takes memory while kernels may
  // run; three launches: to the index's cost add a row read and written for
  // each key that moves. FailedPrecondition, further: a Forward with training
  // waits for its Backward. On an error nothing has changed.
  Status GrowSync(int table, int64_t max_new_rows, StreamView stream);

  // The hash tables; they never evict, and grow by GrowSync above only. Keys
  // that are inserted there have a row that holds nothing: the caller writes
  // it.
  TableSet* tables() const;
  // Slot s of table t has its row at base + s * stride: dim floats of value,
  // then slot k at (k + 1) * slot_stride.
  RowBlock rows(int table) const;
  float* mutable_rows(int table) const;
  int slot_stride(int table) const;
  int64_t row_bytes() const;
  int64_t scratch_bytes() const;

 private:
  class Impl;
  explicit SparseStep(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_GPU_RESIDENT_STEP_SPARSE_STEP_H_
