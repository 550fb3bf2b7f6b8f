// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The table itself: handle, initialisation, size. Stock TensorFlow reads the
// attributes `dtype` and `shape` of EvHandle (control flow, meta graph import), so
// their names are not ours to choose.

#include "kernels/tf/ops/shape_helpers.h"
#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"

namespace embedding_variable {
namespace {

using tensorflow::DataType;
using tensorflow::PartialTensorShape;
using tensorflow::Status;
using tensorflow::shape_inference::InferenceContext;
using tensorflow::shape_inference::ShapeHandle;

Status HandleShape(InferenceContext* c) {
  std::string name;
  TF_RETURN_IF_ERROR(c->GetAttr("shared_name", &name));
  DataType dtype;
  TF_RETURN_IF_ERROR(c->GetAttr("dtype", &dtype));
  PartialTensorShape shape;
  TF_RETURN_IF_ERROR(c->GetAttr("shape", &shape));
  if (shape.dims() != 2 || shape.dim_size(1) < 1) {
    return tensorflow::errors::InvalidArgument(
        "embedding variable '", name,
        "': expected the shape [-1, dim] with dim >= 1, got ",
        shape.DebugString());
  }
  ShapeHandle handle_shape;
  TF_RETURN_IF_ERROR(
      c->MakeShapeFromPartialTensorShape(shape, &handle_shape));
  c->set_output(0, c->Scalar());
  c->set_output_handle_shapes_and_types(0, {{handle_shape, dtype}});
  return Status::OK();
}

REGISTER_OP("EvHandle")
    .Output("resource: resource")
    .Attr("container: string = ''")
    .Attr("shared_name: string = ''")
    .Attr("dtype: {float} = DT_FLOAT")
    .Attr("shape: shape")
    .Attr("storage: {'dram', 'hbm'} = 'dram'")
    .Attr("key_dtype: {int64, int32} = DT_INT64")
    .Attr("record_frequency: bool = false")
    .Attr("record_version: bool = false")
    .SetIsStateful()
    .SetShapeFn(HandleShape)
    .Doc(R"doc(
Gives the handle of an embedding variable's table.

The first run in a session creates the table, empty and not initialized. Handles
with the same container and shared_name give the same table.

resource: The handle.
container: As for a variable.
shared_name: The variable's name; it appears in every error. Empty: the op's name.
dtype: The type of the values.
shape: [-1, D], where D is the length of a row.
storage: Where the rows are: CPU memory, or that of the process's GPU.
key_dtype: The type of the keys as the user declared it.
record_frequency: Count for each key how often it was trained.
record_version: Keep for each key the global step of its last update.
)doc");

REGISTER_OP("EvInitialize")
    .Input("resource: resource")
    .Input("default_rows: dtype")
    .Attr("dtype: {float} = DT_FLOAT")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) {
      return InputMatrix(c, 1, c->UnknownDim(), RowDim(c, 0), "default_rows");
    })
    .Doc(R"doc(
Sets the default rows and empties the table.

resource: The handle.
default_rows: [R, D], R >= 1. A new key starts with row floormod(key, R).
)doc");

REGISTER_OP("EvIsInitialized")
    .Input("resource: resource")
    .Output("is_initialized: bool")
    .SetIsStateful()
    .SetShapeFn(tensorflow::shape_inference::ScalarShape)
    .Doc(R"doc(
Tells whether EvInitialize has run on the table in this session.

resource: The handle.
is_initialized: Scalar.
)doc");

REGISTER_OP("EvShape")
    .Input("resource: resource")
    .Output("shape: int64")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) {
      c->set_output(0, c->Vector(2));
      return Status::OK();
    })
    .Doc(R"doc(
Gives the number of keys and the length of a row.

resource: The handle.
shape: [keys, D].
)doc");

REGISTER_OP("EvStats")
    .Input("resource: resource")
    .Output("stats: int64")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) {
      c->set_output(0, c->Vector(4));
      return Status::OK();
    })
    .Doc(R"doc(
Gives the size of the table.

resource: The handle.
stats: [rows, bytes of the index, bytes of the rows, rows inserted so far].
)doc");

}  // namespace
}  // namespace embedding_variable
