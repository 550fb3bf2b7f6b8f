// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The result of an engine call that can fail. No exception leaves the engine. A
// message contains what was expected, what came, and the table.

#ifndef KERNELS_ENGINE_BASE_STATUS_H_
#define KERNELS_ENGINE_BASE_STATUS_H_

#include <memory>
#include <string>
#include <utility>

namespace ev {

// The subset of the canonical codes that the engine uses; kernels/tf/bridge
// maps each to TensorFlow's code of the same name.
enum class StatusCode {
  kOk = 0,
  kInvalidArgument,
  kNotFound,
  kAlreadyExists,
  kFailedPrecondition,
  kResourceExhausted,
  kOutOfRange,
  kUnimplemented,
  kDataLoss,
  kInternal,
  kUnavailable,  // not reached in time; another attempt may succeed
};

class Status {
 public:
  Status() {}
  Status(StatusCode code, std::string message)
      : rep_(code == StatusCode::kOk
                 ? nullptr
                 : std::make_shared<const Rep>(Rep{code, std::move(message)})) {
  }

  static Status OK() { return Status(); }
  bool ok() const { return rep_ == nullptr; }
  StatusCode code() const { return rep_ ? rep_->code : StatusCode::kOk; }
  const std::string& message() const {
    static const std::string kEmpty;
    return rep_ ? rep_->message : kEmpty;
  }

 private:
  struct Rep {
    StatusCode code;
    std::string message;
  };
  std::shared_ptr<const Rep> rep_;
};

inline Status InvalidArgument(std::string message) {
  return Status(StatusCode::kInvalidArgument, std::move(message));
}
inline Status FailedPrecondition(std::string message) {
  return Status(StatusCode::kFailedPrecondition, std::move(message));
}
inline Status NotFound(std::string message) {
  return Status(StatusCode::kNotFound, std::move(message));
}
inline Status ResourceExhausted(std::string message) {
  return Status(StatusCode::kResourceExhausted, std::move(message));
}
inline Status OutOfRange(std::string message) {
  return Status(StatusCode::kOutOfRange, std::move(message));
}
inline Status Unimplemented(std::string message) {
  return Status(StatusCode::kUnimplemented, std::move(message));
}
inline Status Internal(std::string message) {
  return Status(StatusCode::kInternal, std::move(message));
}
inline Status Unavailable(std::string message) {
  return Status(StatusCode::kUnavailable, std::move(message));
}

}  // namespace ev

#define EV_RETURN_IF_ERROR(expression)       \
  do {                                       \
    ::ev::Status ev_status_ = (expression);  \
    if (!ev_status_.ok()) return ev_status_; \
  } while (0)

#endif  // KERNELS_ENGINE_BASE_STATUS_H_
