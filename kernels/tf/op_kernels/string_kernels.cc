// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// EvSplitBytes.

#include <cstdint>

#include "kernels/tf/bridge/compat.h"
#include "kernels/tf/bridge/register_kernel.h"
#include "kernels/tf/bridge/tensor_span.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace embedding_variable {
namespace {

using tensorflow::OpKernel;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::Tensor;
using tensorflow::TensorShape;
using tensorflow::errors::InvalidArgument;

class SplitBytesOp : public OpKernel {
 public:
  explicit SplitBytesOp(OpKernelConstruction* context) : OpKernel(context) {}

  void Compute(OpKernelContext* context) override {
    const Tensor& bytes = context->input(0);
    const Tensor& offsets = context->input(1);
    OP_REQUIRES(context, bytes.dims() == 1 && offsets.dims() == 1,
                InvalidArgument("EvSplitBytes: bytes and offsets: expected "
                                "vectors, got ",
                                bytes.shape().DebugString(), " and ",
                                offsets.shape().DebugString()));
    const int64_t count = offsets.NumElements() - 1;
    OP_REQUIRES(context, count >= 0,
                InvalidArgument("EvSplitBytes: offsets: expected at least one "
                                "element, got none"));
    const int32_t* at = Data<int32_t>(offsets);
    const int64_t first = at[0];
    for (int64_t k = 0; k < count; ++k) {
      OP_REQUIRES(context, at[k] <= at[k + 1],
                  InvalidArgument("EvSplitBytes: offsets must not decrease, "
                                  "got ",
                                  at[k], " and ", at[k + 1]));
    }
    OP_REQUIRES(
        context, at[count] - first <= bytes.NumElements(),
        InvalidArgument("EvSplitBytes: offsets end at byte ", at[count] - first,
                        " of ", bytes.NumElements()));
    Tensor* strings = nullptr;
    OP_REQUIRES_OK(context,
                   context->allocate_output(0, TensorShape({count}), &strings));
    const char* from = reinterpret_cast<const char*>(Data<uint8_t>(bytes));
    auto to = strings->flat<TfString>();
    for (int64_t k = 0; k < count; ++k) {
      to(k).assign(from + (at[k] - first), at[k + 1] - at[k]);
    }
  }
};

const RegisterKernel<SplitBytesOp> kSplitBytes("EvSplitBytes",
                                               {"bytes", "offsets", "strings"});

}  // namespace
}  // namespace embedding_variable
