// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/checkpoint/restore_table.h"

#include "kernels/engine/checkpoint/stored_columns.h"
#include "kernels/engine/checkpoint/stored_filtered.h"
#include "kernels/engine/checkpoint/tensor_names.h"
#include "kernels/engine/embedding/table_tensors.h"

namespace ev {

Status RestoreTable(TensorReader* checkpoint, const std::string& name,
                    const std::vector<SlotSpec>& slots,
                    const RestoreOptions& options, EmbeddingTable* table) {
  const int64_t dim = table->options().dim;
  std::vector<std::string> parts;
  EV_RETURN_IF_ERROR(
      FindParts(checkpoint, name, tensor_names::kKeys, "checkpoint", &parts));
  // Open and check everything before the table changes.
  std::vector<StoredTable> stored(parts.size());
  std::vector<StoredFiltered> filtered(parts.size());
  for (size_t i = 0; i < parts.size(); ++i) {
    EV_RETURN_IF_ERROR(
        stored[i].Open(checkpoint, parts[i], slots, dim, options));
    EV_RETURN_IF_ERROR(filtered[i].Open(checkpoint, parts[i]));
  }
  std::vector<TableTensor> tensors;
  EV_RETURN_IF_ERROR(ReadTableTensors(
      checkpoint, parts[options.keys.place() % parts.size()], dim,
      /*is_delta=*/false, options.custom_dim, &tensors));
  EV_RETURN_IF_ERROR(SetTableTensors(tensors, /*fixed=*/true, table));
  for (StoredTable& part : stored) EV_RETURN_IF_ERROR(part.Import(table));
  for (StoredFiltered& part : filtered) {
    EV_RETURN_IF_ERROR(part.Import(options.keys, table));
  }
  return SetTableTensors(tensors, /*fixed=*/false, table);
}

}  // namespace ev
