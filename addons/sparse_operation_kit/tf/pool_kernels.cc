// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Kernels of SokPool, SokPoolGrad and SokPoolWeightGrad.

#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "addons/sparse_operation_kit/exchange/device_serve.h"
#include "addons/sparse_operation_kit/exchange/pool.h"
#include "addons/sparse_operation_kit/tf/kernel_attrs.h"
#include "addons/sparse_operation_kit/tf/route_variant.h"
#include "addons/sparse_operation_kit/tf/wire_variant.h"
#include "kernels/tf/bridge/gpu_tensors.h"
#include "kernels/tf/bridge/pool_parallel.h"
#include "kernels/tf/bridge/register_kernel.h"
#include "kernels/tf/bridge/transfer_tensor.h"
#include "kernels/tf/op_kernels/kernel_checks.h"

namespace sparse_operation_kit {
namespace {

using embedding_variable::AllocateTransferOutput;
using embedding_variable::BadInput;
using embedding_variable::CheckMatrix;
using embedding_variable::Data;
using embedding_variable::FloatsOf;
using embedding_variable::MatrixShape;
using embedding_variable::MutableData;
using embedding_variable::MutableFloatsOf;
using embedding_variable::PoolParallel;
using embedding_variable::ToTf;
using tensorflow::int32;
using tensorflow::OpKernel;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::Tensor;
using tensorflow::TensorShape;
using tensorflow::errors::InvalidArgument;

// Names of the lookups that this process has trained. Their gradients' grouping
// is computed early, while the CPU would otherwise wait.
class CallsWithGradients {
 public:
  static CallsWithGradients& Global() {
    static CallsWithGradients* const calls = new CallsWithGradients;
    return *calls;
  }
  void Add(const std::string& call) {
    std::lock_guard<std::mutex> lock(mu_);
    calls_.insert(call);
  }
  bool Has(const std::string& call) {
    std::lock_guard<std::mutex> lock(mu_);
    return calls_.count(call) != 0;
  }

 private:
  std::mutex mu_;
  std::set<std::string> calls_;
};

// Host copies of tensors in GPU memory, for kernels on a GPU.
class HostCopies {
 public:
  explicit HostCopies(int count) : staged_(count) {}

  tensorflow::Status Make(OpKernelContext* context, int k,
                          tensorflow::DataType type, const TensorShape& shape) {
    if (!embedding_variable::MakeTransferTensor(type, shape, &staged_[k])) {
      TF_RETURN_IF_ERROR(context->allocate_temp(
          type, shape, &staged_[k], embedding_variable::InCpuMemory()));
    }
    return tensorflow::Status();
  }
  Tensor* operator[](int k) { return &staged_[k]; }

 private:
  std::vector<Tensor> staged_;
};

class PoolOp : public OpKernel {
 public:
  explicit PoolOp(OpKernelConstruction* context)
      : OpKernel(context), on_gpu_(embedding_variable::IsOnGpu(*context)) {
    OP_REQUIRES_OK(context, GetWire(context, &wire_));
    OP_REQUIRES_OK(context, context->GetAttr("num_tables", &num_tables_));
    OP_REQUIRES_OK(context, context->GetAttr("num_weights", &num_weights_));
    OP_REQUIRES_OK(context, context->GetAttr("call", &call_));
  }

  void Compute(OpKernelContext* context) override {
    const int plan_input = num_tables_ + num_weights_;
    RouteState* route = nullptr;
    OP_REQUIRES_OK(context, GetRoute(context, plan_input, &route));
    route->EndWait();
    const sok::RoutePlan* plan = &route->plan();
    OP_REQUIRES(
        context, plan->num_tables() == num_tables_,
        InvalidArgument("a lookup of ", num_tables_,
                        " tables got the route of ", plan->num_tables()));
    const Tensor& rows = context->input(plan_input + 1);
    sok::WireBuffer buffer;
    if (IsWireVariant(rows.dtype())) {
      OP_REQUIRES_OK(context, GetWireInput(context, plan_input + 1, &buffer));
    }
    // False: outputs in GPU memory are pooled on the host and copied.
    const bool pools_on_device = on_gpu_ && buffer.on_device;
    std::vector<ev::MutableFloats> outputs(num_tables_);
    HostCopies staged(num_tables_);
    std::vector<std::pair<const Tensor*, Tensor*>> copies;
    for (int t = 0; t < num_tables_; ++t) {
      TensorShape shape;
      OP_REQUIRES_OK(context, MatrixShape(plan->batch_size(t), plan->dim(t),
                                          plan->name(t), &shape));
      if (!on_gpu_) {
        Tensor output;
        OP_REQUIRES_OK(context,
                       AllocateTransferOutput(context, t, shape, &output));
        outputs[t] = MutableFloatsOf(output);
        continue;
      }
      Tensor* output = nullptr;
      OP_REQUIRES_OK(context, context->allocate_output(t, shape, &output));
      if (pools_on_device) {
        outputs[t] = MutableFloatsOf(*output);
        continue;
      }
      OP_REQUIRES_OK(context, staged.Make(context, t, output->dtype(), shape));
      outputs[t] = MutableFloatsOf(*staged[t]);
      copies.emplace_back(staged[t], output);
    }
    const bool is_trained = CallsWithGradients::Global().Has(call_);
    if (is_trained) route->ExpectGradient();
    PoolParallel parallel(context);
    if (!IsWireVariant(rows.dtype())) {
      OP_REQUIRES_OK(context, ToTf(sok::PoolReceived(*plan, WireData(rows),
                                                     rows.NumElements(), wire_,
                                                     outputs, &parallel)));
      OP_REQUIRES_OK(context, embedding_variable::CopyToGpu(context, copies));
      return;
    }
    // After the allocations: previous work may still use their memory.
    ev::DeviceStream stream;
    if (pools_on_device) {
      OP_REQUIRES_OK(context,
                     embedding_variable::GetDeviceStream(context, &stream));
    }
    // Gradients in GPU memory are grouped on the GPU.
    const bool groups = !on_gpu_ && is_trained;
    std::shared_ptr<const sok::RouteOccurrences> occurrences;
    std::shared_ptr<sok::StreamEvent> done;
    OP_REQUIRES_OK(
        context,
        ToTf(sok::PoolRows(*plan, route->on_device().get(), buffer, outputs,
                           pools_on_device ? &stream : nullptr, &parallel,
                           groups ? &occurrences : nullptr, &done)));
    if (done != nullptr) {
      sok::ExchangeDevice* device = nullptr;
      OP_REQUIRES_OK(context, GetExchangeDevice(&device));
      device->KeepUntil(done, buffer.memory);
      device->KeepUntil(done, route->on_device());
    }
    OP_REQUIRES_OK(context, embedding_variable::CopyToGpu(context, copies));
    route->set_occurrences(std::move(occurrences));
  }

 private:
  const bool on_gpu_;
  sok::WireType wire_;
  int num_tables_ = 0;
  int num_weights_ = 0;
  std::string call_;
};

class PoolGradOp : public OpKernel {
 public:
  explicit PoolGradOp(OpKernelConstruction* context)
      : OpKernel(context), on_gpu_(embedding_variable::IsOnGpu(*context)) {
    OP_REQUIRES_OK(context, GetWire(context, &wire_));
    OP_REQUIRES_OK(context, context->GetAttr("Twire", &type_));
    OP_REQUIRES_OK(context, context->GetAttr("call", &call_));
    OP_REQUIRES_OK(context, context->GetAttr("tables", &tables_));
    OP_REQUIRES_OK(context, context->GetAttr("num_ranks", &num_ranks_));
    int num_grads;
    OP_REQUIRES_OK(context, context->GetAttr("num_grads", &num_grads));
    OP_REQUIRES(context, tables_.size() == num_grads,
                InvalidArgument(num_grads, " gradients came with ",
                                tables_.size(), " tables"));
    tensorflow::DataTypeVector rows;
    OP_REQUIRES_OK(context, context->GetAttr("Rows", &rows));
    num_rows_ = static_cast<int>(rows.size());
    OP_REQUIRES(context,
                num_rows_ <= 1 && (num_rows_ == 0 || !IsWireVariant(type_)),
                InvalidArgument(
                    "a gradient takes rows once at most, and none as variants, "
                    "got ",
                    num_rows_, " of type ", DataTypeString(type_)));
    CallsWithGradients::Global().Add(call_);
  }

  void Compute(OpKernelContext* context) override {
    RouteState* route = nullptr;
    OP_REQUIRES_OK(context, GetRoute(context, 0, &route));
    const sok::RoutePlan* plan = &route->plan();
    OP_REQUIRES(context, plan->num_ranks() == num_ranks_,
                InvalidArgument("the gradient of a lookup over ", num_ranks_,
                                " ranks got the route of one over ",
                                plan->num_ranks()));
    std::vector<ev::ConstFloats> grads;
    for (size_t k = 0; k < tables_.size(); ++k) {
      const int t = tables_[k];
      OP_REQUIRES(
          context, t >= 0 && t < plan->num_tables(),
          InvalidArgument("table ", t, " of a lookup of ", plan->num_tables()));
      const Tensor& grad = context->input(1 + k);
      OP_REQUIRES_OK(context,
                     CheckMatrix(grad, plan->batch_size(t), plan->dim(t),
                                 plan->name(t), "the gradient of the lookup"));
      grads.push_back(FloatsOf(grad));
    }
    Tensor* splits = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(
                                1, TensorShape({num_ranks_}), &splits));
    int64_t total = 0;
    for (int r = 0; r < num_ranks_; ++r) {
      // Fits: checked when the route was made.
      const int64_t floats = plan->row_floats(r, tables_);
      splits->vec<int32>()(r) = static_cast<int32>(floats);
      total += floats;
    }
    sok::ReceivedRows rows;
    if (num_rows_ > 0) {
      const Tensor& received = context->input(1 + tables_.size());
      OP_REQUIRES(context, received.dtype() == type_,
                  InvalidArgument(
                      "rows of type ", DataTypeString(received.dtype()),
                      " came for a gradient of type ", DataTypeString(type_)));
      rows.data = WireData(received);
      rows.num_floats = received.NumElements();
    }
    if (on_gpu_ && IsWireVariant(type_) && route->on_device() != nullptr) {
      OP_REQUIRES_OK(context, SumOnDevice(context, route, grads));
      route->BeginWait(call_ + ", gradients");
      return;
    }
    HostCopies staged(static_cast<int>(tables_.size()));
    OP_REQUIRES_OK(context, CopyToHost(context, &staged, &grads));
    PoolParallel parallel(context);
    const std::shared_ptr<const sok::RouteOccurrences> occurrences =
        route->occurrences();
    if (IsWireVariant(type_)) {
      sok::WireBuffer message;
      OP_REQUIRES_OK(context,
                     ToTf(sok::WireBuffer::OnHost(wire_, total, &message)));
      OP_REQUIRES_OK(context, ToTf(sok::PoolGradient(
                                  *plan, occurrences.get(), tables_, grads,
                                  wire_, message.data(), &parallel)));
      OP_REQUIRES_OK(context, SetWireOutput(context, 0, std::move(message)));
    } else {
      Tensor message;
      OP_REQUIRES_OK(context, AllocateTransferOutput(
                                  context, 0, TensorShape({total}), &message));
      OP_REQUIRES_OK(context,
                     ToTf(sok::PoolGradient(
                         *plan, occurrences.get(), tables_, grads, wire_,
                         MutableWireData(&message), &parallel, rows)));
    }
    route->BeginWait(call_ + ", gradients");
  }

 private:
  // Sums the gradients in GPU memory, from where they are sent.
  tensorflow::Status SumOnDevice(OpKernelContext* context, RouteState* route,
                                 const std::vector<ev::ConstFloats>& grads) {
    ev::DeviceStream stream;
    TF_RETURN_IF_ERROR(embedding_variable::GetDeviceStream(context, &stream));
    sok::ExchangeDevice* device = nullptr;
    TF_RETURN_IF_ERROR(GetExchangeDevice(&device));
    // Allocate before work is enqueued, so that nothing fails while it is in
    // flight.
    const auto inputs = std::make_shared<std::vector<Tensor>>();
    for (size_t k = 0; k < tables_.size(); ++k) {
      inputs->push_back(context->input(1 + k));
    }
    sok::WireBuffer message;
    TF_RETURN_IF_ERROR(ToTf(sok::PoolGradientOnDevice(
        route->plan(), route->on_device().get(), tables_, grads, stream, wire_,
        device, &message)));
    device->KeepUntil(message.ready, inputs);
    device->KeepUntil(message.ready, route->on_device());
    return SetWireOutput(context, 0, std::move(message));
  }

  // Replaces gradients in GPU memory by host copies.
  tensorflow::Status CopyToHost(OpKernelContext* context, HostCopies* staged,
                                std::vector<ev::ConstFloats>* grads) const {
    if (!on_gpu_) return tensorflow::Status();
    std::vector<std::pair<const Tensor*, Tensor*>> copies;
    for (size_t k = 0; k < grads->size(); ++k) {
      const Tensor& grad = context->input(1 + k);
      TF_RETURN_IF_ERROR(staged->Make(context, k, grad.dtype(), grad.shape()));
      (*grads)[k] = FloatsOf(*(*staged)[k]);
      copies.emplace_back(&grad, (*staged)[k]);
    }
    return embedding_variable::CopyFromGpu(context, copies);
  }

  const bool on_gpu_;
  std::string call_;
  sok::WireType wire_;
  tensorflow::DataType type_;
  std::vector<int32> tables_;
  int num_ranks_ = 0;
  int num_rows_ = 0;
};

class PoolWeightGradOp : public OpKernel {
 public:
  explicit PoolWeightGradOp(OpKernelConstruction* context) : OpKernel(context) {
    OP_REQUIRES_OK(context, GetWire(context, &wire_));
    OP_REQUIRES_OK(context, context->GetAttr("table", &table_));
    OP_REQUIRES_OK(context, context->GetAttr("tables", &tables_));
  }

  void Compute(OpKernelContext* context) override {
    RouteState* route = nullptr;
    OP_REQUIRES_OK(context, GetRoute(context, 0, &route));
    const sok::RoutePlan* plan = &route->plan();
    OP_REQUIRES(context, table_ < plan->num_tables(),
                InvalidArgument("table ", table_, " of a lookup of ",
                                plan->num_tables()));
    sok::ReceivedRows rows;
    rows.data = WireData(context->input(1));
    rows.num_floats = context->input(1).NumElements();
    const Tensor& grad = context->input(2);
    const Tensor& output = context->input(3);
    const int64_t batch_size = plan->batch_size(table_);
    OP_REQUIRES_OK(
        context, CheckMatrix(grad, batch_size, plan->dim(table_),
                             plan->name(table_), "the gradient of the lookup"));
    OP_REQUIRES_OK(context,
                   CheckMatrix(output, batch_size, plan->dim(table_),
                               plan->name(table_), "the output of the lookup"));
    Tensor* weight_grad = nullptr;
    OP_REQUIRES_OK(context,
                   context->allocate_output(
                       0, TensorShape({plan->num_ids(table_)}), &weight_grad));
    PoolParallel parallel(context);
    OP_REQUIRES_OK(
        context,
        ToTf(sok::PoolWeightGradient(
            *plan, table_, rows, wire_, Data<float>(grad), Data<float>(output),
            MutableData<float>(weight_grad), &parallel, tables_)));
  }

 private:
  sok::WireType wire_;
  int table_ = 0;
  std::vector<int32> tables_;
};

const embedding_variable::RegisterKernel<PoolOp> kPool(
    "SokPool",
    {"resources", "weights", "plan", "rows", "served", "message", "splits"});
const embedding_variable::RegisterKernel<PoolGradOp> kPoolGrad(
    "SokPoolGrad", {"plan", "rows", "weights", "message", "splits"});
const embedding_variable::RegisterKernel<PoolWeightGradOp> kPoolWeightGrad(
    "SokPoolWeightGrad", {"plan", "rows", "grad", "output", "weight_grad"});

}  // namespace
}  // namespace sparse_operation_kit
