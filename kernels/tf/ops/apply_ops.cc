// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The fused optimizer update of K tables.

#include <vector>

#include "kernels/tf/ops/shape_helpers.h"
#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"

namespace embedding_variable {
namespace {

using tensorflow::Status;
using tensorflow::errors::InvalidArgument;
using tensorflow::shape_inference::InferenceContext;
using tensorflow::shape_inference::ShapeHandle;
using tensorflow::strings::StrCat;

Status ApplyShape(InferenceContext* c) {
  int num_tables, num_hyper, num_plans;
  TF_RETURN_IF_ERROR(c->GetAttr("num_tables", &num_tables));
  TF_RETURN_IF_ERROR(c->GetAttr("num_hyper", &num_hyper));
  TF_RETURN_IF_ERROR(c->GetAttr("num_plans", &num_plans));
  std::vector<std::string> slot_names;
  TF_RETURN_IF_ERROR(c->GetAttr("slot_names", &slot_names));
  std::vector<float> slot_inits;
  TF_RETURN_IF_ERROR(c->GetAttr("slot_inits", &slot_inits));
  if (slot_names.size() != slot_inits.size() ||
      slot_names.size() % num_tables != 0) {
    return InvalidArgument(slot_names.size(), " slot names and ",
                           slot_inits.size(), " initial values for ",
                           num_tables, " tables");
  }
  std::vector<tensorflow::int32> plan_tables;
  TF_RETURN_IF_ERROR(c->GetAttr("plan_tables", &plan_tables));
  if (num_plans > 1 || plan_tables.size() != num_plans * num_tables) {
    return InvalidArgument(num_plans, " plans and ", plan_tables.size(),
                           " plan tables for ", num_tables,
                           " tables; give one plan, or none");
  }
  int num_counts;
  TF_RETURN_IF_ERROR(c->GetAttr("num_counts", &num_counts));
  if (num_counts != 0 && num_counts != num_tables) {
    return InvalidArgument(num_counts, " counts for ", num_tables,
                           " tables; give one for each, or none");
  }
  for (int k = 0; k < num_tables; ++k) {
    ShapeHandle keys;
    TF_RETURN_IF_ERROR(
        InputOfRank(c, num_tables + k, 1, StrCat("keys of table ", k), &keys));
    if (num_counts > 0) {
      ShapeHandle counts;
      TF_RETURN_IF_ERROR(
          InputOfRank(c, 3 * num_tables + num_hyper + 1 + num_plans + k, 1,
                      StrCat("counts of table ", k), &counts));
      TF_RETURN_IF_ERROR(c->Merge(keys, counts, &keys));
    }
    TF_RETURN_IF_ERROR(InputMatrix(c, 2 * num_tables + k, c->Dim(keys, 0),
                                   RowDim(c, k),
                                   StrCat("gradient of table ", k)));
  }
  for (int h = 0; h <= num_hyper; ++h) {
    ShapeHandle scalar;
    TF_RETURN_IF_ERROR(InputOfRank(
        c, 3 * num_tables + h, 0,
        h < num_hyper ? StrCat("hyperparameter ", h) : std::string("step"),
        &scalar));
  }
  return Status();
}

Status ApplyPooledShape(InferenceContext* c) {
  int num_tables, num_hyper;
  TF_RETURN_IF_ERROR(c->GetAttr("num_tables", &num_tables));
  TF_RETURN_IF_ERROR(c->GetAttr("num_hyper", &num_hyper));
  std::vector<std::string> slot_names;
  TF_RETURN_IF_ERROR(c->GetAttr("slot_names", &slot_names));
  std::vector<float> slot_inits;
  TF_RETURN_IF_ERROR(c->GetAttr("slot_inits", &slot_inits));
  std::vector<tensorflow::int32> plan_tables;
  TF_RETURN_IF_ERROR(c->GetAttr("plan_tables", &plan_tables));
  if (slot_names.size() != slot_inits.size() ||
      slot_names.size() % num_tables != 0 || plan_tables.size() != num_tables) {
    return InvalidArgument(slot_names.size(), " slot names, ",
                           slot_inits.size(), " initial values and ",
                           plan_tables.size(), " plan tables for ", num_tables,
                           " tables");
  }
  for (int k = 0; k < num_tables; ++k) {
    TF_RETURN_IF_ERROR(InputMatrix(c, num_tables + k, c->UnknownDim(),
                                   RowDim(c, k),
                                   StrCat("gradient of table ", k)));
  }
  for (int h = 0; h <= num_hyper + 1; ++h) {
    ShapeHandle scalar;
    TF_RETURN_IF_ERROR(InputOfRank(c, 2 * num_tables + h, 0,
                                   h < num_hyper ? StrCat("hyperparameter ", h)
                                   : h == num_hyper ? std::string("step")
                                                    : std::string("plan"),
                                   &scalar));
  }
  return Status();
}

REGISTER_OP("EvApply")
    .Input("resources: num_tables * resource")
    .Input("keys: num_tables * int64")
    .Input("grads: num_tables * float")
    .Input("hyper: num_hyper * float")
    .Input("step: int64")
    .Input("plan: num_plans * variant")
    .Input("counts: num_counts * int64")
    .Attr("num_tables: int >= 1")
    .Attr("num_hyper: int >= 0")
    .Attr("num_plans: int >= 0")
    .Attr("num_counts: int >= 0")
    .Attr("rule: string")
    .Attr("slot_names: list(string)")
    .Attr("slot_inits: list(float)")
    .Attr("plan_tables: list(int)")
    .SetIsStateful()
    .SetShapeFn(ApplyShape)
    .Doc(R"doc(
Updates rows of K tables by one optimizer rule. Gradients of equal keys are summed
in order of occurrence first; absent keys are inserted.

resources: K handles, all different.
keys: K vectors [M].
grads: K matrices [M, D].
hyper: The rule's hyperparameters, scalars in its order.
step: Scalar, the global step before its increment: the rows' new version.
plan: The plan of the lookup whose gradient gave the keys, or nothing. Other keys
  than the plan's are looked up again.
num_tables: K.
num_hyper: Number of hyperparameters.
counts: K vectors [M], how often each key occurred, or nothing. Without counts each
  key counts once, or as often as in the plan if there is one.
num_plans: 0 or 1.
num_counts: K or 0.
rule: Adagrad, Adam, ...
slot_names: K S names, table by table. A missing slot is created.
slot_inits: K S initial values of the slots of new rows.
plan_tables: With a plan, the K tables' numbers in it; otherwise empty.
)doc");

REGISTER_OP("EvApplyPooled")
    .Input("resources: num_tables * resource")
    .Input("grads: num_tables * Tgrads")
    .Input("hyper: num_hyper * float")
    .Input("step: int64")
    .Input("plan: variant")
    .Attr("num_tables: int >= 1")
    .Attr("num_hyper: int >= 0")
    .Attr("rule: string")
    .Attr("slot_names: list(string)")
    .Attr("slot_inits: list(float)")
    .Attr("plan_tables: list(int)")
    .Attr("Tgrads: {float, half, bfloat16} = DT_FLOAT")
    .SetIsStateful()
    .SetShapeFn(ApplyPooledShape)
    .Doc(R"doc(
Updates rows of K tables by one optimizer rule and the gradients of a lookup's
outputs, like EvLookupSparseGrad followed by EvApply. If rows are on a device, the
device sums the gradients.

resources: K handles, all different.
grads: K matrices [B, D], gradients of the lookup's outputs. They are widened when they
  are read.
hyper: The rule's hyperparameters, scalars in its order.
step: Scalar, the global step before its increment: the rows' new version.
plan: The plan of the lookup.
num_tables: K.
num_hyper: Number of hyperparameters.
rule: Adagrad, Adam, ...
slot_names: K S names, table by table. A missing slot is created.
slot_inits: K S initial values of the slots of new rows.
plan_tables: The K tables' numbers in the plan.
)doc");

}  // namespace
}  // namespace embedding_variable
