// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Kernels whose errors do not end the process. TensorFlow's threads catch no
// exception, so this class turns an exception into the error of one step. It
// also makes every error message printable UTF-8, including those that a kernel
// creates itself.

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

#include "kernels/tf/bridge/status.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/resource_handle.h"
#include "tensorflow/core/lib/core/errors.h"

namespace embedding_variable {

// Calls body(), which returns a Status. An exception becomes a Status that
// begins with who(): ResourceExhausted if memory ran out, otherwise Internal.
template <typename Who, typename Body>
tensorflow::Status CatchExceptions(const Who& who, const Body& body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return tensorflow::errors::ResourceExhausted(who(), ": out of memory");
  } catch (const std::length_error& error) {
    return tensorflow::errors::ResourceExhausted(
        who(), ": larger than memory: ", error.what());
  } catch (const std::exception& error) {
    return tensorflow::errors::Internal(who(), ": ", error.what());
  }
}

// Returns the op and the variables of its resource inputs.
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

// Makes the message of an error of an OpKernelContext or OpKernelConstruction
// printable. Neither class can replace its status, so this writes through the
// const reference; the member behind it is not const.
template <typename Context>
void MakeErrorPrintable(Context* context) {
  if (context->status().ok()) return;
  try {
    const_cast<tensorflow::Status&>(context->status()) =
        Printable(context->status());
  } catch (const std::bad_alloc&) {
    // The error stays as it is.
  }
}

// Ends an asynchronous kernel on a thread that catches no exception: calls
// body(), which returns a Status, sets its error or exception, and calls done()
// once.
template <typename Body, typename Done>
void EndAsync(const tensorflow::OpKernel& kernel,
              tensorflow::OpKernelContext* context, const Body& body,
              const Done& done) {
  const tensorflow::Status status =
      CatchExceptions([&] { return NameOf(kernel, context); }, body);
  if (!status.ok()) context->SetStatus(status);
  done();
}

// The kernel, with exceptions turned into errors.
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
                          return tensorflow::Status();
                        });
    if (!status.ok()) context->SetStatus(status);
    MakeErrorPrintable(context);
  }
};

// The same for an asynchronous kernel. If ComputeAsync throws, this class calls
// 'done'. REQUIRES: a ComputeAsync that throws has not called 'done' and has
// not given it to anything that may call it later.
template <typename Kernel>
class GuardedKernel<Kernel, true> : public Kernel {
 public:
  explicit GuardedKernel(tensorflow::OpKernelConstruction* construction)
      : Kernel(construction) {}

  void ComputeAsync(tensorflow::OpKernelContext* context,
                    tensorflow::AsyncOpKernel::DoneCallback ended) override {
    const auto done = [context, ended = std::move(ended)] {
      MakeErrorPrintable(context);
      ended();
    };
    const tensorflow::Status status =
        CatchExceptions([&] { return NameOf(*this, context); },
                        [&] {
                          Kernel::ComputeAsync(context, done);
                          return tensorflow::Status();
                        });
    if (status.ok()) return;
    context->SetStatus(status);
    done();
  }
};

// Creates a kernel. If its constructor throws, returns null and sets an error
// of the construction.
template <typename Kernel>
tensorflow::OpKernel* MakeGuarded(
    tensorflow::OpKernelConstruction* construction) {
  tensorflow::OpKernel* made = nullptr;
  const tensorflow::Status status =
      CatchExceptions([&] { return "op '" + construction->def().name() + "'"; },
                      [&] {
                        made = new Kernel(construction);
                        return tensorflow::Status();
                      });
  if (!status.ok()) construction->SetStatus(status);
  MakeErrorPrintable(construction);
  return made;
}

}  // namespace embedding_variable

#endif  // KERNELS_TF_BRIDGE_GUARDED_KERNEL_H_
