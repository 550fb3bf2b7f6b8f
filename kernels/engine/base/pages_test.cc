// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/base/pages.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <limits>

#include "gtest/gtest.h"

namespace ev {
namespace {

TEST(PagesTest, AlignedAndZeroed) {
  for (size_t bytes : {size_t{1}, size_t{5000}, kHugePage, kHugePage + 1,
                       3 * kHugePage + 4096}) {
    for (PageKind kind : {PageKind::kSmall, PageKind::kHuge}) {
      char* memory = static_cast<char*>(MapPages(bytes, kind));
      ASSERT_NE(memory, nullptr);
      const uintptr_t address = reinterpret_cast<uintptr_t>(memory);
      EXPECT_EQ(address % (bytes >= kHugePage ? kHugePage : kSmallPage), 0u);
      for (size_t i = 0; i < bytes; i += 512) {
        ASSERT_EQ(memory[i], 0);
        memory[i] = 1;
      }
      memory[bytes - 1] = 1;
      if (kind == PageKind::kSmall) MakeHuge(memory, bytes);
      EXPECT_EQ(memory[bytes - 1], 1);
      UnmapPages(memory, bytes);
    }
    char* lines = static_cast<char*>(AllocateLines(bytes));
    ASSERT_NE(lines, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(lines) % kCacheLine, 0u);
    for (size_t i = 0; i < bytes; ++i) ASSERT_EQ(lines[i], 0);
    std::memset(lines, 1, bytes);
    FreeLines(lines, bytes);
  }
}

TEST(PagesTest, TooMuchIsNull) {
  EXPECT_EQ(MapPages(std::numeric_limits<size_t>::max(), PageKind::kHuge),
            nullptr);
  EXPECT_EQ(MapPages(size_t{1} << 62, PageKind::kSmall), nullptr);
  EXPECT_EQ(AllocateLines(size_t{1} << 62), nullptr);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// The system itself refuses, in a child process that lowers its memory limit.
TEST(PagesTest, TheSystemsLimitIsNull) {
  const pid_t child = fork();
  if (child == 0) {
    const rlimit limit = {1 << 20, 1 << 20};
    setrlimit(RLIMIT_AS, &limit);
    const bool ok = MapPages(64 << 20, PageKind::kHuge) == nullptr;
    _exit(ok ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}
#endif

TEST(PagesTest, HookFails) {
  SetAllocationHookForTesting([](size_t bytes) { return bytes < 100; });
  EXPECT_EQ(MapPages(4096, PageKind::kSmall), nullptr);
  EXPECT_EQ(AllocateLines(100), nullptr);
  void* small = AllocateLines(64);
  EXPECT_NE(small, nullptr);
  SetAllocationHookForTesting(nullptr);
  FreeLines(small, 64);
}

}  // namespace
}  // namespace ev
