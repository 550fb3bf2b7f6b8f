// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Updates tables whose rows are on a device by the gradients of pooled samples:
// the gradients are copied to the device as they are and summed on it. Part of
// row_update.h; for the files of this folder only.

#ifndef KERNELS_ENGINE_EMBEDDING_UPDATE_POOLED_UPDATE_H_
#define KERNELS_ENGINE_EMBEDDING_UPDATE_POOLED_UPDATE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/engine/base/device_stream.h"
#include "kernels/engine/base/float_type.h"
#include "kernels/engine/base/parallel.h"
#include "kernels/engine/base/row_handle.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/embedding/lookup/planned_table.h"
#include "kernels/engine/embedding/table_impl.h"
#include "kernels/engine/optimizer/row_rule.h"
#include "kernels/engine/rows/gpu_step.h"

namespace ev {

struct PooledUpdate {
  EmbeddingTable::Impl* table = nullptr;
  const PlannedTable* planned = nullptr;
  // [U]; kNoRow for keys that the filter keeps out. Null: the table's step has
  // them.
  const RowHandle* handles = nullptr;
  Span<const int64_t> keys;  // [U], with handles
  // [K]: handles of the keys that had no row at the lookup; may be null.
  const RowHandle* unknown_handles = nullptr;
  Span<const int> slot_columns;
  ConstFloats grads;                     // [B, dim]
  const DeviceStream* stream = nullptr;  // not null: they are on the device
  bool is_solo = false;                  // the table has no other updater
  UpdateCall call;
  bool rounds_randomly = false;  // see Update (update_steps.h)
  uint64_t salt = 0;
};

// The metadata updates of one step's rows; null if the updates failed.
struct StepMetaUpdates {
  const GpuStep* step = nullptr;
  std::unique_ptr<GpuMetaUpdates> meta_updates;
};

// Updates the rows in the steps of the lookups. A table of which the CPU has
// found rows that the GPU does not access is updated by sums of the CPU.
// meta_updates: receives those of steps with a table that needs them, also
// after an error. REQUIRES: distinct tables that were pooled in steps and whose
// table locks and update locks are held. Throws std::bad_alloc.
Status ApplyPooledOnDevices(const RowRule& rule,
                            const std::vector<PooledUpdate>& updates,
                            Parallel* parallel,
                            std::vector<StepMetaUpdates>* meta_updates);

}  // namespace ev

#endif  // KERNELS_ENGINE_EMBEDDING_UPDATE_POOLED_UPDATE_H_
