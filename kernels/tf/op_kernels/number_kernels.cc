// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// EvRestoreNumber.

#include <memory>
#include <string>
#include <vector>

#include "kernels/tf/bridge/checkpoint_reader.h"
#include "kernels/tf/bridge/register_kernel.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace embedding_variable {
namespace {

using tensorflow::OpKernel;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::Status;
using tensorflow::errors::InvalidArgument;
using tensorflow::errors::NotFound;

class RestoreNumberOp : public OpKernel {
 public:
  explicit RestoreNumberOp(OpKernelConstruction* context) : OpKernel(context) {
    OP_REQUIRES_OK(context, context->GetAttr("tensor_names", &names_));
    OP_REQUIRES(context, !names_.empty(),
                InvalidArgument("tensor_names: expected at least one name"));
  }

  void Compute(OpKernelContext* context) override {
    const tensorflow::Tensor& prefix = context->input(0);
    OP_REQUIRES(context, prefix.NumElements() == 1,
                InvalidArgument("number ", names_[0],
                                ": the checkpoint's prefix "
                                "expected one string"));
    tensorflow::Tensor* number = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(
                                0, tensorflow::TensorShape({}), &number));
    OP_REQUIRES_OK(context,
                   Restore(std::string(prefix.flat<tensorflow::tstring>()(0)),
                           &number->scalar<float>()()));
  }

 private:
  Status Restore(const std::string& prefix, float* number) const {
    std::unique_ptr<CheckpointReader> checkpoint;
    TF_RETURN_IF_ERROR(CheckpointReader::Open(prefix, &checkpoint));
    for (const std::string& name : names_) {
      bool found;
      TF_RETURN_IF_ERROR(checkpoint->Find(name, &found));
      if (!found) continue;
      std::unique_ptr<TensorStream> stream;
      TF_RETURN_IF_ERROR(checkpoint->Open(name, &stream));
      if (stream->dtype() != tensorflow::DT_FLOAT ||
          stream->shape().num_elements() != 1) {
        return InvalidArgument("tensor ", name, " of checkpoint ", prefix,
                               ": expected one float, got ",
                               tensorflow::DataTypeString(stream->dtype()), " ",
                               stream->shape().DebugString());
      }
      return stream->Read(sizeof(float), number);
    }
    return NotFound("Key ", names_[0], " not found in checkpoint ", prefix);
  }

  std::vector<std::string> names_;
};

const RegisterKernel<RestoreNumberOp> kRestoreNumber("EvRestoreNumber",
                                                     {"prefix", "number"});

}  // namespace
}  // namespace embedding_variable
