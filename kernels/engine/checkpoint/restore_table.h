// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Restores a table from a checkpoint: rows, slots, versions, frequencies,
// filtered keys and default rows, whatever number of parts or ranks saved them.

#ifndef KERNELS_ENGINE_CHECKPOINT_RESTORE_TABLE_H_
#define KERNELS_ENGINE_CHECKPOINT_RESTORE_TABLE_H_

#include <string>
#include <vector>

#include "kernels/engine/base/named_tensors.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/checkpoint/stored_table.h"
#include "kernels/engine/embedding/embedding_table.h"

namespace ev {

// Replaces the table's contents by what the checkpoint has under 'name'. Reads
// in pieces, so it needs little memory beyond the table. A slot that the
// checkpoint lacks starts with its initial value; without stored default rows
// the table keeps its own. REQUIRES: an initialized table.
//
// Errors name the tensor and the checkpoint. On NotFound, and on
// InvalidArgument for a tensor of another type or shape, the table is
// unchanged. Any later error (damage, no memory) leaves it half filled, and the
// caller must uninitialize it. May throw std::bad_alloc.
Status RestoreTable(TensorReader* checkpoint, const std::string& name,
                    const std::vector<SlotSpec>& slots,
                    const RestoreOptions& options, EmbeddingTable* table);

}  // namespace ev

#endif  // KERNELS_ENGINE_CHECKPOINT_RESTORE_TABLE_H_
