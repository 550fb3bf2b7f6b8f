// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Creating homes in a program without GPU code.

#include "kernels/engine/rows/make_row_home.h"

#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/engine/embedding/embedding_table.h"
#include "kernels/engine/rows/gpu_row_home.h"

namespace ev {
namespace {

TEST(MakeRowHomeTest, ATableReportsMissingGpuCode) {
  TableOptions options;
  options.name = "user";
  options.dim = 2;
  options.storage = RowStorage::kHbm;
  EmbeddingTable table(options);
  const Status status = table.Initialize(std::vector<float>{1, 2}, 1);
  EXPECT_EQ(StatusCode::kFailedPrecondition, status.code());
  EXPECT_NE(std::string::npos, status.message().find("built without nvcc"));
  EXPECT_NE(std::string::npos, status.message().find("table 'user'"));
  EXPECT_FALSE(table.initialized());
}

TEST(MakeRowHomeTest, AutoIsCpuMemoryAndReturnsTheReason) {
  TableOptions options;
  options.name = "user";
  options.dim = 2;
  options.storage = RowStorage::kAuto;
  EmbeddingTable table(options);
  const Status status = table.Initialize(std::vector<float>{1, 2}, 1);
  ASSERT_TRUE(status.ok()) << status.message();
  std::string why;
  EXPECT_EQ(RowStorage::kDram, table.storage(&why));
  EXPECT_NE(std::string::npos, why.find("built without nvcc")) << why;
  float row[2] = {0, 0};
  ASSERT_TRUE(table.Gather(std::vector<int64_t>{5}, row, nullptr).ok());
  EXPECT_EQ(2.0f, row[1]);
  EXPECT_FALSE(table.pools_on_device());
}

TEST(MakeRowHomeTest, AutoIsCpuMemoryOnlyWithoutAGpu) {
  // A GPU without free memory.
  RegisterGpuRowHome(
      [](const GpuRowHomeOptions&, std::unique_ptr<GpuRowHome>*) {
        return ResourceExhausted("the GPU is full");
      });
  const std::vector<float> default_row = {1, 2};
  RowHomeOptions options;
  options.dim = 2;
  options.default_rows = default_row;
  options.storage = RowStorage::kAuto;
  TableRows rows;
  const Status status = MakeRowHome(options, &rows);
  RegisterGpuRowHome(nullptr);
  EXPECT_EQ(StatusCode::kResourceExhausted, status.code());
  EXPECT_EQ("the GPU is full", status.message());
  EXPECT_EQ(nullptr, rows.home);
}

TEST(RowStorageTest, NamesAreThoseOfOps) {
  EXPECT_STREQ("dram", RowStorageName(RowStorage::kDram));
  EXPECT_STREQ("hbm", RowStorageName(RowStorage::kHbm));
  EXPECT_STREQ("auto", RowStorageName(RowStorage::kAuto));
  EXPECT_STREQ("dram_ssd", RowStorageName(RowStorage::kDramSsd));
  EXPECT_STREQ("hbm_dram", RowStorageName(RowStorage::kHbmDram));
  EXPECT_STREQ("hbm_dram_ssd", RowStorageName(RowStorage::kHbmDramSsd));
}

TEST(RowStorageTest, AStorageIsFoundByItsNameAndNoOther) {
  for (const RowStorageEntry& entry : kRowStorages) {
    RowStorage storage = entry.storage == RowStorage::kDram ? RowStorage::kHbm
                                                            : RowStorage::kDram;
    EXPECT_TRUE(FindRowStorage(entry.name, &storage)) << entry.name;
    EXPECT_EQ(entry.storage, storage) << entry.name;
  }
  RowStorage storage = RowStorage::kAuto;
  EXPECT_FALSE(FindRowStorage("DRAM", &storage));
  EXPECT_FALSE(FindRowStorage("", &storage));
  EXPECT_EQ(RowStorage::kAuto, storage);
}

}  // namespace
}  // namespace ev
