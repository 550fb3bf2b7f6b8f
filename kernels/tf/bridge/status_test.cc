// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/tf/bridge/status.h"

#include "gtest/gtest.h"

namespace embedding_variable {
namespace {

TEST(StatusTest, OkIsOk) { EXPECT_TRUE(ToTf(ev::Status::OK()).ok()); }

TEST(StatusTest, KeepsCodeAndMessage) {
  const tensorflow::Status status = ToTf(ev::NotFound("no slot"));
  EXPECT_EQ(tensorflow::error::NOT_FOUND, status.code());
  EXPECT_EQ("no slot", status.error_message());
  EXPECT_EQ(tensorflow::error::INVALID_ARGUMENT,
            ToTf(ev::InvalidArgument("x")).code());
  EXPECT_EQ(tensorflow::error::FAILED_PRECONDITION,
            ToTf(ev::FailedPrecondition("x")).code());
  EXPECT_EQ(tensorflow::error::RESOURCE_EXHAUSTED,
            ToTf(ev::ResourceExhausted("x")).code());
  EXPECT_EQ(tensorflow::error::UNIMPLEMENTED,
            ToTf(ev::Unimplemented("x")).code());
  EXPECT_EQ(tensorflow::error::INTERNAL, ToTf(ev::Internal("x")).code());
  EXPECT_EQ(tensorflow::error::UNAVAILABLE, ToTf(ev::Unavailable("x")).code());
  EXPECT_EQ(tensorflow::error::DATA_LOSS,
            ToTf(ev::Status(ev::StatusCode::kDataLoss, "x")).code());
}

TEST(StatusTest, ComesBackFromTheEngineAsItWas) {
  EXPECT_TRUE(FromTf(tensorflow::Status::OK()).ok());
  for (const auto code :
       {tensorflow::error::INVALID_ARGUMENT, tensorflow::error::NOT_FOUND,
        tensorflow::error::ALREADY_EXISTS,
        tensorflow::error::FAILED_PRECONDITION,
        tensorflow::error::RESOURCE_EXHAUSTED, tensorflow::error::UNIMPLEMENTED,
        tensorflow::error::DATA_LOSS, tensorflow::error::UNAVAILABLE,
        tensorflow::error::INTERNAL}) {
    const tensorflow::Status status(code, "no file");
    EXPECT_EQ(status, ToTf(FromTf(status)));
  }
  EXPECT_EQ(ev::StatusCode::kInternal,
            FromTf(tensorflow::Status(tensorflow::error::ABORTED, "x")).code());
}

TEST(StatusTest, MessagesArePrintableUtf8) {
  EXPECT_EQ("no file caf\\xe9",
            ToTf(ev::NotFound("no file caf\xE9")).error_message());
  const tensorflow::Status raw(tensorflow::error::ABORTED, "\xFF\xC3\xA9");
  EXPECT_EQ(tensorflow::error::ABORTED, Printable(raw).code());
  EXPECT_EQ("\\xff\xC3\xA9", Printable(raw).error_message());
  EXPECT_TRUE(Printable(tensorflow::Status::OK()).ok());
}

TEST(StatusTest, NeverReturnsOutOfRange) {
  EXPECT_EQ(tensorflow::error::INVALID_ARGUMENT,
            ToTf(ev::OutOfRange("sample 7 of 3")).code());
}

}  // namespace
}  // namespace embedding_variable
