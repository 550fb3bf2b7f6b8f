// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Kernel of SokLongestWait.

#include <string>

#include "addons/sparse_operation_kit/exchange/wait_registry.h"
#include "kernels/tf/bridge/compat.h"
#include "kernels/tf/bridge/register_kernel.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace sparse_operation_kit {
namespace {

class LongestWaitOp : public tensorflow::OpKernel {
 public:
  using OpKernel::OpKernel;

  void Compute(tensorflow::OpKernelContext* context) override {
    tensorflow::Tensor* seconds = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(
                                0, tensorflow::TensorShape({}), &seconds));
    tensorflow::Tensor* what = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(
                                1, tensorflow::TensorShape({}), &what));
    std::string name;
    seconds->scalar<double>()() = sok::WaitRegistry::Global().Longest(&name);
    what->scalar<embedding_variable::TfString>()() = name;
  }
};

const embedding_variable::RegisterKernel<LongestWaitOp> kLongestWait(
    "SokLongestWait", {"seconds", "what"});

}  // namespace
}  // namespace sparse_operation_kit
