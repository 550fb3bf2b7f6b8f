// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/base/gpu_library.h"

#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace ev {
namespace {

constexpr char kName[] = "libgpu_code.so";
constexpr char kBuild[] = "7-build";

// The type of testing/gpu_library_fitting.cc.
struct FittingLibrary : GpuLibrary {
  int answer;
};

// An op library in the folder of one of the libraries that are made for this
// test; no such file is read.
std::string OpLibraryIn(const std::string& folder) {
  return "kernels/engine/base/testing/" + folder + "/libop.so";
}

std::string TestFolder() {
  std::string folder = testing::TempDir();
  while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
  return folder;
}

bool Contains(const Status& status, const std::string& text) {
  return status.message().find(text) != std::string::npos;
}

TEST(OpenGpuLibraryTest, OpensTheFileBesideTheOpLibrary) {
  const GpuLibrary* library = nullptr;
  const Status status =
      OpenGpuLibrary(OpLibraryIn("fitting"), kName, kBuild, &library);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(42, static_cast<const FittingLibrary*>(library)->answer);
  const GpuLibrary* again = nullptr;
  ASSERT_TRUE(
      OpenGpuLibrary(OpLibraryIn("fitting"), kName, kBuild, &again).ok());
  EXPECT_EQ(library, again);
}

TEST(OpenGpuLibraryTest, AnAbsentFileIsNotFound) {
  for (const std::string& op_library :
       {TestFolder() + "/libop.so", TestFolder() + "/no/libop.so"}) {
    const GpuLibrary* library = nullptr;
    const Status status = OpenGpuLibrary(op_library, kName, kBuild, &library);
    EXPECT_EQ(StatusCode::kNotFound, status.code());
    EXPECT_EQ(op_library.substr(0, op_library.rfind('/') + 1) + kName,
              status.message());
    EXPECT_EQ(nullptr, library);
  }
}

TEST(OpenGpuLibraryTest, AFileThatIsNoLibraryIsTheLoadersError) {
  const std::string folder = TestFolder() + "/broken";
  mkdir(folder.c_str(), 0700);
  const std::string path = folder + "/" + kName;
  std::ofstream(path) << "not a library, though it is longer than a header: "
                      << std::string(100, 'x');
  const GpuLibrary* library = nullptr;
  Status status = OpenGpuLibrary(folder + "/libop.so", kName, kBuild, &library);
  EXPECT_EQ(StatusCode::kInternal, status.code());
  EXPECT_TRUE(Contains(status, "'" + path + "' cannot be loaded: "));
  EXPECT_TRUE(Contains(status, "invalid ELF header")) << status.message();

  chmod(path.c_str(), 0);
  status = OpenGpuLibrary(folder + "/libop.so", kName, kBuild, &library);
  EXPECT_EQ(StatusCode::kInternal, status.code());
  if (geteuid() != 0) {
    EXPECT_TRUE(Contains(status, "Permission denied")) << status.message();
  }
}

TEST(OpenGpuLibraryTest, MessagesArePrintable) {
  const std::string folder = TestFolder() + "/\xff\x01";
  mkdir(folder.c_str(), 0700);
  const GpuLibrary* library = nullptr;
  Status status = OpenGpuLibrary(folder + "/libop.so", kName, kBuild, &library);
  EXPECT_EQ(StatusCode::kNotFound, status.code());
  EXPECT_FALSE(Contains(status, "\xff"));
  std::ofstream(folder + "/" + kName) << "x";
  status = OpenGpuLibrary(folder + "/libop.so", kName, kBuild, &library);
  EXPECT_EQ(StatusCode::kInternal, status.code());
  EXPECT_FALSE(Contains(status, "\xff"));
  EXPECT_FALSE(Contains(status, "\x01"));
}

TEST(OpenGpuLibraryTest, AnotherLibraryHasNoSuchFunction) {
  const GpuLibrary* library = nullptr;
  const Status status =
      OpenGpuLibrary(OpLibraryIn("nameless"), kName, kBuild, &library);
  EXPECT_EQ(StatusCode::kInternal, status.code());
  EXPECT_TRUE(Contains(status, kGpuLibraryFunction)) << status.message();
}

TEST(OpenGpuLibraryTest, AnotherBuildIsRefusedByTheNamesOfBothFiles) {
  const GpuLibrary* library = nullptr;
  const std::string op_library = OpLibraryIn("foreign");
  const Status status = OpenGpuLibrary(op_library, kName, kBuild, &library);
  EXPECT_EQ(StatusCode::kInternal, status.code());
  EXPECT_TRUE(Contains(status, "'" + op_library + "' is of build 7-build"))
      << status.message();
  EXPECT_TRUE(
      Contains(status, "testing/foreign/libgpu_code.so' is of build 6-build"))
      << status.message();
  EXPECT_FALSE(Contains(status, "\xff"));
  EXPECT_EQ(nullptr, library);
}

TEST(FileOfTest, ReturnsAnAbsolutePath) {
  const std::string path = FileOf(reinterpret_cast<const void*>(&OpLibraryIn));
  EXPECT_EQ('/', path[0]) << path;
  EXPECT_NE(std::string::npos, path.find("gpu_library_test")) << path;
}

// The loader that this program registers, and the library that it finds.
std::atomic<int> runs{0};
std::atomic<bool> is_open{false};

Status Load() {
  ++runs;
  const GpuLibrary* library = nullptr;
  const Status status =
      OpenGpuLibrary(OpLibraryIn("fitting"), kName, kBuild, &library);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  is_open = status.ok();
  return status;
}

TEST(LoadGpuLibraryTest, WithoutALoaderReturnsTheReason) {
  const Status status = LoadGpuLibrary("rows need one");
  EXPECT_EQ(StatusCode::kFailedPrecondition, status.code());
  EXPECT_EQ("rows need one", status.message());
}

// In a process of its own, since a process keeps the result.
TEST(LoadGpuLibraryTest, AnAbsentLibraryIsNamed) {
  const auto is_named = [] {
    RegisterGpuLibrary([] { return NotFound("/a/lib.so"); });
    const Status status = LoadGpuLibrary("rows need one");
    return status.code() == StatusCode::kFailedPrecondition &&
           status.message() == "rows need one (there is no /a/lib.so)";
  };
  EXPECT_EXIT(std::exit(is_named() ? 0 : 1), testing::ExitedWithCode(0), "");
}

TEST(LoadGpuLibraryTest, RunsTheLoaderOnceAndAllThreadsWaitForIt) {
  RegisterGpuLibrary(&Load);
  std::vector<std::thread> threads;
  std::atomic<int> good{0};
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&good] {
      if (LoadGpuLibrary("rows need one").ok() && is_open) ++good;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(8, good);
  EXPECT_EQ(1, runs);
}

}  // namespace
}  // namespace ev
