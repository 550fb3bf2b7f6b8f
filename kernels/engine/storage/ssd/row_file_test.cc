// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/storage/ssd/row_file.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace ev {
namespace {

std::atomic<int64_t> space_left{0};
bool TakeSpace(int64_t bytes) {
  if (space_left < bytes) return false;
  space_left -= bytes;
  return true;
}

// The parameter: whether reads bypass the page cache.
class RowFileTest : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    const std::string path =
        ::testing::TempDir() + "/file-" + std::to_string(getpid());
    ASSERT_TRUE(RowDirectory::Open(path, "v", &options_.directory).ok());
    options_.direct = GetParam();
    const Status made = RowFile::Create(options_, &file_);
    if (!made.ok() && GetParam()) GTEST_SKIP() << made.message();
    ASSERT_TRUE(made.ok()) << made.message();
  }
  void TearDown() override { RowFile::SetSpaceHookForTesting(nullptr); }

  static std::vector<float> RowOf(int64_t handle, int64_t floats) {
    std::vector<float> row(floats);
    for (int64_t c = 0; c < floats; ++c) row[c] = handle + c * 0.001f;
    return row;
  }
  RecordNumber Append(RowHandle handle, int64_t floats) {
    RecordNumber record = kNoRecord;
    const Status status = file_->Append(
        handle, handle + 1, RowOf(handle, floats).data(), false, &record);
    EXPECT_TRUE(status.ok()) << status.message();
    return record;
  }
  Status ReadOne(RecordNumber record, RowHandle handle,
                 std::vector<float>* row) {
    RecordRead read;
    read.record = record;
    read.handle = handle;
    row->assign(64, -1.0f);
    read.row = row->data();
    file_->Read(Span<RecordRead>(&read, 1));
    row->resize(read.floats);
    return read.status;
  }
  void Damage(int64_t offset) {
    const int fd = open(file_->name().c_str(), O_RDWR);
    char byte = 0;
    ASSERT_EQ(pread(fd, &byte, 1, offset), 1);
    byte ^= 0x10;
    ASSERT_EQ(pwrite(fd, &byte, 1, offset), 1);
    close(fd);
  }

  RowFileOptions options_;
  std::unique_ptr<RowFile> file_;
};

INSTANTIATE_TEST_SUITE_P(Cached, RowFileTest, ::testing::Values(false));
INSTANTIATE_TEST_SUITE_P(Direct, RowFileTest, ::testing::Values(true));

TEST_P(RowFileTest, OnlyItsOwnerMayReadIt) {
  struct stat about;
  ASSERT_EQ(stat(file_->name().c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0600u);
}

TEST_P(RowFileTest, ReadsWhatWasAppended) {
  // Records that fit into a page, that do not, and that need several.
  for (const int64_t floats : {1, 5, 16, 60}) {
    ASSERT_TRUE(file_->SetFloats(floats).ok());
    std::vector<RecordNumber> records;
    for (RowHandle h = 0; h < 3000; ++h) records.push_back(Append(h, floats));
    EXPECT_EQ(file_->live_records(), 3000);
    for (const bool synced : {false, true}) {
      if (synced) {
        ASSERT_TRUE(file_->Sync().ok());
      }
      EXPECT_TRUE(!synced || file_->IsStored(records[0]));
      std::vector<std::vector<float>> rows(3000, std::vector<float>(64));
      std::vector<RecordRead> reads(3000);
      for (RowHandle h = 0; h < 3000; ++h) {
        reads[h].record = records[h];
        reads[h].handle = h;
        reads[h].row = rows[h].data();
      }
      file_->Read(Span<RecordRead>(reads.data(), reads.size()));
      for (RowHandle h = 0; h < 3000; ++h) {
        ASSERT_TRUE(reads[h].status.ok()) << reads[h].status.message();
        ASSERT_EQ(reads[h].floats, floats);
        ASSERT_EQ(reads[h].rank, h + 1);
        rows[h].resize(floats);
        ASSERT_EQ(rows[h], RowOf(h, floats)) << "row " << h;
      }
    }
    file_->Clear();
    EXPECT_EQ(file_->live_records(), 0);
    EXPECT_EQ(file_->file_bytes(), 0);
  }
}

TEST_P(RowFileTest, ManyAtOnceAndByManyThreads) {
  ASSERT_TRUE(file_->SetFloats(16).ok());
  constexpr int kThreads = 4;
  // More segments than may wait to be written. Also, calls with a reservation
  // take the room that other calls saw before they waited.
  constexpr size_t kEach = 12000;
  std::vector<std::vector<float>> rows(kThreads * kEach);
  std::vector<RecordWrite> writes(kThreads * kEach);
  for (size_t i = 0; i < writes.size(); ++i) {
    rows[i] = RowOf(i, 16);
    writes[i].handle = static_cast<RowHandle>(i);
    writes[i].rank = static_cast<uint32_t>(i) + 1;
    writes[i].row = rows[i].data();
  }
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (size_t begin = 0; begin < kEach;) {
        const size_t count = std::min<size_t>(kEach - begin, 1 + begin % 700);
        size_t done = 0;
        const Span<RecordWrite> mine(&writes[t * kEach + begin], count);
        const bool reserves = t % 2 == 0;
        if (reserves) {
          EXPECT_TRUE(file_->Reserve(count).ok());
        }
        EXPECT_TRUE(file_->Append(mine, reserves, &done).ok());
        if (reserves) file_->Unreserve(count);
        EXPECT_EQ(done, count);
        begin += count;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(file_->live_records(), static_cast<int64_t>(writes.size()));
  std::vector<float> row;
  for (const bool synced : {false, true}) {
    if (synced) {
      ASSERT_TRUE(file_->Sync().ok());
    }
    for (size_t i = 0; i < writes.size(); ++i) {
      ASSERT_TRUE(ReadOne(writes[i].record, writes[i].handle, &row).ok());
      ASSERT_EQ(row, rows[i]);
    }
  }
}

TEST_P(RowFileTest, OfManyTheFirstAreAppendedWhenTheDiskIsFull) {
  ASSERT_TRUE(file_->SetFloats(16).ok());
  space_left = 2 * file_->segment_bytes();
  RowFile::SetSpaceHookForTesting(&TakeSpace);
  ASSERT_TRUE(file_->Reserve(10).ok());
  const std::vector<float> from = RowOf(3, 16);
  std::vector<RecordWrite> writes(1000);
  for (RecordWrite& write : writes) write.row = from.data();
  size_t done = 0;
  const Status status = file_->Append(
      Span<RecordWrite>(writes.data(), writes.size()), false, &done);
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  const size_t room = 2 * RecordFormat::Of(16, file_->segment_bytes()).records;
  EXPECT_EQ(done, room - 10);
  std::vector<float> row;
  ASSERT_TRUE(ReadOne(writes[done - 1].record, 0, &row).ok());
  EXPECT_EQ(row, from);
  EXPECT_TRUE(
      file_->Append(Span<RecordWrite>(writes.data(), 10), true, &done).ok());
  file_->Unreserve(10);
}

TEST_P(RowFileTest, RowsOfTwoWidthsLiveSideBySide) {
  ASSERT_TRUE(file_->SetFloats(4).ok());
  const RecordNumber narrow = Append(7, 4);
  ASSERT_TRUE(file_->SetFloats(12).ok());
  const RecordNumber wide = Append(8, 12);
  ASSERT_TRUE(file_->Sync().ok());
  std::vector<float> row;
  ASSERT_TRUE(ReadOne(narrow, 7, &row).ok());
  EXPECT_EQ(row, RowOf(7, 4));
  ASSERT_TRUE(ReadOne(wide, 8, &row).ok());
  EXPECT_EQ(row, RowOf(8, 12));
  EXPECT_EQ(file_->SetFloats(1 << 20).code(), StatusCode::kUnimplemented);
  const RecordNumber after = Append(9, 12);
  ASSERT_TRUE(ReadOne(after, 9, &row).ok());
}

TEST_P(RowFileTest, DeadSegmentsAreUsedAgain) {
  ASSERT_TRUE(file_->SetFloats(16).ok());
  std::vector<RecordNumber> live;
  for (int round = 0; round < 40; ++round) {
    file_->Drop(live);
    live.clear();
    for (RowHandle h = 0; h < 500; ++h) live.push_back(Append(h, 16));
  }
  ASSERT_TRUE(file_->Sync().ok());
  EXPECT_EQ(file_->live_records(), 500);
  EXPECT_LT(file_->file_bytes(), 40 * file_->segment_bytes());
  std::vector<float> row;
  for (RowHandle h = 0; h < 500; ++h) {
    ASSERT_TRUE(ReadOne(live[h], h, &row).ok());
    ASSERT_EQ(row, RowOf(h, 16));
  }
}

TEST_P(RowFileTest, AFullSegmentIsWrittenAtOnce) {
  ASSERT_TRUE(file_->SetFloats(16).ok());
  const std::vector<float> row = RowOf(3, 16);
  for (int segment = 0; segment < 20; ++segment) {
    std::vector<RecordWrite> writes(
        RecordFormat::Of(16, file_->segment_bytes()).records);
    for (RecordWrite& write : writes) write.row = row.data();
    size_t done = 0;
    ASSERT_TRUE(file_
                    ->Append(Span<RecordWrite>(writes.data(), writes.size()),
                             false, &done)
                    .ok());
    // The thread writes it, though no later call wakes the thread.
    for (int tries = 0; tries < 1000; ++tries) {
      if (file_->IsStored(writes[0].record)) break;
      usleep(5000);
    }
    ASSERT_TRUE(file_->IsStored(writes[0].record)) << "segment " << segment;
  }
}

TEST_P(RowFileTest, DeadSegmentsAreGivenBackToTheDisk) {
  ASSERT_TRUE(file_->SetFloats(16).ok());
  constexpr int64_t kSegments = 100;
  const int64_t bytes = file_->segment_bytes();
  const int64_t count =
      kSegments * RecordFormat::Of(16, file_->segment_bytes()).records;
  std::vector<RecordNumber> records;
  for (RowHandle h = 0; h < count; ++h) records.push_back(Append(h, 16));
  ASSERT_TRUE(file_->Sync().ok());
  ASSERT_EQ(file_->file_bytes(), kSegments * bytes);
  struct stat about;
  ASSERT_EQ(stat(file_->name().c_str(), &about), 0);
  const int64_t before = about.st_blocks * 512;
  if (before < kSegments * bytes) GTEST_SKIP() << "blocks are not counted";
  file_->Drop(records);
  ASSERT_EQ(stat(file_->name().c_str(), &about), 0);
  const int64_t given_back = before - about.st_blocks * 512;
  if (given_back == 0) GTEST_SKIP() << "no holes in files";
  // A quarter is kept for the next rows.
  EXPECT_EQ(file_->file_bytes(), (kSegments / 4 + 1) * bytes);
  EXPECT_EQ(given_back, kSegments * bytes - file_->file_bytes());
  // They count again when they are reused.
  records.clear();
  for (RowHandle h = 0; h < count; ++h) records.push_back(Append(h, 16));
  EXPECT_EQ(file_->file_bytes(), kSegments * bytes);
}

TEST_P(RowFileTest, ChangedBytesAreAnErrorThatNamesThePlace) {
  ASSERT_TRUE(file_->SetFloats(16).ok());
  std::vector<RecordNumber> records;
  for (RowHandle h = 0; h < 200; ++h) records.push_back(Append(h, 16));
  ASSERT_TRUE(file_->Sync().ok());
  std::vector<float> row;
  // The header of the second record, and its last float.
  for (const int64_t at : {80 + 5, 160 - 1}) {
    Damage(at);
    const Status status = ReadOne(records[1], 1, &row);
    EXPECT_EQ(status.code(), StatusCode::kDataLoss);
    EXPECT_NE(status.message().find(file_->name() + "' at byte 80"),
              std::string::npos)
        << status.message();
    Damage(at);  // restores the byte
    EXPECT_TRUE(ReadOne(records[1], 1, &row).ok());
  }
  // An intact record of another row.
  EXPECT_EQ(ReadOne(records[1], 2, &row).code(), StatusCode::kDataLoss);
  // A truncated file.
  ASSERT_EQ(truncate(file_->name().c_str(), 100), 0);
  const Status cut = ReadOne(records[150], 150, &row);
  EXPECT_EQ(cut.code(), StatusCode::kDataLoss);
  EXPECT_NE(cut.message().find("shorter"), std::string::npos) << cut.message();
}

TEST_P(RowFileTest, AFullDiskIsReportedBeforeRowsAreTaken) {
  ASSERT_TRUE(file_->SetFloats(16).ok());
  space_left = 3 * file_->segment_bytes();
  RowFile::SetSpaceHookForTesting(&TakeSpace);
  std::vector<RecordNumber> records;
  Status status;
  while (status.ok()) {
    const RowHandle h = static_cast<RowHandle>(records.size());
    RecordNumber record;
    status = file_->Append(h, 0, RowOf(h, 16).data(), false, &record);
    if (status.ok()) records.push_back(record);
  }
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  for (const std::string& part :
       {options_.directory->path(), file_->name(),
        std::to_string(file_->segment_bytes()) + " bytes more",
        std::string("are free"), std::string("No space left")}) {
    EXPECT_NE(status.message().find(part), std::string::npos)
        << status.message();
  }
  EXPECT_GT(records.size(), 100);
  std::vector<float> row;
  for (RowHandle h = 0; h < records.size(); ++h) {
    ASSERT_TRUE(ReadOne(records[h], h, &row).ok());
    ASSERT_EQ(row, RowOf(h, 16));
  }
  EXPECT_EQ(file_->Reserve(1).code(), StatusCode::kResourceExhausted);
  space_left = int64_t{1} << 30;
  Append(1, 16);
}

TEST_P(RowFileTest, ReservedRoomIsUsableWhenTheDiskIsFull) {
  ASSERT_TRUE(file_->SetFloats(16).ok());
  space_left = 4 * file_->segment_bytes();
  RowFile::SetSpaceHookForTesting(&TakeSpace);
  ASSERT_TRUE(file_->Reserve(60).ok());
  RecordNumber record;
  const std::vector<float> row = RowOf(0, 16);
  while (file_->Append(0, 0, row.data(), false, &record).ok()) {
  }
  for (int i = 0; i < 60; ++i) {
    ASSERT_TRUE(file_->Append(0, 0, row.data(), true, &record).ok()) << i;
  }
  file_->Unreserve(60);
}

TEST_P(RowFileTest, AReservationThatFailsKeepsNoRoom) {
  ASSERT_TRUE(file_->SetFloats(16).ok());
  const int64_t room = 2 * RecordFormat::Of(16, file_->segment_bytes()).records;
  space_left = 2 * file_->segment_bytes();
  RowFile::SetSpaceHookForTesting(&TakeSpace);
  EXPECT_EQ(file_->Reserve(room + 1).code(), StatusCode::kResourceExhausted);
  for (RowHandle h = 0; h < room; ++h) Append(h, 16);
  EXPECT_EQ(file_->live_records(), room);
}

TEST_P(RowFileTest, ALimitOfTheSystemIsTheSame) {
  ASSERT_TRUE(file_->SetFloats(16).ok());
  std::signal(SIGXFSZ, SIG_IGN);
  struct rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  struct rlimit small = before;
  small.rlim_cur = 2 * file_->segment_bytes();
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  Status status;
  RecordNumber record;
  int64_t appended = 0;
  while (status.ok() && appended < 100000) {
    status = file_->Append(0, 0, RowOf(0, 16).data(), false, &record);
    ++appended;
  }
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_NE(status.message().find("File too large"), std::string::npos)
      << status.message();
}

TEST_P(RowFileTest, VisitsTheEmptiestSegment) {
  ASSERT_TRUE(file_->SetFloats(16).ok());
  std::vector<RecordNumber> records;
  for (RowHandle h = 0; h < 2000; ++h) records.push_back(Append(h, 16));
  ASSERT_TRUE(file_->Sync().ok());
  bool found = true;
  const auto none = [](const RowFile::Record&) { return Status::OK(); };
  ASSERT_TRUE(file_->Visit(none, &found).ok());
  EXPECT_FALSE(found) << "all are alive";
  EXPECT_FALSE(file_->IsSparse());
  for (RowHandle h = 0; h < 2000; ++h) {
    if (h % 5 != 0) file_->Drop({&records[h], 1});
  }
  EXPECT_TRUE(file_->IsSparse());
  int64_t moved = 0;
  while (file_->IsSparse()) {
    ASSERT_TRUE(file_
                    ->Visit(
                        [&](const RowFile::Record& record) {
                          EXPECT_EQ(records[record.handle], record.number);
                          EXPECT_EQ(
                              std::vector<float>(record.row, record.row + 16),
                              RowOf(record.handle, 16));
                          if (record.handle % 5 != 0) return Status::OK();
                          records[record.handle] = Append(record.handle, 16);
                          file_->Drop({&record.number, 1});
                          ++moved;
                          return Status::OK();
                        },
                        &found)
                    .ok());
    ASSERT_TRUE(found);
  }
  EXPECT_GT(moved, 0);
  EXPECT_EQ(file_->live_records(), 400);
  std::vector<float> row;
  for (RowHandle h = 0; h < 2000; h += 5) {
    ASSERT_TRUE(ReadOne(records[h], h, &row).ok());
    ASSERT_EQ(row, RowOf(h, 16));
  }
}

TEST_P(RowFileTest, ASegmentThatIsCutCannotBeVisited) {
  ASSERT_TRUE(file_->SetFloats(16).ok());
  std::vector<RecordNumber> records;
  for (RowHandle h = 0; h < 200; ++h) records.push_back(Append(h, 16));
  ASSERT_TRUE(file_->Sync().ok());
  file_->Drop({records.data(), 40});
  ASSERT_EQ(truncate(file_->name().c_str(), 0), 0);
  bool found = false;
  const Status status =
      file_->Visit([](const RowFile::Record&) { return Status::OK(); }, &found);
  EXPECT_TRUE(found);
  EXPECT_EQ(status.code(), StatusCode::kDataLoss);
  EXPECT_NE(status.message().find("the file is shorter"), std::string::npos)
      << status.message();
}

TEST_P(RowFileTest, TheFileIsDeletedWithTheObject) {
  const std::string name = file_->name();
  EXPECT_EQ(access(name.c_str(), F_OK), 0);
  file_.reset();
  EXPECT_NE(access(name.c_str(), F_OK), 0);
}

}  // namespace
}  // namespace ev
