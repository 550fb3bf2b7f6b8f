// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/storage/ssd/row_directory.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <memory>
#include <string>

#include "gtest/gtest.h"

namespace ev {
namespace {

using ::testing::TempDir;

class RowDirectoryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ = TempDir() + "/directory-" + std::to_string(getpid()) + "-" +
            ::testing::UnitTest::GetInstance()->current_test_info()->name();
  }
  void Write(const std::string& name) {
    std::ofstream(path_ + "/" + name) << "something";
  }
  bool Exists(const std::string& name) {
    return access((path_ + "/" + name).c_str(), F_OK) == 0;
  }

  std::string path_;
  std::shared_ptr<RowDirectory> directory_;
};

void ExpectHas(const Status& status, const std::string& part) {
  EXPECT_NE(status.message().find(part), std::string::npos)
      << status.message() << "\nlacks " << part;
}

TEST_F(RowDirectoryTest, CreatesItsParents) {
  path_ += "/a/b";
  ASSERT_TRUE(RowDirectory::Open(path_, "v", &directory_).ok());
  EXPECT_TRUE(Exists("LOCK"));
  EXPECT_NE(directory_->NewFile(), directory_->NewFile());
  EXPECT_EQ(directory_->NewFile().find(directory_->path() + "/rows-"), 0);
}

TEST_F(RowDirectoryTest, TwoTablesOnOnePathAreBothNamed) {
  ASSERT_TRUE(RowDirectory::Open(path_, "users", &directory_).ok());
  std::shared_ptr<RowDirectory> other;
  const Status status = RowDirectory::Open(path_ + "/.", "items", &other);
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  ExpectHas(status, "'users'");
  ExpectHas(status, "'items'");
  ExpectHas(status, path_);
  directory_.reset();
  EXPECT_TRUE(RowDirectory::Open(path_, "items", &other).ok());
}

TEST_F(RowDirectoryTest, OneTableOfTwoSessionsSharesIt) {
  ASSERT_TRUE(RowDirectory::Open(path_, "users", &directory_).ok());
  std::shared_ptr<RowDirectory> other;
  ASSERT_TRUE(RowDirectory::Open(path_, "users", &other).ok());
  EXPECT_EQ(other, directory_);
}

TEST_F(RowDirectoryTest, TheTargetOfALinkIsNotChanged) {
  ASSERT_EQ(mkdir(path_.c_str(), 0777), 0);
  Write("precious");
  const std::string lock = path_ + "/LOCK", target = path_ + "/precious";
  ASSERT_EQ(symlink(target.c_str(), lock.c_str()), 0);
  const Status status = RowDirectory::Open(path_, "users", &directory_);
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  ExpectHas(status, "opening its file LOCK");
  std::string text;
  std::ifstream(target) >> text;
  EXPECT_EQ(text, "something");
  ASSERT_EQ(unlink(lock.c_str()), 0);
  EXPECT_TRUE(RowDirectory::Open(path_, "users", &directory_).ok());
}

TEST_F(RowDirectoryTest, OnlyItsOwnerMayReadTheLock) {
  ASSERT_TRUE(RowDirectory::Open(path_, "users", &directory_).ok());
  struct stat about;
  ASSERT_EQ(stat((path_ + "/LOCK").c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0600u);
}

TEST_F(RowDirectoryTest, AnotherProcessIsNamed) {
  int ready[2], leave[2];
  ASSERT_EQ(pipe(ready), 0);
  ASSERT_EQ(pipe(leave), 0);
  const pid_t child = fork();
  if (child == 0) {
    const bool ok = RowDirectory::Open(path_, "users", &directory_).ok();
    char c = ok ? 'y' : 'n';
    if (write(ready[1], &c, 1) != 1 || read(leave[0], &c, 1) != 1) _exit(2);
    _exit(0);
  }
  char c = 0;
  ASSERT_EQ(read(ready[0], &c, 1), 1);
  ASSERT_EQ(c, 'y');
  const Status status = RowDirectory::Open(path_, "items", &directory_);
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  ExpectHas(status, "'users' of process " + std::to_string(child));
  ExpectHas(status, "'items' of process " + std::to_string(getpid()));
  ASSERT_EQ(write(leave[1], &c, 1), 1);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  // The process ended without cleaning up, and holds no lock.
  EXPECT_TRUE(RowDirectory::Open(path_, "items", &directory_).ok());
}

TEST_F(RowDirectoryTest, AForkedProcessKeepsNoLock) {
  int ready[2], leave[2];
  ASSERT_EQ(pipe(ready), 0);
  ASSERT_EQ(pipe(leave), 0);
  ASSERT_TRUE(RowDirectory::Open(path_, "users", &directory_).ok());
  const pid_t child = fork();
  if (child == 0) {
    char c = 'y';
    if (write(ready[1], &c, 1) != 1 || read(leave[0], &c, 1) != 1) _exit(2);
    _exit(0);
  }
  char c = 0;
  ASSERT_EQ(read(ready[0], &c, 1), 1);
  EXPECT_FALSE(RowDirectory::Open(path_, "items", &directory_).ok());
  directory_.reset();
  const Status status = RowDirectory::Open(path_, "items", &directory_);
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(write(leave[1], "x", 1), 1);
  int result = -1;
  EXPECT_EQ(waitpid(child, &result, 0), child);
  EXPECT_EQ(result, 0);
}

TEST_F(RowDirectoryTest, WhatADeadProcessLeftIsDeletedAndNothingElse) {
  ASSERT_EQ(mkdir(path_.c_str(), 0777), 0);
  Write("rows-1-0.evrows");
  Write("rows-1-1.evrows");
  Write("rows-of-mine.txt");
  Write("LOCK");
  ASSERT_TRUE(RowDirectory::Open(path_, "users", &directory_).ok());
  EXPECT_EQ(directory_->stale_files(), 2);
  EXPECT_FALSE(Exists("rows-1-0.evrows"));
  EXPECT_FALSE(Exists("rows-1-1.evrows"));
  EXPECT_TRUE(Exists("rows-of-mine.txt"));
}

TEST_F(RowDirectoryTest, APathThatCannotBeUsedIsNamed) {
  std::ofstream(path_) << "a file";
  Status status = RowDirectory::Open(path_, "v", &directory_);
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  ExpectHas(status, path_);
  status = RowDirectory::Open("/proc/self/rows", "v", &directory_);
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  ExpectHas(status, "/proc/self/rows");
  EXPECT_FALSE(RowDirectory::Open("", "v", &directory_).ok());
}

TEST_F(RowDirectoryTest, AReadOnlyDirectoryIsAnError) {
  // Not even root can create a file in it.
  const Status status = RowDirectory::Open("/sys/kernel", "v", &directory_);
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  ExpectHas(status, "/sys/kernel");
}

}  // namespace
}  // namespace ev
