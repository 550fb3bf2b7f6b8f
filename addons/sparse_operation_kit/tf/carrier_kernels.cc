// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Kernels of SokCarry, SokCarrierId, SokStartCarrier, SokStopCarrier and
// SokDrainCarrier.

#include <chrono>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "addons/sparse_operation_kit/exchange/carrier/carrier.h"
#include "addons/sparse_operation_kit/exchange/carrier/carrier_queue.h"
#include "addons/sparse_operation_kit/tf/wire_variant.h"
#include "kernels/tf/bridge/compat.h"
#include "kernels/tf/bridge/register_kernel.h"
#include "kernels/tf/bridge/shared_variant.h"
#include "kernels/tf/bridge/status.h"
#include "kernels/tf/bridge/transfer_tensor.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace sparse_operation_kit {
namespace {

using embedding_variable::MessageOf;
using embedding_variable::ToTf;
using tensorflow::AsyncOpKernel;
using tensorflow::DataTypeSize;
using tensorflow::int32;
using tensorflow::OpKernel;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::Tensor;
using tensorflow::TensorShape;
using tensorflow::errors::FailedPrecondition;
using tensorflow::errors::InvalidArgument;

class CarryOp : public AsyncOpKernel {
 public:
  explicit CarryOp(OpKernelConstruction* context) : AsyncOpKernel(context) {
    OP_REQUIRES_OK(context, context->GetAttr("exchange_name", &name_));
    OP_REQUIRES_OK(context, context->GetAttr("nan_if_lost", &nan_if_lost_));
  }

  void ComputeAsync(OpKernelContext* context, DoneCallback done) override {
    sok::CarrierQueue* const queue = sok::CarrierQueue::Global();
    OP_REQUIRES_ASYNC(
        context, queue != nullptr,
        FailedPrecondition(name_,
                           ": sok.init has not started an exchange of this "
                           "kind in this process"),
        done);
    const Tensor& values = context->input(0);
    const Tensor& splits = context->input(1);
    const int num_ranks = queue->num_ranks();
    const bool is_wire = IsWireVariant(values.dtype());
    OP_REQUIRES_ASYNC(
        context,
        values.dims() == (is_wire ? 0 : 1) && splits.NumElements() == num_ranks,
        InvalidArgument(name_, ": expected a vector and a split for each of ",
                        num_ranks, " ranks, got shapes ",
                        values.shape().DebugString(), " and ",
                        splits.shape().DebugString()),
        done);
    sok::Transfer transfer;
    transfer.name = name_;
    int64_t size, count;
    // Keeps WireVariant buffers alive while a transfer is in flight. Other
    // values are kept by the input tensor.
    struct Ends {
      sok::WireBuffer sent, received;
    };
    const auto ends = std::make_shared<Ends>();
    sok::WireBuffer& sent = ends->sent;
    if (is_wire) {
      OP_REQUIRES_OK_ASYNC(context, GetWireInput(context, 0, &sent), done);
      size = sok::WireBytes(sent.wire);
      count = sent.count;
      transfer.send = sent.data();
      transfer.after = sent.ready;
      // These bytes are NaN in float types of any width.
      transfer.when_failed = nan_if_lost_ ? 0xff : 0;
    } else {
      transfer.in_cpu_memory = values.dtype() == tensorflow::DT_INT64;
      size = DataTypeSize(values.dtype());
      count = values.NumElements();
      transfer.send = values.tensor_data().data();
    }
    int64_t total = 0;
    bool are_sizes = true;
    for (int r = 0; r < num_ranks; ++r) {
      const int64_t n = splits.vec<int32>()(r);
      are_sizes &= n >= 0;
      total += n;
      transfer.send_bytes.push_back(n * size);
    }
    OP_REQUIRES_ASYNC(
        context, are_sizes && total == count,
        InvalidArgument(name_, ": the splits do not add up to the ", count,
                        " values"),
        done);
    const sok::WireType wire = sent.wire;
    sok::WireBuffer* const arriving = &ends->received;
    transfer.allocate = [=](ev::Span<const int64_t> received, char** out) {
      int64_t total = 0;
      EV_RETURN_IF_ERROR(AllocateSplits(context, size, received, &total));
      return is_wire ? AllocateWire(wire, total, arriving, out)
                     : Allocate(context, total, out);
    };
    transfer.done = [context, done, is_wire, ends, this](
                        const ev::Status& status,
                        const std::shared_ptr<sok::StreamEvent>& ready) {
      const auto end = [&]() -> tensorflow::Status {
        if (!status.ok()) {
          return tensorflow::errors::Internal(
              name_, ": the exchange between ranks failed: ", status.message());
        }
        if (!is_wire) return tensorflow::Status();
        sok::WireBuffer received = ends->received;
        received.ready = ready;
        sok::ExchangeDevice* device = nullptr;
        if (ready != nullptr && sok::ExchangeDevice::Get(&device).ok()) {
          device->KeepUntil(ready, ends);
        }
        return SetWireOutput(context, 0, std::move(received));
      };
      embedding_variable::EndAsync(*this, context, end, done);
    };
    queue->Add(std::move(transfer));
  }

 private:
  static ev::Status ToEngine(const tensorflow::Status& status) {
    return status.ok() ? ev::Status::OK()
                       : ev::ResourceExhausted(MessageOf(status));
  }

  // Allocates the output with the number of values, of 'size' bytes each, from
  // each rank.
  static ev::Status AllocateSplits(OpKernelContext* context, int64_t size,
                                   ev::Span<const int64_t> received,
                                   int64_t* total) {
    Tensor* splits = nullptr;
    EV_RETURN_IF_ERROR(ToEngine(context->allocate_output(
        1, TensorShape({static_cast<int64_t>(received.size())}), &splits)));
    for (size_t r = 0; r < received.size(); ++r) {
      const int64_t n = received[r] / size;
      if (received[r] % size != 0 || n < 0 ||
          n > std::numeric_limits<int32>::max()) {
        return ev::Internal("rank " + std::to_string(r) + " sends " +
                            std::to_string(received[r]) +
                            " bytes, not a multiple of the value size " +
                            std::to_string(size));
      }
      splits->vec<int32>()(r) = static_cast<int32>(n);
      *total += n;
    }
    return ev::Status::OK();
  }

  static ev::Status Allocate(OpKernelContext* context, int64_t total,
                             char** out) {
    Tensor values;
    EV_RETURN_IF_ERROR(ToEngine(embedding_variable::AllocateTransferOutput(
        context, 0, TensorShape({total}), &values)));
    *out = const_cast<char*>(values.tensor_data().data());
    return ev::Status::OK();
  }

  // Received in device memory, wherever it was sent from.
  static ev::Status AllocateWire(sok::WireType wire, int64_t total,
                                 sok::WireBuffer* received, char** out) {
    sok::ExchangeDevice* device = nullptr;
    EV_RETURN_IF_ERROR(sok::ExchangeDevice::Get(&device));
    EV_RETURN_IF_ERROR(
        sok::WireBuffer::OnDevice(device, wire, total, received));
    *out = received->data();
    return ev::Status::OK();
  }

  std::string name_;
  bool nan_if_lost_ = false;
};

class CarrierIdOp : public OpKernel {
 public:
  explicit CarrierIdOp(OpKernelConstruction* context) : OpKernel(context) {
    OP_REQUIRES_OK(context, context->GetAttr("kind", &kind_));
    OP_REQUIRES_OK(context, context->GetAttr("rank", &rank_));
    OP_REQUIRES_OK(context, context->GetAttr("num_ranks", &num_ranks_));
  }

  void Compute(OpKernelContext* context) override {
    Tensor* id = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, TensorShape({}), &id));
    std::string made;
    OP_REQUIRES_OK(context, ToTf(sok::CheckCarrier(kind_)));
    if (rank_ == 0) {
      OP_REQUIRES_OK(context,
                     ToTf(sok::MakeCarrierId(kind_, num_ranks_, &made)));
    }
    id->scalar<embedding_variable::TfString>()() = made;
  }

 private:
  std::string kind_;
  int rank_ = 0, num_ranks_ = 1;
};

class StartCarrierOp : public OpKernel {
 public:
  explicit StartCarrierOp(OpKernelConstruction* context) : OpKernel(context) {
    OP_REQUIRES_OK(context, context->GetAttr("kind", &kind_));
    OP_REQUIRES_OK(context, context->GetAttr("rank", &options_.rank));
    OP_REQUIRES_OK(context, context->GetAttr("num_ranks", &options_.num_ranks));
  }

  void Compute(OpKernelContext* context) override {
    OP_REQUIRES(context, context->input(0).dims() == 0,
                InvalidArgument("the id: expected a scalar, got shape ",
                                context->input(0).shape().DebugString()));
    sok::CarrierOptions options = options_;
    options.id =
        std::string(context->input(0).scalar<embedding_variable::TfString>()());
    std::unique_ptr<sok::Carrier> carrier;
    OP_REQUIRES_OK(context, ToTf(sok::MakeCarrier(kind_, options, &carrier)));
    OP_REQUIRES_OK(context,
                   ToTf(sok::CarrierQueue::Install(std::move(carrier))));
  }

 private:
  std::string kind_;
  sok::CarrierOptions options_;
};

class StopCarrierOp : public OpKernel {
 public:
  explicit StopCarrierOp(OpKernelConstruction* context) : OpKernel(context) {
    OP_REQUIRES_OK(context, context->GetAttr("why", &why_));
  }

  void Compute(OpKernelContext*) override {
    sok::CarrierQueue* const queue = sok::CarrierQueue::Global();
    if (queue != nullptr) queue->Fail(ev::Internal(why_));
  }

 private:
  std::string why_;
};

class DrainCarrierOp : public OpKernel {
 public:
  explicit DrainCarrierOp(OpKernelConstruction* context) : OpKernel(context) {
    OP_REQUIRES_OK(context, context->GetAttr("seconds", &seconds_));
  }

  void Compute(OpKernelContext* context) override {
    sok::CarrierQueue* const queue = sok::CarrierQueue::Global();
    if (queue == nullptr) return;
    const ev::Status status = queue->Drain(std::chrono::seconds(seconds_));
    if (!status.ok()) {
      context->SetStatus(tensorflow::errors::Internal(
          "the exchange between ranks has failed: ", status.message()));
    }
  }

 private:
  int seconds_ = 0;
};

const embedding_variable::RegisterKernel<CarryOp> kCarry(
    "SokCarry", {"values", "splits", "received", "received_splits"});
const embedding_variable::RegisterKernel<CarrierIdOp> kCarrierId("SokCarrierId",
                                                                 {"id"});
const embedding_variable::RegisterKernel<StartCarrierOp> kStartCarrier(
    "SokStartCarrier", {"id"});
const embedding_variable::RegisterKernel<StopCarrierOp> kStopCarrier(
    "SokStopCarrier", {});
const embedding_variable::RegisterKernel<DrainCarrierOp> kDrainCarrier(
    "SokDrainCarrier", {});
const embedding_variable::SharedVariantCopies<WireVariant> kWireCopies;
const embedding_variable::SharedVariantZeros<WireVariant> kWireZeros;

}  // namespace
}  // namespace sparse_operation_kit
