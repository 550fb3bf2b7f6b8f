// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Tensors in transfer memory, which a device accesses directly
// (kernels/engine/base/transfer_memory.h).

#ifndef KERNELS_TF_BRIDGE_TRANSFER_TENSOR_H_
#define KERNELS_TF_BRIDGE_TRANSFER_TENSOR_H_

#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor.h"

namespace embedding_variable {

// Sets *tensor to a tensor in transfer memory, of a numeric type. Returns false
// if no transfer memory is available. The memory is recycled when the last
// tensor that shares it is destroyed.
bool MakeTransferTensor(tensorflow::DataType type,
                        const tensorflow::TensorShape& shape,
                        tensorflow::Tensor* tensor);

// Allocates output `output`, in transfer memory if available.
tensorflow::Status AllocateTransferOutput(tensorflow::OpKernelContext* context,
                                          int output,
                                          const tensorflow::TensorShape& shape,
                                          tensorflow::Tensor* tensor);

// Allocates such an output of floats.
tensorflow::Status AllocateTransferOutput(tensorflow::OpKernelContext* context,
                                          int output,
                                          const tensorflow::TensorShape& shape,
                                          float** data);

}  // namespace embedding_variable

#endif  // KERNELS_TF_BRIDGE_TRANSFER_TENSOR_H_
