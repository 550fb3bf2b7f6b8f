// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// EvDefaultRows, EvRestore.

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "kernels/engine/checkpoint/restore_table.h"
#include "kernels/tf/bridge/checkpoint_tensors.h"
#include "kernels/tf/bridge/guarded_kernel.h"
#include "kernels/tf/bridge/register_kernel.h"
#include "kernels/tf/bridge/tensor_span.h"
#include "kernels/tf/op_kernels/kernel_checks.h"
#include "kernels/tf/resources/ev_resource.h"

namespace embedding_variable {
namespace {

using tensorflow::OpKernel;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::Status;

class DefaultRowsOp : public OpKernel {
 public:
  explicit DefaultRowsOp(OpKernelConstruction* context) : OpKernel(context) {}

  void Compute(OpKernelContext* context) override {
    EvResourcePtr resource;
    OP_REQUIRES_OK(context, GetInitialized(context, 0, &resource));
    const std::vector<float> rows = resource->table()->default_rows();
    const int64_t dim = resource->dim();
    tensorflow::TensorShape shape;
    OP_REQUIRES_OK(
        context, MatrixShape(rows.size() / dim, dim, resource->name(), &shape));
    tensorflow::Tensor* output = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, shape, &output));
    std::copy(rows.begin(), rows.end(), MutableData<float>(output));
  }
};

class RestoreOp : public OpKernel {
 public:
  explicit RestoreOp(OpKernelConstruction* context) : OpKernel(context) {
    OP_REQUIRES_OK(context, context->GetAttr("tensor_name", &tensor_name_));
    OP_REQUIRES_OK(context, GetSlotSpecs(context, 1, &slots_));
    OP_REQUIRES_OK(context, GetKeyFilter(context, &options_.keys));
    OP_REQUIRES_OK(context,
                   context->GetAttr("custom_dim", &options_.custom_dim));
    OP_REQUIRES_OK(context,
                   context->GetAttr("reset_version", &options_.reset_version));
  }

  void Compute(OpKernelContext* context) override {
    EvResourcePtr resource;
    OP_REQUIRES_OK(context, GetInitialized(context, 0, &resource));
    const tensorflow::Tensor& prefix = context->input(1);
    OP_REQUIRES(context, prefix.NumElements() == 1,
                BadInput(resource->name(),
                         "the checkpoint's prefix: expected one string"));
    const std::string name(prefix.flat<tensorflow::tstring>()(0));
    const Status status = OfVariable(
        resource->name(),
        CatchExceptions([&] { return "checkpoint " + name; },
                        [&] { return Restore(name, resource.get()); }));
    // The table's contents must not be mistaken for the stored ones.
    if (!status.ok()) resource->table()->Uninitialize();
    OP_REQUIRES_OK(context, status);
  }

 private:
  Status Restore(const std::string& prefix, EvResource* resource) const {
    std::unique_ptr<CheckpointTensorReader> checkpoint;
    TF_RETURN_IF_ERROR(CheckpointTensorReader::Open(prefix, &checkpoint));
    return checkpoint->Original(ev::RestoreTable(checkpoint.get(), tensor_name_,
                                                 slots_[0], options_,
                                                 resource->table().get()));
  }

  std::string tensor_name_;
  std::vector<std::vector<ev::SlotSpec>> slots_;
  ev::RestoreOptions options_;
};

const RegisterKernel<DefaultRowsOp> kDefaultRows("EvDefaultRows",
                                                 {"resource", "default_rows"});
const RegisterKernel<RestoreOp> kRestore("EvRestore", {"resource", "prefix"});

}  // namespace
}  // namespace embedding_variable
