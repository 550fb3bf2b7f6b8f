// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// HpsDistinct: the result of tf.unique, computed by the engine's dedup, whose
// position table stays in the CPU's caches.

#include <algorithm>

#include "kernels/engine/base/scratch.h"
#include "kernels/engine/ids/unique.h"
#include "kernels/tf/bridge/register_kernel.h"
#include "kernels/tf/bridge/status.h"
#include "kernels/tf/bridge/tensor_span.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/lib/core/errors.h"

namespace hps {
namespace {

using embedding_variable::InCpuMemory;
using embedding_variable::MutableData;
using embedding_variable::SpanOf;
using embedding_variable::ToTf;
using tensorflow::OpKernel;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::Tensor;
using tensorflow::TensorShape;
namespace errors = tensorflow::errors;

class DistinctOp : public OpKernel {
 public:
  explicit DistinctOp(OpKernelConstruction* context)
      : OpKernel(context), scratch_(8) {}

  void Compute(OpKernelContext* context) override {
    const Tensor& ids = context->input(0);
    OP_REQUIRES(context, ids.dims() == 1,
                errors::InvalidArgument(
                    "op '", name(), "': expected ids of one dimension, got ",
                    ids.shape().DebugString()));
    Tensor* positions = nullptr;
    OP_REQUIRES_OK(context,
                   context->allocate_output(1, ids.shape(), &positions));
    Tensor room;
    OP_REQUIRES_OK(context,
                   context->allocate_temp(tensorflow::DT_INT64, ids.shape(),
                                          &room, InCpuMemory()));
    int64_t count = 0;
    {
      auto scratch = scratch_.Acquire();
      int64_t* const distinct = MutableData<int64_t>(&room);
      int32_t* const to = MutableData<int32_t>(positions);
      const ev::Status status =
          ids.dtype() == tensorflow::DT_INT64
              ? scratch->Run(SpanOf<int64_t>(ids), distinct, to, nullptr,
                             &count)
              : scratch->Run(SpanOf<int32_t>(ids), distinct, to, nullptr,
                             &count);
      OP_REQUIRES_OK(
          context,
          ToTf(status.ok() ? status
                           : ev::Status(status.code(), "op '" + name() + "': " +
                                                           status.message())));
    }
    if (ids.dtype() == tensorflow::DT_INT64) {
      context->set_output(
          0, count == ids.NumElements() ? room : room.Slice(0, count));
      return;
    }
    Tensor* narrow = nullptr;
    OP_REQUIRES_OK(context,
                   context->allocate_output(0, TensorShape({count}), &narrow));
    const int64_t* const from = MutableData<int64_t>(&room);
    std::copy(from, from + count, MutableData<int32_t>(narrow));
  }

 private:
  ev::Recycler<ev::Unique> scratch_;
};

const embedding_variable::RegisterKernel<DistinctOp> distinct(
    "HpsDistinct", {"ids", "distinct", "positions"});

}  // namespace
}  // namespace hps
