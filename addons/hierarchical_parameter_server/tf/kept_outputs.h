// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Memory for the rows of large lookups that is kept from one to the next.
// Fresh memory of that size costs a page fault for every 4 KiB, more than the
// rows themselves cost.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_TF_KEPT_OUTPUTS_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_TF_KEPT_OUTPUTS_H_

#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor_shape.h"

namespace hps {

// Gives output `output` a tensor of floats: from TensorFlow's allocator when it
// is small, otherwise in memory that was used before and that the next lookup
// gets when the last tensor which shares it has gone.
tensorflow::Status AllocateKeptOutput(tensorflow::OpKernelContext* context,
                                      int output,
                                      const tensorflow::TensorShape& shape,
                                      float** data);

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_TF_KEPT_OUTPUTS_H_
