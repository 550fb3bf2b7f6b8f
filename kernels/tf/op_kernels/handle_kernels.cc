// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// EvHandle, EvInitialize, EvIsInitialized, EvShape, EvStats.

#include "kernels/tf/bridge/status.h"
#include "kernels/tf/bridge/tensor_span.h"
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

const char* StorageName(const ev::TableOptions& options) {
  return options.storage == ev::RowStorage::kHbm ? "hbm" : "dram";
}

class HandleOp : public OpKernel {
 public:
  explicit HandleOp(OpKernelConstruction* context) : OpKernel(context) {
    tensorflow::PartialTensorShape shape;
    OP_REQUIRES_OK(context, context->GetAttr("shape", &shape));
    OP_REQUIRES(context, shape.dims() == 2 && shape.dim_size(1) >= 1,
                tensorflow::errors::InvalidArgument(
                    "op '", name(), "': expected the shape [-1, dim] with dim ",
                    ">= 1, got ", shape.DebugString()));
    options_.dim = shape.dim_size(1);
    std::string storage;
    OP_REQUIRES_OK(context, context->GetAttr("storage", &storage));
    options_.storage =
        storage == "hbm" ? ev::RowStorage::kHbm : ev::RowStorage::kDram;
    OP_REQUIRES_OK(context, context->GetAttr("record_frequency",
                                             &options_.record_frequency));
    OP_REQUIRES_OK(context, context->GetAttr("record_version",
                                             &options_.record_version));
  }

  void Compute(OpKernelContext* context) override {
    tensorflow::mutex_lock lock(mutex_);
    if (!has_handle_) OP_REQUIRES_OK(context, MakeHandle(context));
    // Every run, since tf.Session.reset() takes containers away.
    EvResource* found = nullptr;
    OP_REQUIRES_OK(context,
                   context->resource_manager()->LookupOrCreate<EvResource>(
                       container_.container(), container_.name(), &found,
                       [this](EvResource** resource) {
                         *resource = new EvResource(options_);
                         return Status::OK();
                       }));
    EvResourcePtr resource(found);
    const ev::TableOptions& got = resource->table()->options();
    OP_REQUIRES(
        context,
        got.storage == options_.storage && got.dim == options_.dim &&
            got.record_frequency == options_.record_frequency &&
            got.record_version == options_.record_version,
        BadInput(resource->name(),
                 "two handles of this name differ: storage ",
                 StorageName(got), " and ", StorageName(options_), ", dim ",
                 got.dim, " and ",
                 options_.dim, ", record_frequency ", got.record_frequency,
                 " and ", options_.record_frequency, ", record_version ",
                 got.record_version, " and ", options_.record_version));
    context->set_output(0, handle_);
  }

  // A hash look-up: not worth a thread of its own.
  bool IsExpensive() override { return false; }

 private:
  Status MakeHandle(OpKernelContext* context) EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    TF_RETURN_IF_ERROR(container_.Init(context->resource_manager(), def(),
                                       /*use_node_name_as_default=*/true));
    options_.name = container_.name();
    TF_RETURN_IF_ERROR(context->allocate_temp(tensorflow::DT_RESOURCE,
                                              TensorShape({}), &handle_));
    handle_.scalar<tensorflow::ResourceHandle>()() =
        tensorflow::MakeResourceHandle<EvResource>(
            context, container_.container(), container_.name());
    has_handle_ = true;
    return Status::OK();
  }

  tensorflow::mutex mutex_;
  bool has_handle_ GUARDED_BY(mutex_) = false;
  tensorflow::ContainerInfo container_ GUARDED_BY(mutex_);
  ev::TableOptions options_;
  Tensor handle_ GUARDED_BY(mutex_);
};

class InitializeOp : public OpKernel {
 public:
  using OpKernel::OpKernel;

  void Compute(OpKernelContext* context) override {
    EvResourcePtr resource;
    OP_REQUIRES_OK(context, GetResource(context, 0, &resource));
    const Tensor& rows = context->input(1);
    OP_REQUIRES(context,
                rows.dims() == 2 && rows.dim_size(0) >= 1 &&
                    rows.dim_size(1) == resource->dim(),
                BadInput(resource->name(),
                         "the default rows must have shape [R,",
                         resource->dim(), "] with R >= 1, got ",
                         rows.shape().DebugString()));
    OP_REQUIRES_OK(context, ToTf(resource->table()->Initialize(
                                SpanOf<float>(rows), rows.dim_size(0))));
  }
};

class IsInitializedOp : public OpKernel {
 public:
  using OpKernel::OpKernel;

  void Compute(OpKernelContext* context) override {
    EvResourcePtr resource;
    OP_REQUIRES_OK(context, GetResource(context, 0, &resource));
    Tensor* output = nullptr;
    OP_REQUIRES_OK(context,
                   context->allocate_output(0, TensorShape({}), &output));
    output->scalar<bool>()() = resource->table()->initialized();
  }

  bool IsExpensive() override { return false; }
};

class ShapeOp : public OpKernel {
 public:
  using OpKernel::OpKernel;

  void Compute(OpKernelContext* context) override {
    EvResourcePtr resource;
    OP_REQUIRES_OK(context, GetResource(context, 0, &resource));
    Tensor* output = nullptr;
    OP_REQUIRES_OK(context,
                   context->allocate_output(0, TensorShape({2}), &output));
    auto shape = output->vec<tensorflow::int64>();
    shape(0) = resource->table()->size();
    shape(1) = resource->dim();
  }

  bool IsExpensive() override { return false; }
};

class StatsOp : public OpKernel {
 public:
  using OpKernel::OpKernel;

  void Compute(OpKernelContext* context) override {
    EvResourcePtr resource;
    OP_REQUIRES_OK(context, GetResource(context, 0, &resource));
    Tensor* output = nullptr;
    OP_REQUIRES_OK(context,
                   context->allocate_output(0, TensorShape({4}), &output));
    const ev::TableStats stats = resource->table()->stats();
    auto out = output->vec<tensorflow::int64>();
    out(0) = stats.rows;
    out(1) = stats.index_bytes;
    out(2) = stats.row_bytes;
    out(3) = stats.inserted_rows;
  }
};

REGISTER_KERNEL_BUILDER(Name("EvHandle").Device(tensorflow::DEVICE_CPU),
                        HandleOp);
REGISTER_KERNEL_BUILDER(Name("EvInitialize").Device(tensorflow::DEVICE_CPU),
                        InitializeOp);
REGISTER_KERNEL_BUILDER(Name("EvIsInitialized").Device(tensorflow::DEVICE_CPU),
                        IsInitializedOp);
REGISTER_KERNEL_BUILDER(Name("EvShape").Device(tensorflow::DEVICE_CPU),
                        ShapeOp);
REGISTER_KERNEL_BUILDER(Name("EvStats").Device(tensorflow::DEVICE_CPU),
                        StatsOp);

}  // namespace
}  // namespace embedding_variable
