// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// No exception leaves a kernel: TensorFlow's threads know none, and the process
// would end. Want of memory is an error of one step.

#ifndef KERNELS_TF_BRIDGE_GUARDED_KERNEL_H_
#define KERNELS_TF_BRIDGE_GUARDED_KERNEL_H_

#include <atomic>
#include <exception>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/resource_handle.h"
#include "tensorflow/core/lib/core/errors.h"

namespace embedding_variable {

// body() gives a Status. What it throws becomes one that begins with who():
// ResourceExhausted for what no memory holds, Internal for everything else.
template <typename Who, typename Body>
tensorflow::Status CatchExceptions(const Who& who, const Body& body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return tensorflow::errors::ResourceExhausted(who(), ": out of memory");
  } catch (const std::length_error& error) {
    return tensorflow::errors::ResourceExhausted(
        who(), ": more than any memory holds: ", error.what());
  } catch (const std::exception& error) {
    return tensorflow::errors::Internal(who(), ": ", error.what());
  }
}

// The op, and the variables whose handles it was given.
inline std::string NameOf(const tensorflow::OpKernel& kernel,
                          tensorflow::OpKernelContext* context) {
  std::string name = "op '" + kernel.name() + "'";
  const char* before = " on embedding variable '";
  for (int i = 0; i < context->num_inputs(); ++i) {
    if (context->input_dtype(i) != tensorflow::DT_RESOURCE) continue;
    const tensorflow::Tensor& handle = context->input(i);
    if (handle.NumElements() != 1) continue;
    name += before;
    name += handle.flat<tensorflow::ResourceHandle>()(0).name() + "'";
    before = ", '";
  }
  return name;
}

// Kernel, with an error where it throws.
template <typename Kernel,
          bool = std::is_base_of<tensorflow::AsyncOpKernel, Kernel>::value>
class GuardedKernel : public Kernel {
 public:
  explicit GuardedKernel(tensorflow::OpKernelConstruction* construction)
      : Kernel(construction) {}

  void Compute(tensorflow::OpKernelContext* context) override {
    const tensorflow::Status status =
        CatchExceptions([&] { return NameOf(*this, context); },
                        [&] {
                          Kernel::Compute(context);
                          return tensorflow::Status::OK();
                        });
    if (!status.ok()) context->SetStatus(status);
  }
};

// REQUIRES: ComputeAsync throws before it gives 'done' away, or not at all.
template <typename Kernel>
class GuardedKernel<Kernel, true> : public Kernel {
 public:
  explicit GuardedKernel(tensorflow::OpKernelConstruction* construction)
      : Kernel(construction) {}

  void ComputeAsync(tensorflow::OpKernelContext* context,
                    tensorflow::AsyncOpKernel::DoneCallback done) override {
    const tensorflow::Status status =
        CatchExceptions([&] { return NameOf(*this, context); },
                        [&] {
                          Kernel::ComputeAsync(context, done);
                          return tensorflow::Status::OK();
                        });
    if (status.ok()) return;
    context->SetStatus(status);
    done();
  }
};

// Makes a kernel; null, and an error of the construction, where its
// constructor throws.
template <typename Kernel>
tensorflow::OpKernel* MakeGuarded(
    tensorflow::OpKernelConstruction* construction) {
  tensorflow::OpKernel* made = nullptr;
  const tensorflow::Status status =
      CatchExceptions([&] { return "op '" + construction->def().name() + "'"; },
                      [&] {
                        made = new Kernel(construction);
                        return tensorflow::Status::OK();
                      });
  if (!status.ok()) construction->SetStatus(status);
  return made;
}

}  // namespace embedding_variable

#endif  // KERNELS_TF_BRIDGE_GUARDED_KERNEL_H_
