// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/tf/bridge/checkpoint_writer.h"

#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/tf/bridge/checkpoint_reader.h"
#include "kernels/tf/bridge/compat.h"

namespace embedding_variable {
namespace {

using tensorflow::DT_FLOAT;
using tensorflow::DT_INT64;
using tensorflow::Env;
using tensorflow::Status;
using tensorflow::TensorShape;

#define ASSERT_OK(expression)             \
  do {                                    \
    const Status status_ = (expression);  \
    ASSERT_TRUE(status_.ok()) << status_; \
  } while (0)

class CheckpointWriterTest : public ::testing::Test {
 protected:
  static std::string Prefix() {
    return std::string(::testing::TempDir()) + "/" +
           ::testing::UnitTest::GetInstance()->current_test_info()->name() +
           "/deep/model.ckpt";
  }
  static bool Exists(const char* suffix) {
    return Env::Default()->FileExists(Prefix() + suffix).ok();
  }
};

TEST_F(CheckpointWriterTest, WhatIsWrittenInPiecesIsReadBack) {
  CheckpointWriter writer(Prefix(), 1);
  ASSERT_OK(writer.Open());
  const std::vector<tensorflow::int64> keys = {3, -1, 9};
  ASSERT_OK(writer.Begin(0, "z-keys", DT_INT64, TensorShape({3})));
  ASSERT_OK(writer.Append(0, keys.data(), 8));
  ASSERT_OK(writer.Append(0, keys.data() + 1, 16));
  const std::vector<float> rows = {1, 2, 3, 4};
  ASSERT_OK(writer.Begin(0, "a-values", DT_FLOAT, TensorShape({2, 2})));
  ASSERT_OK(writer.Append(0, rows.data(), 16));
  ASSERT_OK(writer.Begin(0, "empty", DT_INT64, TensorShape({0})));
  ASSERT_OK(writer.SameAs("a-keys", "z-keys"));
  EXPECT_FALSE(Exists(".index"));
  ASSERT_OK(writer.Finish());

  std::unique_ptr<CheckpointReader> reader;
  ASSERT_OK(CheckpointReader::Open(Prefix(), &reader));
  for (const char* name : {"z-keys", "a-keys"}) {
    std::unique_ptr<TensorStream> stream;
    ASSERT_OK(reader->Open(name, &stream));
    EXPECT_EQ(stream->dtype(), DT_INT64);
    EXPECT_EQ(stream->shape(), TensorShape({3}));
    std::vector<tensorflow::int64> found(3);
    ASSERT_OK(stream->Read(24, found.data()));
    EXPECT_EQ(found, keys);
  }
  std::unique_ptr<TensorStream> stream;
  ASSERT_OK(reader->Open("a-values", &stream));
  std::vector<float> found(4);
  ASSERT_OK(stream->Read(16, found.data()));
  EXPECT_EQ(found, rows);
  ASSERT_OK(reader->Open("empty", &stream));
  ASSERT_OK(stream->Read(0, nullptr));
}

TEST_F(CheckpointWriterTest, StreamsAreWrittenSideBySide) {
  CheckpointWriter writer(Prefix(), 2);
  ASSERT_OK(writer.Open());
  const std::vector<tensorflow::int64> keys = {3, -1, 9};
  const std::vector<float> rows = {1, 2, 3};
  ASSERT_OK(writer.Begin(0, "before", DT_INT64, TensorShape({1})));
  ASSERT_OK(writer.Append(0, keys.data(), 8));
  ASSERT_OK(writer.Begin(0, "keys", DT_INT64, TensorShape({3})));
  ASSERT_OK(writer.Begin(1, "values", DT_FLOAT, TensorShape({3})));
  for (int i = 0; i < 3; ++i) {
    ASSERT_OK(writer.Append(0, keys.data() + i, 8));
    ASSERT_OK(writer.Append(1, rows.data() + i, 4));
  }
  ASSERT_OK(writer.Begin(1, "after", DT_FLOAT, TensorShape({0})));
  ASSERT_OK(writer.SameAs("twin", "values"));
  ASSERT_OK(writer.Finish());
  EXPECT_TRUE(Exists(".data-00000-of-00002"));
  EXPECT_TRUE(Exists(".data-00001-of-00002"));

  std::unique_ptr<CheckpointReader> reader;
  ASSERT_OK(CheckpointReader::Open(Prefix(), &reader));
  std::unique_ptr<TensorStream> stream;
  ASSERT_OK(reader->Open("keys", &stream));
  std::vector<tensorflow::int64> found_keys(3);
  ASSERT_OK(stream->Read(24, found_keys.data()));
  EXPECT_EQ(found_keys, keys);
  for (const char* name : {"values", "twin"}) {
    ASSERT_OK(reader->Open(name, &stream));
    std::vector<float> found(3);
    ASSERT_OK(stream->Read(12, found.data()));
    EXPECT_EQ(found, rows);
  }
}

TEST_F(CheckpointWriterTest, ATwinOfAnUnfinishedTensor) {
  CheckpointWriter writer(Prefix(), 1);
  ASSERT_OK(writer.Open());
  ASSERT_OK(writer.Begin(0, "x", DT_FLOAT, TensorShape({1})));
  EXPECT_EQ(CodeOf(writer.SameAs("twin", "x")), tensorflow::error::INTERNAL);
}

TEST_F(CheckpointWriterTest, LeavesNothingUnlessFinished) {
  {
    CheckpointWriter writer(Prefix(), 1);
    ASSERT_OK(writer.Open());
    ASSERT_OK(writer.Begin(0, "x", DT_FLOAT, TensorShape({1})));
    EXPECT_TRUE(Exists(".data-00000-of-00001"));
    // An incomplete tensor. Errors are permanent.
    EXPECT_EQ(CodeOf(writer.Finish()), tensorflow::error::INTERNAL);
    EXPECT_EQ(CodeOf(writer.Finish()), tensorflow::error::INTERNAL);
  }
  EXPECT_FALSE(Exists(".data-00000-of-00001"));
  EXPECT_FALSE(Exists(".index"));
}

TEST_F(CheckpointWriterTest, ReportsErrors) {
  CheckpointWriter twice(Prefix(), 1);
  ASSERT_OK(twice.Open());
  ASSERT_OK(twice.Begin(0, "x", DT_FLOAT, TensorShape({0})));
  EXPECT_EQ(twice.Begin(0, "x", DT_FLOAT, TensorShape({0})).code(),
            tensorflow::error::INVALID_ARGUMENT);
  CheckpointWriter longer(Prefix(), 1);
  ASSERT_OK(longer.Open());
  ASSERT_OK(longer.Begin(0, "x", DT_FLOAT, TensorShape({1})));
  EXPECT_EQ(CodeOf(longer.Append(0, "12345", 5)), tensorflow::error::INTERNAL);
  // The folder's path is a file.
  CheckpointWriter blocked("/dev/null/model.ckpt", 1);
  const Status status = blocked.Open();
  EXPECT_FALSE(status.ok());
  EXPECT_NE(MessageOf(status).find("/dev/null/model.ckpt.data-00000"),
            std::string::npos)
      << status;
}

TEST_F(CheckpointWriterTest, ReportsAFullDisk) {
  if (!Env::Default()->FileExists("/dev/full").ok()) GTEST_SKIP();
  ASSERT_OK(Env::Default()->RecursivelyCreateDir(Prefix()));
  const std::string prefix = Prefix() + "/full";
  ASSERT_EQ(0, symlink("/dev/full", (prefix + ".data-00000-of-00001").c_str()));
  CheckpointWriter writer(prefix, 1);
  ASSERT_OK(writer.Open());
  const std::vector<float> rows(1 << 20);
  ASSERT_OK(writer.Begin(0, "x", DT_FLOAT, TensorShape({1 << 20})));
  writer.Append(0, rows.data(), rows.size() * sizeof(float)).IgnoreError();
  const Status status = writer.Finish();
  EXPECT_EQ(CodeOf(status), tensorflow::error::RESOURCE_EXHAUSTED) << status;
  EXPECT_NE(MessageOf(status).find("full.data-00000-of-00001"),
            std::string::npos);
}

}  // namespace
}  // namespace embedding_variable
