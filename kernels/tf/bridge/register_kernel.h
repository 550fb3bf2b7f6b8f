// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Registers kernels for both devices. Every op that takes a handle can be
// placed on a GPU, because TensorFlow places all ops of a handle on the
// handle's device. On a GPU, inputs and outputs listed by name are in CPU
// memory; the others are in GPU memory.
//
// A variable without a device stays on the CPU, as in a TensorFlow without
// GPUs: the CPU kernels have the higher priority.

#ifndef KERNELS_TF_BRIDGE_REGISTER_KERNEL_H_
#define KERNELS_TF_BRIDGE_REGISTER_KERNEL_H_

#include <initializer_list>
#include <type_traits>

#include "kernels/tf/bridge/guarded_kernel.h"
#include "tensorflow/core/framework/kernel_def_builder.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace embedding_variable {

// A kernel on a GPU. TensorFlow assumes that such kernels only launch work, and
// runs them one after the other on the thread that finds them ready. Our
// kernels compute and wait on the CPU, so they are marked expensive, unless
// they override IsExpensive themselves.
template <typename Kernel>
class KernelOnGpu : public Kernel {
 public:
  explicit KernelOnGpu(tensorflow::OpKernelConstruction* construction)
      : Kernel(construction) {}
  bool IsExpensive() override {
    return std::is_same<decltype(&Kernel::IsExpensive),
                        bool (tensorflow::OpKernel::*)()>::value ||
           Kernel::IsExpensive();
  }
};

template <typename Kernel>
class RegisterKernel {
 public:
  // in_cpu_memory: names of the op's inputs and outputs. label: selects these
  // kernels for nodes with the same attribute _kernel; empty: for all other
  // nodes.
  RegisterKernel(const char* op,
                 std::initializer_list<const char*> in_cpu_memory,
                 const char* label = "") {
    tensorflow::KernelDefBuilder cpu(op), gpu(op);
    cpu.Device(tensorflow::DEVICE_CPU).Priority(1).Label(label);
    gpu.Device(tensorflow::DEVICE_GPU).Label(label);
    for (const char* name : in_cpu_memory) gpu.HostMemory(name);
    tensorflow::kernel_factory::OpKernelRegistrar(cpu.Build(), op,
                                                  &MakeGuarded<Guarded>);
    tensorflow::kernel_factory::OpKernelRegistrar(
        gpu.Build(), op, &MakeGuarded<KernelOnGpu<Guarded>>);
  }

 private:
  using Guarded = GuardedKernel<Kernel>;
};

// Registers kernels on the CPU and on a GPU whose inputs and outputs are in the
// memory of their device.
template <typename Kernel>
class RegisterOnEachDevice {
 public:
  explicit RegisterOnEachDevice(const char* op) {
    for (const char* device :
         {tensorflow::DEVICE_CPU, tensorflow::DEVICE_GPU}) {
      tensorflow::kernel_factory::OpKernelRegistrar(
          tensorflow::KernelDefBuilder(op).Device(device).Build(), op,
          &MakeGuarded<GuardedKernel<Kernel>>);
    }
  }
};

// Attributes for allocate_temp in a kernel that may run on a GPU.
inline tensorflow::AllocatorAttributes InCpuMemory() {
  tensorflow::AllocatorAttributes attributes;
  attributes.set_on_host(true);
  return attributes;
}

}  // namespace embedding_variable

#endif  // KERNELS_TF_BRIDGE_REGISTER_KERNEL_H_
