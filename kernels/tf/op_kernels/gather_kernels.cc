// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// EvGather, EvGetMeta.

#include "kernels/engine/embedding/lookup/row_lookup.h"
#include "kernels/tf/bridge/gpu_tensors.h"
#include "kernels/tf/bridge/pool_parallel.h"
#include "kernels/tf/bridge/register_kernel.h"
#include "kernels/tf/bridge/status.h"
#include "kernels/tf/bridge/tensor_span.h"
#include "kernels/tf/bridge/transfer_tensor.h"
#include "kernels/tf/op_kernels/kernel_checks.h"
#include "kernels/tf/resources/ev_resource.h"

namespace embedding_variable {
namespace {

using tensorflow::OpKernel;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::Status;
using tensorflow::Tensor;
using tensorflow::TensorShape;

// Returns the ids as the engine's keys: a view of int64 ids, or a widened copy
// of int32 ids, which `wide` then owns.
Status KeysOf(OpKernelContext* context, const Tensor& ids, Tensor* wide,
              ev::Span<const int64_t>* keys) {
  if (ids.dtype() == tensorflow::DT_INT64) {
    *keys = SpanOf<int64_t>(ids);
    return Status();
  }
  TF_RETURN_IF_ERROR(context->allocate_temp(tensorflow::DT_INT64, ids.shape(),
                                            wide, InCpuMemory()));
  const int32_t* from = Data<int32_t>(ids);
  int64_t* to = MutableData<int64_t>(wide);
  for (int64_t i = 0; i < ids.NumElements(); ++i) to[i] = from[i];
  *keys = SpanOf<int64_t>(*wide);
  return Status();
}

class GatherOp : public OpKernel {
 public:
  explicit GatherOp(OpKernelConstruction* context)
      : OpKernel(context), on_gpu_(IsOnGpu(*context)) {}

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
    if (on_gpu_) {
      OP_REQUIRES_OK(context, GatherToGpu(context, resource->table(), keys,
                                          rows, &parallel));
      return;
    }
    OP_REQUIRES_OK(context, ToTf(resource->table()->Gather(
                                keys, MutableData<float>(rows), &parallel)));
  }

 private:
  // Writes rows to GPU memory: directly if the device holds the rows, else by a
  // copy.
  static Status GatherToGpu(OpKernelContext* context,
                            const std::shared_ptr<ev::EmbeddingTable>& table,
                            ev::Span<const int64_t> keys, Tensor* rows,
                            ev::Parallel* parallel) {
    if (table->takes_device_tensors()) {
      ev::DeviceStream stream;
      TF_RETURN_IF_ERROR(GetDeviceStream(context, &stream));
      ev::RowsInput input;
      input.table = table.get();
      input.keys = keys;
      ev::RowPlaces places;
      places.starts = {0, static_cast<int64_t>(keys.size())};
      places.pieces = {MutableData<float>(rows)};
      std::shared_ptr<const ev::LookupPlan> plan;
      return ToTf(ev::GatherRows(
          ev::Span<const ev::RowsInput>(&input, 1), {table},
          ev::Span<const ev::RowPlaces>(&places, 1), stream, parallel, &plan));
    }
    Tensor staged;
    if (!MakeTransferTensor(tensorflow::DT_FLOAT, rows->shape(), &staged)) {
      TF_RETURN_IF_ERROR(context->allocate_temp(
          tensorflow::DT_FLOAT, rows->shape(), &staged, InCpuMemory()));
    }
    TF_RETURN_IF_ERROR(
        ToTf(table->Gather(keys, MutableData<float>(&staged), parallel)));
    return CopyToGpu(context, {{&staged, rows}});
  }

  const bool on_gpu_;
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

const RegisterKernel<GatherOp> kGather("EvGather", {"resource", "ids"});
const RegisterKernel<GetMetaOp> kGetMeta("EvGetMeta",
                                         {"resource", "ids", "frequencies",
                                          "versions"});

}  // namespace
}  // namespace embedding_variable
