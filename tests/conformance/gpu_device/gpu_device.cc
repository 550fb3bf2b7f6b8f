// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// "/device:GPU:0" for a TensorFlow without GPU support: a device of type GPU
// with the memory and the stream of the engine's test device
// (kernels/engine/testing/host_device_memory.h). Using its memory as host
// memory ends the process, and its stream runs late.
//
// The device counts the floats and integers that TensorFlow copies, on its own
// or for a kernel.

#define GOOGLE_CUDA 1

#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "kernels/engine/testing/host_device_memory.h"
#include "tensorflow/core/common_runtime/device_factory.h"
#include "tensorflow/core/common_runtime/local_device.h"
#include "tensorflow/core/framework/allocator.h"
#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor.pb.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/platform/stream_executor.h"
#include "tensorflow/core/public/session_options.h"

namespace embedding_variable {
namespace {

using ev::testing::HostStream;
using ev::testing::Reach;
using tensorflow::Allocator;
using tensorflow::AllocatorAttributes;
using tensorflow::Device;
using tensorflow::DeviceContext;
using tensorflow::OpKernel;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::Status;
using tensorflow::StatusCallback;
using tensorflow::Tensor;

struct Counts {
  std::atomic<tensorflow::int64> floats{0}, integers{0};

  void Add(const Tensor& tensor) {
    if (tensor.dtype() == tensorflow::DT_FLOAT) floats += tensor.NumElements();
    if (tensor.dtype() == tensorflow::DT_INT64 ||
        tensor.dtype() == tensorflow::DT_INT32) {
      integers += tensor.NumElements();
    }
  }
};
Counts up, down;

char* Address(const Tensor& tensor) {
  return const_cast<char*>(tensor.tensor_data().data());
}

class DeviceMemory : public Allocator {
 public:
  std::string Name() override { return "test_gpu"; }
  void* AllocateRaw(size_t alignment, size_t num_bytes) override {
    return ev::testing::AllocateHostDeviceMemory(num_bytes);
  }
  void DeallocateRaw(void* memory) override {
    ev::testing::FreeHostDeviceMemory(memory);
  }
};

Allocator* TheMemory() {
  static DeviceMemory* const memory = new DeviceMemory;
  return memory;
}

HostStream* TheStream() {
  static HostStream* const stream = new HostStream;
  return stream;
}

// The stream as kernels see it.
class StreamOfContext : public stream_executor::internal::StreamInterface {
 public:
  void* GpuStreamHack() override { return native_; }
  void** GpuStreamMemberHack() override { return &native_; }

 private:
  void* native_ = TheStream();
};

class TestContext : public DeviceContext {
 public:
  // Never destroyed, because its destructor needs an executor.
  stream_executor::Stream* stream() const override {
    static stream_executor::Stream* const stream =
        new stream_executor::Stream(nullptr, new StreamOfContext);
    return stream;
  }

  void CopyCPUTensorToDevice(const Tensor* from, Device* device, Tensor* to,
                             StatusCallback done, bool) const override {
    up.Add(*from);
    TheStream()->Wait();
    std::memcpy(Reach(Address(*to)), Address(*from), from->TotalBytes());
    done(Status::OK());
  }

  void CopyDeviceTensorToCPU(const Tensor* from, tensorflow::StringPiece,
                             Device* device, Tensor* to,
                             StatusCallback done) override {
    down.Add(*from);
    TheStream()->Wait();
    std::memcpy(Address(*to), Reach(Address(*from)), from->TotalBytes());
    done(Status::OK());
  }
};

class TestGpu : public tensorflow::LocalDevice {
 public:
  TestGpu(const tensorflow::SessionOptions& options,
          const tensorflow::DeviceAttributes& attributes)
      : LocalDevice(options, attributes), context_(new TestContext) {}
  ~TestGpu() override { context_->Unref(); }

  Allocator* GetAllocator(AllocatorAttributes attributes) override {
    return attributes.on_host() ? tensorflow::cpu_allocator() : TheMemory();
  }
  void Compute(OpKernel* kernel, OpKernelContext* context) override {
    const std::string& op = kernel->type_string();
    const bool cheap = op == "EvHandle" || op == "EvIsInitialized" ||
                       op == "EvShape" || op == "EvPack" || op == "EvUnpack" ||
                       op == "EvDotInteraction" || op == "EvDotInteractionGrad";
    if (op.substr(0, 2) == "Ev" && kernel->IsExpensive() == cheap) {
      context->SetStatus(tensorflow::errors::Internal(
          op, " is scheduled as if it were ",
          kernel->IsExpensive() ? "expensive" : "cheap"));
      return;
    }
    kernel->Compute(context);
  }
  Status Sync() override {
    TheStream()->Wait();
    return Status::OK();
  }
  Status FillContextMap(const tensorflow::Graph* graph,
                        tensorflow::DeviceContextMap* map) override {
    map->resize(graph->num_node_ids());
    for (const tensorflow::Node* node : graph->nodes()) {
      context_->Ref();
      (*map)[node->id()] = context_;
    }
    return Status::OK();
  }

 private:
  TestContext* const context_;
};

class TestGpuFactory : public tensorflow::DeviceFactory {
 public:
  Status ListPhysicalDevices(std::vector<std::string>* devices) override {
    devices->push_back("/physical_device:GPU:0");
    return Status::OK();
  }
  Status CreateDevices(const tensorflow::SessionOptions& options,
                       const std::string& prefix,
                       std::vector<std::unique_ptr<Device>>* devices) override {
    const auto& counts = options.config.device_count();
    const auto found = counts.find("GPU");
    if (found != counts.end() && found->second == 0) return Status::OK();
    devices->emplace_back(new TestGpu(
        options,
        Device::BuildDeviceAttributes(
            prefix + "/device:GPU:0", tensorflow::DEVICE_GPU,
            tensorflow::Bytes(1 << 30), tensorflow::DeviceLocality(), "test")));
    return Status::OK();
  }
};

// Priority of TensorFlow's own GPUs plus one, to replace them if they are
// linked in.
REGISTER_LOCAL_DEVICE_FACTORY("GPU", TestGpuFactory, 211);

// Stands for the dense layers of a model, on the device.
REGISTER_OP("TestDense")
    .Input("x: float")
    .Output("y: float")
    .SetShapeFn(tensorflow::shape_inference::UnchangedShape)
    .Doc("2 (x - 1), the gradient of the sum of (x - 1)^2.");

void Dense(const float* x, int64_t n, float* y) {
  for (int64_t i = 0; i < n; ++i) y[i] = 2.0f * (x[i] - 1.0f);
}

class DenseOp : public OpKernel {
 public:
  explicit DenseOp(OpKernelConstruction* construction)
      : OpKernel(construction),
        on_gpu_(construction->device_type() ==
                tensorflow::DeviceType(tensorflow::DEVICE_GPU)) {}

  void Compute(OpKernelContext* context) override {
    const Tensor x = context->input(0);
    Tensor* output = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, x.shape(), &output));
    const Tensor y = *output;
    const auto work = [=](const float* from, float* to) {
      Dense(from, x.NumElements(), to);
    };
    float* const to = reinterpret_cast<float*>(Address(y));
    const float* const from = reinterpret_cast<float*>(Address(x));
    if (!on_gpu_) {
      work(from, to);
    } else if (x.NumElements() > 0) {
      // The copies keep both tensors alive.
      TheStream()->Give([=] {
        (void)x;
        (void)y;
        work(Reach(from), Reach(to));
      });
    }
  }

 private:
  const bool on_gpu_;
};

REGISTER_KERNEL_BUILDER(Name("TestDense").Device(tensorflow::DEVICE_CPU),
                        DenseOp);
REGISTER_KERNEL_BUILDER(Name("TestDense").Device(tensorflow::DEVICE_GPU),
                        DenseOp);

// Returns ids that were computed on the device.
REGISTER_OP("TestIds")
    .Input("x: T")
    .Output("y: T")
    .Attr("T: {int64, int32}")
    .SetShapeFn(tensorflow::shape_inference::UnchangedShape)
    .Doc("Returns x, computed late.");

class IdsOp : public OpKernel {
 public:
  explicit IdsOp(OpKernelConstruction* construction)
      : OpKernel(construction),
        on_gpu_(construction->device_type() ==
                tensorflow::DeviceType(tensorflow::DEVICE_GPU)) {}

  void Compute(OpKernelContext* context) override {
    const Tensor x = context->input(0);
    Tensor* output = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, x.shape(), &output));
    const Tensor y = *output;
    if (!on_gpu_) {
      std::memcpy(Address(y), Address(x), x.TotalBytes());
    } else if (x.NumElements() > 0) {
      TheStream()->Give([x, y] {
        std::memcpy(Reach(Address(y)), Reach(Address(x)), x.TotalBytes());
      });
    }
  }

 private:
  const bool on_gpu_;
};

REGISTER_KERNEL_BUILDER(Name("TestIds").Device(tensorflow::DEVICE_CPU), IdsOp);
REGISTER_KERNEL_BUILDER(Name("TestIds").Device(tensorflow::DEVICE_GPU), IdsOp);

REGISTER_OP("TestFloatsCopied")
    .Output("count: int64")
    .SetIsStateful()
    .SetShapeFn(tensorflow::shape_inference::UnknownShape)
    .Doc("[2], floats copied to and from the device since the last call.");

REGISTER_OP("TestIntegersCopied")
    .Output("count: int64")
    .SetIsStateful()
    .SetShapeFn(tensorflow::shape_inference::UnknownShape)
    .Doc("[2], integers copied to and from the device since the last call.");

template <std::atomic<tensorflow::int64> Counts::*kCount>
class CopiedOp : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* context) override {
    Tensor* count = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(
                                0, tensorflow::TensorShape({2}), &count));
    count->flat<tensorflow::int64>()(0) = (up.*kCount).exchange(0);
    count->flat<tensorflow::int64>()(1) = (down.*kCount).exchange(0);
  }
};

REGISTER_KERNEL_BUILDER(Name("TestFloatsCopied").Device(tensorflow::DEVICE_CPU),
                        CopiedOp<&Counts::floats>);
REGISTER_KERNEL_BUILDER(
    Name("TestIntegersCopied").Device(tensorflow::DEVICE_CPU),
    CopiedOp<&Counts::integers>);

// Kernels that a TensorFlow with GPU support has, for stock ops that are placed
// on a variable's device.

class ConstOp : public OpKernel {
 public:
  explicit ConstOp(OpKernelConstruction* context) : OpKernel(context) {
    const tensorflow::TensorProto* proto = nullptr;
    OP_REQUIRES_OK(context, context->GetAttr("value", &proto));
    OP_REQUIRES(context, value_.FromProto(*proto),
                tensorflow::errors::InvalidArgument("a bad constant"));
  }
  void Compute(OpKernelContext* context) override {
    context->set_output(0, value_);
  }

 private:
  Tensor value_;
};

REGISTER_KERNEL_BUILDER(
    Name("Const").Device(tensorflow::DEVICE_GPU).HostMemory("output"), ConstOp);

// int64, the type of the batch size.
class SizeOp : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* context) override {
    Tensor* size = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(
                                0, tensorflow::TensorShape({}), &size));
    size->scalar<tensorflow::int64>()() = context->input(0).NumElements();
  }
};

REGISTER_KERNEL_BUILDER(Name("Size")
                            .Device(tensorflow::DEVICE_GPU)
                            .TypeConstraint<tensorflow::int64>("out_type")
                            .HostMemory("output"),
                        SizeOp);

class NeverRunOp : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* context) override {
    context->SetStatus(tensorflow::errors::Internal("this was run"));
  }
};

REGISTER_KERNEL_BUILDER(Name("ReadVariableOp")
                            .Device(tensorflow::DEVICE_GPU)
                            .HostMemory("resource"),
                        NeverRunOp);

}  // namespace
}  // namespace embedding_variable
