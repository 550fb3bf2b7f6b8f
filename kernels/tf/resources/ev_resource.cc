// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/tf/resources/ev_resource.h"

namespace embedding_variable {

using tensorflow::OpKernelContext;
using tensorflow::Status;

std::string EvResource::DebugString() const {
  const ev::TableStats stats = table_->stats();
  return tensorflow::strings::StrCat(
      "EmbeddingVariable '", name(), "': ", stats.rows, " rows of ", dim(),
      " floats, ", stats.index_bytes + stats.row_bytes, " bytes");
}

tensorflow::int64 EvResource::MemoryUsed() const {
  const ev::TableStats stats = table_->stats();
  return stats.index_bytes + stats.row_bytes;
}

Status EvResource::CheckInitialized() const {
  if (table_->initialized()) return Status();
  return tensorflow::errors::FailedPrecondition(
      "embedding variable '", name(),
      "' is not initialized in this session. Run its initializer "
      "(tf.global_variables_initializer() holds it) or restore a checkpoint "
      "first.");
}

Status GetResource(OpKernelContext* context, int input,
                   EvResourcePtr* resource) {
  if (context->input(input).NumElements() != 1) {
    return tensorflow::errors::InvalidArgument(
        "input ", input, ": expected one handle of an embedding variable, got ",
        context->input(input).DebugString());
  }
  return tensorflow::LookupResource(
      context, tensorflow::HandleFromInput(context, input), resource);
}

Status GetInitialized(OpKernelContext* context, int input,
                      EvResourcePtr* resource) {
  TF_RETURN_IF_ERROR(GetResource(context, input, resource));
  return (*resource)->CheckInitialized();
}

}  // namespace embedding_variable
