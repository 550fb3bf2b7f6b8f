// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

// TensorFlow's headers declare a GPU's stream only if this is defined. It needs
// no CUDA header.
#define GOOGLE_CUDA 1

#include "kernels/tf/bridge/gpu_tensors.h"

#include <functional>

#include "kernels/tf/bridge/compat.h"
#include "tensorflow/core/common_runtime/device.h"
#include "tensorflow/core/platform/stream_executor.h"

namespace embedding_variable {
namespace {

using tensorflow::Device;
using tensorflow::DeviceContext;
using tensorflow::OpKernelContext;
using tensorflow::Status;
using tensorflow::Tensor;

using Copies = std::vector<std::pair<const Tensor*, Tensor*>>;
using Done = std::function<void(const Status&)>;

// Runs all copies and waits for them. start(from, to, done) starts one.
Status CopyAll(const Copies& copies,
               const std::function<void(const Tensor*, Tensor*, Done)>& start) {
  std::vector<Status> statuses(copies.size());
  tensorflow::BlockingCounter left(static_cast<int>(copies.size()));
  for (size_t i = 0; i < copies.size(); ++i) {
    if (copies[i].first->NumElements() == 0) {
      left.DecrementCount();
      continue;
    }
    start(copies[i].first, copies[i].second,
          [&left, &statuses, i](const Status& status) {
            statuses[i] = status;
            left.DecrementCount();
          });
  }
  left.Wait();
  for (const Status& status : statuses) TF_RETURN_IF_ERROR(status);
  return Status();
}

Status GetDeviceContext(OpKernelContext* context, DeviceContext** found) {
  *found = context->op_device_context();
  if (*found != nullptr) return Status();
  return tensorflow::errors::Internal(
      "TensorFlow runs op '", context->op_kernel().name(), "' on ",
      context->device()->name(), " without a device context");
}

}  // namespace

Status GetDeviceStream(OpKernelContext* context, ev::DeviceStream* stream) {
  DeviceContext* device_context = nullptr;
  TF_RETURN_IF_ERROR(GetDeviceContext(context, &device_context));
  void* native = nullptr;
  if (device_context->stream() != nullptr) {
    native = NativeStream(device_context->stream());
  }
  if (native == nullptr) {
    return tensorflow::errors::Internal(
        "TensorFlow runs op '", context->op_kernel().name(), "' on ",
        context->device()->name(), " without a stream");
  }
  stream->native = native;
  return Status();
}

Status CopyToGpu(OpKernelContext* context, const Copies& copies) {
  if (copies.empty()) return Status();
  DeviceContext* device_context = nullptr;
  TF_RETURN_IF_ERROR(GetDeviceContext(context, &device_context));
  Device* const device = static_cast<Device*>(context->device());
  return CopyAll(copies, [&](const Tensor* from, Tensor* to, Done done) {
    device_context->CopyCPUTensorToDevice(from, device, to, done);
  });
}

Status CopyFromGpu(OpKernelContext* context, const Copies& copies) {
  if (copies.empty()) return Status();
  DeviceContext* device_context = nullptr;
  TF_RETURN_IF_ERROR(GetDeviceContext(context, &device_context));
  Device* const device = static_cast<Device*>(context->device());
  return CopyAll(copies, [&](const Tensor* from, Tensor* to, Done done) {
    device_context->CopyDeviceTensorToCPU(from, "", device, to, done);
  });
}

}  // namespace embedding_variable
