// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/tf/bridge/status.h"

#include "gtest/gtest.h"

namespace embedding_variable {
namespace {

TEST(StatusTest, OkIsOk) { EXPECT_TRUE(ToTf(ev::Status::OK()).ok()); }

TEST(StatusTest, KeepsCodeAndMessage) {
  const tensorflow::Status status = ToTf(ev::NotFound("no slot"));
  EXPECT_EQ(tensorflow::error::NOT_FOUND, CodeOf(status));
  EXPECT_EQ("no slot", MessageOf(status));
  EXPECT_EQ(tensorflow::error::INVALID_ARGUMENT,
            CodeOf(ToTf(ev::InvalidArgument("x"))));
  EXPECT_EQ(tensorflow::error::FAILED_PRECONDITION,
            CodeOf(ToTf(ev::FailedPrecondition("x"))));
  EXPECT_EQ(tensorflow::error::RESOURCE_EXHAUSTED,
            CodeOf(ToTf(ev::ResourceExhausted("x"))));
  EXPECT_EQ(tensorflow::error::UNIMPLEMENTED,
            CodeOf(ToTf(ev::Unimplemented("x"))));
  EXPECT_EQ(tensorflow::error::INTERNAL, CodeOf(ToTf(ev::Internal("x"))));
  EXPECT_EQ(tensorflow::error::UNAVAILABLE, CodeOf(ToTf(ev::Unavailable("x"))));
  EXPECT_EQ(tensorflow::error::DATA_LOSS,
            CodeOf(ToTf(ev::Status(ev::StatusCode::kDataLoss, "x"))));
}

TEST(StatusTest, ComesBackFromTheEngineAsItWas) {
  EXPECT_TRUE(FromTf(tensorflow::Status()).ok());
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
            FromTf(MakeStatus(tensorflow::error::ABORTED, "x")).code());
}

TEST(StatusTest, MessagesArePrintableUtf8) {
  EXPECT_EQ("no file caf\\xe9",
            MessageOf(ToTf(ev::NotFound("no file caf\xE9"))));
  const tensorflow::Status raw =
      MakeStatus(tensorflow::error::ABORTED, "\xFF\xC3\xA9");
  EXPECT_EQ(tensorflow::error::ABORTED, CodeOf(Printable(raw)));
  EXPECT_EQ("\\xff\xC3\xA9", MessageOf(Printable(raw)));
  EXPECT_TRUE(Printable(tensorflow::Status()).ok());
}

TEST(StatusTest, NeverReturnsOutOfRange) {
  EXPECT_EQ(tensorflow::error::INVALID_ARGUMENT,
            CodeOf(ToTf(ev::OutOfRange("sample 7 of 3"))));
}

}  // namespace
}  // namespace embedding_variable
