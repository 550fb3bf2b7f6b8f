// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// EvSplitBytes.

#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/shape_inference.h"

namespace embedding_variable {
namespace {

using tensorflow::Status;
using tensorflow::shape_inference::DimensionHandle;
using tensorflow::shape_inference::InferenceContext;
using tensorflow::shape_inference::ShapeHandle;

REGISTER_OP("EvSplitBytes")
    .Input("bytes: uint8")
    .Input("offsets: int32")
    .Output("strings: string")
    .SetShapeFn([](InferenceContext* c) {
      ShapeHandle offsets, bytes;
      TF_RETURN_IF_ERROR(c->WithRank(c->input(0), 1, &bytes));
      TF_RETURN_IF_ERROR(c->WithRank(c->input(1), 1, &offsets));
      DimensionHandle count;
      TF_RETURN_IF_ERROR(c->Subtract(c->Dim(offsets, 0), 1, &count));
      c->set_output(0, c->Vector(count));
      return Status();
    })
    .Doc(R"doc(
Cuts bytes to strings, as Arrow stores a column of strings.

bytes: [B], those of all strings, one after the other.
offsets: [N + 1], not decreasing. String k ends where string k + 1 begins, at
  offsets[k + 1] - offsets[0].
strings: [N].
)doc");

}  // namespace
}  // namespace embedding_variable
