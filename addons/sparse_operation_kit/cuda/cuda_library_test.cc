// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The shipped CUDA library, loaded by this program as an op library loads it.
// Only the last case needs a GPU.

#include "addons/sparse_operation_kit/cuda/cuda_library.h"

#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/engine/base/row_handle.h"
#include "kernels/engine/testing/skip_without_gpu.h"

namespace sok {
namespace {

bool IsLoaded() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find("libembedding_variable_cuda.so") != std::string::npos) {
      return true;
    }
  }
  return false;
}

TEST(CudaLibraryTest, TheFirstUseOfAGpuLoadsIt) {
  EXPECT_FALSE(IsLoaded());
  EXPECT_EQ(nullptr, ev::RegisteredGpuRowHome());
  // Kernels for dot products are there before any GPU is looked for.
  ev::InteractionDevice* device = nullptr;
  const ev::Status status = ev::InteractionDevice::Get(&device);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_NE(nullptr, device);
  EXPECT_TRUE(IsLoaded());
}

TEST(CudaLibraryTest, RegistersAllItsParts) {
  ev::InteractionDevice* device = nullptr;
  ASSERT_TRUE(ev::InteractionDevice::Get(&device).ok());
  EXPECT_NE(nullptr, ev::RegisteredGpuRowHome());
  EXPECT_NE(nullptr, RegisteredExchangeDevice());
  CarrierKind nccl;
  ASSERT_TRUE(RegisteredCarrier("nccl", &nccl));
  EXPECT_NE(nullptr, nccl.check);
}

TEST(CudaLibraryTest, AnErrorCrossesTheBorder) {
  ev::GpuRowHomeOptions options;
  options.dim = 1;
  const std::vector<float> row = {1};
  options.default_rows = row;
  std::unique_ptr<ev::GpuRowHome> rows;
  const ev::Status status = ev::MakeGpuRowHome(options, &rows);
  if (status.ok()) GTEST_SKIP() << "this process has a GPU";
  EXPECT_EQ(0u, status.message().find("rows in GPU memory need"))
      << status.message();
}

TEST(CudaLibraryTest, RowsAndPinnedMemoryAreThoseOfTheProcess) {
  ev::GpuRowHomeOptions options;
  options.dim = 3;
  const std::vector<float> default_rows = {1, 2, 3, 4, 5, 6};
  options.default_rows = default_rows;
  std::unique_ptr<ev::GpuRowHome> rows;
  EV_SKIP_WITHOUT_GPU(ev::MakeGpuRowHome(options, &rows));
  ASSERT_TRUE(rows->NewRow(0, 1).ok());
  ASSERT_TRUE(rows->NewRow(1, 0).ok());
  const std::vector<ev::RowHandle> handles = {0, 1};
  const std::vector<float> written = {7, 8, 9, 10, 11, 12};
  std::vector<float> out(6);
  ASSERT_TRUE(rows->Read(handles, 0, out.data()).ok());
  EXPECT_EQ((std::vector<float>{4, 5, 6, 1, 2, 3}), out);
  ASSERT_TRUE(rows->Write(handles, 0, written.data()).ok());
  ASSERT_TRUE(rows->Read(handles, 0, out.data()).ok());
  EXPECT_EQ(written, out);

  // The CUDA library offers pinned memory to this program's pool.
  void* const block = ev::AllocateTransferMemory(1000);
  EXPECT_NE(nullptr, block);
  EXPECT_LT(0u, ev::GetTransferMemoryStats().live_bytes);
  ev::FreeTransferMemory(block);

  ExchangeDevice* device = nullptr;
  const ev::Status status = ExchangeDevice::Get(&device);
  ASSERT_TRUE(status.ok()) << status.message();
  std::shared_ptr<char> memory;
  EXPECT_TRUE(device->Allocate(1000, &memory).ok());
}

}  // namespace
}  // namespace sok
