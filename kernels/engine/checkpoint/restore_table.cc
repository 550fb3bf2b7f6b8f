// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/checkpoint/restore_table.h"

#include <memory>

#include "kernels/engine/checkpoint/stored_columns.h"
#include "kernels/engine/checkpoint/stored_filtered.h"
#include "kernels/engine/checkpoint/tensor_names.h"

namespace ev {
namespace {

// Leaves *rows empty if the checkpoint has none.
Status ReadDefaults(TensorReader* checkpoint, const std::string& name,
                    int64_t dim, bool custom_dim, std::vector<float>* rows) {
  const std::string tensor = name + tensor_names::kDefaultRows;
  bool found;
  EV_RETURN_IF_ERROR(checkpoint->Find(tensor, &found));
  if (!found) return Status::OK();
  std::unique_ptr<StoredTensor> stream;
  EV_RETURN_IF_ERROR(checkpoint->Open(tensor, &stream));
  const std::vector<int64_t>& shape = stream->shape();
  // For default rows of another length the variable's initializer is used.
  if (custom_dim && shape.size() == 2 && shape[1] != dim) return Status::OK();
  if (stream->type() != ElementType::kFloat || shape.size() != 2 ||
      shape[0] < 1 || shape[1] != dim) {
    return Misfit(*checkpoint, tensor, "float [R," + std::to_string(dim) + "]",
                  *stream);
  }
  return ReadInto(stream.get(), stream->num_elements(), rows);
}

}  // namespace

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
  std::vector<float> defaults;
  EV_RETURN_IF_ERROR(ReadDefaults(checkpoint,
                                  parts[options.keys.place() % parts.size()],
                                  dim, options.custom_dim, &defaults));
  if (defaults.empty()) {
    EV_RETURN_IF_ERROR(table->Clear());
  } else {
    EV_RETURN_IF_ERROR(table->Initialize(defaults, defaults.size() / dim));
  }
  for (StoredTable& part : stored) EV_RETURN_IF_ERROR(part.Import(table));
  for (StoredFiltered& part : filtered) {
    EV_RETURN_IF_ERROR(part.Import(options.keys, table));
  }
  return Status::OK();
}

}  // namespace ev
