// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Helpers for kernels that TensorFlow runs on a GPU, with tensors in its
// memory.

#ifndef KERNELS_TF_BRIDGE_GPU_TENSORS_H_
#define KERNELS_TF_BRIDGE_GPU_TENSORS_H_

#include <utility>
#include <vector>

#include "kernels/engine/base/device_stream.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace embedding_variable {

inline bool IsOnGpu(const tensorflow::OpKernelConstruction& construction) {
  return construction.device_type() ==
         tensorflow::DeviceType(tensorflow::DEVICE_GPU);
}

// Returns the stream on which TensorFlow runs a GPU's kernels. The context's
// tensors are valid after the work that the stream holds now. Internal if
// TensorFlow provides no stream.
tensorflow::Status GetDeviceStream(tensorflow::OpKernelContext* context,
                                   ev::DeviceStream* stream);

// Copies pairs (from, to) of tensors of the same shape; all copies are in
// flight at once, and done at the return. They are TensorFlow's copies, ordered
// after the stream's work.
tensorflow::Status CopyToGpu(
    tensorflow::OpKernelContext* context,
    const std::vector<
        std::pair<const tensorflow::Tensor*, tensorflow::Tensor*>>& copies);
tensorflow::Status CopyFromGpu(
    tensorflow::OpKernelContext* context,
    const std::vector<
        std::pair<const tensorflow::Tensor*, tensorflow::Tensor*>>& copies);

}  // namespace embedding_variable

#endif  // KERNELS_TF_BRIDGE_GPU_TENSORS_H_
