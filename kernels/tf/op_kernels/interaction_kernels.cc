// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// EvDotInteraction, EvDotInteractionGrad.

#include <vector>

#include "kernels/engine/base/float_type.h"
#include "kernels/engine/interaction/interaction_device.h"
#include "kernels/engine/interaction/pair_dots.h"
#include "kernels/tf/bridge/gpu_tensors.h"
#include "kernels/tf/bridge/pool_parallel.h"
#include "kernels/tf/bridge/register_kernel.h"
#include "kernels/tf/bridge/status.h"
#include "kernels/tf/bridge/tensor_span.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace embedding_variable {
namespace {

using tensorflow::OpKernel;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::OpOutputList;
using tensorflow::Status;
using tensorflow::Tensor;
using tensorflow::TensorShape;
using tensorflow::errors::InvalidArgument;

// Base of both kernels.
class InteractionOp : public OpKernel {
 public:
  explicit InteractionOp(OpKernelConstruction* construction)
      : OpKernel(construction), on_gpu_(IsOnGpu(*construction)) {}

  // On a GPU they only launch work and do not wait.
  bool IsExpensive() override { return !on_gpu_; }

 protected:
  // Returns views of the first num_vectors inputs.
  Status GetVectors(OpKernelContext* context, int num_vectors,
                    std::vector<ev::ConstFloats>* vectors,
                    ev::VectorBatch* batch) const {
    const TensorShape& shape = context->input(0).shape();
    if (shape.dims() != 2) {
      return InvalidArgument("op '", name(), "': vector 0: expected rank 2, ",
                             "got shape ", shape.DebugString());
    }
    for (int v = 0; v < num_vectors; ++v) {
      const Tensor& vector = context->input(v);
      if (vector.shape() != shape) {
        return InvalidArgument("op '", name(), "': vector ", v,
                               ": expected the shape of vector 0, ",
                               shape.DebugString(), ", got ",
                               vector.shape().DebugString());
      }
      vectors->push_back(FloatsOf(vector));
    }
    batch->vectors = *vectors;
    batch->num_samples = shape.dim_size(0);
    batch->dim = shape.dim_size(1);
    return Status();
  }

  // The device, stream and workspace of a call on a device, until its work is
  // enqueued.
  struct OnDevice {
    ev::InteractionDevice* device = nullptr;
    ev::DeviceStream stream;
    Tensor workspace;

    void* memory() { return const_cast<char*>(workspace.tensor_data().data()); }
  };
  Status GetDevice(OpKernelContext* context, const ev::VectorBatch& batch,
                   OnDevice* on) const {
    const ev::Status status = ev::InteractionDevice::Get(&on->device);
    if (!status.ok()) {
      return ToTf(ev::Status(status.code(),
                             "op '" + name() + "': " + status.message()));
    }
    TF_RETURN_IF_ERROR(context->allocate_temp(
        tensorflow::DT_INT8, TensorShape({on->device->WorkspaceBytes(batch)}),
        &on->workspace));
    return GetDeviceStream(context, &on->stream);
  }

  const bool on_gpu_;
};

class DotInteractionOp : public InteractionOp {
 public:
  using InteractionOp::InteractionOp;

  void Compute(OpKernelContext* context) override {
    std::vector<ev::ConstFloats> vectors;
    ev::VectorBatch batch;
    OP_REQUIRES_OK(
        context, GetVectors(context, context->num_inputs(), &vectors, &batch));
    Tensor* dots = nullptr;
    OP_REQUIRES_OK(
        context,
        context->allocate_output(
            0, TensorShape({batch.num_samples, batch.num_pairs()}), &dots));
    if (dots->NumElements() == 0) return;
    if (!on_gpu_) {
      PoolParallel parallel(context);
      OP_REQUIRES_OK(context, ToTf(ev::PairDots(batch, MutableFloatsOf(*dots),
                                                &parallel)));
      return;
    }
    OnDevice on;
    OP_REQUIRES_OK(context, GetDevice(context, batch, &on));
    OP_REQUIRES_OK(context,
                   ToTf(on.device->StartDots(batch, MutableFloatsOf(*dots),
                                             on.memory(), on.stream)));
  }
};

class DotInteractionGradOp : public InteractionOp {
 public:
  using InteractionOp::InteractionOp;

  void Compute(OpKernelContext* context) override {
    const int n = context->num_inputs() - 1;
    std::vector<ev::ConstFloats> vectors;
    ev::VectorBatch batch;
    OP_REQUIRES_OK(context, GetVectors(context, n, &vectors, &batch));
    const Tensor& slopes = context->input(n);
    const TensorShape expected({batch.num_samples, batch.num_pairs()});
    OP_REQUIRES(context, slopes.shape() == expected,
                InvalidArgument("op '", name(), "': slopes: expected shape ",
                                expected.DebugString(), ", got ",
                                slopes.shape().DebugString()));
    std::vector<ev::MutableFloats> grads;
    for (int v = 0; v < n; ++v) {
      Tensor* grad = nullptr;
      OP_REQUIRES_OK(context, context->allocate_output(
                                  v, context->input(v).shape(), &grad));
      grads.push_back(MutableFloatsOf(*grad));
    }
    if (batch.num_samples * batch.dim == 0) return;
    if (!on_gpu_) {
      PoolParallel parallel(context);
      OP_REQUIRES_OK(context, ToTf(ev::PairDotsGradient(batch, FloatsOf(slopes),
                                                        grads, &parallel)));
      return;
    }
    OnDevice on;
    OP_REQUIRES_OK(context, GetDevice(context, batch, &on));
    OP_REQUIRES_OK(context,
                   ToTf(on.device->StartGradient(batch, FloatsOf(slopes), grads,
                                                 on.memory(), on.stream)));
  }
};

// These ops have no handle and run where their vectors are. If no device is
// named, TensorFlow places them on a GPU if there is one.
const RegisterOnEachDevice<DotInteractionOp> kDotInteraction(
    "EvDotInteraction");
const RegisterOnEachDevice<DotInteractionGradOp> kDotInteractionGrad(
    "EvDotInteractionGrad");

}  // namespace
}  // namespace embedding_variable
