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
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) {
      ShapeHandle prefix;
      return InputOfRank(c, 0, 0, "prefix", &prefix);
    })
    .Doc(R"doc(
Writes a stock V2 checkpoint that holds these tables and nothing else, piece by piece.

Each table is written as it was at one moment, while lookups and updates go on. For a table
stored as v the tensors are v-default_rows, v-keys, v-values, v-versions, v-freqs,
v-partition_offset, v-keys_filtered, v-versions_filtered, v-freqs_filtered,
v-partition_filter_offset, and for each slot v/<slot>-values and the others again,
which take no room. After an error there is no such checkpoint, nor anything left of
it.

prefix: Scalar, the checkpoint's prefix. Its folder is made if there is none.
resources: The handles of N tables; must be initialized.
tensor_names: N names, what each table's tensors' names start with.
key_dtypes: N types that the keys are stored in.
slot_counts: N counts of slots.
slot_names: The names of the slots, table after table. A slot that is not there is
  created.
slot_inits: The values that a new row's slots start with.
with_filtered: Whether keys that a filter counts are stored.
)doc");

}  // namespace
}  // namespace embedding_variable
