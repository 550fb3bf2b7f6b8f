// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// What the build promises to every engine target.

#include <string>

#include "gtest/gtest.h"

namespace {

TEST(ToolchainTest, EngineIsCpp17) { EXPECT_GE(__cplusplus, 201703L); }

TEST(ToolchainTest, EngineHasTensorFlowsStringAbi) {
#ifdef _GLIBCXX_USE_CXX11_ABI
  // One pointer in the old ABI, which TensorFlow 1.15's wheels have.
  EXPECT_EQ(sizeof(std::string), _GLIBCXX_USE_CXX11_ABI ? 32u : sizeof(void*));
#else
  FAIL() << "the ABI must be set explicitly";
#endif
}

TEST(ToolchainTest, EngineSeesNoTensorFlowHeader) {
#if __has_include("tensorflow/core/framework/op.h")
  FAIL() << "TensorFlow's headers are on the engine's include path";
#endif
}

}  // namespace
