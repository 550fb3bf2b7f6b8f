// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Where our kernels may run. Every op that takes a handle can be placed on a
// GPU, because TensorFlow puts all of one handle's ops on the handle's device.
// What goes in and out of a kernel there is in CPU memory, unless it is left
// out of the list of names.
//
// A variable without a placement stays on the CPU, where it is in a TensorFlow
// without GPUs: the CPU's kernels have the higher priority.

#ifndef KERNELS_TF_BRIDGE_REGISTER_KERNEL_H_
#define KERNELS_TF_BRIDGE_REGISTER_KERNEL_H_

#include <initializer_list>
#include <type_traits>

#include "kernels/tf/bridge/guarded_kernel.h"
#include "tensorflow/core/framework/kernel_def_builder.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace embedding_variable {

// A kernel on a GPU. TensorFlow takes such kernels for launches and runs them
// one after the other where a thread finds them ready; ours work, and wait, on
// the processor. Those that say otherwise themselves are believed.
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
  // in_cpu_memory: names of the op's inputs and outputs. label: of the kernels
  // that a node asks for with its attribute _kernel; none: of all other nodes.
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

// For allocate_temp, in a kernel that may run on a GPU.
inline tensorflow::AllocatorAttributes InCpuMemory() {
  tensorflow::AllocatorAttributes attributes;
  attributes.set_on_host(true);
  return attributes;
}

}  // namespace embedding_variable

#endif  // KERNELS_TF_BRIDGE_REGISTER_KERNEL_H_
