// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Tensors as the engine's spans and pointers: views, never copies.

#ifndef KERNELS_TF_BRIDGE_TENSOR_SPAN_H_
#define KERNELS_TF_BRIDGE_TENSOR_SPAN_H_

#include <cstdint>
#include <type_traits>

#include "kernels/engine/base/float_type.h"
#include "kernels/engine/base/span.h"
#include "tensorflow/core/framework/tensor.h"

namespace embedding_variable {

// TensorFlow's 64-bit integer is long long, the engine's is long: two types
// with the same representation.
template <typename T>
struct TfTypeOf {
  using type = T;
};
template <>
struct TfTypeOf<int64_t> {
  using type = tensorflow::int64;
};

// Returns the elements of `tensor` in row-major order. REQUIRES: its dtype is
// T. The view is valid while the tensor's buffer lives.
template <typename T>
const T* Data(const tensorflow::Tensor& tensor) {
  return reinterpret_cast<const T*>(
      tensor.flat<typename TfTypeOf<T>::type>().data());
}
template <typename T>
T* MutableData(tensorflow::Tensor* tensor) {
  return reinterpret_cast<T*>(
      tensor->flat<typename TfTypeOf<T>::type>().data());
}

// The same for tensors of float, half or bfloat16.
inline ev::FloatType FloatTypeOf(tensorflow::DataType dtype) {
  switch (dtype) {
    case tensorflow::DT_HALF:
      return ev::FloatType::kFloat16;
    case tensorflow::DT_BFLOAT16:
      return ev::FloatType::kBFloat16;
    default:
      return ev::FloatType::kFloat32;
  }
}
inline ev::FloatType FloatTypeOf(const tensorflow::Tensor& tensor) {
  return FloatTypeOf(tensor.dtype());
}
inline ev::ConstFloats FloatsOf(const tensorflow::Tensor& tensor) {
  return ev::ConstFloats(tensor.tensor_data().data(), FloatTypeOf(tensor));
}
inline ev::MutableFloats MutableFloatsOf(const tensorflow::Tensor& tensor) {
  return ev::MutableFloats(const_cast<char*>(tensor.tensor_data().data()),
                           FloatTypeOf(tensor));
}

template <typename T>
ev::Span<const T> SpanOf(const tensorflow::Tensor& tensor) {
  return ev::Span<const T>(Data<T>(tensor),
                           static_cast<size_t>(tensor.NumElements()));
}

}  // namespace embedding_variable

#endif  // KERNELS_TF_BRIDGE_TENSOR_SPAN_H_
