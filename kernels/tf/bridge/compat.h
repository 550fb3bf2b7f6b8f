// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Names that differ between the headers of TensorFlow 1.15 and 2.x. All other
// C++ code compiles for each of them. Differences are found by the compiler
// (SFINAE, __has_include), because the headers of TensorFlow 2.21 define no
// version macro.

#ifndef KERNELS_TF_BRIDGE_COMPAT_H_
#define KERNELS_TF_BRIDGE_COMPAT_H_

#include <string>

#include "tensorflow/core/framework/type_index.h"
#include "tensorflow/core/lib/core/status.h"
#include "tensorflow/core/platform/mutex.h"
#include "tensorflow/core/platform/thread_annotations.h"
#include "tensorflow/core/platform/types.h"
#if __has_include("tensorflow/core/platform/blocking_counter.h")
#include "tensorflow/core/platform/blocking_counter.h"  // 2.x
#else
#include "tensorflow/core/lib/core/blocking_counter.h"  // 1.15
#endif

// Thread annotations. 2.x has the prefix TF_.
#ifdef TF_GUARDED_BY
#define EV_GUARDED_BY TF_GUARDED_BY
#define EV_EXCLUSIVE_LOCKS_REQUIRED TF_EXCLUSIVE_LOCKS_REQUIRED
#else
#define EV_GUARDED_BY GUARDED_BY
#define EV_EXCLUSIVE_LOCKS_REQUIRED EXCLUSIVE_LOCKS_REQUIRED
#endif

// In REGISTER_OP: errors of the op keep their code. 2.x turns the code
// Unavailable of other ops than these into Internal; 1.15 keeps all.
#ifdef TF_GUARDED_BY
#define EV_KEEPS_CODES_OF_ERRORS SetIsDistributedCommunication()
#else
#define EV_KEEPS_CODES_OF_ERRORS SetIsStateful()
#endif

namespace embedding_variable {

// Element type of a string tensor.
using TfString = tensorflow::tstring;

// Type of a status's code: tensorflow::error::Code, or absl::StatusCode with
// the same numbers.
using TfCode = decltype(tensorflow::Status().code());

// Returns a status with one of the constants of tensorflow::error.
inline tensorflow::Status MakeStatus(tensorflow::error::Code code,
                                     const std::string& message) {
  return tensorflow::Status(static_cast<TfCode>(code), message);
}

// Returns the code as one of the constants of tensorflow::error.
inline tensorflow::error::Code CodeOf(const tensorflow::Status& status) {
  return static_cast<tensorflow::error::Code>(status.code());
}

namespace compat {

// The overload with int is preferred where it compiles.
template <typename S>
auto MessageOf(const S& status, int) -> decltype(status.error_message()) {
  return status.error_message();
}
template <typename S>
auto MessageOf(const S& status, long) -> decltype(status.message()) {
  return status.message();
}

template <typename T, typename Index>
auto TypeIndexOf(int) -> decltype(Index::template Make<T>()) {
  return Index::template Make<T>();
}
template <typename T, typename Index>
Index TypeIndexOf(long) {
  return Index(typeid(T));
}

template <typename Stream>
auto NativeStream(Stream* stream, int) -> decltype(static_cast<void*>(
    *stream->implementation()->GpuStreamMemberHack())) {
  void** const native = stream->implementation()->GpuStreamMemberHack();
  return native == nullptr ? nullptr : *native;
}
template <typename Stream>
auto NativeStream(Stream* stream, long)
    -> decltype(static_cast<void*>(stream->platform_specific_handle().stream)) {
  return stream->platform_specific_handle().stream;
}

}  // namespace compat

// Returns the message of a status; empty if it is OK.
inline std::string MessageOf(const tensorflow::Status& status) {
  return std::string(compat::MessageOf(status, 0));
}

// Returns the key of T in TensorFlow's registries of variants.
template <typename T>
tensorflow::TypeIndex TypeIndexOf() {
  return compat::TypeIndexOf<T, tensorflow::TypeIndex>(0);
}

// Returns the cudaStream_t of a stream executor's stream, null if it has none.
// A template, so that only its callers need the stream's header, which declares
// a GPU's stream if GOOGLE_CUDA is defined.
template <typename Stream>
void* NativeStream(Stream* stream) {
  return compat::NativeStream(stream, 0);
}

}  // namespace embedding_variable

#endif  // KERNELS_TF_BRIDGE_COMPAT_H_
