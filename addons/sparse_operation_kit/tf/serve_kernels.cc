// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Kernels of SokServe and SokServeGrad.

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "addons/sparse_operation_kit/exchange/device_serve.h"
#include "addons/sparse_operation_kit/exchange/serve.h"
#include "addons/sparse_operation_kit/tf/kernel_attrs.h"
#include "addons/sparse_operation_kit/tf/route_variant.h"
#include "addons/sparse_operation_kit/tf/wire_variant.h"
#include "kernels/tf/bridge/pool_parallel.h"
#include "kernels/tf/bridge/register_kernel.h"
#include "kernels/tf/bridge/transfer_tensor.h"
#include "kernels/tf/op_kernels/kernel_checks.h"
#include "kernels/tf/resources/ev_resource.h"
#include "kernels/tf/resources/plan_variant.h"

namespace sparse_operation_kit {
namespace {

using embedding_variable::AllocateTransferOutput;
using embedding_variable::BadInput;
using embedding_variable::EvResourcePtr;
using embedding_variable::GetInitialized;
using embedding_variable::GetPlan;
using embedding_variable::MatrixShape;
using embedding_variable::MutableData;
using embedding_variable::PoolParallel;
using embedding_variable::SetPlanOutput;
using embedding_variable::ToTf;
using tensorflow::int32;
using tensorflow::OpKernel;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::Tensor;
using tensorflow::TensorShape;
using tensorflow::errors::InvalidArgument;

class ServeOp : public OpKernel {
 public:
  explicit ServeOp(OpKernelConstruction* context) : OpKernel(context) {
    OP_REQUIRES_OK(context, GetFormat(context, &format_));
    OP_REQUIRES_OK(context, GetTraits(context, &traits_));
    OP_REQUIRES_OK(context, GetWire(context, &wire_));
    OP_REQUIRES_OK(context, context->GetAttr("Twire", &type_));
  }

  void Compute(OpKernelContext* context) override {
    const int n = format_.num_tables;
    std::vector<std::shared_ptr<ev::EmbeddingTable>> tables(n);
    std::vector<int64_t> dims(n);
    std::vector<int> all(n);
    for (int t = 0; t < n; ++t) {
      EvResourcePtr resource;
      OP_REQUIRES_OK(context, GetInitialized(context, t, &resource));
      tables[t] = resource->table();
      dims[t] = resource->dim();
      all[t] = t;
    }
    sok::MessageLayout layout;
    OP_REQUIRES_OK(context, ParseMessage(context, n, format_, &layout));
    const int64_t* const message =
        embedding_variable::Data<int64_t>(context->input(n));
    OP_REQUIRES_OK(context,
                   ToTf(sok::CheckTraits(layout, message, traits_, [&](int t) {
                     return tables[t]->options().name;
                   })));
    Tensor* splits = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(
                                1, TensorShape({layout.num_ranks()}), &splits));
    int64_t total = 0;
    for (int r = 0; r < layout.num_ranks(); ++r) {
      const int64_t floats = sok::RowFloats(layout, r, all, dims);
      OP_REQUIRES(context, floats <= std::numeric_limits<int32>::max(),
                  BadInput(tables[0]->options().name, "its lookup would send ",
                           floats, " numbers to rank ", r,
                           ", at most 2^31 - 1 can be sent at once"));
      splits->vec<int32>()(r) = static_cast<int32>(floats);
      total += floats;
    }
    PoolParallel parallel(context);
    std::shared_ptr<const ev::LookupPlan> plan;
    if (IsWireVariant(type_)) {
      sok::ExchangeDevice* device = nullptr;
      OP_REQUIRES_OK(context, GetExchangeDevice(&device));
      sok::WireBuffer rows;
      OP_REQUIRES_OK(context,
                     ToTf(sok::ServeRows(layout, message, tables, wire_, device,
                                         &parallel, &rows, &plan)));
      OP_REQUIRES_OK(context, SetWireOutput(context, 0, std::move(rows)));
    } else {
      Tensor rows;
      OP_REQUIRES_OK(context, AllocateTransferOutput(
                                  context, 0, TensorShape({total}), &rows));
      OP_REQUIRES_OK(
          context, ToTf(sok::Serve(layout, message, tables, wire_,
                                   MutableWireData(&rows), &parallel, &plan)));
    }
    OP_REQUIRES_OK(context, SetPlanOutput(context, 2, std::move(plan)));
  }

 private:
  sok::MessageFormat format_;
  std::string traits_;
  sok::WireType wire_;
  tensorflow::DataType type_;
};

class ServeGradOp : public OpKernel {
 public:
  explicit ServeGradOp(OpKernelConstruction* context) : OpKernel(context) {
    OP_REQUIRES_OK(context, GetFormat(context, &format_));
    OP_REQUIRES_OK(context, GetWire(context, &wire_));
    OP_REQUIRES_OK(context, context->GetAttr("tables", &tables_));
    OP_REQUIRES_OK(context, context->GetAttr("divisor", &divisor_));
    int num_grads;
    OP_REQUIRES_OK(context, context->GetAttr("num_grads", &num_grads));
    OP_REQUIRES(context, tables_.size() == num_grads,
                InvalidArgument(num_grads, " gradients came with ",
                                tables_.size(), " tables"));
  }

  void Compute(OpKernelContext* context) override {
    RouteState* route = nullptr;
    OP_REQUIRES_OK(context, GetRoute(context, 4, &route));
    route->EndWait();
    const ev::LookupPlan* plan = nullptr;
    OP_REQUIRES_OK(context, GetPlan(context, 0, &plan));
    sok::MessageLayout layout;
    OP_REQUIRES_OK(context, ParseMessage(context, 1, format_, &layout));
    sok::WireBuffer gradients;
    OP_REQUIRES_OK(context, GetGradients(context, &gradients));
    const int num_grads = static_cast<int>(tables_.size());
    std::vector<float*> unique_grads(num_grads);
    for (int k = 0; k < num_grads; ++k) {
      const int t = tables_[k];
      OP_REQUIRES(
          context, t >= 0 && t < plan->num_tables(),
          InvalidArgument("table ", t, " of a lookup of ", plan->num_tables()));
    }
    PoolParallel parallel(context);
    OP_REQUIRES_OK(context, ToTf(plan->Fetch(tables_, &parallel)));
    for (int k = 0; k < num_grads; ++k) {
      const int t = tables_[k];
      const ev::TableOptions& options = plan->table(t)->options();
      ev::Span<const int64_t> keys;
      OP_REQUIRES_OK(context, ToTf(plan->UniqueKeys(t, &keys)));
      const int64_t num_keys = static_cast<int64_t>(keys.size());
      Tensor* out_keys = nullptr;
      OP_REQUIRES_OK(context, context->allocate_output(
                                  k, TensorShape({num_keys}), &out_keys));
      std::copy(keys.begin(), keys.end(), MutableData<int64_t>(out_keys));
      TensorShape shape;
      OP_REQUIRES_OK(context,
                     MatrixShape(num_keys, options.dim, options.name, &shape));
      OP_REQUIRES_OK(context, AllocateTransferOutput(context, num_grads + k,
                                                     shape, &unique_grads[k]));
    }
    OP_REQUIRES_OK(
        context, ToTf(sok::ServeGradient(
                     layout, *plan, tables_, gradients.data(), gradients.count,
                     wire_, unique_grads, &parallel, divisor_)));
  }

 private:
  // Reads gradients in host memory.
  tensorflow::Status GetGradients(OpKernelContext* context,
                                  sok::WireBuffer* gradients) const {
    const Tensor& tensor = context->input(3);
    if (IsWireVariant(tensor.dtype())) {
      sok::WireBuffer received;
      TF_RETURN_IF_ERROR(GetWireInput(context, 3, &received));
      sok::ExchangeDevice* device = nullptr;
      TF_RETURN_IF_ERROR(GetExchangeDevice(&device));
      return ToTf(received.ToHost(device, gradients));
    }
    if (tensor.dims() != 1) {
      return InvalidArgument(
          "lookup over ranks: gradients: expected a vector, got shape ",
          tensor.shape().DebugString());
    }
    gradients->wire = wire_;
    gradients->count = tensor.NumElements();
    // Does not own the bytes: the tensor outlives the call.
    gradients->memory = std::shared_ptr<char>(
        std::shared_ptr<char>(),
        const_cast<char*>(static_cast<const char*>(WireData(tensor))));
    return tensorflow::Status();
  }

  sok::MessageFormat format_;
  sok::WireType wire_;
  int divisor_ = 1;
  std::vector<int32> tables_;
};

const embedding_variable::RegisterKernel<ServeOp> kServe(
    "SokServe",
    {"resources", "message", "splits", "rows", "row_splits", "plan"});
const embedding_variable::RegisterKernel<ServeGradOp> kServeGrad(
    "SokServeGrad", {"plan", "message", "splits", "gradients", "route", "keys",
                     "unique_grads"});

}  // namespace
}  // namespace sparse_operation_kit
