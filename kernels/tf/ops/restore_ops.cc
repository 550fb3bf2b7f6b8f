// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// EvDefaultRows, EvRestore.

#include <string>
#include <vector>

#include "kernels/tf/ops/shape_helpers.h"
#include "tensorflow/core/framework/op.h"

namespace embedding_variable {
namespace {

using tensorflow::Status;
using tensorflow::errors::InvalidArgument;
using tensorflow::shape_inference::InferenceContext;
using tensorflow::shape_inference::ShapeHandle;

REGISTER_OP("EvDefaultRows")
    .Input("resource: resource")
    .Output("default_rows: float")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) {
      c->set_output(0, c->Matrix(c->UnknownDim(), RowDim(c, 0)));
      return Status();
    })
    .Doc(R"doc(
Returns the default rows that the table was initialized with.

resource: The handle; must be initialized.
default_rows: [R, D], key k starts with row floormod(k, R).
)doc");

REGISTER_OP("EvRestore")
    .Input("resource: resource")
    .Input("prefix: string")
    .Attr("tensor_name: string")
    .Attr("slot_names: list(string)")
    .Attr("slot_inits: list(float)")
    .Attr("part: int >= 0 = 0")
    .Attr("num_parts: int >= 1 = 1")
    .Attr("placement: list(int) = []")
    .Attr("rank: int >= 0 = 0")
    .Attr("custom_dim: bool = false")
    .Attr("reset_version: bool = false")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) {
      int part, num_parts;
      TF_RETURN_IF_ERROR(c->GetAttr("part", &part));
      TF_RETURN_IF_ERROR(c->GetAttr("num_parts", &num_parts));
      if (part >= num_parts) {
        return InvalidArgument("part: expected a number below num_parts = ",
                               num_parts, ", got ", part);
      }
      std::vector<std::string> names;
      TF_RETURN_IF_ERROR(c->GetAttr("slot_names", &names));
      std::vector<float> inits;
      TF_RETURN_IF_ERROR(c->GetAttr("slot_inits", &inits));
      if (names.size() != inits.size()) {
        return InvalidArgument(names.size(), " slot names and ", inits.size(),
                               " initial values");
      }
      ShapeHandle prefix;
      return InputOfRank(c, 1, 0, "prefix", &prefix);
    })
    .Doc(R"doc(
Replaces the table's rows by those of a checkpoint, a piece at a time.

The tensors are <tensor_name>-keys, <tensor_name>-values, <tensor_name>-versions,
<tensor_name>-freqs and <tensor_name>/<slot>-values or, if the checkpoint was written
in parts, those of <tensor_name>/part_0 and so on.

A slot that the checkpoint lacks starts with its initial value; so do missing versions
and frequencies. A slot with other keys than the variable, or in another order, is
assigned by key. Default rows, <tensor_name>-default_rows, are restored if the
checkpoint has them, so that new keys start as before the save. If this table has a
filter, filtered keys (<tensor_name>-keys_filtered and so on) keep their counts and are
admitted by this table's threshold; keys with rows keep them whatever their counts.

Rows of another length are an error, and so is a checkpoint without the variable. After
an error the table is empty and not initialized.

resource: The handle; must be initialized.
prefix: Scalar, the checkpoint's prefix.
tensor_name: Name of the whole variable in the checkpoint, without part_i.
slot_names: S names of slots.
slot_inits: S initial values of the slots of new rows.
part: Keep only keys with floormod(floormod(key, 1000), num_parts) == part.
num_parts: 1 keeps all keys.
placement: Keep only keys with placement[floormod(key, length)] == rank; empty keeps all.
rank: The rank of this process.
custom_dim: Accept rows of another length: cut them, or complete them with the tail of
  the key's default row, and slots with their initial value.
reset_version: Set versions to 0.
)doc");

}  // namespace
}  // namespace embedding_variable
