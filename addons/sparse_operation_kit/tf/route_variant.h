// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// A route plan as a DT_VARIANT scalar. It never leaves the process.

#ifndef ADDONS_SPARSE_OPERATION_KIT_TF_ROUTE_VARIANT_H_
#define ADDONS_SPARSE_OPERATION_KIT_TF_ROUTE_VARIANT_H_

#include <memory>
#include <string>
#include <utility>

#include "addons/sparse_operation_kit/exchange/route.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/variant.h"
#include "tensorflow/core/framework/variant_encode_decode.h"
#include "tensorflow/core/framework/variant_tensor_data.h"

namespace sparse_operation_kit {

class RouteVariant {
 public:
  RouteVariant() {}
  explicit RouteVariant(std::shared_ptr<const sok::RoutePlan> plan)
      : plan_(std::move(plan)) {}

  const sok::RoutePlan* plan() const { return plan_.get(); }

  std::string TypeName() const { return "sparse_operation_kit::RouteVariant"; }
  std::string DebugString() const {
    return plan_ ? tensorflow::strings::StrCat("route of a lookup of ",
                                               plan_->num_tables(),
                                               " tables over ",
                                               plan_->num_ranks(), " ranks")
                 : std::string("no route");
  }
  void Encode(tensorflow::VariantTensorData* data) const {
    data->set_type_name(TypeName());
  }
  bool Decode(const tensorflow::VariantTensorData&) { return false; }

 private:
  std::shared_ptr<const sok::RoutePlan> plan_;
};

// The route in input `input`; it lives as long as that tensor.
inline tensorflow::Status GetRoute(tensorflow::OpKernelContext* context,
                                   int input, const sok::RoutePlan** plan) {
  const tensorflow::Tensor& tensor = context->input(input);
  const RouteVariant* variant =
      tensor.dtype() == tensorflow::DT_VARIANT && tensor.dims() == 0
          ? tensor.scalar<tensorflow::Variant>()().get<RouteVariant>()
          : nullptr;
  if (variant == nullptr || variant->plan() == nullptr) {
    return tensorflow::errors::InvalidArgument(
        "input ", input, " must be the route of a lookup over ranks, got ",
        tensor.DebugString());
  }
  *plan = variant->plan();
  return tensorflow::Status::OK();
}

}  // namespace sparse_operation_kit

#endif  // ADDONS_SPARSE_OPERATION_KIT_TF_ROUTE_VARIANT_H_
