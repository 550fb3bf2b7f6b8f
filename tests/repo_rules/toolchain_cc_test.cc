// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Compiler settings that every engine target relies on.

#include <string>

#include "gtest/gtest.h"

namespace {

TEST(ToolchainTest, EngineIsCpp17) { EXPECT_GE(__cplusplus, 201703L); }

TEST(ToolchainTest, EngineHasTensorFlowsStringAbi) {
#ifdef _GLIBCXX_USE_CXX11_ABI
  // One pointer in the old ABI, with which TensorFlow 1.15's wheels are built.
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
