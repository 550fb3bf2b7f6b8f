// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Ops about the presence of rows: their tier, prefetching, and inserting absent
// keys.

#include "kernels/tf/ops/shape_helpers.h"
#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"

namespace embedding_variable {
namespace {

using tensorflow::Status;
using tensorflow::shape_inference::InferenceContext;
using tensorflow::shape_inference::ShapeHandle;

REGISTER_OP("EvLookupTier")
    .Input("resource: resource")
    .Input("ids: int64")
    .Output("tiers: int32")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) {
      c->set_output(0, c->input(1));
      return Status::OK();
    })
    .Doc(R"doc(
Says where the rows of ids are. Inserts and counts nothing.

resource: The handle.
ids: Keys, of any shape.
tiers: 0: in memory; 1: in a file, or in CPU memory when others are in the GPU's; -1: the
  key has no row.
)doc");

REGISTER_OP("EvPrefetch")
    .Input("resource: resource")
    .Input("ids: int64")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext*) { return Status::OK(); })
    .Doc(R"doc(
Brings the rows of ids into memory, or from CPU memory into the GPU's where that is
the faster place. Changes no row, inserts and counts nothing.

resource: The handle.
ids: Keys, of any shape.
)doc");

REGISTER_OP("EvInsertAbsent")
    .Input("resource: resource")
    .Input("keys: int64")
    .Input("values: float")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) {
      ShapeHandle keys;
      TF_RETURN_IF_ERROR(InputOfRank(c, 1, 1, "keys", &keys));
      return InputMatrix(c, 2, c->Dim(keys, 0), RowDim(c, 0), "values");
    })
    .Doc(R"doc(
Gives keys that have no row one that starts with the given values.

Rows that are there stay as they are; nothing is counted or stamped.

resource: The handle.
keys: [M]; of a key that comes twice the first counts.
values: [M, D].
)doc");

}  // namespace
}  // namespace embedding_variable
