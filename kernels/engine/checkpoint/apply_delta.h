// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Applies an incremental checkpoint to a table in the state of the previous
// checkpoint, whatever number of parts or ranks saved it.

#ifndef KERNELS_ENGINE_CHECKPOINT_APPLY_DELTA_H_
#define KERNELS_ENGINE_CHECKPOINT_APPLY_DELTA_H_

#include <string>
#include <vector>

#include "kernels/engine/base/named_tensors.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/checkpoint/key_filter.h"
#include "kernels/engine/embedding/embedding_table.h"

namespace ev {

// Erases, inserts and overwrites the keys that the checkpoint has under 'name'
// and that the filter takes. All parts are read and checked before the table
// changes; they must fit in memory. REQUIRES: an initialized table. On
// NotFound, InvalidArgument and errors of the checkpoint the table is
// unchanged. After any other error (no memory, an SSD, a GPU) the table is
// uninitialized, since the delta may be applied in part. May throw
// std::bad_alloc before the table changes.
Status ApplyDelta(TensorReader* checkpoint, const std::string& name,
                  const std::vector<SlotSpec>& slots, const KeyFilter& wanted,
                  EmbeddingTable* table);

}  // namespace ev

#endif  // KERNELS_ENGINE_CHECKPOINT_APPLY_DELTA_H_
