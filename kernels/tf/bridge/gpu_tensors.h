// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Kernels that TensorFlow runs on a GPU, with tensors in its memory.

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

// The stream that TensorFlow gives a GPU's kernels to: what is in the context's
// tensors is there when it is through with what it has. Internal when there is
// none.
tensorflow::Status GetDeviceStream(tensorflow::OpKernelContext* context,
                                   ev::DeviceStream* stream);

// Copies of the same shape, all under way at once; done when it returns. As
// TensorFlow copies, so in the order of that stream. (from, to).
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
