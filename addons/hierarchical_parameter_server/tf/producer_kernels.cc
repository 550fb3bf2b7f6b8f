// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Kernels of HpsOpenProducer, HpsSendRows, HpsFlushRows and HpsCloseProducer.
// They run on the CPU; placed on a GPU, their tensors are in host memory.

#include <string>

#include "addons/hierarchical_parameter_server/server/producers.h"
#include "kernels/tf/bridge/compat.h"
#include "kernels/tf/bridge/register_kernel.h"
#include "kernels/tf/bridge/status.h"
#include "kernels/tf/bridge/tensor_span.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/lib/core/errors.h"

namespace hps {
namespace {

using embedding_variable::SpanOf;
using embedding_variable::TfString;
using embedding_variable::ToTf;
using tensorflow::OpKernel;
using tensorflow::OpKernelContext;
using tensorflow::Status;
using tensorflow::Tensor;
using tensorflow::TensorShape;
namespace errors = tensorflow::errors;

// Reads an input that is a scalar.
template <typename T>
Status Scalar(OpKernelContext* context, int input, T* value) {
  const Tensor& tensor = context->input(input);
  if (tensor.NumElements() != 1) {
    return errors::InvalidArgument("op '", context->op_kernel().name(),
                                   "': expected one value as input ", input,
                                   ", got ", tensor.shape().DebugString());
  }
  *value = tensor.flat<T>()(0);
  return Status();
}

Status Scalar(OpKernelContext* context, int input, std::string* value) {
  TfString text;
  const Status status = Scalar<TfString>(context, input, &text);
  *value = std::string(text);
  return status;
}

class OpenProducerOp : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* context) override {
    std::string type, target;
    OP_REQUIRES_OK(context, Scalar(context, 0, &type));
    OP_REQUIRES_OK(context, Scalar(context, 1, &target));
    Tensor* output = nullptr;
    OP_REQUIRES_OK(context,
                   context->allocate_output(0, TensorShape({}), &output));
    int64_t number = 0;
    OP_REQUIRES_OK(context, ToTf(OpenProducer(type, target, &number)));
    output->scalar<tensorflow::int64>()() = number;
  }
};

class SendRowsOp : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* context) override {
    tensorflow::int64 number = 0;
    std::string tag;
    OP_REQUIRES_OK(context, Scalar(context, 0, &number));
    OP_REQUIRES_OK(context, Scalar(context, 1, &tag));
    const Tensor& keys = context->input(2);
    const Tensor& rows = context->input(3);
    OP_REQUIRES(
        context,
        keys.dims() == 1 && rows.dims() == 2 &&
            rows.dim_size(0) == keys.dim_size(0),
        errors::InvalidArgument(
            "table ", tag,
            ": expected keys of [n] and rows of [n, width], "
            "got ",
            keys.shape().DebugString(), " and ", rows.shape().DebugString()));
    OP_REQUIRES_OK(context, ToTf(SendRows(number, tag, rows.dim_size(1),
                                          SpanOf<int64_t>(keys),
                                          rows.flat<float>().data())));
  }
};

class FlushRowsOp : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* context) override {
    tensorflow::int64 number = 0, timeout_ms = 0;
    OP_REQUIRES_OK(context, Scalar(context, 0, &number));
    OP_REQUIRES_OK(context, Scalar(context, 1, &timeout_ms));
    OP_REQUIRES_OK(context, ToTf(FlushRows(number, timeout_ms)));
  }
};

class CloseProducerOp : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* context) override {
    tensorflow::int64 number = 0;
    OP_REQUIRES_OK(context, Scalar(context, 0, &number));
    OP_REQUIRES_OK(context, ToTf(CloseProducer(number)));
  }
};

const embedding_variable::RegisterKernel<OpenProducerOp> open_producer(
    "HpsOpenProducer", {"type", "target", "producer"});
const embedding_variable::RegisterKernel<SendRowsOp> send_rows(
    "HpsSendRows", {"producer", "tag", "keys", "rows"});
const embedding_variable::RegisterKernel<FlushRowsOp> flush_rows(
    "HpsFlushRows", {"producer", "timeout_ms"});
const embedding_variable::RegisterKernel<CloseProducerOp> close_producer(
    "HpsCloseProducer", {"producer"});

}  // namespace
}  // namespace hps
