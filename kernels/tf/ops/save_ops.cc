// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// EvSave.

#include "kernels/tf/ops/shape_helpers.h"
#include "tensorflow/core/framework/op.h"

namespace embedding_variable {
namespace {

using tensorflow::shape_inference::InferenceContext;
using tensorflow::shape_inference::ShapeHandle;

REGISTER_OP("EvSave")
    .Input("prefix: string")
    .Input("resources: N * resource")
    .Attr("N: int >= 1")
    .Attr("tensor_names: list(string)")
    .Attr("key_dtypes: list({int32, int64})")
    .Attr("slot_counts: list(int)")
    .Attr("slot_names: list(string)")
    .Attr("slot_inits: list(float)")
    .Attr("with_filtered: bool = true")
    .Attr("row_types: list({'float32', 'float16', 'uint8'}) >= 0 = []")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) {
      ShapeHandle prefix;
      return InputOfRank(c, 0, 0, "prefix", &prefix);
    })
    .Doc(R"doc(
Writes a stock V2 checkpoint with these tables only, piece by piece.

Each table is written as it was at one moment, while lookups and updates continue. For a
table stored as v the tensors are v-default_rows, v-keys, v-values, v-versions, v-freqs,
v-partition_offset, v-keys_filtered, v-versions_filtered, v-freqs_filtered and
v-partition_filter_offset; for each slot v/<slot>-values, and the others again, which
take no space. After an error no file of the checkpoint is left.

prefix: Scalar, the checkpoint's prefix. Its folder is created if necessary.
resources: The handles of N tables; must be initialized.
tensor_names: N prefixes of the tables' tensor names.
key_dtypes: N types of the stored keys.
slot_counts: N counts of slots.
slot_names: The names of the slots, table after table. A missing slot is created.
slot_inits: The initial values of the slots of new rows.
with_filtered: Whether filtered keys are stored.
row_types: N types of the stored values, or none: float32. EvPackRows describes them.
)doc");

}  // namespace
}  // namespace embedding_variable
