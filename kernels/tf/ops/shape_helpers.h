// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Helpers for the shape functions of several op families.

#ifndef KERNELS_TF_OPS_SHAPE_HELPERS_H_
#define KERNELS_TF_OPS_SHAPE_HELPERS_H_

#include <string>

#include "kernels/engine/base/slot_name.h"
#include "tensorflow/core/framework/shape_inference.h"

namespace embedding_variable {

// Returns the row length D of the table of resource input `input`. Unknown if
// the handle's data was lost on the way (by some control flow).
inline tensorflow::shape_inference::DimensionHandle RowDim(
    tensorflow::shape_inference::InferenceContext* c, int input) {
  const auto* handle_data = c->input_handle_shapes_and_types(input);
  if (handle_data == nullptr || handle_data->size() != 1) {
    return c->UnknownDim();
  }
  const auto& shape = (*handle_data)[0].shape;
  if (!c->RankKnown(shape) || c->Rank(shape) != 2) return c->UnknownDim();
  return c->Dim(shape, 1);
}

// Returns the width of a slot of that table.
inline tensorflow::shape_inference::DimensionHandle SlotDim(
    tensorflow::shape_inference::InferenceContext* c, int input,
    const std::string& slot) {
  return ev::IsPerRowSlot(slot) ? c->MakeDim(1) : RowDim(c, input);
}

// Merges the shape of input `input` with rank `rank`. `what` names the input in
// errors.
inline tensorflow::Status InputOfRank(
    tensorflow::shape_inference::InferenceContext* c, int input, int rank,
    const std::string& what, tensorflow::shape_inference::ShapeHandle* shape) {
  *shape = c->input(input);
  if (c->RankKnown(*shape) && c->Rank(*shape) != rank) {
    return tensorflow::errors::InvalidArgument(
        what, ": expected rank ", rank, ", got shape ", c->DebugString(*shape));
  }
  return c->WithRank(*shape, rank, shape);
}

// Merges input `input` with [rows, cols].
inline tensorflow::Status InputMatrix(
    tensorflow::shape_inference::InferenceContext* c, int input,
    tensorflow::shape_inference::DimensionHandle rows,
    tensorflow::shape_inference::DimensionHandle cols,
    const std::string& what) {
  tensorflow::shape_inference::ShapeHandle shape;
  TF_RETURN_IF_ERROR(InputOfRank(c, input, 2, what, &shape));
  tensorflow::shape_inference::ShapeHandle merged;
  if (!c->Merge(shape, c->Matrix(rows, cols), &merged).ok()) {
    return tensorflow::errors::InvalidArgument(
        what, ": expected shape ", c->DebugString(c->Matrix(rows, cols)),
        ", got ", c->DebugString(shape));
  }
  return tensorflow::Status();
}

}  // namespace embedding_variable

#endif  // KERNELS_TF_OPS_SHAPE_HELPERS_H_
