// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Ops that pass several tensors as one between the devices of a process.

#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"

namespace embedding_variable {
namespace {

using tensorflow::Status;
using tensorflow::shape_inference::InferenceContext;

// Stateful: TensorFlow would fold a pack of constants into a constant, for
// which a variant needs a serialized form.
REGISTER_OP("EvPack")
    .Input("tensors: T")
    .Output("packed: variant")
    .Attr("T: list(type) >= 1")
    .SetIsStateful()
    .SetShapeFn(tensorflow::shape_inference::ScalarShape)
    .Doc(R"doc(
Packs tensors in CPU memory into one, without a copy.

tensors: Tensors of any types and shapes.
packed: Scalar. It cannot leave the process.
)doc");

REGISTER_OP("EvUnpack")
    .Input("packed: variant")
    .Output("tensors: T")
    .Attr("T: list(type) >= 1")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) {
      for (int i = 0; i < c->num_outputs(); ++i) {
        c->set_output(i, c->UnknownShape());
      }
      return Status();
    })
    .Doc(R"doc(
Returns the tensors packed by EvPack, in CPU memory on every device.

packed: Output of EvPack.
tensors: The tensors, of the same number and types.
)doc");

}  // namespace
}  // namespace embedding_variable
