// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// EvRestoreNumber.

#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"

namespace embedding_variable {
namespace {

REGISTER_OP("EvRestoreNumber")
    .Input("prefix: string")
    .Output("number: float")
    .Attr("tensor_names: list(string) >= 1")
    .SetIsStateful()
    .SetShapeFn(tensorflow::shape_inference::ScalarShape)
    .Doc(R"doc(
Reads one float from a stock V2 checkpoint, under the first of the names that exists.

prefix: Scalar, the checkpoint's prefix.
number: Scalar.
tensor_names: The names. A tensor of one element may have any shape.
)doc");

}  // namespace
}  // namespace embedding_variable
