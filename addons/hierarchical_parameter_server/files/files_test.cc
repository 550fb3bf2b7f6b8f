// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "addons/hierarchical_parameter_server/files/table_directory.h"
#include "addons/hierarchical_parameter_server/files/table_index.h"
#include "addons/hierarchical_parameter_server/files/table_sums.h"
#include "gtest/gtest.h"
#include "kernels/engine/base/parallel.h"

namespace hps {
namespace {

class FilesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string made = ::testing::TempDir() + "/filesXXXXXX";
    ASSERT_NE(mkdtemp(&made[0]), nullptr);
    folder_ = made;
  }
  // Writes a new file: another process may have mapped the old one.
  void Write(const std::string& name, const void* data, size_t bytes) {
    const std::string path = folder_ + "/" + name;
    unlink(path.c_str());
    std::ofstream file(path, std::ios::binary);
    file.write(static_cast<const char*>(data), bytes);
  }
  void WriteTable(const std::vector<int64_t>& keys, int width) {
    std::vector<float> rows;
    for (size_t i = 0; i < keys.size() * width; ++i) rows.push_back(0.5f * i);
    Write("key", keys.data(), keys.size() * 8);
    Write("emb_vector", rows.data(), rows.size() * 4);
  }
  std::unique_ptr<TableDirectory> Open(int width) {
    std::unique_ptr<TableDirectory> directory;
    const ev::Status status = TableDirectory::Open(folder_, width, &directory);
    EXPECT_TRUE(status.ok()) << status.message();
    return directory;
  }
  std::unique_ptr<TableIndex> Index(const TableDirectory& directory,
                                    KeyBits bits = KeyBits::k64) {
    std::unique_ptr<TableIndex> index;
    const ev::Status status = TableIndex::Open(directory, bits, &index, &note_);
    EXPECT_TRUE(status.ok()) << status.message();
    return index;
  }
  static int64_t Find(const TableIndex& index, int64_t key) {
    return index.Find(key, index.BucketOf(key));
  }
  std::string Read(const std::string& name) {
    std::ifstream file(folder_ + "/" + name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  // Writes bytes into a file that stays the same inode.
  void Overwrite(const std::string& name, int64_t at, const std::string& data) {
    const int file = open((folder_ + "/" + name).c_str(), O_WRONLY);
    ASSERT_EQ(pwrite(file, data.data(), data.size(), at),
              static_cast<ssize_t>(data.size()));
    close(file);
  }
  static std::string SumsOf(const std::string& data) {
    std::string digits;
    for (size_t at = 0; at < data.size(); at += 1 << 20) {
      char text[9];
      std::snprintf(text, sizeof(text), "%08x",
                    Crc32(data.data() + at,
                          std::min<int64_t>(1 << 20, data.size() - at)));
      digits += text;
    }
    return "{\"bytes\": " + std::to_string(data.size()) +
           ", \"crc32_of_mib\": \"" + digits + "\"}";
  }
  void WriteSums(const std::string& name, const std::string& key,
                 const std::string& rows) {
    const std::string text = "{\"files\": {\"key\": " + SumsOf(key) +
                             ", \"emb_vector\": " + SumsOf(rows) + "}}";
    Write(name, text.data(), text.size());
  }
  std::string folder_, note_;
};

TEST_F(FilesTest, SizesAreComparedAndTheFileIsNamed) {
  std::unique_ptr<TableDirectory> directory;
  ev::Status status = TableDirectory::Open(folder_, 2, &directory);
  EXPECT_EQ(status.code(), ev::StatusCode::kNotFound);
  EXPECT_NE(status.message().find(folder_ + "/key"), std::string::npos);
  WriteTable({1, 2, 3}, 2);
  EXPECT_EQ(Open(2)->rows(), 3);
  status = TableDirectory::Open(folder_, 4, &directory);
  EXPECT_EQ(status.code(), ev::StatusCode::kInvalidArgument);
  for (const char* part : {"/emb_vector", "3 keys", "48 bytes", "got 24"}) {
    EXPECT_NE(status.message().find(part), std::string::npos)
        << status.message();
  }
  const char bytes[12] = {0};
  Write("key", bytes, 12);
  EXPECT_NE(TableDirectory::Open(folder_, 2, &directory)
                .message()
                .find("got 12 bytes"),
            std::string::npos);
  Write("key", bytes, 0);
  EXPECT_FALSE(TableDirectory::Open(folder_, 2, &directory).ok());
}

TEST_F(FilesTest, EveryKeyIsFoundTheLastOfARepeatedOne) {
  std::vector<int64_t> keys = {INT64_MAX, INT64_MIN, -1, 0, 5, 5, -1};
  for (int64_t i = 0; i < 50000; ++i) keys.push_back(i * 1000003 + 17);
  WriteTable(keys, 1);
  const auto directory = Open(1);
  const auto index = Index(*directory);
  EXPECT_FALSE(index->found());
  std::map<int64_t, int64_t> oracle;
  for (size_t i = 0; i < keys.size(); ++i) oracle[keys[i]] = i;
  EXPECT_EQ(index->distinct(), static_cast<int64_t>(oracle.size()));
  for (const auto& entry : oracle) {
    ASSERT_EQ(Find(*index, entry.first), entry.second);
  }
  for (int64_t key : {int64_t{1}, INT64_MAX - 1, INT64_MIN + 1, int64_t{-2}}) {
    EXPECT_EQ(Find(*index, key), -1);
  }
  EXPECT_LE(static_cast<double>(index->bytes()) / keys.size(), 15.2);
}

TEST_F(FilesTest, TheIndexIsFoundAgainAndAStaleOneIsMadeAnew) {
  WriteTable({10, 20, 30}, 2);
  auto directory = Open(2);
  EXPECT_FALSE(Index(*directory)->found());
  EXPECT_EQ(note_, "");
  EXPECT_TRUE(Index(*directory)->found());
  // A copy of the folder has new times and the same keys.
  WriteTable({10, 20, 30}, 2);
  directory = Open(2);
  EXPECT_TRUE(Index(*directory)->found());
  // The same size with other keys.
  WriteTable({10, 21, 30}, 2);
  directory = Open(2);
  auto index = Index(*directory);
  EXPECT_FALSE(index->found());
  EXPECT_EQ(Find(*index, 20), -1);
  EXPECT_EQ(Find(*index, 21), 1);
  // Damage: a truncated file, then an invalid header.
  index.reset();
  ASSERT_EQ(truncate((folder_ + "/hps_index").c_str(), 100), 0);
  EXPECT_FALSE(Index(*directory)->found());
  const std::vector<char> nonsense(128, 'x');
  Write("hps_index", nonsense.data(), nonsense.size());
  index = Index(*directory);
  EXPECT_FALSE(index->found());
  EXPECT_EQ(Find(*index, 30), 2);
}

TEST_F(FilesTest, TheTimesOfCopiedFilesAreNotTrusted) {
  WriteTable({10, 20, 30}, 2);
  const struct timespec both[2] = {{1000000, 0}, {1000000, 0}};
  const std::string key = folder_ + "/key";
  ASSERT_EQ(utimensat(AT_FDCWD, key.c_str(), both, 0), 0);
  // From now on the key file's ctime is old enough to be trusted.
  sleep(4);
  auto directory = Open(2);
  auto index = Index(*directory);
  EXPECT_FALSE(index->found());
  EXPECT_EQ(Find(*index, 20), 1);
  const std::string file = Read("hps_index");
  // The same files again: nothing is compared, so damage stays unnoticed.
  Overwrite("hps_index", static_cast<int64_t>(file.size()) - 64,
            std::string(64, '\x7f'));
  EXPECT_TRUE(Index(*directory)->found());
  // A copy of the damaged index.
  const std::string damaged = Read("hps_index");
  ASSERT_EQ(
      rename((folder_ + "/hps_index").c_str(), (folder_ + "/other").c_str()),
      0);
  Write("hps_index", damaged.data(), damaged.size());
  EXPECT_FALSE(Index(*directory)->found());
  // Other keys of the same number and modification time.
  WriteTable({11, 21, 31}, 2);
  ASSERT_EQ(utimensat(AT_FDCWD, key.c_str(), both, 0), 0);
  directory = Open(2);
  index = Index(*directory);
  EXPECT_FALSE(index->found());
  EXPECT_EQ(Find(*index, 20), -1);
  EXPECT_EQ(Find(*index, 21), 1);
}

TEST_F(FilesTest, AnIndexThatIsDamagedWhileItIsOpenEndsASearch) {
  std::vector<int64_t> keys;
  for (int64_t i = 0; i < 3000; ++i) keys.push_back(i * 7919);
  WriteTable(keys, 1);
  const auto directory = Open(1);
  const auto index = Index(*directory);
  const std::string good = Read("hps_index");
  EXPECT_EQ(Find(*index, 7919), 1);
  constexpr int64_t kHeader = 128;
  using Bucket = TableIndex::Bucket;
  const auto damage = [&](uint32_t used, int64_t key, uint32_t row) {
    Bucket bucket;
    for (int i = 0; i < Bucket::kKeys; ++i) {
      bucket.keys[i] = key;
      bucket.rows[i] = row;
    }
    bucket.used = used;
    std::string data;
    while (data.size() + kHeader < good.size()) {
      data.append(reinterpret_cast<const char*>(&bucket), sizeof(bucket));
    }
    Overwrite("hps_index", kHeader, data);
  };
  damage(5, 1, 0);  // full buckets without the key
  EXPECT_EQ(Find(*index, 7919), -1);
  damage(6, 1, 0);
  EXPECT_EQ(Find(*index, 7919), TableIndex::kDamaged);
  damage(5, 7919, 3000);
  EXPECT_EQ(Find(*index, 7919), TableIndex::kDamaged);
  Overwrite("hps_index", 0, good);
  EXPECT_EQ(Find(*index, 7919), 1);
}

TEST_F(FilesTest, FilesAreComparedWithTheirSums) {
  EXPECT_EQ(Crc32("123456789", 9), 0xCBF43926u);
  WriteTable({1, 2, 3}, 2);
  const std::string key = Read("key"), rows = Read("emb_vector");
  WriteTable({4, 5, 6}, 2);
  const std::string other = Read("key");
  WriteSums("hps_sums", key, rows);
  std::unique_ptr<TableDirectory> directory;
  ev::Status status = TableDirectory::Open(folder_, 2, &directory);
  EXPECT_EQ(status.code(), ev::StatusCode::kInvalidArgument);
  for (const char* part : {"/key' has other content", "hps_sums", "remove"}) {
    EXPECT_NE(status.message().find(part), std::string::npos)
        << status.message();
  }
  // The replacement was interrupted.
  Write("key.part", key.data(), key.size());
  directory = Open(2);
  EXPECT_EQ(directory->keys()[2], 3);
  EXPECT_TRUE(directory->CheckContent(nullptr).ok());
  // An interrupted replacement that has not written its sums.
  Write("key", key.data(), key.size());
  Write("key.part", other.data(), other.size());
  EXPECT_EQ(Open(2)->keys()[2], 3);
  ASSERT_EQ(unlink((folder_ + "/key.part").c_str()), 0);
  EXPECT_EQ(Open(2)->keys()[2], 3);
  Write("emb_vector", rows.data(), rows.size() - 8);
  status = TableDirectory::Open(folder_, 2, &directory);
  EXPECT_NE(status.message().find("has 16 bytes, expected 24"),
            std::string::npos)
      << status.message();
  for (const char* text : {"", "[]", "{\"files\": {\"key\": {\"bytes\": 1}}}",
                           "{\"files\": {\"key\": 3}}"}) {
    Write("hps_sums", text, std::strlen(text));
    status = TableDirectory::Open(folder_, 2, &directory);
    EXPECT_EQ(status.code(), ev::StatusCode::kInvalidArgument) << text;
    EXPECT_NE(status.message().find("hps_sums"), std::string::npos);
  }
  Write("hps_sums", "{\"files\": {}}", 13);
  EXPECT_FALSE(TableDirectory::Open(folder_, 2, &directory).ok());
  // Without sums the sizes decide.
  ASSERT_EQ(unlink((folder_ + "/hps_sums").c_str()), 0);
  Write("emb_vector", rows.data(), rows.size());
  EXPECT_EQ(Open(2)->rows(), 3);
}

TEST_F(FilesTest, CheckContentComparesEveryMib) {
  std::vector<int64_t> keys(5120);
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = i;
  WriteTable(keys, 1200);  // 23 and a half MiB, of which 16 are compared
  std::string rows = Read("emb_vector");
  WriteSums("hps_sums", Read("key"), rows);
  ev::Serial serial;
  EXPECT_TRUE(Open(1200)->CheckContent(&serial).ok());
  int unnoticed = 0;
  for (size_t mib = 0; mib * (1 << 20) < rows.size(); ++mib) {
    rows[mib << 20] ^= 1;
    Write("emb_vector", rows.data(), rows.size());
    rows[mib << 20] ^= 1;
    std::unique_ptr<TableDirectory> directory;
    if (!TableDirectory::Open(folder_, 1200, &directory).ok()) continue;
    ++unnoticed;
    EXPECT_FALSE(directory->CheckContent(&serial).ok()) << mib;
  }
  EXPECT_EQ(unnoticed, 24 - TableSums::kSampled);
}

TEST_F(FilesTest, KeysAndRowsOfOneReplacementAreOpenedTogether) {
  const auto replace = [&](int64_t generation) {
    std::vector<int64_t> keys;
    std::vector<float> rows;
    for (int64_t i = 0; i < 100; ++i) {
      keys.push_back(i + generation);
      rows.push_back(static_cast<float>(i + generation));
    }
    const std::string key(reinterpret_cast<const char*>(keys.data()), 800);
    const std::string row(reinterpret_cast<const char*>(rows.data()), 400);
    Write("key.part", key.data(), key.size());
    Write("emb_vector.part", row.data(), row.size());
    WriteSums("hps_sums.part", key, row);
    for (const char* name : {"/hps_sums", "/key", "/emb_vector"}) {
      const std::string path = folder_ + name;
      ASSERT_EQ(rename((path + ".part").c_str(), path.c_str()), 0);
    }
  };
  replace(0);
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (int64_t generation = 1; !stop; ++generation) {
      replace(generation);
      std::this_thread::sleep_for(std::chrono::microseconds(300));
    }
  });
  int opened = 0;
  for (int i = 0; i < 300; ++i) {
    std::unique_ptr<TableDirectory> directory;
    const ev::Status status = TableDirectory::Open(folder_, 1, &directory);
    if (status.code() == ev::StatusCode::kUnavailable) continue;
    ASSERT_TRUE(status.ok()) << status.message();
    ++opened;
    for (int64_t row = 0; row < 100; ++row) {
      ASSERT_EQ(*directory->row(row), directory->keys()[row]);
    }
  }
  stop = true;
  writer.join();
  EXPECT_GT(opened, 0);
}

TEST_F(FilesTest, KeysOf32Bits) {
  WriteTable({-1, 7, INT64_C(4294967294)}, 1);
  auto directory = Open(1);
  auto index = Index(*directory, KeyBits::k32);
  EXPECT_EQ(Find(*index, -1), 0);
  EXPECT_EQ(Find(*index, 7), 1);
  EXPECT_EQ(Find(*index, -2), 2);
  WriteTable({1, INT64_C(4294967296)}, 1);
  directory = Open(1);
  std::unique_ptr<TableIndex> none;
  const ev::Status status =
      TableIndex::Open(*directory, KeyBits::k32, &none, &note_);
  EXPECT_EQ(status.code(), ev::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("4294967296 of row 1"), std::string::npos);
}

TEST_F(FilesTest, AFolderThatCannotBeWrittenToIsServedAllTheSame) {
  WriteTable({10, 20, 30}, 2);
  // A folder with the index's name can be neither read nor replaced.
  ASSERT_EQ(mkdir((folder_ + "/hps_index").c_str(), 0755), 0);
  const auto directory = Open(2);
  const auto index = Index(*directory);
  EXPECT_NE(note_.find("stays in this process's memory"), std::string::npos);
  EXPECT_EQ(Find(*index, 20), 1);
}

}  // namespace
}  // namespace hps
