// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Lets TensorFlow copy a variant that shares an object in host memory between
// devices, and make an empty one.

#ifndef KERNELS_TF_BRIDGE_SHARED_VARIANT_H_
#define KERNELS_TF_BRIDGE_SHARED_VARIANT_H_

#include "kernels/tf/bridge/compat.h"
#include "tensorflow/core/framework/variant.h"
#include "tensorflow/core/framework/variant_op_registry.h"

namespace embedding_variable {

// Registers copies of variants of type T in all directions. T's copy
// constructor shares the object, so a copy moves no data. Our kernels keep such
// variants in host memory, but a stock Switch or Merge on a GPU has its inputs
// in device memory, and TensorFlow then copies the variant there and back.
//
// Make one static object for each T. Does nothing where a library that was
// loaded before has registered T, since TensorFlow ends the process at a second
// registration.
template <typename T>
class SharedVariantCopies {
 public:
  SharedVariantCopies() {
    using tensorflow::VariantDeviceCopyDirection;
    for (VariantDeviceCopyDirection direction :
         {VariantDeviceCopyDirection::HOST_TO_DEVICE,
          VariantDeviceCopyDirection::DEVICE_TO_HOST,
          VariantDeviceCopyDirection::DEVICE_TO_DEVICE}) {
      const tensorflow::TypeIndex type = TypeIndexOf<T>();
      auto* const registry = tensorflow::UnaryVariantOpRegistry::Global();
      if (registry->GetDeviceCopyFn(direction, type) != nullptr) continue;
      tensorflow::variant_op_registry_fn_registration::
          UnaryVariantDeviceCopyRegistration<T>(direction, type, Share);
    }
  }

 private:
  static tensorflow::Status Share(
      const T& from, T* to,
      tensorflow::UnaryVariantOpRegistry::AsyncTensorDeviceCopyFn) {
    *to = from;
    return tensorflow::Status();
  }
};

// Registers the zeros of variants of type T, on CPU and GPU: T(), which shares
// no object. A `tf.GradientTape` around a tf.function passes them to the
// function's gradient, which ignores them.
//
// Make one static object for each T. Does nothing where T is registered.
template <typename T>
class SharedVariantZeros {
 public:
  SharedVariantZeros() {
    for (const char* device :
         {tensorflow::DEVICE_CPU, tensorflow::DEVICE_GPU}) {
      const tensorflow::TypeIndex type = TypeIndexOf<T>();
      auto* const registry = tensorflow::UnaryVariantOpRegistry::Global();
      if (registry->GetUnaryOpFn(tensorflow::ZEROS_LIKE_VARIANT_UNARY_OP,
                                 device, type) != nullptr) {
        continue;
      }
      tensorflow::variant_op_registry_fn_registration::
          UnaryVariantUnaryOpRegistration<T>(
              tensorflow::ZEROS_LIKE_VARIANT_UNARY_OP, device, type, Empty);
    }
  }

 private:
  static tensorflow::Status Empty(tensorflow::OpKernelContext*, const T&,
                                  T* to) {
    *to = T();
    return tensorflow::Status();
  }
};

}  // namespace embedding_variable

#endif  // KERNELS_TF_BRIDGE_SHARED_VARIANT_H_
