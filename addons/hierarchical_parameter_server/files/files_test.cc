// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "addons/hierarchical_parameter_server/files/table_directory.h"
#include "addons/hierarchical_parameter_server/files/table_index.h"
#include "gtest/gtest.h"

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
