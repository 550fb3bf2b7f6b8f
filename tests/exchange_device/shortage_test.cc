// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// An exchange of rows in device memory when that memory is short for a moment:
// shortage_test.cc of the exchange, with the device's part.

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "addons/sparse_operation_kit/exchange/device_serve.h"
#include "addons/sparse_operation_kit/exchange/testing/loopback.h"
#include "gtest/gtest.h"
#include "kernels/engine/testing/each_shortage.h"
#include "kernels/engine/testing/host_device_memory.h"
#include "tests/exchange_device/host_exchange_device.h"

namespace sok {
namespace testing {
namespace {

using ev::Status;
using ev::testing::Fault;
using ev::testing::Numbers;
using ev::testing::Reach;
using ev::testing::RunWithEachShortage;
using ev::testing::Shortage;

const std::vector<int> kTables = {0, 1};

// A job of one rank: what it sends comes back to it.
class DeviceJob {
 public:
  DeviceJob(Shortage* shortage, WireType wire)
      : shortage_(shortage), wire_(wire) {
    EXPECT_TRUE(ExchangeDevice::Get(&device_).ok());
    format_.num_tables = static_cast<int>(specs_.size());
    for (const TableSpec& spec : specs_) {
      tables_.push_back(LoopbackJob::MakeTable(spec, false, {0.5f, 1.5f},
                                               ev::RowStorage::kHbm));
      placements_.emplace_back(spec.ranks);
    }
  }

  void Train(int64_t step, Numbers* numbers) {
    MakeBatch(step);
    shortage_->Step("forward", [&] { return Forward(); });
    for (const auto& output : outputs_) Add(output, numbers);
    shortage_->Step("backward", [&] { return Backward(); });
    for (size_t next = 0; next < specs_.size(); ++next) {
      shortage_->Step("apply", [&] { return Apply(next, step); });
    }
    for (const auto& table : tables_) {
      ev::TableSnapshot all;
      EXPECT_TRUE(table->Export(std::vector<std::string>{"A"}, &all).ok());
      numbers->insert(numbers->end(), all.keys.begin(), all.keys.end());
      Add(all.values, numbers);
      Add(all.slots[0], numbers);
    }
  }

 private:
  static void Add(const std::vector<float>& floats, Numbers* numbers) {
    numbers->insert(numbers->end(), floats.begin(), floats.end());
  }

  // Enough ids for the device to deduplicate.
  void MakeBatch(int64_t step) {
    ids_.clear();
    splits_ = {0};
    for (int64_t s = 0; s < kBatch; ++s) {
      for (int64_t i = 0; i < s % 4; ++i) {
        ids_.push_back(5 * step + (7 * s + 3 * i) % 40);
      }
      splits_.push_back(ids_.size());
    }
  }

  Status Forward() {
    std::vector<RouteInput> inputs(specs_.size());
    for (size_t t = 0; t < specs_.size(); ++t) {
      RouteInput& in = inputs[t];
      in.name = specs_[t].name;
      in.dim = specs_[t].dim;
      in.combiner = specs_[t].combiner;
      in.placement = &placements_[t];
      in.batch_size = kBatch;
      in.num_ids = ids_.size();
      in.ids64 = ids_.data();
      in.row_splits = splits_.data();
    }
    RouteOptions options;
    options.format = format_;
    options.device = device_;
    options.brings_inverse = false;
    EV_RETURN_IF_ERROR(shortage_->Call(
        [&] { return Route(inputs, options, nullptr, &plan_); }));
    EV_RETURN_IF_ERROR(shortage_->Call([&] {
      std::unique_ptr<DeviceRoute> route;
      EV_RETURN_IF_ERROR(device_->StartRoute(plan_, &route));
      route_ = std::move(route);
      return Status::OK();
    }));
    message_.resize(plan_->message_size());
    EV_RETURN_IF_ERROR(WriteMessage(*plan_, nullptr, message_.data()));
    const std::vector<int32_t> splits = {static_cast<int32_t>(message_.size())};
    EV_RETURN_IF_ERROR(
        MessageLayout::Parse(format_, message_, splits, &layout_));
    WireBuffer rows;
    EV_RETURN_IF_ERROR(shortage_->Call([&] {
      return ServeRows(layout_, message_.data(), tables_, wire_, device_,
                       nullptr, &rows, &served_);
    }));
    EXPECT_TRUE(rows.on_device);
    std::vector<std::shared_ptr<char>> memory(specs_.size());
    std::vector<ev::MutableFloats> outputs;
    for (size_t t = 0; t < specs_.size(); ++t) {
      EV_RETURN_IF_ERROR(device_->Allocate(
          kBatch * specs_[t].dim * sizeof(float), &memory[t]));
      outputs.push_back(reinterpret_cast<float*>(memory[t].get()));
    }
    const ev::DeviceStream stream = device_->stream();
    std::shared_ptr<StreamEvent> done;
    EV_RETURN_IF_ERROR(shortage_->Call([&] {
      return PoolRows(*plan_, route_.get(), rows, outputs, &stream, nullptr,
                      nullptr, &done);
    }));
    device_->KeepUntil(done, rows.memory);
    device_->KeepUntil(done, route_);
    EV_RETURN_IF_ERROR(done->Wait());
    outputs_.clear();
    for (size_t t = 0; t < specs_.size(); ++t) {
      const float* const from = Reach(outputs[t].floats());
      outputs_.emplace_back(from, from + kBatch * specs_[t].dim);
    }
    return Status::OK();
  }

  // Fills gradients_.
  Status Backward() {
    std::vector<std::shared_ptr<char>> memory(specs_.size());
    std::vector<ev::ConstFloats> grads;
    for (size_t t = 0; t < specs_.size(); ++t) {
      const int64_t n = kBatch * specs_[t].dim;
      EV_RETURN_IF_ERROR(device_->Allocate(n * sizeof(float), &memory[t]));
      float* const grad = reinterpret_cast<float*>(memory[t].get());
      for (int64_t i = 0; i < n; ++i) {
        Reach(grad)[i] = 1 - outputs_[t][i] / 64;
      }
      grads.push_back(grad);
    }
    WireBuffer message;
    EV_RETURN_IF_ERROR(shortage_->Call([&] {
      return PoolGradientOnDevice(*plan_, route_.get(), kTables, grads,
                                  device_->stream(), wire_, device_, &message);
    }));
    for (auto& block : memory) device_->KeepUntil(message.ready, block);
    device_->KeepUntil(message.ready, route_);
    gradients_ = message;
    return Status::OK();
  }

  Status Apply(size_t t, int64_t step) {
    ServedGradients served;
    EV_RETURN_IF_ERROR(shortage_->Call([&] {
      return SpreadGradients(layout_, *served_, kTables, gradients_, 0.5f,
                             device_, &served);
    }));
    const ev::DeviceStream stream = device_->stream();
    ev::UpdateInput input;
    input.table = tables_[t].get();
    input.plan = served_.get();
    input.plan_table = static_cast<int>(t);
    input.pooled_grads = served.grads[t];
    input.stream = &stream;
    const std::vector<ev::UpdateInput> inputs = {input};
    const std::vector<std::vector<ev::SlotSpec>> slots = {{{"A", 0.25f}}};
    const std::vector<float> hyper = {0.5f};
    const Status applied = shortage_->Call([&] {
      return ev::ApplyRule("Adagrad", hyper, inputs, slots, step, nullptr);
    });
    std::shared_ptr<StreamEvent> done;
    EV_RETURN_IF_ERROR(
        shortage_->Call([&] { return device_->RecordEvent(stream, &done); }));
    device_->KeepUntil(done, served.memory);
    return applied;
  }

  static constexpr int64_t kBatch = 20;

  Shortage* const shortage_;
  const WireType wire_;
  const std::vector<TableSpec> specs_ = {{"mean", 2, ev::Combiner::kMean, {0}},
                                         {"sum", 3, ev::Combiner::kSum, {0}}};
  ExchangeDevice* device_ = nullptr;
  MessageFormat format_;
  std::vector<std::shared_ptr<ev::EmbeddingTable>> tables_;
  std::vector<Placement> placements_;
  std::vector<int64_t> ids_, splits_, message_;
  std::shared_ptr<const RoutePlan> plan_;
  std::shared_ptr<DeviceRoute> route_;
  std::shared_ptr<const ev::LookupPlan> served_;
  MessageLayout layout_;
  WireBuffer gradients_;
  std::vector<std::vector<float>> outputs_;
};

class DeviceShortageTest : public ::testing::TestWithParam<WireType> {};

TEST_P(DeviceShortageTest, OfTwoSteps) {
  const int64_t shortages = RunWithEachShortage(
      Fault::kDeviceMemory, [](Shortage* shortage, Numbers* numbers) {
        {
          DeviceJob job(shortage, GetParam());
          job.Train(1, numbers);
          job.Train(2, numbers);
        }
        EXPECT_EQ(0, GetHostExchangeCounts().live_blocks);
      });
  EXPECT_GT(shortages, 20);
}

INSTANTIATE_TEST_SUITE_P(Wires, DeviceShortageTest,
                         ::testing::Values(WireType::kFloat32,
                                           WireType::kFloat16));

}  // namespace
}  // namespace testing
}  // namespace sok
