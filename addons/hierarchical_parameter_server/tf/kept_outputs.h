// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Reuses memory for the rows of large lookups. Fresh memory of that size costs
// a page fault per 4 KiB, more than writing the rows.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_TF_KEPT_OUTPUTS_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_TF_KEPT_OUTPUTS_H_

#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor_shape.h"

namespace hps {

// Allocates output `output` as a float tensor. Small ones come from
// TensorFlow's allocator; large ones use memory that becomes available to the
// next lookup when the last tensor sharing it is destroyed.
tensorflow::Status AllocateKeptOutput(tensorflow::OpKernelContext* context,
                                      int output,
                                      const tensorflow::TensorShape& shape,
                                      float** data);

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_TF_KEPT_OUTPUTS_H_
