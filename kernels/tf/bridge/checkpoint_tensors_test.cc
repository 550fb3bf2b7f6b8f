// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/tf/bridge/checkpoint_tensors.h"

#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/tf/bridge/compat.h"

namespace embedding_variable {
namespace {

using tensorflow::Env;
using tensorflow::Status;

#define ASSERT_OK(expression)          \
  do {                                 \
    const auto status_ = (expression); \
    ASSERT_TRUE(status_.ok());         \
  } while (0)

std::string Prefix() {
  return std::string(::testing::TempDir()) + "/" +
         ::testing::UnitTest::GetInstance()->current_test_info()->name();
}

// Writes a checkpoint with v-keys int64 [3], and w-keys with the same elements.
void WriteKeys() {
  CheckpointWriter writer(Prefix(), 1);
  ASSERT_OK(writer.Open());
  CheckpointTensorWriter tensors(&writer);
  const std::vector<int64_t> keys = {3, -1, 9};
  ASSERT_OK(tensors.Begin(0, "v-keys", ev::ElementType::kInt64, {3}));
  ASSERT_OK(tensors.Append(0, keys.data(), 24));
  ASSERT_OK(tensors.SameAs("w-keys", "v-keys"));
  ASSERT_OK(tensors.Begin(0, "v-values", ev::ElementType::kFloat, {0, 2}));
  ASSERT_OK(writer.Finish());
}

TEST(CheckpointTensorsTest, ReadsWhatItWrote) {
  WriteKeys();
  std::unique_ptr<CheckpointTensorReader> reader;
  ASSERT_OK(CheckpointTensorReader::Open(Prefix(), &reader));
  bool found, same;
  ASSERT_OK(reader->Find("v-keys", &found));
  EXPECT_TRUE(found);
  ASSERT_OK(reader->Find("v-slots", &found));
  EXPECT_FALSE(found);
  ASSERT_OK(reader->SameBytes("v-keys", "w-keys", &same));
  EXPECT_TRUE(same);
  std::unique_ptr<ev::StoredTensor> tensor;
  ASSERT_OK(reader->Open("w-keys", &tensor));
  EXPECT_EQ(tensor->type(), ev::ElementType::kInt64);
  EXPECT_EQ(tensor->shape(), std::vector<int64_t>({3}));
  EXPECT_EQ(tensor->num_elements(), 3);
  EXPECT_EQ(tensor->Description(), "int64 [3]");
  std::vector<int64_t> keys(3);
  ASSERT_OK(tensor->Read(16, keys.data()));
  ASSERT_OK(tensor->Read(8, keys.data() + 2));
  EXPECT_EQ(keys, std::vector<int64_t>({3, -1, 9}));
  ASSERT_OK(reader->Open("v-values", &tensor));
  EXPECT_EQ(tensor->Description(), "float [0,2]");
  EXPECT_EQ(tensor->num_elements(), 0);
  EXPECT_TRUE(reader->Original(ev::Status::OK()).ok());
}

TEST(CheckpointTensorsTest, AnErrorOfTheEngineKeepsItsCode) {
  WriteKeys();
  std::unique_ptr<CheckpointTensorReader> reader;
  ASSERT_OK(CheckpointTensorReader::Open(Prefix(), &reader));
  const Status status = reader->Original(ev::InvalidArgument("no part"));
  EXPECT_EQ(CodeOf(status), tensorflow::error::INVALID_ARGUMENT);
  EXPECT_EQ(MessageOf(status), "no part");
}

TEST(CheckpointTensorsTest, AnErrorOfTheFileIsReturnedAsItCame) {
  WriteKeys();
  std::unique_ptr<CheckpointTensorReader> reader;
  ASSERT_OK(CheckpointTensorReader::Open(Prefix(), &reader));
  std::unique_ptr<ev::StoredTensor> tensor;
  ASSERT_OK(reader->Open("v-keys", &tensor));
  std::vector<int64_t> keys(4);
  const ev::Status read = tensor->Read(32, keys.data());
  EXPECT_EQ(read.code(), ev::StatusCode::kDataLoss);
  EXPECT_FALSE(reader->Open("v-slots", &tensor).ok());
  // The first error, whatever error the engine returns.
  const Status status = reader->Original(ev::Internal("something"));
  EXPECT_EQ(CodeOf(status), tensorflow::error::DATA_LOSS);
  EXPECT_EQ(MessageOf(status), read.message());
}

TEST(CheckpointTensorsTest, AFailedWriteIsReturnedAsItCame) {
  CheckpointWriter writer(Prefix(), 1);
  ASSERT_OK(writer.Open());
  CheckpointTensorWriter tensors(&writer);
  ASSERT_OK(tensors.Begin(0, "v-keys", ev::ElementType::kInt32, {1}));
  const std::vector<int32_t> keys = {3, 4};
  const ev::Status failed = tensors.Append(0, keys.data(), 8);
  EXPECT_EQ(failed.code(), ev::StatusCode::kInternal);
  EXPECT_EQ(tensors.Original(ev::InvalidArgument("x")), writer.status());
  EXPECT_EQ(tensors.Original(ev::Status::OK()), Status());
}

}  // namespace
}  // namespace embedding_variable
