// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Tensors in memory that a device writes and reads by itself
// (kernels/engine/base/transfer_memory.h).

#ifndef KERNELS_TF_BRIDGE_TRANSFER_TENSOR_H_
#define KERNELS_TF_BRIDGE_TRANSFER_TENSOR_H_

#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor.h"

namespace embedding_variable {

// Makes *tensor a tensor of that type (of numbers) and shape in such memory;
// false when there is none. The memory is recycled when the last tensor that
// shares it goes.
bool MakeTransferTensor(tensorflow::DataType type,
                        const tensorflow::TensorShape& shape,
                        tensorflow::Tensor* tensor);

// Gives output `output` a tensor, in such memory if there is any.
tensorflow::Status AllocateTransferOutput(tensorflow::OpKernelContext* context,
                                          int output,
                                          const tensorflow::TensorShape& shape,
                                          tensorflow::Tensor* tensor);

// The same for one of floats.
tensorflow::Status AllocateTransferOutput(tensorflow::OpKernelContext* context,
                                          int output,
                                          const tensorflow::TensorShape& shape,
                                          float** data);

}  // namespace embedding_variable

#endif  // KERNELS_TF_BRIDGE_TRANSFER_TENSOR_H_
