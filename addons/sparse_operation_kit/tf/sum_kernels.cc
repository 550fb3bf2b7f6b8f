// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Kernels of SokSendParts and SokSumParts.

#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "addons/sparse_operation_kit/exchange/wait_registry.h"
#include "kernels/tf/bridge/register_kernel.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/variant.h"
#include "tensorflow/core/framework/variant_encode_decode.h"
#include "tensorflow/core/framework/variant_tensor_data.h"

namespace sparse_operation_kit {
namespace {

using tensorflow::int32;
using tensorflow::int64;
using tensorflow::OpKernel;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::Tensor;
using tensorflow::TensorShape;
using tensorflow::errors::InvalidArgument;

// The WaitRegistry entry of a sum over ranks, in which each rank sends its part
// to all. TensorFlow destroys it at the end of a step, even a failed one, and
// the entry ends with it.
class WaitVariant {
 public:
  WaitVariant() {}
  WaitVariant(const std::string& what, int64 num_parts)
      : wait_(new sok::Wait), num_parts_(num_parts) {
    wait_->Begin(what);
  }

  int64 num_parts() const { return num_parts_; }

  void End() const {
    if (wait_ != nullptr) wait_->End();
  }

  std::string TypeName() const { return "sparse_operation_kit::WaitVariant"; }
  std::string DebugString() const { return "wait for other ranks"; }
  void Encode(tensorflow::VariantTensorData* data) const {
    data->set_type_name(TypeName());
  }
  bool Decode(const tensorflow::VariantTensorData&) { return false; }

 private:
  std::shared_ptr<sok::Wait> wait_;
  int64 num_parts_ = 0;
};

class SendPartsOp : public OpKernel {
 public:
  explicit SendPartsOp(OpKernelConstruction* context) : OpKernel(context) {
    OP_REQUIRES_OK(context, context->GetAttr("num_ranks", &num_ranks_));
    OP_REQUIRES_OK(context, context->GetAttr("fingerprint", &fingerprint_));
    OP_REQUIRES_OK(context, context->GetAttr("call", &call_));
  }

  void Compute(OpKernelContext* context) override {
    const Tensor& parts = context->input(0);
    OP_REQUIRES(
        context, parts.dims() == 1,
        InvalidArgument("the parts of a sum: expected a vector, got shape ",
                        parts.shape().DebugString()));
    const int64 length = 1 + parts.NumElements();
    Tensor* message = nullptr;
    OP_REQUIRES_OK(
        context, context->allocate_output(0, TensorShape({num_ranks_ * length}),
                                          &message));
    Tensor* splits = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(
                                1, TensorShape({num_ranks_}), &splits));
    Tensor* wait = nullptr;
    OP_REQUIRES_OK(context,
                   context->allocate_output(2, TensorShape({}), &wait));
    for (int r = 0; r < num_ranks_; ++r) {
      int64* const to = message->vec<int64>().data() + r * length;
      to[0] = fingerprint_;
      std::memcpy(to + 1, parts.vec<double>().data(),
                  parts.NumElements() * sizeof(double));
      splits->vec<int32>()(r) = static_cast<int32>(length);
    }
    wait->scalar<tensorflow::Variant>()() = WaitVariant(call_, length - 1);
  }

 private:
  int num_ranks_ = 1;
  int64 fingerprint_ = 0;
  std::string call_;
};

class SumPartsOp : public OpKernel {
 public:
  explicit SumPartsOp(OpKernelConstruction* context) : OpKernel(context) {
    OP_REQUIRES_OK(context, context->GetAttr("fingerprint", &fingerprint_));
  }

  void Compute(OpKernelContext* context) override {
    const Tensor& message = context->input(0);
    const Tensor& splits = context->input(1);
    const Tensor& wait = context->input(2);
    const WaitVariant* const waited =
        wait.dims() == 0
            ? wait.scalar<tensorflow::Variant>()().get<WaitVariant>()
            : nullptr;
    OP_REQUIRES(context,
                waited != nullptr && message.dims() == 1 &&
                    splits.dims() == 1 && splits.NumElements() > 0,
                InvalidArgument(
                    "expected a message, its splits and a wait, got ",
                    message.shape().DebugString(), ", ",
                    splits.shape().DebugString(), " and ", wait.DebugString()));
    waited->End();
    const int num_ranks = static_cast<int>(splits.NumElements());
    const int64 length = 1 + waited->num_parts();
    for (int r = 0; r < num_ranks; ++r) {
      OP_REQUIRES(
          context,
          splits.vec<int32>()(r) == length &&
              message.NumElements() >= (r + 1) * length &&
              message.vec<int64>()(r * length) == fingerprint_,
          InvalidArgument("sum over ranks: rank ", r,
                          " sent the parts of another sum: the tables whose "
                          "gradients are measured differ from this rank's. All "
                          "ranks must build the same graph"));
    }
    Tensor* sums = nullptr;
    OP_REQUIRES_OK(
        context, context->allocate_output(0, TensorShape({length - 1}), &sums));
    for (int64 k = 0; k < length - 1; ++k) {
      // Summed in rank order, so all ranks get the same bits.
      double sum = 0;
      for (int r = 0; r < num_ranks; ++r) {
        double part;
        std::memcpy(&part, message.vec<int64>().data() + r * length + 1 + k,
                    sizeof part);
        sum += part;
      }
      sums->vec<double>()(k) = sum;
    }
  }

 private:
  int64 fingerprint_ = 0;
};

const embedding_variable::RegisterKernel<SendPartsOp> kSendParts(
    "SokSendParts", {"parts", "message", "splits", "wait"});
const embedding_variable::RegisterKernel<SumPartsOp> kSumParts(
    "SokSumParts", {"message", "splits", "wait", "sums"});

}  // namespace
}  // namespace sparse_operation_kit
