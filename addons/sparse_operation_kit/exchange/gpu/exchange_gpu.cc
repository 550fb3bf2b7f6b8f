// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The GPU of this process as an ExchangeDevice. A route's offsets and inverse
// go up as soon as it is made, beside the exchange of its keys, out of pinned
// memory; where the GPU has deduplicated they are there, and only the keys'
// places in the exchange go up. When its rows have come a kernel pools all
// tables, and the outputs come down, straight to where they are wanted when
// that is pinned.

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "addons/sparse_operation_kit/exchange/exchange_device.h"
#include "addons/sparse_operation_kit/exchange/gpu/wire_kernels.h"
#include "addons/sparse_operation_kit/exchange/routed_table.h"
#include "kernels/engine/base/gpu/cuda_error.h"
#include "kernels/engine/base/gpu/device_buffer.h"
#include "kernels/engine/base/gpu/process_device.h"
#include "kernels/engine/base/gpu/work_lane.h"
#include "kernels/engine/base/transfer_memory.h"
#include "kernels/engine/rows/gpu/gpu_distinct.h"
#include "kernels/engine/rows/gpu/lane_work.h"
#include "kernels/engine/rows/gpu/pinned_memory.h"

namespace sok {
namespace gpu {
namespace {

using ev::Span;
using ev::Status;
using ev::gpu::DeviceBuffer;
using ev::gpu::GpuDistinct;
using ev::gpu::KnownKeys;
using ev::gpu::Parts;
using ev::gpu::WorkLane;

constexpr size_t kMaxIdleBytes = size_t{2} << 30;

// Blocks of device memory that wait to be used again.
class Blocks {
 public:
  Status Take(size_t bytes, std::unique_ptr<DeviceBuffer>* block) {
    const size_t wanted = ev::TransferBlockBytes(bytes);
    {
      std::lock_guard<std::mutex> lock(mu_);
      for (size_t i = idle_.size(); i-- > 0;) {
        if (idle_[i]->size_bytes() != wanted) continue;
        *block = std::move(idle_[i]);
        idle_.erase(idle_.begin() + i);
        idle_bytes_ -= wanted;
        return Status::OK();
      }
    }
    std::unique_ptr<DeviceBuffer> made(new DeviceBuffer);
    Status status = made->Allocate(wanted, "an exchange between ranks");
    if (status.code() == ev::StatusCode::kResourceExhausted) {
      std::deque<std::unique_ptr<DeviceBuffer>> given_up;
      {
        std::lock_guard<std::mutex> lock(mu_);
        given_up.swap(idle_);
        idle_bytes_ = 0;
      }
      given_up.clear();
      status = made->Allocate(wanted, "an exchange between ranks");
    }
    EV_RETURN_IF_ERROR(status);
    *block = std::move(made);
    return Status::OK();
  }

  void GiveBack(std::unique_ptr<DeviceBuffer> block) {
    std::deque<std::unique_ptr<DeviceBuffer>> surplus;
    std::lock_guard<std::mutex> lock(mu_);
    idle_bytes_ += block->size_bytes();
    idle_.push_back(std::move(block));
    while (idle_bytes_ > kMaxIdleBytes) {
      idle_bytes_ -= idle_.front()->size_bytes();
      surplus.push_back(std::move(idle_.front()));
      idle_.pop_front();
    }
  }

 private:
  std::mutex mu_;
  std::deque<std::unique_ptr<DeviceBuffer>> idle_;  // given back first: first
  size_t idle_bytes_ = 0;
};

class GpuRoute : public DeviceRoute {
 public:
  GpuRoute(int device, std::shared_ptr<const RoutePlan> plan)
      : device_(device), plan_(std::move(plan)) {}
  ~GpuRoute() override {
    // A lane that was not waited for waits when it is destroyed.
    if (lane_ != nullptr) EV_CUDA_LOG_IF_ERROR(cudaSetDevice(device_));
  }

  Status Start() {
    EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(device_));
    const int num_tables = plan_->num_tables();
    const int num_ranks = plan_->num_ranks();
    // What Pool sends up comes first, as it lies in the lane's pinned memory.
    tables_at_ = parts_.AddBytes(num_tables * sizeof(PooledTable));
    numbers_at_ =
        parts_.AddBytes(num_tables * (2 * num_ranks + 1) * sizeof(int64_t));
    const size_t host_bytes = parts_.bytes();
    for (int t = 0; t < num_tables; ++t) {
      const RoutedTable& table = plan_->routed(t);
      if (table.has_weights || ev::Selects(table.combiner)) {
        return ev::InvalidArgument(
            "samples that are weighted, or whose combiner selects, are not "
            "pooled on a device, table '" +
            table.name + "'");
      }
      samples_at_.push_back(parts_.AddBytes(table.for_pooling_bytes()));
      out_at_.push_back(
          parts_.AddBytes(table.batch_size * table.dim * sizeof(float)));
    }
    EV_RETURN_IF_ERROR(WorkLane::Acquire(host_bytes, parts_.bytes(), &lane_));
    for (int t = 0; t < num_tables; ++t) {
      const RoutedTable& table = plan_->routed(t);
      if (table.batch_size == 0) continue;
      EV_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(
          lane_->device() + samples_at_[t], table.for_pooling(),
          table.for_pooling_bytes(), cudaMemcpyHostToDevice, lane_->stream()));
    }
    return Status::OK();
  }

  Status StartPool(const char* rows, WireType wire,
                   Span<const int64_t> chunk_starts,
                   Span<float* const> outputs) override {
    if (is_pooled_) return ev::Internal("a route is pooled twice");
    is_pooled_ = true;
    EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(device_));
    return Launch(rows, wire, chunk_starts, outputs);
  }

  Status Wait() override {
    if (lane_ == nullptr) return Status::OK();
    EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(device_));
    EV_RETURN_IF_ERROR(lane_->Wait());
    WorkLane::Release(std::move(lane_));
    return Status::OK();
  }

 private:
  Status Launch(const char* rows, WireType wire,
                Span<const int64_t> chunk_starts, Span<float* const> outputs) {
    const int num_tables = plan_->num_tables();
    char* const device = lane_->device();
    PooledTable* const tables =
        reinterpret_cast<PooledTable*>(lane_->host() + tables_at_);
    int64_t most = 0, num_pooled = 0;
    for (int t = 0; t < num_tables; ++t) {
      if (outputs[t] == nullptr || plan_->routed(t).batch_size == 0) continue;
      tables[num_pooled++] = Describe(t, chunk_starts);
      most = std::max(most, plan_->routed(t).batch_size * plan_->routed(t).dim);
    }
    if (num_pooled == 0) return Status::OK();
    EV_CUDA_RETURN_IF_ERROR(
        cudaMemcpyAsync(device, lane_->host(), numbers_at_ + NumbersBytes(),
                        cudaMemcpyHostToDevice, lane_->stream()));
    for (int64_t t = 0; t < num_pooled; t += kMostOfOneLaunch) {
      EV_RETURN_IF_ERROR(LaunchPoolReceived(
          reinterpret_cast<const PooledTable*>(device + tables_at_) + t,
          std::min(kMostOfOneLaunch, num_pooled - t), most, rows, wire,
          lane_->stream()));
    }
    for (int t = 0; t < num_tables; ++t) {
      const RoutedTable& table = plan_->routed(t);
      const size_t bytes = table.batch_size * table.dim * sizeof(float);
      if (outputs[t] == nullptr || bytes == 0) continue;
      EV_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(outputs[t], device + out_at_[t],
                                              bytes, cudaMemcpyDeviceToHost,
                                              lane_->stream()));
    }
    return Status::OK();
  }

  size_t NumbersBytes() const {
    return plan_->num_tables() * (2 * plan_->num_ranks() + 1) * sizeof(int64_t);
  }

  PooledTable Describe(int t, Span<const int64_t> chunk_starts) {
    const RoutedTable& table = plan_->routed(t);
    const int num_tables = plan_->num_tables(), num_ranks = plan_->num_ranks();
    const size_t at = numbers_at_ + t * (2 * num_ranks + 1) * sizeof(int64_t);
    int64_t* const numbers = reinterpret_cast<int64_t*>(lane_->host() + at);
    PooledTable pooled;
    pooled.by_fours = table.dim % 4 == 0;
    for (int r = 0; r <= num_ranks; ++r) numbers[r] = table.starts[r];
    for (int r = 0; r < num_ranks; ++r) {
      const int64_t chunk = chunk_starts[r * num_tables + t];
      numbers[num_ranks + 1 + r] = chunk;
      pooled.by_fours &= chunk % 4 == 0;
    }
    char* const device = lane_->device();
    const char* const samples = device + samples_at_[t];
    pooled.starts = reinterpret_cast<const int64_t*>(device + at);
    pooled.chunks = pooled.starts + num_ranks + 1;
    if (table.distinct != nullptr) {
      const ev::gpu::GroupedBatch there =
          static_cast<const GpuDistinct&>(*table.distinct).batch();
      pooled.offsets = there.offsets;
      pooled.inverse = there.inverse;
      pooled.places = reinterpret_cast<const int32_t*>(samples);
    } else {
      pooled.offsets = reinterpret_cast<const int32_t*>(samples);
      pooled.inverse = reinterpret_cast<const int32_t*>(
          samples + (reinterpret_cast<const char*>(table.inverse) -
                     reinterpret_cast<const char*>(table.offsets)));
    }
    pooled.out = reinterpret_cast<float*>(device + out_at_[t]);
    pooled.num_samples = table.batch_size;
    pooled.dim = table.dim;
    pooled.combiner = table.combiner;
    return pooled;
  }

  const int device_;
  // Its memory is being read.
  const std::shared_ptr<const RoutePlan> plan_;
  Parts parts_;
  size_t tables_at_ = 0, numbers_at_ = 0;
  std::vector<size_t> samples_at_, out_at_;
  bool is_pooled_ = false;
  std::unique_ptr<WorkLane> lane_;
};

class ExchangeGpu : public ExchangeDevice {
 public:
  static Status Make(ExchangeDevice** made) {
    int device = 0;
    EV_RETURN_IF_ERROR(ev::gpu::ProcessDevice(
        "rows that stay on a GPU between ranks need", &device));
    EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(device));
    std::unique_ptr<ExchangeGpu> gpu(new ExchangeGpu(device));
    EV_CUDA_RETURN_IF_ERROR(
        cudaStreamCreateWithFlags(&gpu->idle_, cudaStreamNonBlocking));
    ev::gpu::OfferPinnedMemory(device);
    *made = gpu.release();
    return Status::OK();
  }

  Status Allocate(int64_t bytes, std::shared_ptr<char>* memory) override {
    EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(device_));
    std::unique_ptr<DeviceBuffer> block;
    EV_RETURN_IF_ERROR(blocks_.Take(bytes, &block));
    DeviceBuffer* const taken = block.release();
    *memory = std::shared_ptr<char>(taken->as<char>(), [this, taken](char*) {
      EV_CUDA_LOG_IF_ERROR(cudaSetDevice(device_));
      blocks_.GiveBack(std::unique_ptr<DeviceBuffer>(taken));
    });
    return Status::OK();
  }

  int64_t min_ids_to_deduplicate() const override {
    return ev::MinIdsToDeduplicate(ev::gpu::kMinDistinctIds);
  }

  Status StartDistinct(int64_t num_ids, int64_t num_samples,
                       std::unique_ptr<ev::DeviceDistinct>* distinct) override {
    EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(device_));
    return GpuDistinct::Make(device_, num_ids, num_samples,
                             std::make_shared<KnownKeys>(device_),
                             /*brings_inverse=*/true, distinct);
  }

  ev::DeviceStream stream() override { return ev::DeviceStream{idle_}; }

  Status CopyDown(const char* from, int64_t bytes, char* to) override {
    if (bytes == 0) return Status::OK();
    return OnLane(0, 0, [&](WorkLane* lane) {
      EV_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(
          to, from, bytes, cudaMemcpyDeviceToHost, lane->stream()));
      return Status::OK();
    });
  }

  Status ToWire(const float* from, int64_t count, WireType wire,
                char* to) override {
    if (count == 0) return Status::OK();
    return OnLane(0, 0, [&](WorkLane* lane) {
      return LaunchToWire(from, count, wire, to, lane->stream());
    });
  }

  Status FromWire(const char* from, WireType wire, Span<const WireChunk> chunks,
                  float* to) override {
    if (chunks.empty()) return Status::OK();
    const size_t bytes = chunks.size() * sizeof(WireChunk);
    int64_t most = 0;
    for (const WireChunk& chunk : chunks) most = std::max(most, chunk.count);
    return OnLane(bytes, bytes, [&](WorkLane* lane) {
      std::memcpy(lane->host(), chunks.data(), bytes);
      EV_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(lane->device(), lane->host(),
                                              bytes, cudaMemcpyHostToDevice,
                                              lane->stream()));
      const int64_t n = chunks.size();
      for (int64_t c = 0; c < n; c += kMostOfOneLaunch) {
        EV_RETURN_IF_ERROR(LaunchFromWire(
            from, wire, reinterpret_cast<const WireChunk*>(lane->device()) + c,
            std::min(kMostOfOneLaunch, n - c), most, to, lane->stream()));
      }
      return Status::OK();
    });
  }

  Status StartRoute(std::shared_ptr<const RoutePlan> plan,
                    std::unique_ptr<DeviceRoute>* route) override {
    std::unique_ptr<GpuRoute> made(new GpuRoute(device_, std::move(plan)));
    EV_RETURN_IF_ERROR(made->Start());
    *route = std::move(made);
    return Status::OK();
  }

 private:
  explicit ExchangeGpu(int device) : device_(device) {}

  // Runs body(lane) and waits for what it has begun.
  template <typename Body>
  Status OnLane(size_t host_bytes, size_t device_bytes, const Body& body) {
    EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(device_));
    std::unique_ptr<WorkLane> lane;
    EV_RETURN_IF_ERROR(WorkLane::Acquire(host_bytes, device_bytes, &lane));
    EV_RETURN_IF_ERROR(body(lane.get()));
    EV_RETURN_IF_ERROR(lane->Wait());
    WorkLane::Release(std::move(lane));
    return Status::OK();
  }

  const int device_;
  cudaStream_t idle_ = nullptr;
  Blocks blocks_;
};

const bool kRegistered = RegisterExchangeDevice(&ExchangeGpu::Make);

}  // namespace
}  // namespace gpu
}  // namespace sok
