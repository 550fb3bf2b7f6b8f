// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Kernel of SokRoute.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "addons/sparse_operation_kit/exchange/kept_memory.h"
#include "addons/sparse_operation_kit/exchange/route.h"
#include "addons/sparse_operation_kit/tf/kernel_attrs.h"
#include "addons/sparse_operation_kit/tf/route_variant.h"
#include "addons/sparse_operation_kit/tf/wire_variant.h"
#include "kernels/engine/combine/combiner_names.h"
#include "kernels/tf/bridge/gpu_tensors.h"
#include "kernels/tf/bridge/pool_parallel.h"
#include "kernels/tf/bridge/register_kernel.h"
#include "kernels/tf/bridge/shared_variant.h"
#include "kernels/tf/bridge/transfer_tensor.h"
#include "kernels/tf/op_kernels/ids_in_cpu_memory.h"
#include "kernels/tf/op_kernels/ids_input.h"
#include "kernels/tf/op_kernels/kernel_checks.h"

namespace sparse_operation_kit {
namespace {

using embedding_variable::BadInput;
using embedding_variable::IdsInCpuMemory;
using embedding_variable::MutableData;
using embedding_variable::PoolParallel;
using embedding_variable::ToTf;
using tensorflow::int32;
using tensorflow::OpKernel;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::Status;
using tensorflow::Tensor;
using tensorflow::TensorShape;
using tensorflow::errors::InvalidArgument;

// kIdsOnGpu: the inputs ids and rows are in the memory of the op's device.
template <bool kIdsOnGpu>
class RouteOp : public OpKernel {
 public:
  explicit RouteOp(OpKernelConstruction* context)
      : OpKernel(context), on_gpu_(embedding_variable::IsOnGpu(*context)) {
    // If the op is on a GPU, outputs and their gradients usually are too.
    options_.brings_inverse = !on_gpu_;
    OP_REQUIRES_OK(context, GetFormat(context, &options_.format));
    OP_REQUIRES_OK(context, GetTraits(context, &options_.format.traits));
    OP_REQUIRES_OK(context, context->GetAttr("num_ranks", &options_.num_ranks));
    OP_REQUIRES_OK(context, context->GetAttr("on_device", &on_device_));
    OP_REQUIRES_OK(context, context->GetAttr("num_weights", &num_weights_));
    OP_REQUIRES_OK(context, context->GetAttr("call", &call_));
    OP_REQUIRES_OK(context, context->GetAttr("names", &names_));
    OP_REQUIRES_OK(context, context->GetAttr("dims", &dims_));
    std::vector<std::string> combiners;
    OP_REQUIRES_OK(context, context->GetAttr("combiners", &combiners));
    std::vector<int32> ranks, sizes;
    OP_REQUIRES_OK(context, context->GetAttr("placements", &ranks));
    OP_REQUIRES_OK(context, context->GetAttr("placement_sizes", &sizes));
    const size_t n = num_tables();
    OP_REQUIRES(
        context,
        names_.size() == n && dims_.size() == n && combiners.size() == n &&
            sizes.size() == n && (num_weights_ == 0 || num_weights_ == n),
        InvalidArgument("a lookup of ", n, " tables got ", names_.size(),
                        " names, ", dims_.size(), " dims, ", combiners.size(),
                        " combiners, ", sizes.size(), " placements and ",
                        num_weights_, " weights"));
    combiners_.resize(n);
    size_t at = 0;
    for (size_t t = 0; t < n; ++t) {
      OP_REQUIRES_OK(context,
                     ToTf(ev::ParseCombiner(combiners[t], &combiners_[t])));
      OP_REQUIRES(context, sizes[t] >= 1 && at + sizes[t] <= ranks.size(),
                  BadInput(names_[t], "its placement has no rank"));
      placements_.emplace_back(std::vector<int32_t>(
          ranks.begin() + at, ranks.begin() + at + sizes[t]));
      at += sizes[t];
    }
    sok::KeepMessages();
  }

  void Compute(OpKernelContext* context) override {
    std::vector<sok::RouteInput> inputs(num_tables());
    for (int t = 0; t < num_tables(); ++t) {
      OP_REQUIRES_OK(context, MakeInput(context, t, &inputs[t]));
    }
    PoolParallel parallel(context);
    sok::ExchangeDevice* device = nullptr;
    // First: the device provides pinned memory for the route's buffers.
    if (on_device_) OP_REQUIRES_OK(context, GetExchangeDevice(&device));
    sok::RouteOptions options = options_;
    options.device = device;
    std::shared_ptr<const sok::RoutePlan> plan;
    // Host copies of ids and rows. The inputs point into them until the route
    // is made.
    IdsInCpuMemory not_for_device, rest;
    ev::DeviceStream stream;
    if (kIdsOnGpu && on_gpu_) {
      OP_REQUIRES_OK(context,
                     embedding_variable::GetDeviceStream(context, &stream));
      const std::vector<bool> are_for_device =
          sok::AreForDevice(inputs, options);
      for (int t = 0; t < num_tables(); ++t) {
        inputs[t].on_device = true;
        inputs[t].stream = &stream;
        if (!are_for_device[t]) {
          AddTo(&not_for_device, context, t, &inputs[t]);
        }
      }
      OP_REQUIRES_OK(context, not_for_device.CopyAll(context));
    }
    ev::Status status = sok::Route(inputs, options, &parallel, &plan);
    if (status.code() == ev::StatusCode::kUnimplemented) {
      for (int t = 0; t < num_tables(); ++t) {
        if (inputs[t].on_device) AddTo(&rest, context, t, &inputs[t]);
      }
      OP_REQUIRES_OK(context, rest.CopyAll(context));
      status = sok::Route(inputs, options, &parallel, &plan);
    }
    OP_REQUIRES_OK(context, ToTf(status));
    std::unique_ptr<sok::DeviceRoute> device_route;
    if (on_device_) {
      OP_REQUIRES_OK(context, ToTf(device->StartRoute(plan, &device_route)));
    }
    Tensor message;
    const TensorShape message_shape({plan->message_size()});
    OP_REQUIRES_OK(context, embedding_variable::AllocateTransferOutput(
                                context, 0, message_shape, &message));
    OP_REQUIRES_OK(context,
                   ToTf(sok::WriteMessage(*plan, &parallel,
                                          MutableData<int64_t>(&message))));
    Tensor* splits = nullptr;
    const TensorShape splits_shape({options_.num_ranks});
    OP_REQUIRES_OK(context, context->allocate_output(1, splits_shape, &splits));
    for (int r = 0; r < options_.num_ranks; ++r) {
      splits->vec<int32>()(r) = static_cast<int32>(plan->message_size(r));
    }
    Tensor* route = nullptr;
    OP_REQUIRES_OK(context,
                   context->allocate_output(2, TensorShape({}), &route));
    const auto state = std::make_shared<RouteState>(std::move(plan));
    state->set_on_device(std::move(device_route));
    state->BeginWait(call_ + ", keys and rows");
    route->scalar<tensorflow::Variant>()() = RouteVariant(state);
  }

 private:
  int num_tables() const { return options_.format.num_tables; }

  void AddTo(IdsInCpuMemory* copies, OpKernelContext* context, int t,
             sok::RouteInput* in) const {
    copies->Add(context->input(t), context->input(num_tables() + t), in);
  }

  Status MakeInput(OpKernelContext* context, int t, sok::RouteInput* in) const {
    const int n = num_tables();
    const std::string& name = names_[t];
    in->name = name;
    in->dim = dims_[t];
    in->combiner = combiners_[t];
    in->placement = &placements_[t];

    TF_RETURN_IF_ERROR(
        embedding_variable::GetIds(context, name, t, 2 * n + t, in));
    TF_RETURN_IF_ERROR(embedding_variable::GetSamples(
        context, name, n + t, num_weights_ > 0 ? 3 * n + t : -1, in));
    // A combiner that selects ignores weights; another table's combiner may
    // need the input, so it holds ones.
    if (ev::Selects(in->combiner)) in->weights = nullptr;
    return Status();
  }

  const bool on_gpu_;
  sok::RouteOptions options_;
  int num_weights_ = 0;
  bool on_device_ = false;
  std::string call_;
  std::vector<std::string> names_;
  std::vector<int32> dims_;
  std::vector<ev::Combiner> combiners_;
  std::vector<sok::Placement> placements_;
};

const embedding_variable::RegisterKernel<RouteOp<false>> kRoute(
    "SokRoute",
    {"ids", "rows", "batch_sizes", "weights", "message", "splits", "plan"});
// Selected by spread_lookup.py.
const embedding_variable::RegisterKernel<RouteOp<true>> kRouteOfIdsOnGpu(
    "SokRoute", {"batch_sizes", "weights", "message", "splits", "plan"},
    "ids_on_gpu");
const embedding_variable::SharedVariantCopies<RouteVariant> kRouteCopies;
const embedding_variable::SharedVariantZeros<RouteVariant> kRouteZeros;

}  // namespace
}  // namespace sparse_operation_kit
