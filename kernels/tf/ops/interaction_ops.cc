// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// DLRM's interaction, and its gradient.

#include <string>

#include "kernels/tf/ops/shape_helpers.h"
#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"

namespace embedding_variable {
namespace {

using tensorflow::Status;
using tensorflow::shape_inference::DimensionHandle;
using tensorflow::shape_inference::InferenceContext;
using tensorflow::shape_inference::ShapeHandle;

// Returns the common shape of the first num_vectors inputs.
Status ShapeOfVectors(InferenceContext* c, int num_vectors, ShapeHandle* all) {
  TF_RETURN_IF_ERROR(InputOfRank(c, 0, 2, "vector 0", all));
  for (int v = 1; v < num_vectors; ++v) {
    const std::string what = "vector " + std::to_string(v);
    ShapeHandle shape;
    TF_RETURN_IF_ERROR(InputOfRank(c, v, 2, what, &shape));
    ShapeHandle merged;
    if (!c->Merge(shape, *all, &merged).ok()) {
      return tensorflow::errors::InvalidArgument(
          what, ": expected the shape of the vectors before it, ",
          c->DebugString(*all), ", got ", c->DebugString(shape));
    }
    *all = merged;
  }
  return Status();
}

DimensionHandle NumPairs(InferenceContext* c, tensorflow::int64 num_vectors) {
  return c->MakeDim(num_vectors * (num_vectors - 1) / 2);
}

REGISTER_OP("EvDotInteraction")
    .Input("vectors: N * T")
    .Output("dots: T")
    .Attr("N: int >= 2")
    .Attr("T: {float, half, bfloat16} = DT_FLOAT")
    .SetShapeFn([](InferenceContext* c) {
      ShapeHandle shape;
      TF_RETURN_IF_ERROR(ShapeOfVectors(c, c->num_inputs(), &shape));
      c->set_output(0,
                    c->Matrix(c->Dim(shape, 0), NumPairs(c, c->num_inputs())));
      return Status();
    })
    .Doc(R"doc(
Computes the dot products of all pairs of a sample's vectors.

Sums are float32. Results of T are rounded once, when they are stored.

vectors: Each `[B, D]`, one row per sample.
dots: `[B, N (N - 1) / 2]`, for pairs (1, 0), (2, 0), (2, 1), (3, 0), ...
)doc");

REGISTER_OP("EvDotInteractionGrad")
    .Input("vectors: N * T")
    .Input("slopes: T")
    .Output("grads: N * T")
    .Attr("N: int >= 2")
    .Attr("T: {float, half, bfloat16} = DT_FLOAT")
    .SetShapeFn([](InferenceContext* c) {
      const int n = c->num_inputs() - 1;
      ShapeHandle shape;
      TF_RETURN_IF_ERROR(ShapeOfVectors(c, n, &shape));
      TF_RETURN_IF_ERROR(
          InputMatrix(c, n, c->Dim(shape, 0), NumPairs(c, n), "slopes"));
      for (int v = 0; v < n; ++v) c->set_output(v, shape);
      return Status();
    })
    .Doc(R"doc(
Computes the gradient of EvDotInteraction.

vectors: The vectors of EvDotInteraction.
slopes: The gradient of its dots, `[B, N (N - 1) / 2]`.
grads: The gradient of each vector, `[B, D]`: the sum over all other vectors, in
  their order, of the slope of the pair times the other vector.
)doc");

}  // namespace
}  // namespace embedding_variable
