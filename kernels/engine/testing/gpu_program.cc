// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Runs a test program that does not use a test library: argv[1] with the
// arguments after it. Exit code 0 is success; 77 means that it found no GPU.

#include <sys/wait.h>

#include <cstdlib>
#include <string>

#include "gtest/gtest.h"

namespace {

std::string* Command() {
  static std::string* const command = new std::string;
  return command;
}

TEST(GpuProgram, Passes) {
  ASSERT_FALSE(Command()->empty()) << "no program was named";
  const int status = std::system(Command()->c_str());
  ASSERT_TRUE(WIFEXITED(status)) << *Command() << " ended by a signal";
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "no GPU";
  EXPECT_EQ(0, WEXITSTATUS(status)) << *Command();
}

}  // namespace

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i < argc; ++i) {
    *Command() += (i == 1 ? "" : " ") + std::string(argv[i]);
  }
  return RUN_ALL_TESTS();
}
