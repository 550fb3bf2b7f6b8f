// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The fused lookup of T tables and its gradients. Inputs come in groups of T:
// resources, ids, rows, batch sizes and, optionally, weights.

#include <vector>

#include "kernels/engine/base/batch_limits.h"
#include "kernels/engine/combine/combiner_names.h"
#include "kernels/tf/ops/shape_helpers.h"
#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"

namespace embedding_variable {
namespace {

using tensorflow::Status;
using tensorflow::errors::InvalidArgument;
using tensorflow::shape_inference::DimensionHandle;
using tensorflow::shape_inference::InferenceContext;
using tensorflow::shape_inference::ShapeHandle;
using tensorflow::strings::StrCat;

// Returns the static batch size: from row splits, else from a constant.
Status StaticBatchSize(InferenceContext* c, int table, int rows_input,
                       int batch_size_input, DimensionHandle num_ids,
                       DimensionHandle* batch_size) {
  ShapeHandle scalar;
  if (!c->WithRank(c->input(batch_size_input), 0, &scalar).ok()) {
    return InvalidArgument("batch size of table ", table,
                           ": expected a scalar, got shape ",
                           c->DebugString(c->input(batch_size_input)));
  }
  TF_RETURN_IF_ERROR(c->MakeDimForScalarInput(batch_size_input, batch_size));
  if (c->ValueKnown(*batch_size) && !ev::IsBatchSize(c->Value(*batch_size))) {
    return InvalidArgument("table ", table, " has a batch of ",
                           c->Value(*batch_size), " samples; at most ",
                           ev::kMaxBatch, " are possible");
  }
  const ShapeHandle rows = c->input(rows_input);
  if (!c->RankKnown(rows)) return Status();
  if (c->Rank(rows) == 1) {
    DimensionHandle from_splits;
    TF_RETURN_IF_ERROR(c->Subtract(c->Dim(rows, 0), 1, &from_splits));
    // A failed merge may change its result argument, so use a separate one.
    DimensionHandle merged;
    if (!c->Merge(*batch_size, from_splits, &merged).ok()) {
      return InvalidArgument("table ", table, ": ",
                             c->DebugString(c->Dim(rows, 0)),
                             " row splits do not fit the batch size ",
                             c->DebugString(*batch_size));
    }
    *batch_size = merged;
    return Status();
  }
  return InputMatrix(c, rows_input, num_ids, c->MakeDim(2),
                     StrCat("indices of table ", table));
}

Status LookupSparseShape(InferenceContext* c) {
  int num_tables, num_weights;
  TF_RETURN_IF_ERROR(c->GetAttr("num_tables", &num_tables));
  TF_RETURN_IF_ERROR(c->GetAttr("num_weights", &num_weights));
  std::vector<tensorflow::int32> dims;
  TF_RETURN_IF_ERROR(c->GetAttr("dims", &dims));
  std::vector<std::string> combiners;
  TF_RETURN_IF_ERROR(c->GetAttr("combiners", &combiners));
  if (dims.size() != num_tables || combiners.size() != num_tables) {
    return InvalidArgument("a lookup of ", num_tables, " tables got ",
                           dims.size(), " dims and ", combiners.size(),
                           " combiners");
  }
  if (num_weights != 0 && num_weights != num_tables) {
    return InvalidArgument("a lookup of ", num_tables, " tables got ",
                           num_weights, " weights; give one each, or none");
  }
  tensorflow::DataType type;
  TF_RETURN_IF_ERROR(c->GetAttr("Tout", &type));
  if (num_weights != 0 && type != tensorflow::DT_FLOAT) {
    return InvalidArgument("a lookup with weights: Tout: expected float, got ",
                           tensorflow::DataTypeString(type),
                           "; cast its outputs");
  }
  for (int t = 0; t < num_tables; ++t) {
    DimensionHandle dim;
    if (dims[t] < 1 ||
        !c->Merge(c->MakeDim(dims[t]), RowDim(c, t), &dim).ok()) {
      return InvalidArgument("table ", t, " has rows of length ",
                             c->DebugString(RowDim(c, t)), ", got dim ",
                             dims[t]);
    }
    ShapeHandle ids;
    TF_RETURN_IF_ERROR(
        InputOfRank(c, num_tables + t, 1, StrCat("ids of table ", t), &ids));
    DimensionHandle num_ids = c->Dim(ids, 0);
    if (num_weights > 0) {
      ShapeHandle weights;
      TF_RETURN_IF_ERROR(InputOfRank(c, 4 * num_tables + t, 1,
                                     StrCat("weights of table ", t), &weights));
      DimensionHandle merged;
      if (!c->Merge(num_ids, c->Dim(weights, 0), &merged).ok()) {
        return InvalidArgument("table ", t, " got ",
                               c->DebugString(c->Dim(ids, 0)), " ids but ",
                               c->DebugString(c->Dim(weights, 0)), " weights");
      }
      num_ids = merged;
    }
    DimensionHandle batch_size;
    TF_RETURN_IF_ERROR(StaticBatchSize(
        c, t, 2 * num_tables + t, 3 * num_tables + t, num_ids, &batch_size));
    c->set_output(t, c->Matrix(batch_size, dim));
  }
  c->set_output(num_tables, c->Scalar());
  return Status();
}

REGISTER_OP("EvLookupSparse")
    .Input("resources: num_tables * resource")
    .Input("ids: num_tables * Tids")
    .Input("rows: num_tables * int64")
    .Input("batch_sizes: num_tables * int64")
    .Input("weights: num_weights * float")
    .Output("outputs: num_tables * Tout")
    .Output("plan: variant")
    .Attr("num_tables: int >= 1")
    .Attr("num_weights: int >= 0")
    .Attr("Tids: {int64, int32}")
    .Attr(ev::CombinersAttr())
    .Attr("dims: list(int)")
    .Attr("no_nan: bool = false")
    .Attr("Tout: {float, half, bfloat16} = DT_FLOAT")
    .SetIsStateful()
    .SetShapeFn(LookupSparseShape)
    .Doc(R"doc(
Looks up and pools the ids of T tables. Inserts nothing; an absent key has its
default row. kernels/engine/combine/combiner.h defines the combiners; a sample
without ids gives zeros.

resources: T handles.
ids: T vectors of keys [N].
rows: T times either the indices [N, 2] of a SparseTensor, sorted by their first
  column, or the row splits [B + 1] of a RaggedTensor.
batch_sizes: T scalars B.
weights: T vectors [N], or nothing: all ones. Ignored by combiners that take no
  weights.
outputs: T matrices [B, D].
plan: The lookup's plan (keys, handles, counts), for EvLookupSparseGrad and EvApply.
num_tables: T.
num_weights: 0 or T.
combiners: T names of combiners.
dims: T row lengths.
no_nan: The output of a sample whose weights make its combiner divide by 0. True:
  zeros, also for its gradients. False: NaN or infinity, like TensorFlow's division.
Tout: Type of the outputs. Sums are float32, and rounded once. With weights only float:
  their gradient needs the sums.
)doc");

// Not stateful, unlike all other ops: a tf.function runs its stateful ops even
// if nothing uses them, and EvApplyPooled may replace this one.
REGISTER_OP("EvLookupSparseGrad")
    .Input("plan: variant")
    .Input("grads: num_grads * Tgrads")
    .Input("weights: num_weights * float")
    .Output("keys: num_grads * int64")
    .Output("unique_grads: num_grads * float")
    .Attr("num_grads: int >= 1")
    .Attr("num_weights: int >= 0 = 0")
    .Attr("tables: list(int)")
    .Attr("dims: list(int)")
    .Attr("Tgrads: {float, half, bfloat16} = DT_FLOAT")
    .SetShapeFn([](InferenceContext* c) {
      int num_grads;
      TF_RETURN_IF_ERROR(c->GetAttr("num_grads", &num_grads));
      std::vector<tensorflow::int32> tables, dims;
      TF_RETURN_IF_ERROR(c->GetAttr("tables", &tables));
      TF_RETURN_IF_ERROR(c->GetAttr("dims", &dims));
      if (tables.size() != num_grads || dims.size() != num_grads) {
        return InvalidArgument(num_grads, " gradients came with ",
                               tables.size(), " tables and ", dims.size(),
                               " dims");
      }
      for (int k = 0; k < num_grads; ++k) {
        if (tables[k] < 0 || dims[k] < 1) {
          return InvalidArgument(
              "expected tables >= 0 and dims >= 1, got table ", tables[k],
              " with dim ", dims[k]);
        }
        TF_RETURN_IF_ERROR(InputMatrix(c, 1 + k, c->UnknownDim(),
                                       c->MakeDim(dims[k]),
                                       StrCat("gradient ", k)));
        const DimensionHandle unique = c->UnknownDim();
        c->set_output(k, c->Vector(unique));
        c->set_output(num_grads + k, c->Matrix(unique, dims[k]));
      }
      return Status();
    })
    .Doc(R"doc(
Computes the gradient of EvLookupSparse for K of its tables: for each distinct key
the sum over its occurrences, in the order of occurrence.

plan: The lookup's plan.
grads: K gradients of the outputs [B, D]. They are widened when they are read.
weights: K vectors, the tables' weights, or nothing. Not read, since the plan has them;
  they are inputs so that a gradient of this op can flow to them.
keys: K vectors of distinct keys [U].
unique_grads: K matrices [U, D].
num_grads: K.
num_weights: 0 or K.
tables: The K tables' numbers in the lookup.
dims: K row lengths.
)doc");

REGISTER_OP("EvPoolGivenRows")
    .Input("plan: variant")
    .Input("rows: num_rows * float")
    .Input("weights: num_weights * float")
    .Output("outputs: num_rows * float")
    .Attr("num_rows: int >= 1")
    .Attr("num_weights: int >= 0 = 0")
    .Attr("tables: list(int)")
    .Attr("dims: list(int)")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) {
      int num_rows;
      TF_RETURN_IF_ERROR(c->GetAttr("num_rows", &num_rows));
      std::vector<tensorflow::int32> tables, dims;
      TF_RETURN_IF_ERROR(c->GetAttr("tables", &tables));
      TF_RETURN_IF_ERROR(c->GetAttr("dims", &dims));
      if (tables.size() != num_rows || dims.size() != num_rows) {
        return InvalidArgument("rows of ", num_rows, " tables came with ",
                               tables.size(), " tables and ", dims.size(),
                               " dims");
      }
      for (int k = 0; k < num_rows; ++k) {
        if (tables[k] < 0 || dims[k] < 1) {
          return InvalidArgument(
              "expected tables >= 0 and dims >= 1, got table ", tables[k],
              " with dim ", dims[k]);
        }
        TF_RETURN_IF_ERROR(InputMatrix(c, 1 + k, c->UnknownDim(),
                                       c->MakeDim(dims[k]),
                                       StrCat("rows of table ", tables[k])));
        c->set_output(k, c->Matrix(c->UnknownDim(), dims[k]));
      }
      return Status();
    })
    .Doc(R"doc(
Pools given rows by the plan of a lookup, for K of its tables: the outputs of
EvLookupSparse if each distinct key had the given row. It is the gradient of
EvLookupSparseGrad with respect to its gradients, and the reverse.

plan: The lookup's plan.
rows: K matrices [U, D], in the order of the keys that EvLookupSparseGrad returns.
weights: Like those of EvLookupSparseGrad.
outputs: K matrices [B, D].
num_rows: K.
num_weights: 0 or K.
tables: The K tables' numbers in the lookup.
dims: K row lengths.
)doc");

REGISTER_OP("EvLookupSparseWeightGrad")
    .Input("plan: variant")
    .Input("grad: float")
    .Input("output: float")
    .Input("rows: num_rows * float")
    .Output("weight_grad: float")
    .Attr("table: int >= 0")
    .Attr("num_rows: int >= 0 = 0")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) {
      ShapeHandle grad, output;
      TF_RETURN_IF_ERROR(InputOfRank(c, 1, 2, "grad", &grad));
      TF_RETURN_IF_ERROR(InputOfRank(c, 2, 2, "output", &output));
      TF_RETURN_IF_ERROR(c->Merge(grad, output, &grad));
      c->set_output(0, c->Vector(c->UnknownDim()));
      return Status();
    })
    .Doc(R"doc(
Computes the gradient of EvLookupSparse with respect to the weights of one table.

plan: The lookup's plan.
grad: The gradient of the table's output [B, D].
output: That output.
rows: Nothing, for the gradient of EvLookupSparse; or a matrix [U, D], for the gradient
  of EvPoolGivenRows with these rows and this output.
weight_grad: [N].
table: The table's number in the lookup.
num_rows: 0 or 1.
)doc");

REGISTER_OP("EvPlanCounts")
    .Input("plan: variant")
    .Output("counts: int64")
    .Attr("table: int >= 0")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) {
      c->set_output(0, c->Vector(c->UnknownDim()));
      return Status();
    })
    .Doc(R"doc(
Returns how often each of a plan's distinct keys occurred in the batch.

plan: The plan of a lookup.
counts: [U], in the order of the keys that EvLookupSparseGrad returns.
table: Number of the table in the plan.
)doc");

}  // namespace
}  // namespace embedding_variable
