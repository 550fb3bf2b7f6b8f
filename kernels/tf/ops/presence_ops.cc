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
      return Status();
    })
    .Doc(R"doc(
Returns the storage tiers of the rows of ids. Inserts and counts nothing.

resource: The handle.
ids: Keys, of any shape.
tiers: 0: in memory (with hbm_dram and hbm_dram_ssd, GPU memory); 1: in a file (with hbm_dram
  and hbm_dram_ssd, CPU memory); 2: with hbm_dram_ssd, in a file;
  -1: the key has no row.
)doc");

REGISTER_OP("EvPrefetch")
    .Input("resource: resource")
    .Input("ids: int64")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext*) { return Status(); })
    .Doc(R"doc(
Moves the rows of ids to the faster tier: from a file to memory, or from CPU memory to
GPU memory. Changes no row, inserts and counts nothing.

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
Inserts a row with the given values for each key without a row.

Existing rows stay unchanged. Counts no occurrences and sets no version.

resource: The handle.
keys: [M]; if a key occurs twice, its first values are used.
values: [M, D].
)doc");

}  // namespace
}  // namespace embedding_variable
