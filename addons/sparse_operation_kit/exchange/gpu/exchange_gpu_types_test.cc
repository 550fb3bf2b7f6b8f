// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Compares narrow outputs and gradients on the GPU with the CPU's: same bits.

#include <memory>
#include <string>
#include <vector>

#include "addons/sparse_operation_kit/exchange/gpu/exchange_gpu_under_test.h"
#include "gtest/gtest.h"

namespace sok {
namespace {

using ExchangeGpuTypesTest = ExchangeGpuTest;

TEST_P(ExchangeGpuTypesTest, PoolsAndSumsNarrowNumbersInDeviceMemory) {
  const std::shared_ptr<const RoutePlan> plan = MakeRoute(kUploaded);
  ev::TransferScratch rows;
  const int64_t count = MakeRows(*plan, &rows);
  std::vector<int64_t> starts;
  ASSERT_OK(ChunkStartsOf(*plan, count, &starts));
  const std::vector<int> tables = {4, 0, 1, 2, 3};
  const std::vector<int64_t> message_starts = ChunkStarts(*plan, tables);
  const int64_t message_bytes = count * WireBytes(GetParam());
  for (ev::FloatType type :
       {ev::FloatType::kFloat16, ev::FloatType::kBFloat16}) {
    const std::shared_ptr<const RoutePlan> own = MakeRoute(kUploaded);
    std::unique_ptr<DeviceRoute> route;
    ASSERT_OK(device_->StartRoute(own, &route));
    std::vector<std::string> outputs;
    std::vector<ev::MutableFloats> on_host, on_device;
    std::vector<std::shared_ptr<char>> memory;
    for (const Table& table : tables_) {
      outputs.emplace_back(2 * table.batch_size * table.dim, 'x');
      memory.emplace_back();
      ASSERT_OK(device_->Allocate(outputs.back().size() + 1, &memory.back()));
      on_device.emplace_back(memory.back().get(), type);
    }
    for (std::string& output : outputs) on_host.emplace_back(&output[0], type);
    ASSERT_OK(PoolReceived(*plan, rows.ReserveOf<char>(1), count, GetParam(),
                           on_host, &pool_));
    const ev::DeviceStream stream = device_->stream();
    std::shared_ptr<StreamEvent> done;
    ASSERT_OK(route->StartPool(rows.ReserveOf<char>(1), GetParam(), nullptr,
                               starts, on_device, &stream, &done));
    ASSERT_OK(done->Wait());
    std::vector<ev::ConstFloats> host_grads, device_grads;
    for (size_t t = 0; t < outputs.size(); ++t) {
      std::string pooled(outputs[t].size(), 'y');
      ASSERT_OK(device_->CopyDown(memory[t].get(), pooled.size(), &pooled[0]));
      EXPECT_TRUE(outputs[t] == pooled) << tables_[t].name;
    }
    // The outputs are the gradients.
    for (int t : tables) {
      host_grads.emplace_back(outputs[t].data(), type);
      device_grads.emplace_back(memory[t].get(), type);
    }
    std::string message(message_bytes, 'x'), summed(message_bytes, 'y');
    ASSERT_OK(PoolGradient(*plan, nullptr, tables, host_grads, GetParam(),
                           &message[0], &pool_));
    std::shared_ptr<char> on_gpu;
    ASSERT_OK(device_->Allocate(message_bytes, &on_gpu));
    ASSERT_OK(route->SumGradients(tables, device_grads, stream, message_starts,
                                  GetParam(), on_gpu.get(), &done));
    ASSERT_OK(done->Wait());
    ASSERT_OK(device_->CopyDown(on_gpu.get(), message_bytes, &summed[0]));
    EXPECT_TRUE(message == summed);
  }
}

INSTANTIATE_TEST_SUITE_P(Wires, ExchangeGpuTypesTest,
                         ::testing::Values(WireType::kFloat32,
                                           WireType::kFloat16,
                                           WireType::kBFloat16));

}  // namespace
}  // namespace sok
