// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// EvGather, EvGetMeta.

#include "kernels/tf/bridge/pool_parallel.h"
#include "kernels/tf/bridge/status.h"
#include "kernels/tf/bridge/tensor_span.h"
#include "kernels/tf/op_kernels/kernel_checks.h"
#include "kernels/tf/resources/ev_resource.h"

namespace embedding_variable {
namespace {

using tensorflow::OpKernel;
using tensorflow::OpKernelContext;
using tensorflow::Status;
using tensorflow::Tensor;
using tensorflow::TensorShape;

// The ids as the engine's keys: a view of int64 ids, a widened copy of int32
// ones, which `wide` then owns.
Status KeysOf(OpKernelContext* context, const Tensor& ids, Tensor* wide,
              ev::Span<const int64_t>* keys) {
  if (ids.dtype() == tensorflow::DT_INT64) {
    *keys = SpanOf<int64_t>(ids);
    return Status::OK();
  }
  TF_RETURN_IF_ERROR(
      context->allocate_temp(tensorflow::DT_INT64, ids.shape(), wide));
  const int32_t* from = Data<int32_t>(ids);
  int64_t* to = MutableData<int64_t>(wide);
  for (int64_t i = 0; i < ids.NumElements(); ++i) to[i] = from[i];
  *keys = SpanOf<int64_t>(*wide);
  return Status::OK();
}

class GatherOp : public OpKernel {
 public:
  using OpKernel::OpKernel;

  void Compute(OpKernelContext* context) override {
    EvResourcePtr resource;
    OP_REQUIRES_OK(context, GetInitialized(context, 0, &resource));
    const Tensor& ids = context->input(1);
    TensorShape flat;
    OP_REQUIRES_OK(context, MatrixShape(ids.NumElements(), resource->dim(),
                                        resource->name(), &flat));
    TensorShape shape = ids.shape();
    OP_REQUIRES(context, shape.dims() < TensorShape::MaxDimensions(),
                BadInput(resource->name(), "ids have too many dimensions: ",
                         shape.DebugString()));
    shape.AddDim(resource->dim());
    Tensor* rows = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, shape, &rows));
    Tensor wide;
    ev::Span<const int64_t> keys;
    OP_REQUIRES_OK(context, KeysOf(context, ids, &wide, &keys));
    PoolParallel parallel(context);
    OP_REQUIRES_OK(context, ToTf(resource->table()->Gather(
                                keys, MutableData<float>(rows), &parallel)));
  }
};

class GetMetaOp : public OpKernel {
 public:
  using OpKernel::OpKernel;

  void Compute(OpKernelContext* context) override {
    EvResourcePtr resource;
    OP_REQUIRES_OK(context, GetInitialized(context, 0, &resource));
    const Tensor& ids = context->input(1);
    Tensor* frequencies = nullptr;
    OP_REQUIRES_OK(context,
                   context->allocate_output(0, ids.shape(), &frequencies));
    Tensor* versions = nullptr;
    OP_REQUIRES_OK(context,
                   context->allocate_output(1, ids.shape(), &versions));
    Tensor wide;
    ev::Span<const int64_t> keys;
    OP_REQUIRES_OK(context, KeysOf(context, ids, &wide, &keys));
    OP_REQUIRES_OK(context, ToTf(resource->table()->GetMeta(
                                keys, MutableData<int64_t>(frequencies),
                                MutableData<int64_t>(versions))));
  }
};

REGISTER_KERNEL_BUILDER(Name("EvGather").Device(tensorflow::DEVICE_CPU),
                        GatherOp);
REGISTER_KERNEL_BUILDER(Name("EvGetMeta").Device(tensorflow::DEVICE_CPU),
                        GetMetaOp);

}  // namespace
}  // namespace embedding_variable
