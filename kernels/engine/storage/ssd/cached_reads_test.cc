// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/storage/ssd/cached_reads.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace ev {
namespace {

using Found = CachedReads::Found;

class CachedReadsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    name_ = ::testing::TempDir() + "/cached-" + std::to_string(getpid());
    fd_ = open(name_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ASSERT_GE(fd_, 0);
    reads_.reset(new CachedReads(fd_));
  }
  void TearDown() override {
    reads_.reset();
    close(fd_);
    unlink(name_.c_str());
  }

  static char ByteAt(int64_t offset) {
    return static_cast<char>(offset * 31 + offset / 4096);
  }
  void Fill(int64_t begin, int64_t end) {
    std::vector<char> bytes(end - begin);
    for (int64_t i = begin; i < end; ++i) bytes[i - begin] = ByteAt(i);
    ASSERT_EQ(pwrite(fd_, bytes.data(), bytes.size(), begin),
              static_cast<ssize_t>(bytes.size()));
  }
  // Returns which pieces were found; compares the contents of those that were
  // read.
  std::vector<Found> Read(const std::vector<int64_t>& offsets, size_t bytes) {
    std::vector<Found> found(offsets.size(), Found::kAbsent);
    std::vector<bool> used(offsets.size());
    reads_->Read(offsets, bytes, found.data(), [&](size_t i, const char* data) {
      EXPECT_FALSE(used[i]);
      used[i] = true;
      for (size_t b = 0; b < bytes; ++b) {
        ASSERT_EQ(data[b], ByteAt(offsets[i] + static_cast<int64_t>(b)))
            << "piece " << i << " at " << offsets[i] << ", byte " << b;
      }
    });
    for (size_t i = 0; i < offsets.size(); ++i) {
      EXPECT_EQ(used[i], found[i] == Found::kRead) << i;
    }
    return found;
  }

  std::string name_;
  int fd_ = -1;
  std::unique_ptr<CachedReads> reads_;
};

TEST_F(CachedReadsTest, ReadsWhatWasWritten) {
  Fill(0, 1 << 20);
  for (const size_t bytes : {1, 528, 4096, 70000}) {
    std::vector<int64_t> offsets;
    for (int64_t i = 0; i < 1000; ++i) {
      offsets.push_back(i * 7919 % ((1 << 20) - static_cast<int64_t>(bytes)));
    }
    for (const Found found : Read(offsets, bytes)) {
      EXPECT_EQ(found, Found::kRead);
    }
  }
  EXPECT_TRUE(Read({}, 528).empty());
}

TEST_F(CachedReadsTest, SeesWhatIsWrittenLater) {
  Fill(0, 8192);
  EXPECT_EQ(Read({0}, 528)[0], Found::kRead);
  const std::vector<char> zeros(8192, 0);
  ASSERT_EQ(pwrite(fd_, zeros.data(), 8192, 0), 8192);
  Fill(0, 16384);  // also where the file did not reach before
  EXPECT_EQ(Read({0, 12000}, 528), (std::vector<Found>(2, Found::kRead)));
}

// If the processor read the mapping itself, it would get a SIGBUS.
TEST_F(CachedReadsTest, APieceBeyondTheEndIsNotRead) {
  Fill(0, 65536);
  EXPECT_EQ(Read({60000}, 528)[0], Found::kRead);
  ASSERT_EQ(ftruncate(fd_, 4096), 0);
  for (const bool asks : {true, false}) {
    if (!asks) {  // enough pieces to stop querying
      for (int i = 0; i < 70; ++i) Read(std::vector<int64_t>(1000, 100), 528);
    }
    const std::vector<Found> found = Read({100, 60000, 200}, 528);
    EXPECT_EQ(found[0], Found::kRead);
    EXPECT_NE(found[1], Found::kRead);
  }
}

TEST_F(CachedReadsTest, ReportsAbsentPieces) {
  Fill(0, 1 << 20);
  ASSERT_EQ(fsync(fd_), 0);
  ASSERT_EQ(posix_fadvise(fd_, 0, 0, POSIX_FADV_DONTNEED), 0);
  const std::vector<Found> found = Read({0, 1 << 19, 8192}, 528);
  if (found[0] == Found::kRead) GTEST_SKIP() << "pages stay in the page cache";
  EXPECT_EQ(found, (std::vector<Found>(3, Found::kAbsent)));
  char byte;
  ASSERT_EQ(pread(fd_, &byte, 1, 0), 1);
  EXPECT_EQ(Read({0}, 528)[0], Found::kRead);
}

// An absent piece that was not queried is waited for; after that pieces are
// queried again.
TEST_F(CachedReadsTest, QueriesAgainAfterAWait) {
  Fill(0, 8 << 20);
  for (int i = 0; i < 70; ++i) Read(std::vector<int64_t>(1000, 100), 528);
  ASSERT_EQ(fsync(fd_), 0);
  ASSERT_EQ(posix_fadvise(fd_, 0, 0, POSIX_FADV_DONTNEED), 0);
  struct rusage before, after;
  getrusage(RUSAGE_THREAD, &before);
  EXPECT_EQ(Read({4 << 20}, 528)[0], Found::kRead);
  getrusage(RUSAGE_THREAD, &after);
  if (after.ru_majflt == before.ru_majflt) {
    GTEST_SKIP() << "pages stay in the page cache";
  }
  // The system may have kept some pages, or read ahead.
  for (int64_t at = 5 << 20; at < 8 << 20; at += 1 << 18) {
    char byte;
    const struct iovec piece = {&byte, 1};
    if (preadv2(fd_, &piece, 1, at, RWF_NOWAIT) == 1) continue;
    EXPECT_EQ(Read({at}, 528)[0], Found::kAbsent);
    return;
  }
  GTEST_SKIP() << "pages stay in the page cache";
}

// Pieces beyond the end are never in the page cache.
TEST_F(CachedReadsTest, QueriesWhileManyAreAbsent) {
  Fill(0, 4096);
  const auto read_many = [&](int64_t offset) {
    for (int i = 0; i < 70; ++i) Read(std::vector<int64_t>(1000, offset), 8);
  };
  EXPECT_EQ(Read({100, 1 << 20, 200}, 8),
            (std::vector<Found>{Found::kRead, Found::kAbsent, Found::kRead}));
  read_many(1 << 20);
  EXPECT_EQ(Read({1 << 20}, 8)[0], Found::kAbsent);
  // The first of these still count some of the earlier absent pieces.
  read_many(100);
  read_many(100);
  EXPECT_EQ(Read({1 << 20}, 8)[0], Found::kUnknown);
}

TEST_F(CachedReadsTest, WithoutAddressSpaceNothingIsRead) {
  Fill(0, 65536);
  struct rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  struct rlimit tight = before;
  tight.rlim_cur = 512 << 20;
  ASSERT_EQ(setrlimit(RLIMIT_AS, &tight), 0);
  const std::vector<Found> found = Read({0, 4096}, 528);
  ASSERT_EQ(setrlimit(RLIMIT_AS, &before), 0);
  EXPECT_EQ(found, (std::vector<Found>(2, Found::kUnknown)));
}

TEST_F(CachedReadsTest, AcrossTwoWindows) {
  const int64_t gib = int64_t{1} << 30;
  Fill(gib - 8192, gib + 8192);
  const std::vector<Found> found = Read({gib - 1000, gib - 100, gib}, 528);
  EXPECT_EQ(found[0], Found::kRead);
  EXPECT_EQ(found[1], Found::kUnknown);
  EXPECT_EQ(found[2], Found::kRead);
}

TEST_F(CachedReadsTest, ManyThreads) {
  Fill(0, 4 << 20);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int round = 0; round < 20; ++round) {
        std::vector<int64_t> offsets;
        for (int64_t i = 0; i < 300; ++i) {
          offsets.push_back((i * 104729 + t * 977 + round) % (4 << 20) / 2);
        }
        for (const Found found : Read(offsets, 528)) {
          ASSERT_EQ(found, Found::kRead);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace ev
