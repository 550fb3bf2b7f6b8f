// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Ops that read rows and their metadata by key.

#include "kernels/tf/ops/shape_helpers.h"
#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"

namespace embedding_variable {
namespace {

using tensorflow::Status;
using tensorflow::shape_inference::InferenceContext;
using tensorflow::shape_inference::ShapeHandle;

REGISTER_OP("EvGather")
    .Input("resource: resource")
    .Input("ids: Tids")
    .Output("rows: dtype")
    .Attr("dtype: {float} = DT_FLOAT")
    .Attr("Tids: {int64, int32}")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) {
      ShapeHandle out;
      TF_RETURN_IF_ERROR(
          c->Concatenate(c->input(1), c->Vector(RowDim(c, 0)), &out));
      c->set_output(0, out);
      return Status();
    })
    .Doc(R"doc(
Reads the rows of ids; for an absent key, its default row. Inserts nothing.

resource: The handle.
ids: Keys, of any shape and with any duplicates.
rows: ids.shape + [D].
)doc");

REGISTER_OP("EvGetMeta")
    .Input("resource: resource")
    .Input("ids: Tids")
    .Output("frequencies: int64")
    .Output("versions: int64")
    .Attr("Tids: {int64, int32}")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) {
      c->set_output(0, c->input(1));
      c->set_output(1, c->input(1));
      return Status();
    })
    .Doc(R"doc(
Reads the frequencies and versions of ids. Inserts nothing.

resource: The handle.
ids: Keys, of any shape.
frequencies: Occurrences in training so far; 0 if absent or not recorded.
versions: Global step of the last update; -1 if absent or not recorded.
)doc");

}  // namespace
}  // namespace embedding_variable
