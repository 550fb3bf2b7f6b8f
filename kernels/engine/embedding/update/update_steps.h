// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// An update in three steps, each over all tables at once:
//
//   1  Distinct keys and their summed gradients. Nothing to do with a plan, or
//      if the keys turn out to be distinct.
//   2  Row handles. With a plan, if no key was erased since, only keys that
//      had no row are inserted; otherwise every key is found or inserted. In
//      the steady state there is nothing to do. Keys that the table's filter
//      keeps out have no handle afterwards. The handles of a table in a GPU
//      step (rows/gpu_step.h) stay in GPU memory unless the CPU needs them
//      (KeysStayOnDevice).
//   3  The rule, in tasks of some hundred rows that are prefetched. Rows of
//      one input are distinct, so tasks do not conflict.
//
// Steps 1 and 2 change no row. Their inserts and counts are recorded in a
// journal, so that an error undoes them. If a table occurs several times, each
// further occurrence is in a further round, so that its admissions and updates
// are in the order of the inputs. All rounds of step 2 run before the first
// round of step 3.
//
// For the files of this folder only.

#ifndef KERNELS_ENGINE_EMBEDDING_UPDATE_UPDATE_STEPS_H_
#define KERNELS_ENGINE_EMBEDDING_UPDATE_UPDATE_STEPS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/engine/base/device_stream.h"
#include "kernels/engine/base/parallel.h"
#include "kernels/engine/base/row_handle.h"
#include "kernels/engine/base/scratch.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/base/transfer_memory.h"
#include "kernels/engine/embedding/lookup/lookup_plan.h"
#include "kernels/engine/embedding/lookup/planned_table.h"
#include "kernels/engine/embedding/table_impl.h"
#include "kernels/engine/embedding/update/pooled_update.h"
#include "kernels/engine/embedding/update/row_update.h"
#include "kernels/engine/optimizer/row_rule.h"

namespace ev {

// State of one input during the steps.
struct Update {
  EmbeddingTable::Impl* table = nullptr;
  int round = 0;
  bool solo = false;
  UpdateCall call;  // the same in all updates of a table
  // Whether values are rounded stochastically, and then the update's salt
  // (base/random_rounding.h).
  bool rounds_randomly = false;
  uint64_t salt = 0;
  TableJournal* journal = nullptr;
  std::vector<int> slot_columns;
  // The table's part of the plan, if the keys come from one.
  const PlannedTable* planned = nullptr;
  int64_t num_keys = 0;
  // Keys, counts and handles stay in device memory. Only those of its unknown
  // keys are in CPU memory, if some of them had no row. Metadata updates of
  // rows come from the step once the update has started (update_meta.cc).
  bool keys_stay_on_device = false;

  // Set by step 1.
  Span<const int64_t> keys;
  const int32_t* counts = nullptr;  // null: 1 each
  const float* grads = nullptr;
  // Instead of grads, if the device that has the rows sums them.
  ConstFloats pooled_grads;
  const DeviceStream* stream = nullptr;
  // Set by step 2; kNoRow: the filter keeps the key out.
  const RowHandle* handles = nullptr;
  bool handles_known = false;  // handles of keys with a row are set
};

// Pool of memory for handles and sums.
Recycler<LineBuffer>& HandleBuffers();

// Memory of sums: memory that a device reads directly, if available.
class SumBuffer {
 public:
  explicit SumBuffer(size_t floats)
      : transfer_(AllocateTransferMemory(floats * sizeof(float))),
        ordinary_(HandleBuffers().Acquire()) {
    data_ = transfer_ != nullptr ? static_cast<float*>(transfer_)
                                 : ordinary_->ReserveOf<float>(floats);
  }
  ~SumBuffer() {
    if (transfer_ != nullptr) FreeTransferMemory(transfer_);
  }
  SumBuffer(const SumBuffer&) = delete;
  SumBuffer& operator=(const SumBuffer&) = delete;
  float* data() const { return data_; }

 private:
  void* const transfer_;
  Recycler<LineBuffer>::Handle ordinary_;
  float* data_ = nullptr;
};

// --- Step 1 (sum_gradients.cc) ---

// Step 1 of updates without a plan. They get a plan in which each key is a
// sample of one id; the gradient of that lookup is the sum.
Status SumDuplicates(Span<const UpdateInput> inputs, LookupPlan* plan,
                     std::vector<Update>* updates, Parallel* parallel);

// Step 1 of updates by gradients of samples: sums them into 'buffers', except
// those that a device sums.
Status SumPooled(const RowRule& rule, Span<const UpdateInput> inputs,
                 std::vector<Update>* updates,
                 std::vector<std::unique_ptr<SumBuffer>>* buffers,
                 Parallel* parallel);

// End of step 1: copies keys, counts and handles to the host for the updates
// that need them.
Status FetchPlanned(const RowRule& rule, Span<const UpdateInput> inputs,
                    std::vector<Update>* updates, Parallel* parallel);

// --- Step 2 (find_handles.cc) ---

// Step 2 of the updates of one round. buffers: memory of handles that are not
// the plan's.
Status FindAllHandles(std::vector<Update>* updates, int round,
                      std::vector<Recycler<LineBuffer>::Handle>* buffers,
                      Parallel* parallel);

// End of step 2: leaves the updates to the CPU whose new rows are where the GPU
// does not access them (GpuRowCompute::below).
Status FetchBelow(Span<const UpdateInput> inputs, std::vector<Update>* updates,
                  std::vector<Recycler<LineBuffer>::Handle>* buffers,
                  Parallel* parallel);

// --- Step 3 (apply_rows.cc, update_meta.cc) ---

// Step 3 of the updates of one round, whose tables are distinct.
Status ApplyRound(const RowRule& rule, const std::vector<Update>& updates,
                  int round, Parallel* parallel);

// Records an update of rows [begin, end), whose handles are in CPU memory, in
// their metadata.
void UpdateMeta(const Update& update, int64_t begin, int64_t end);

// The same for a round's updates that devices have applied: for rows whose
// handles are in CPU memory, and for rows in the metadata updates of steps.
Status UpdatePooledMeta(const std::vector<Update>& updates, int round,
                        Parallel* parallel);
Status UpdateMetaOfSteps(const std::vector<Update>& updates, int round,
                         const std::vector<StepMetaUpdates>& meta_updates,
                         Parallel* parallel);

}  // namespace ev

#endif  // KERNELS_ENGINE_EMBEDDING_UPDATE_UPDATE_STEPS_H_
