// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef KERNELS_TF_BRIDGE_STATUS_H_
#define KERNELS_TF_BRIDGE_STATUS_H_

#include "kernels/engine/base/printable.h"
#include "kernels/engine/base/status.h"
#include "kernels/tf/bridge/compat.h"

namespace embedding_variable {

// Returns the status with a message of printable UTF-8: TensorFlow 1.15's
// Python aborts the process on other bytes. GuardedKernel applies it to every
// error of a kernel.
inline tensorflow::Status Printable(const tensorflow::Status& status) {
  if (status.ok()) return status;
  return MakeStatus(CodeOf(status), ev::PrintableUtf8(MessageOf(status)));
}

// Converts the engine's status to TensorFlow's, with the code of the same name
// and a message of printable UTF-8.
inline tensorflow::Status ToTf(const ev::Status& status) {
  using tensorflow::error::Code;
  if (status.ok()) return tensorflow::Status();
  Code code = tensorflow::error::INTERNAL;
  switch (status.code()) {
    case ev::StatusCode::kOk:
      return tensorflow::Status();
    case ev::StatusCode::kInvalidArgument:
      code = tensorflow::error::INVALID_ARGUMENT;
      break;
    case ev::StatusCode::kNotFound:
      code = tensorflow::error::NOT_FOUND;
      break;
    case ev::StatusCode::kAlreadyExists:
      code = tensorflow::error::ALREADY_EXISTS;
      break;
    case ev::StatusCode::kFailedPrecondition:
      code = tensorflow::error::FAILED_PRECONDITION;
      break;
    case ev::StatusCode::kResourceExhausted:
      code = tensorflow::error::RESOURCE_EXHAUSTED;
      break;
    case ev::StatusCode::kOutOfRange:
      // MonitoredTrainingSession and Estimator interpret TensorFlow's
      // OUT_OF_RANGE as the end of the input and would silently stop training.
      code = tensorflow::error::INVALID_ARGUMENT;
      break;
    case ev::StatusCode::kUnimplemented:
      code = tensorflow::error::UNIMPLEMENTED;
      break;
    case ev::StatusCode::kDataLoss:
      code = tensorflow::error::DATA_LOSS;
      break;
    case ev::StatusCode::kUnavailable:
      code = tensorflow::error::UNAVAILABLE;
      break;
    case ev::StatusCode::kInternal:
      break;
  }
  return Printable(MakeStatus(code, status.message()));
}

// Converts TensorFlow's status to the engine's, with the code of the same name.
// A code that the engine lacks (PERMISSION_DENIED, ABORTED, ...) becomes
// Internal.
inline ev::Status FromTf(const tensorflow::Status& status) {
  using ev::StatusCode;
  if (status.ok()) return ev::Status::OK();
  StatusCode code = StatusCode::kInternal;
  switch (CodeOf(status)) {
    case tensorflow::error::INVALID_ARGUMENT:
      code = StatusCode::kInvalidArgument;
      break;
    case tensorflow::error::NOT_FOUND:
      code = StatusCode::kNotFound;
      break;
    case tensorflow::error::ALREADY_EXISTS:
      code = StatusCode::kAlreadyExists;
      break;
    case tensorflow::error::FAILED_PRECONDITION:
      code = StatusCode::kFailedPrecondition;
      break;
    case tensorflow::error::RESOURCE_EXHAUSTED:
      code = StatusCode::kResourceExhausted;
      break;
    case tensorflow::error::OUT_OF_RANGE:
      code = StatusCode::kOutOfRange;
      break;
    case tensorflow::error::UNIMPLEMENTED:
      code = StatusCode::kUnimplemented;
      break;
    case tensorflow::error::DATA_LOSS:
      code = StatusCode::kDataLoss;
      break;
    case tensorflow::error::UNAVAILABLE:
      code = StatusCode::kUnavailable;
      break;
    default:
      break;
  }
  return ev::Status(code, MessageOf(status));
}

}  // namespace embedding_variable

#endif  // KERNELS_TF_BRIDGE_STATUS_H_
