// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Kernel of SokAllReduce.

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "addons/sparse_operation_kit/exchange/carrier/carrier_queue.h"
#include "kernels/tf/bridge/gpu_tensors.h"
#include "kernels/tf/bridge/register_kernel.h"
#include "kernels/tf/bridge/status.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace sparse_operation_kit {
namespace {

using embedding_variable::ToTf;
using tensorflow::AsyncOpKernel;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::Tensor;
using tensorflow::errors::FailedPrecondition;
using tensorflow::errors::InvalidArgument;

// Names listed in an error.
constexpr size_t kMostNames = 3;

class AllReduceOp : public AsyncOpKernel {
 public:
  explicit AllReduceOp(OpKernelConstruction* context)
      : AsyncOpKernel(context), on_gpu_(embedding_variable::IsOnGpu(*context)) {
    OP_REQUIRES_OK(context, context->GetAttr("exchange_name", &name_));
    int divisor = 1;
    OP_REQUIRES_OK(context, context->GetAttr("divisor", &divisor));
    scale_ = 1.0 / divisor;
    tensorflow::DataType type;
    OP_REQUIRES_OK(context, context->GetAttr("T", &type));
    type_ = type == tensorflow::DT_HALF    ? sok::ReducedType::kFloat16
            : type == tensorflow::DT_FLOAT ? sok::ReducedType::kFloat32
                                           : sok::ReducedType::kFloat64;
    std::vector<std::string> names;
    OP_REQUIRES_OK(context, context->GetAttr("names", &names));
    OP_REQUIRES(context, names.size() == context->num_inputs(),
                InvalidArgument(context->num_inputs(), " gradients came with ",
                                names.size(), " names"));
    what_ = "the gradients of ";
    for (size_t k = 0; k < std::min(names.size(), kMostNames); ++k) {
      what_ += (k == 0 ? "'" : ", '") + names[k] + "'";
    }
    if (names.size() > kMostNames) {
      what_ += " and " + std::to_string(names.size() - kMostNames) + " more";
    }
  }

  void ComputeAsync(OpKernelContext* context, DoneCallback done) override {
    sok::CarrierQueue* const queue = sok::CarrierQueue::Global();
    OP_REQUIRES_ASYNC(
        context, queue != nullptr,
        FailedPrecondition(name_, ", ", what_,
                           ": sok.init has not started an exchange in this "
                           "process"),
        done);
    sok::Transfer transfer;
    transfer.name = name_;
    transfer.reduction.reset(new sok::Reduction);
    transfer.reduction->type = type_;
    transfer.reduction->scale = scale_;
    for (int k = 0; k < context->num_inputs(); ++k) {
      const Tensor& value = context->input(k);
      sok::ReducedPiece piece;
      piece.from = value.tensor_data().data();
      piece.count = value.NumElements();
      Tensor* sum = nullptr;
      OP_REQUIRES_OK_ASYNC(context,
                           context->forward_input_or_allocate_output(
                               {k}, k, value.shape(), &sum),
                           done);
      piece.to = const_cast<char*>(sum->tensor_data().data());
      transfer.reduction->pieces.push_back(piece);
    }
    ev::DeviceStream stream;
    if (on_gpu_) {
      // After the allocations: previous work may still use their memory.
      OP_REQUIRES_OK_ASYNC(
          context, embedding_variable::GetDeviceStream(context, &stream), done);
      OP_REQUIRES_OK_ASYNC(
          context, ToTf(queue->RecordEvent(stream, &transfer.reduction->after)),
          done);
    }
    transfer.done = [context, done, stream, this](
                        const ev::Status& ended,
                        const std::shared_ptr<sok::StreamEvent>& ready) {
      const auto end = [&] {
        // TensorFlow's stream waits for the sums before later work, including
        // work that reuses the gradients' memory.
        const ev::Status status =
            ended.ok() && ready != nullptr ? ready->Before(stream) : ended;
        if (status.ok()) return tensorflow::Status();
        return tensorflow::Status(tensorflow::errors::Internal(
            name_, ": summing ", what_,
            " over ranks failed: ", status.message()));
      };
      embedding_variable::EndAsync(*this, context, end, done);
    };
    queue->Add(std::move(transfer));
  }

 private:
  const bool on_gpu_;
  std::string name_, what_;
  sok::ReducedType type_;
  double scale_ = 1.0;
};

// SokAllReduce takes no handle, so it also has a kernel on the GPU: without a
// named device, TensorFlow places it on a GPU if there is one, beside its
// gradients.
const embedding_variable::RegisterOnEachDevice<AllReduceOp> kAllReduce(
    "SokAllReduce");

}  // namespace
}  // namespace sparse_operation_kit
