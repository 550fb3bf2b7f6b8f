// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// A route plan as a DT_VARIANT scalar. It never leaves the process.
//
// It also owns the lookup's entry in the WaitRegistry. TensorFlow drops the
// variant at the end of a step, even a failed one, and the entry ends with it.

#ifndef ADDONS_SPARSE_OPERATION_KIT_TF_ROUTE_VARIANT_H_
#define ADDONS_SPARSE_OPERATION_KIT_TF_ROUTE_VARIANT_H_

#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "addons/sparse_operation_kit/exchange/carrier/carrier_queue.h"
#include "addons/sparse_operation_kit/exchange/exchange_device.h"
#include "addons/sparse_operation_kit/exchange/pool.h"
#include "addons/sparse_operation_kit/exchange/route.h"
#include "addons/sparse_operation_kit/exchange/wait_registry.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/variant.h"
#include "tensorflow/core/framework/variant_encode_decode.h"
#include "tensorflow/core/framework/variant_tensor_data.h"

namespace sparse_operation_kit {

// State that the ops of one lookup share during one step.
class RouteState {
 public:
  explicit RouteState(std::shared_ptr<const sok::RoutePlan> plan)
      : plan_(std::move(plan)) {}

  const sok::RoutePlan& plan() const { return *plan_; }

  // The route on a device, or null if no device is used. Set before any other
  // op gets the state.
  const std::shared_ptr<sok::DeviceRoute>& on_device() const {
    return on_device_;
  }
  void set_on_device(std::unique_ptr<sok::DeviceRoute> route) {
    on_device_ = std::move(route);
  }

  // The grouping made before the gradient exists, or null.
  std::shared_ptr<const sok::RouteOccurrences> occurrences() {
    std::lock_guard<std::mutex> lock(mu_);
    return occurrences_;
  }
  void set_occurrences(std::shared_ptr<const sok::RouteOccurrences> grouped) {
    std::lock_guard<std::mutex> lock(mu_);
    occurrences_ = std::move(grouped);
  }

  // Call when the messages of 'what' are written: the wait for other ranks
  // begins.
  void BeginWait(const std::string& what) {
    std::lock_guard<std::mutex> lock(mu_);
    wait_.Begin(what);
  }
  // Call when the answer has arrived. Also ends ExpectGradient.
  void EndWait() {
    std::lock_guard<std::mutex> lock(mu_);
    wait_.End();
    expected_.reset();
  }
  // Announces that this step will exchange the lookup's gradient.
  void ExpectGradient() {
    std::lock_guard<std::mutex> lock(mu_);
    if (expected_ == nullptr) expected_.reset(new sok::ExpectedGradient);
  }

 private:
  const std::shared_ptr<const sok::RoutePlan> plan_;
  std::shared_ptr<sok::DeviceRoute> on_device_;
  std::mutex mu_;
  std::shared_ptr<const sok::RouteOccurrences> occurrences_;
  sok::Wait wait_;
  std::unique_ptr<sok::ExpectedGradient> expected_;
};

class RouteVariant {
 public:
  RouteVariant() {}
  explicit RouteVariant(std::shared_ptr<RouteState> state)
      : state_(std::move(state)) {}

  RouteState* state() const { return state_.get(); }

  std::string TypeName() const { return "sparse_operation_kit::RouteVariant"; }
  std::string DebugString() const {
    return state_ ? tensorflow::strings::StrCat(
                        "route of a lookup of ", state_->plan().num_tables(),
                        " tables over ", state_->plan().num_ranks(), " ranks")
                  : std::string("no route");
  }
  void Encode(tensorflow::VariantTensorData* data) const {
    data->set_type_name(TypeName());
  }
  bool Decode(const tensorflow::VariantTensorData&) { return false; }

 private:
  std::shared_ptr<RouteState> state_;
};

// Returns the route in input `input`, valid while that tensor lives.
inline tensorflow::Status GetRoute(tensorflow::OpKernelContext* context,
                                   int input, RouteState** state) {
  const tensorflow::Tensor& tensor = context->input(input);
  const RouteVariant* variant =
      tensor.dtype() == tensorflow::DT_VARIANT && tensor.dims() == 0
          ? tensor.scalar<tensorflow::Variant>()().get<RouteVariant>()
          : nullptr;
  if (variant == nullptr || variant->state() == nullptr) {
    return tensorflow::errors::InvalidArgument(
        "input ", input, ": expected the route of a lookup over ranks, got ",
        tensor.DebugString());
  }
  *state = variant->state();
  return tensorflow::Status();
}

}  // namespace sparse_operation_kit

#endif  // ADDONS_SPARSE_OPERATION_KIT_TF_ROUTE_VARIANT_H_
