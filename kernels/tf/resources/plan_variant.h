// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// A lookup's plan as a tensor: a DT_VARIANT scalar that shares the engine's
// plan. It never leaves the process, so it has no serialized form.

#ifndef KERNELS_TF_RESOURCES_PLAN_VARIANT_H_
#define KERNELS_TF_RESOURCES_PLAN_VARIANT_H_

#include <memory>
#include <string>
#include <utility>

#include "kernels/engine/embedding/lookup/pooled_lookup.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/variant.h"
#include "tensorflow/core/framework/variant_encode_decode.h"
#include "tensorflow/core/framework/variant_tensor_data.h"

namespace embedding_variable {

class PlanVariant {
 public:
  PlanVariant() {}
  explicit PlanVariant(std::shared_ptr<const ev::LookupPlan> plan)
      : plan_(std::move(plan)) {}

  const ev::LookupPlan* plan() const { return plan_.get(); }

  std::string TypeName() const { return "embedding_variable::PlanVariant"; }
  std::string DebugString() const {
    return plan_ ? tensorflow::strings::StrCat("plan of a lookup of ",
                                               plan_->num_tables(), " tables")
                 : std::string("no plan");
  }
  void Encode(tensorflow::VariantTensorData* data) const {
    data->set_type_name(TypeName());
  }
  bool Decode(const tensorflow::VariantTensorData&) { return false; }

 private:
  std::shared_ptr<const ev::LookupPlan> plan_;
};

// Sets output `output` to the plan. REQUIRES, here and below: a kernel for GPUs
// has declared the tensor as HostMemory.
inline tensorflow::Status SetPlanOutput(
    tensorflow::OpKernelContext* context, int output,
    std::shared_ptr<const ev::LookupPlan> plan) {
  tensorflow::Tensor* tensor = nullptr;
  TF_RETURN_IF_ERROR(
      context->allocate_output(output, tensorflow::TensorShape({}), &tensor));
  tensor->scalar<tensorflow::Variant>()() = PlanVariant(std::move(plan));
  return tensorflow::Status();
}

// Returns the plan in input `input`, which lives as long as that tensor.
inline tensorflow::Status GetPlan(tensorflow::OpKernelContext* context,
                                  int input, const ev::LookupPlan** plan) {
  const tensorflow::Tensor& tensor = context->input(input);
  const PlanVariant* variant =
      tensor.dtype() == tensorflow::DT_VARIANT && tensor.dims() == 0
          ? tensor.scalar<tensorflow::Variant>()().get<PlanVariant>()
          : nullptr;
  if (variant == nullptr || variant->plan() == nullptr) {
    return tensorflow::errors::InvalidArgument(
        "input ", input, ": expected the plan of an embedding lookup, got ",
        tensor.DebugString());
  }
  *plan = variant->plan();
  return tensorflow::Status();
}

}  // namespace embedding_variable

#endif  // KERNELS_TF_RESOURCES_PLAN_VARIANT_H_
