// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Checks of kernel inputs before they are passed to the engine, and other
// conversions that several kernels need. Every message about an input contains
// the variable, the expected and the actual value.

#ifndef KERNELS_TF_OP_KERNELS_KERNEL_CHECKS_H_
#define KERNELS_TF_OP_KERNELS_KERNEL_CHECKS_H_

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "kernels/engine/checkpoint/key_filter.h"
#include "kernels/engine/embedding/embedding_table.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace embedding_variable {

template <typename... Args>
tensorflow::Status BadInput(const std::string& variable, Args... args) {
  return tensorflow::errors::InvalidArgument("embedding variable '", variable,
                                             "': ", args...);
}

// Adds the variable's name to an error, for example one of a checkpoint.
inline tensorflow::Status OfVariable(const std::string& variable,
                                     const tensorflow::Status& status) {
  if (status.ok()) return status;
  return tensorflow::Status(status.code(), tensorflow::strings::StrCat(
                                               "embedding variable '", variable,
                                               "': ", MessageOf(status)));
}

inline tensorflow::Status CheckVector(const tensorflow::Tensor& tensor,
                                      const std::string& variable,
                                      const char* what) {
  if (tensor.dims() == 1) return tensorflow::Status();
  return BadInput(variable, what, ": expected a vector, got shape ",
                  tensor.shape().DebugString());
}

inline tensorflow::Status CheckVectorOf(const tensorflow::Tensor& tensor,
                                        int64_t size,
                                        const std::string& variable,
                                        const char* what) {
  if (tensor.dims() == 1 && tensor.dim_size(0) == size) {
    return tensorflow::Status();
  }
  return BadInput(variable, what, ": expected shape [", size, "], got ",
                  tensor.shape().DebugString());
}

inline tensorflow::Status CheckMatrix(const tensorflow::Tensor& tensor,
                                      int64_t rows, int64_t dim,
                                      const std::string& variable,
                                      const char* what) {
  if (tensor.dims() == 2 && tensor.dim_size(0) == rows &&
      tensor.dim_size(1) == dim) {
    return tensorflow::Status();
  }
  return BadInput(variable, what, ": expected shape [", rows, ",", dim,
                  "], got ", tensor.shape().DebugString());
}

// Sets *shape to [rows, dim]. TensorShape would abort the process if the
// product exceeded int64, so sizes that no memory can hold raise an error.
inline tensorflow::Status MatrixShape(int64_t rows, int64_t dim,
                                      const std::string& variable,
                                      tensorflow::TensorShape* shape) {
  if (rows < 0 || rows > std::numeric_limits<int64_t>::max() / 8 / dim) {
    return BadInput(variable, "cannot hold ", rows, " rows of ", dim,
                    " floats");
  }
  *shape = tensorflow::TensorShape({rows, dim});
  return tensorflow::Status();
}

// Sets an output to a tensor of the table as a whole.
inline tensorflow::Status OutputTableTensor(
    tensorflow::OpKernelContext* context, int output,
    const std::vector<ev::TableTensor>& tensors, size_t index) {
  tensorflow::Tensor* tensor = nullptr;
  if (index < tensors.size()) {
    tensorflow::TensorShape shape;
    for (const int64_t size : tensors[index].shape) shape.AddDim(size);
    TF_RETURN_IF_ERROR(context->allocate_output(output, shape, &tensor));
  }
  if (tensor == nullptr ||
      tensor->TotalBytes() != tensors[index].bytes.size()) {
    return tensorflow::errors::InvalidArgument(
        "tensor_types does not fit the tensors of a table");
  }
  std::copy(tensors[index].bytes.begin(), tensors[index].bytes.end(),
            const_cast<char*>(tensor->tensor_data().data()));
  return tensorflow::Status();
}

// Reads the attributes of an op that restores a table, which may be a part of a
// variable or distributed over ranks.
inline tensorflow::Status GetKeyFilter(
    tensorflow::OpKernelConstruction* context, ev::KeyFilter* keys) {
  TF_RETURN_IF_ERROR(context->GetAttr("part", &keys->part));
  TF_RETURN_IF_ERROR(context->GetAttr("num_parts", &keys->num_parts));
  TF_RETURN_IF_ERROR(context->GetAttr("placement", &keys->placement));
  return context->GetAttr("rank", &keys->rank);
}

// Reads the attributes slot_names and slot_inits and distributes them over
// `num_tables` tables.
inline tensorflow::Status GetSlotSpecs(
    tensorflow::OpKernelConstruction* context, int num_tables,
    std::vector<std::vector<ev::SlotSpec>>* specs) {
  std::vector<std::string> names;
  TF_RETURN_IF_ERROR(context->GetAttr("slot_names", &names));
  std::vector<float> inits;
  TF_RETURN_IF_ERROR(context->GetAttr("slot_inits", &inits));
  if (names.size() != inits.size() || names.size() % num_tables != 0) {
    return tensorflow::errors::InvalidArgument(
        names.size(), " slot names and ", inits.size(), " initial values for ",
        num_tables, " tables");
  }
  specs->resize(num_tables);
  const size_t num_slots = names.size() / num_tables;
  for (size_t i = 0; i < names.size(); ++i) {
    (*specs)[i / num_slots].push_back({names[i], inits[i]});
  }
  return tensorflow::Status();
}

}  // namespace embedding_variable

#endif  // KERNELS_TF_OP_KERNELS_KERNEL_CHECKS_H_
