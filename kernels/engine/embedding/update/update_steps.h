// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// An update in three steps, each over all tables at once:
//
//   1  distinct keys and their summed gradients; nothing to do with a plan, or
//      when the keys turn out to be distinct.
//   2  row handles: the plan's when no key was erased since, with only the keys
//      inserted that had no row; otherwise every key is found or inserted.
//      Skipped altogether in the steady state. A key that the table's filter
//      keeps out has no handle afterwards. Where a device has deduplicated,
//      the plan's handles are there and stay there, unless something here
//      wants them (KeysStayOnDevice).
//   3  the rule, over tasks of some hundred rows, rows prefetched ahead. Rows
//      of one input are distinct, so tasks never meet.
//
// Steps 1 and 2 change no row, and what they insert and count is noted, so that
// an error takes it back. A table that comes again waits for the next round of
// steps 2 and 3, which keeps its admissions and updates in the order of the
// inputs.
//
// For the files of this room only.

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

// One input on its way through the steps.
struct Update {
  EmbeddingTable::Impl* table = nullptr;
  int round = 0;
  bool solo = false;
  UpdateCall call;  // the same in all updates of a table
  TableJournal* journal = nullptr;
  std::vector<int> slot_columns;
  // What a forward found out, when the keys come from one.
  const PlannedTable* planned = nullptr;
  int64_t num_keys = 0;
  // Keys, counts and handles are the device's and stay there: only those of
  // keys that it did not know at the forward are here, if some had no row. What
  // is to be noted about rows a step tells when it has begun (note_rows.cc).
  bool keys_stay_on_device = false;

  // After step 1.
  Span<const int64_t> keys;
  const int32_t* counts = nullptr;  // null: 1 each
  const float* grads = nullptr;
  // Instead, where the rows are on a device.
  const float* pooled_grads = nullptr;
  const DeviceStream* stream = nullptr;
  // After step 2; kNoRow: the filter keeps the key out.
  const RowHandle* handles = nullptr;
  bool handles_known = false;  // handles of keys that have a row are there
};

// Memory of handles and sums that is used again.
Recycler<LineBuffer>& HandleBuffers();

// Where sums are: memory that a device reads by itself, if there is any.
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

// Step 1 of the updates that come without a plan: they get one, of which each
// key is a sample of one id, and the gradient of that lookup is the sum wanted.
Status SumDuplicates(Span<const UpdateInput> inputs, LookupPlan* plan,
                     std::vector<Update>* updates, Parallel* parallel);

// Step 1 of the updates by gradients of samples: nothing where a device sums
// them, else their sums, in 'buffers'. Null in sums[t]: not wanted.
Status SumPooled(Span<const UpdateInput> inputs, std::vector<Update>* updates,
                 std::vector<std::unique_ptr<SumBuffer>>* buffers,
                 Parallel* parallel);

// Step 1, in its end: keys, counts and handles come here where they are wanted.
Status FetchPlanned(const RowRule& rule, Span<const UpdateInput> inputs,
                    std::vector<Update>* updates, Parallel* parallel);

// --- Step 2 (find_handles.cc) ---

// Step 2 of the updates of one round. buffers: where handles live that are not
// the plan's.
Status FindAllHandles(std::vector<Update>* updates, int round,
                      std::vector<Recycler<LineBuffer>::Handle>* buffers,
                      Parallel* parallel);

// --- Step 3 (apply_rows.cc, note_rows.cc) ---

// Step 3 of the updates of one round, whose tables are distinct.
Status ApplyRound(const RowRule& rule, const std::vector<Update>& updates,
                  int round, Parallel* parallel);

// What rows [begin, end) of an update, which are here, count about themselves.
void NoteRows(const Update& update, int64_t begin, int64_t end);

// The same of a round's updates that devices have summed: of rows that are
// here, and of those that steps tell of.
Status NotePooledRows(const std::vector<Update>& updates, int round,
                      Parallel* parallel);
Status NoteRowsOfSteps(const std::vector<Update>& updates, int round,
                       const std::vector<StepNotes>& notes, Parallel* parallel);

}  // namespace ev

#endif  // KERNELS_ENGINE_EMBEDDING_UPDATE_UPDATE_STEPS_H_
