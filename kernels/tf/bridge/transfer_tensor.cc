// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/tf/bridge/transfer_tensor.h"

#include "kernels/engine/base/transfer_memory.h"
#include "tensorflow/core/framework/allocator.h"

namespace embedding_variable {
namespace {

class TransferAllocator : public tensorflow::Allocator {
 public:
  std::string Name() override { return "embedding_variable_transfer"; }
  // Pages have a larger alignment than any tensor needs.
  void* AllocateRaw(size_t alignment, size_t num_bytes) override {
    return ev::AllocateTransferMemory(num_bytes);
  }
  void DeallocateRaw(void* data) override { ev::FreeTransferMemory(data); }
};

// Never destroyed: tensors may outlive whatever is destroyed at exit.
TransferAllocator* TheAllocator() {
  static TransferAllocator* const allocator = new TransferAllocator;
  return allocator;
}

}  // namespace

bool MakeTransferTensor(tensorflow::DataType type,
                        const tensorflow::TensorShape& shape,
                        tensorflow::Tensor* tensor) {
  if (shape.num_elements() == 0) return false;
  tensorflow::Tensor made(TheAllocator(), type, shape);
  if (!made.IsInitialized()) return false;
  *tensor = made;
  return true;
}

tensorflow::Status AllocateTransferOutput(tensorflow::OpKernelContext* context,
                                          int output,
                                          const tensorflow::TensorShape& shape,
                                          tensorflow::Tensor* tensor) {
  if (MakeTransferTensor(context->expected_output_dtype(output), shape,
                         tensor)) {
    context->set_output(output, *tensor);
    return tensorflow::Status();
  }
  tensorflow::Tensor* allocated = nullptr;
  TF_RETURN_IF_ERROR(context->allocate_output(output, shape, &allocated));
  *tensor = *allocated;
  return tensorflow::Status();
}

tensorflow::Status AllocateTransferOutput(tensorflow::OpKernelContext* context,
                                          int output,
                                          const tensorflow::TensorShape& shape,
                                          float** data) {
  tensorflow::Tensor made;
  TF_RETURN_IF_ERROR(AllocateTransferOutput(context, output, shape, &made));
  *data = made.flat<float>().data();
  return tensorflow::Status();
}

}  // namespace embedding_variable
