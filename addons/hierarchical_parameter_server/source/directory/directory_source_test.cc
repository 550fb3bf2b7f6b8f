// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/hierarchical_parameter_server/source/directory/directory_source.h"

#include <unistd.h>

#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "addons/hierarchical_parameter_server/database/testing/child_process.h"
#include "addons/hierarchical_parameter_server/source/directory/update_file.h"
#include "addons/hierarchical_parameter_server/source/testing/made_updates.h"
#include "gtest/gtest.h"

namespace hps {
namespace {

constexpr char kTag[] = "hps_et.m.t";

class DirectorySourceTest : public ::testing::Test {
 protected:
  std::unique_ptr<UpdateProducer> Producer() {
    std::unique_ptr<UpdateProducer> producer;
    const ev::Status status = DirectoryProducer::Open(path_, &producer);
    EXPECT_TRUE(status.ok()) << status.message();
    return producer;
  }
  void Send(int64_t begin, int64_t end, int version,
            const std::string& tag = kTag, int width = 4) {
    const auto producer = Producer();
    const std::vector<int64_t> keys = KeysFrom(begin, end);
    ASSERT_TRUE(
        producer
            ->Send(tag, width, keys, SealedRows(keys, version, width).data())
            .ok());
    const ev::Status status = producer->Flush(1000);
    ASSERT_TRUE(status.ok()) << status.message();
  }
  ev::Status TryOpen(std::unique_ptr<UpdateSource>* source) {
    options_.path = path_;
    return DirectorySource::Open(options_, source);
  }
  std::unique_ptr<UpdateSource> Source() {
    std::unique_ptr<UpdateSource> source;
    const ev::Status status = TryOpen(&source);
    EXPECT_TRUE(status.ok()) << status.message();
    return source;
  }
  // Reads everything available.
  Arrived Drain(UpdateSource* source) {
    Arrived arrived;
    for (;;) {
      std::vector<UpdateBatch> batches;
      const ev::Status status = source->Poll(0, &batches);
      EXPECT_TRUE(status.ok()) << status.message();
      if (batches.empty()) return arrived;
      arrived.Take(batches);
    }
  }

  DirectorySourceTest() { options_.group = "hps.volatile"; }

  const TemporaryFolder folder_;
  const std::string path_ = folder_.path() + "/updates";
  DirectorySourceOptions options_;
};

TEST_F(DirectorySourceTest, GivesWhatWasSentInItsOrder) {
  Send(0, 100, 1);
  Send(50, 150, 2);
  Send(0, 10, 1, "hps_et.m.u", 7);
  const auto source = Source();
  std::vector<UpdateBatch> batches;
  ASSERT_TRUE(source->Poll(0, &batches).ok());
  Arrived arrived;
  arrived.Take(batches);
  EXPECT_TRUE(arrived.Has(kTag, KeysFrom(0, 100), 1));
  EXPECT_EQ(source->statistics().waiting, 2);
  arrived = Drain(source.get());
  EXPECT_EQ(source->statistics().waiting, 0);
  EXPECT_TRUE(arrived.Has(kTag, KeysFrom(50, 150), 2));
  EXPECT_TRUE(arrived.Has("hps_et.m.u", KeysFrom(0, 10), 1));
  EXPECT_EQ(source->statistics().rows, 210);
}

TEST_F(DirectorySourceTest, GoesOnBehindWhatWasCommitted) {
  Send(0, 10, 1);
  Send(10, 20, 1);
  {
    const auto source = Source();
    std::vector<UpdateBatch> batches;
    ASSERT_TRUE(source->Poll(0, &batches).ok());
    ASSERT_TRUE(source->Commit().ok());
    ASSERT_TRUE(source->Poll(0, &batches).ok());  // not committed
  }
  Send(20, 30, 1);
  const auto again = Source();
  Arrived arrived = Drain(again.get());
  EXPECT_TRUE(arrived.Has(kTag, KeysFrom(10, 30), 1));
  ASSERT_TRUE(again->Commit().ok());
  EXPECT_EQ(Drain(Source().get()).num_rows(), 0);
  // Another group reads everything.
  options_.group = "hps.persistent";
  EXPECT_TRUE(Drain(Source().get()).Has(kTag, KeysFrom(0, 30), 1));
}

TEST_F(DirectorySourceTest, OnlyTheModelsThatAFilterNamesAreGiven) {
  Send(0, 10, 1, "hps_et.a.t");
  Send(0, 10, 1, "hps_et.b.t");
  options_.filters = {"b"};
  const auto source = Source();
  const Arrived arrived = Drain(source.get());
  EXPECT_FALSE(arrived.HasTable("hps_et.a.t"));
  EXPECT_TRUE(arrived.Has("hps_et.b.t", KeysFrom(0, 10), 1));
}

TEST_F(DirectorySourceTest, LargeSectionsAreCutIntoBatches) {
  Send(0, 1000, 1);
  options_.max_batch_size = 300;
  const auto source = Source();
  std::vector<UpdateBatch> batches;
  ASSERT_TRUE(source->Poll(0, &batches).ok());
  ASSERT_EQ(batches.size(), 4u);
  EXPECT_EQ(batches[3].keys.size(), 100u);
  Arrived arrived;
  arrived.Take(batches);
  EXPECT_TRUE(arrived.Has(kTag, KeysFrom(0, 1000), 1));
}

TEST_F(DirectorySourceTest, DamagedFilesAreCountedAndLeftOut) {
  Send(0, 10, 1);
  Send(10, 20, 1);
  Send(20, 30, 1);
  std::string bytes;
  const std::string second = path_ + "/" + UpdateFileName(2);
  ASSERT_TRUE(ReadWholeFile(second, &bytes).ok());
  // Every truncation and every changed byte is detected.
  std::vector<UpdateBatch> batches;
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(ReadSections(bytes.substr(0, size), &batches).ok()) << size;
  }
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string changed = bytes;
    changed[i] = static_cast<char>(changed[i] ^ 0x41);
    EXPECT_FALSE(ReadSections(changed, &batches).ok()) << i;
  }
  std::ofstream(second) << bytes.substr(0, bytes.size() - 1);
  const auto source = Source();
  Arrived arrived = Drain(source.get());
  EXPECT_EQ(arrived.num_rows(), 20);
  EXPECT_EQ(source->statistics().malformed, 1);
  EXPECT_NE(source->statistics().last_malformed.find(second),
            std::string::npos);
}

TEST_F(DirectorySourceTest, IncompleteAndForeignFilesAreIgnored) {
  Send(0, 10, 1);
  std::ofstream(path_ + "/.writing.1.1") << "half";
  std::ofstream(path_ + "/notes.txt") << "hello";
  std::ofstream(path_ + "/7.update") << "too short a name";
  const auto source = Source();
  EXPECT_EQ(Drain(source.get()).num_rows(), 10);
  EXPECT_EQ(source->statistics().malformed, 0);
}

TEST_F(DirectorySourceTest, NumbersGoOnWhenFilesWereRemoved) {
  Send(0, 10, 1);
  Send(10, 20, 1);
  const auto source = Source();
  EXPECT_EQ(Drain(source.get()).num_rows(), 20);
  ASSERT_TRUE(source->Commit().ok());
  unlink((path_ + "/" + UpdateFileName(1)).c_str());
  unlink((path_ + "/" + UpdateFileName(2)).c_str());
  EXPECT_EQ(Drain(source.get()).num_rows(), 0);
  Send(20, 30, 1);
  EXPECT_TRUE(Drain(source.get()).Has(kTag, KeysFrom(20, 30), 1));
}

TEST_F(DirectorySourceTest, AFolderThatWasMadeAnewIsAnError) {
  Send(0, 10, 1);
  Send(0, 10, 2);
  const auto source = Source();
  Drain(source.get());
  ASSERT_TRUE(source->Commit().ok());
  for (const std::string& name :
       {UpdateFileName(1), UpdateFileName(2), std::string(kNextNumberFile)}) {
    ASSERT_EQ(unlink((path_ + "/" + name).c_str()), 0);
  }
  Send(0, 10, 3);
  std::unique_ptr<UpdateSource> again;
  const ev::Status status = TryOpen(&again);
  EXPECT_EQ(status.code(), ev::StatusCode::kFailedPrecondition);
  EXPECT_NE(status.message().find(".position.hps.volatile"), std::string::npos);
  std::vector<UpdateBatch> batches;
  EXPECT_FALSE(source->Poll(0, &batches).ok());
}

TEST_F(DirectorySourceTest, WrongOptionsAreErrors) {
  std::unique_ptr<UpdateSource> source;
  EXPECT_EQ(TryOpen(&source).code(), ev::StatusCode::kNotFound);
  Send(0, 1, 1);
  options_.group = "a/b";
  EXPECT_EQ(TryOpen(&source).code(), ev::StatusCode::kInvalidArgument);
  options_.group = "a";
  options_.filters = {"["};
  EXPECT_EQ(TryOpen(&source).code(), ev::StatusCode::kInvalidArgument);
  std::unique_ptr<UpdateProducer> producer;
  EXPECT_FALSE(
      DirectoryProducer::Open(folder_.path() + "/no/folder", &producer).ok());
  const float row[] = {1};
  const std::vector<int64_t> keys = {1};
  EXPECT_EQ(Producer()->Send("no tag", 1, keys, row).code(),
            ev::StatusCode::kInvalidArgument);
  EXPECT_EQ(Producer()->Send(kTag, 0, keys, row).code(),
            ev::StatusCode::kInvalidArgument);
}

// Several processes write at once, and one is killed while it writes.
TEST_F(DirectorySourceTest, ManyProcessesSendWithoutLossOrDamage) {
  { Producer(); }
  constexpr int kProcesses = 3, kFiles = 30;
  std::vector<std::unique_ptr<ChildProcess>> children;
  const auto write_files = [&](int process, int num_files) {
    const auto producer = Producer();
    for (int file = 0; file < num_files; ++file) {
      const int64_t begin = (process * 1000 + file) * 10;
      const std::vector<int64_t> keys = KeysFrom(begin, begin + 10);
      if (!producer->Send(kTag, 4, keys, SealedRows(keys, 1, 4).data()).ok() ||
          !producer->Flush(20000).ok()) {
        return 1;
      }
    }
    return 0;
  };
  for (int process = 0; process < kProcesses; ++process) {
    children.push_back(std::make_unique<ChildProcess>());
    ASSERT_TRUE(children.back()->Fork(
        [&, process] { return write_files(process, kFiles); }));
  }
  ChildProcess killed;
  ASSERT_TRUE(killed.Fork([&] { return write_files(90, 1000000); }));
  const auto source = Source();
  Arrived arrived;
  const auto poll = [&] {
    std::vector<UpdateBatch> batches;
    ASSERT_TRUE(source->Poll(5, &batches).ok());
    for (const UpdateBatch& batch : batches) {
      if (batch.keys[0] < 900000) arrived.Take(batch);
    }
  };
  for (int i = 0; i < 20; ++i) poll();
  killed.Kill();
  for (auto& child : children) EXPECT_EQ(child->Wait(), 0);
  for (int i = 0; i < 2000 && arrived.num_rows() < kProcesses * kFiles * 10;
       ++i) {
    poll();
  }
  std::vector<int64_t> all;
  for (int process = 0; process < kProcesses; ++process) {
    for (const int64_t key :
         KeysFrom(process * 10000, process * 10000 + kFiles * 10)) {
      all.push_back(key);
    }
  }
  EXPECT_TRUE(arrived.Has(kTag, all, 1));
  EXPECT_EQ(source->statistics().malformed, 0);
}

}  // namespace
}  // namespace hps
