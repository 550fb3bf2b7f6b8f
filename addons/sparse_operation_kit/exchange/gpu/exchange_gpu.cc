// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Implements ExchangeDevice for the GPU of this process; GpuRoute implements
// its routes.

#include <cuda_runtime_api.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#include "addons/sparse_operation_kit/exchange/exchange_device.h"
#include "addons/sparse_operation_kit/exchange/gpu/gpu_event.h"
#include "addons/sparse_operation_kit/exchange/gpu/gpu_route.h"
#include "addons/sparse_operation_kit/exchange/gpu/wire_kernels.h"
#include "kernels/engine/base/gpu/cuda_error.h"
#include "kernels/engine/base/gpu/device_buffer.h"
#include "kernels/engine/base/gpu/device_event.h"
#include "kernels/engine/base/gpu/pinned_memory.h"
#include "kernels/engine/base/gpu/process_device.h"
#include "kernels/engine/base/gpu/work/work_context.h"
#include "kernels/engine/base/tasks.h"
#include "kernels/engine/base/transfer_memory.h"
#include "kernels/engine/ids/gpu/gpu_distinct.h"

namespace sok {
namespace gpu {
namespace {

using ev::Span;
using ev::Status;
using ev::gpu::DeviceBuffer;
using ev::gpu::DeviceEvent;
using ev::gpu::GpuDistinct;
using ev::gpu::WorkContext;

// Enough for two steps: one allocates while the other is still in flight.
constexpr size_t kMaxIdleBytes = size_t{4} << 30;
// Interval between two checks of kept memory.
constexpr auto kLookAtKept = std::chrono::microseconds(300);
// Longest wait for memory that other work still uses. A rank that has died may
// keep it in use for ever.
constexpr auto kLongestWait = std::chrono::seconds(10);

// A pool of device memory blocks.
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
    const Status status = made->Allocate(wanted, "an exchange between ranks");
    if (status.ok()) {
      *block = std::move(made);
      return status;
    }
    std::lock_guard<std::mutex> lock(mu_);
    while (!idle_.empty()) GiveUpFirst();
    return status;
  }

  // Frees the block if there is no host memory to record it.
  void GiveBack(std::unique_ptr<DeviceBuffer> block) {
    try {
      std::lock_guard<std::mutex> lock(mu_);
      const size_t bytes = block->size_bytes();
      idle_.push_back(std::move(block));
      idle_bytes_ += bytes;
      while (idle_bytes_ > kMaxIdleBytes) GiveUpFirst();
    } catch (const std::bad_alloc&) {
    }
  }

  // Frees the surplus blocks. cudaFree waits for the device, which may wait for
  // an exchange, so threads of ops or carriers must not call this.
  void FreeGivenUp() {
    std::deque<std::unique_ptr<DeviceBuffer>> freed;
    {
      std::lock_guard<std::mutex> lock(mu_);
      freed.swap(given_up_);
      is_freeing_ = true;
    }
    freed.clear();
    std::lock_guard<std::mutex> lock(mu_);
    is_freeing_ = false;
  }
  bool HasGivenUp() {
    std::lock_guard<std::mutex> lock(mu_);
    return is_freeing_ || !given_up_.empty();
  }

 private:
  // REQUIRES that mu_ is held.
  void GiveUpFirst() {
    given_up_.push_back(std::move(idle_.front()));
    idle_.pop_front();
    idle_bytes_ -= given_up_.back()->size_bytes();
  }

  std::mutex mu_;
  std::deque<std::unique_ptr<DeviceBuffer>> idle_;  // oldest first
  size_t idle_bytes_ = 0;
  std::deque<std::unique_ptr<DeviceBuffer>> given_up_;
  bool is_freeing_ = false;
};

class ExchangeGpu : public ExchangeDevice {
 public:
  static Status Make(ExchangeDevice** made) {
    int device = 0;
    EV_RETURN_IF_ERROR(
        ev::gpu::ProcessDevice("exchanging rows between GPUs needs", &device));
    EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(device));
    std::unique_ptr<ExchangeGpu> gpu(new ExchangeGpu(device));
    EV_CUDA_RETURN_IF_ERROR(
        cudaStreamCreateWithFlags(&gpu->idle_, cudaStreamNonBlocking));
    // Not std::thread, whose functions are newer than manylinux2014. The object
    // is never destroyed, and the thread never ends.
    pthread_t keeper;
    if (pthread_create(&keeper, nullptr, &ExchangeGpu::Keep, gpu.get()) != 0) {
      return ev::ResourceExhausted(
          "exchanging rows between GPUs needs a thread, and pthread_create "
          "failed");
    }
    pthread_detach(keeper);
    ev::gpu::OfferPinnedMemory(device);
    *made = gpu.release();
    return Status::OK();
  }

  Status Allocate(int64_t bytes, std::shared_ptr<char>* memory) override {
    EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(device_));
    std::unique_ptr<DeviceBuffer> block;
    // Memory in use by previous steps, and idle memory that is being freed,
    // become available soon.
    const auto last = std::chrono::steady_clock::now() + kLongestWait;
    for (;;) {
      bool comes_back = num_kept_ > 0 || blocks_.HasGivenUp();
      const Status status = blocks_.Take(bytes, &block);
      if (status.ok()) break;
      comes_back |= blocks_.HasGivenUp();
      if (status.code() != ev::StatusCode::kResourceExhausted || !comes_back ||
          std::chrono::steady_clock::now() > last) {
        return status;
      }
      WakeKeeper();
      std::this_thread::sleep_for(kLookAtKept);
    }
    DeviceBuffer* const taken = block.release();
    *memory = std::shared_ptr<char>(taken->as<char>(), [this, taken](char*) {
      EV_CUDA_LOG_IF_ERROR(cudaSetDevice(device_));
      blocks_.GiveBack(std::unique_ptr<DeviceBuffer>(taken));
      if (blocks_.HasGivenUp()) WakeKeeper();
    });
    return Status::OK();
  }

  int64_t min_ids_to_deduplicate() const override {
    return ev::MinIdsToDeduplicate(ev::gpu::kMinDistinctIds);
  }

  Status StartDistincts(
      Span<const ev::DistinctRequest> requests,
      std::vector<std::unique_ptr<ev::DeviceDistinct>>* distincts) override {
    EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(device_));
    return GpuDistinct::Make(device_, requests, distincts);
  }

  ev::DeviceStream stream() override { return ev::DeviceStream{idle_}; }

  Status RecordEvent(const ev::DeviceStream& stream,
                     std::shared_ptr<StreamEvent>* event) override {
    event->reset();
    const auto native = static_cast<cudaStream_t>(stream.native);
    const Status made = ev::CatchBadAlloc(
        [&] { return GpuEvent::Make(device_, native, event); });
    if (!made.ok()) EV_CUDA_RETURN_IF_ERROR(cudaStreamSynchronize(native));
    return Status::OK();
  }

  void KeepUntil(std::shared_ptr<StreamEvent> event,
                 std::shared_ptr<const void> what) override {
    if (event == nullptr) return;
    try {
      std::lock_guard<std::mutex> lock(kept_mu_);
      kept_.push_back(Kept{event, what});
      ++num_kept_;
    } catch (const std::bad_alloc&) {
      static_cast<void>(event->Wait());
      return;
    }
    is_kept_.notify_one();
  }

  Status CopyDown(const char* from, int64_t bytes, char* to) override {
    if (bytes == 0) return Status::OK();
    return OnContext(0, 0, [&](WorkContext* context) {
      EV_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(
          to, from, bytes, cudaMemcpyDeviceToHost, context->stream()));
      return context->Wait();
    });
  }

  Status ToWire(const float* from, int64_t count, WireType wire,
                char* to) override {
    if (count == 0) return Status::OK();
    EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(device_));
    return LaunchToWire(from, count, wire, to, idle_);
  }

  Status FromWire(const char* from, WireType wire,
                  const std::shared_ptr<StreamEvent>& ready,
                  Span<const WireChunk> chunks, float scale,
                  float* to) override {
    if (chunks.empty()) return Status::OK();
    const size_t bytes = chunks.size() * sizeof(WireChunk);
    int64_t most = 0;
    for (const WireChunk& chunk : chunks) most = std::max(most, chunk.count);
    return OnContext(bytes, bytes, [&](WorkContext* context) {
      std::memcpy(context->host(), chunks.data(), bytes);
      EV_CUDA_RETURN_IF_ERROR(
          cudaMemcpyAsync(context->device(), context->host(), bytes,
                          cudaMemcpyHostToDevice, context->stream()));
      EV_RETURN_IF_ERROR(context->Follow(stream()));
      if (ready != nullptr) {
        EV_RETURN_IF_ERROR(ready->Before(ev::DeviceStream{context->stream()}));
      }
      const int64_t n = chunks.size();
      for (int64_t c = 0; c < n; c += kMostOfOneLaunch) {
        EV_RETURN_IF_ERROR(LaunchFromWire(
            from, wire,
            reinterpret_cast<const WireChunk*>(context->device()) + c,
            std::min(kMostOfOneLaunch, n - c), most, scale, to,
            context->stream()));
      }
      std::shared_ptr<DeviceEvent> end;
      EV_RETURN_IF_ERROR(DeviceEvent::Record(context->stream(), &end));
      return end->Before(idle_);
    });
  }

  Status StartRoute(std::shared_ptr<const RoutePlan> plan,
                    std::unique_ptr<DeviceRoute>* route) override {
    std::unique_ptr<GpuRoute> made(
        new GpuRoute(device_, this, std::move(plan)));
    EV_RETURN_IF_ERROR(made->Start());
    *route = std::move(made);
    return Status::OK();
  }

 private:
  explicit ExchangeGpu(int device) : device_(device) {}

  static void* Keep(void* gpu) {
    static_cast<ExchangeGpu*>(gpu)->GiveUpKept();
    return nullptr;
  }

  // Runs body(context). The work that it enqueues may go on after return.
  template <typename Body>
  Status OnContext(size_t host_bytes, size_t device_bytes, const Body& body) {
    EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(device_));
    std::unique_ptr<WorkContext> context;
    EV_RETURN_IF_ERROR(
        WorkContext::Acquire(host_bytes, device_bytes, &context));
    EV_RETURN_IF_ERROR(body(context.get()));
    WorkContext::ReleaseBusy(std::move(context));
    return Status::OK();
  }

  struct Kept {
    std::shared_ptr<StreamEvent> event;
    std::shared_ptr<const void> what;
  };
  void WakeKeeper() {
    // Acquiring the lock ensures that the thread either waits already, or will
    // see the change.
    { std::lock_guard<std::mutex> lock(kept_mu_); }
    is_kept_.notify_one();
  }

  // Thread that releases kept memory when its event is reached. This takes some
  // 100 us per step, which op threads should not spend.
  void GiveUpKept() {
    EV_CUDA_LOG_IF_ERROR(cudaSetDevice(device_));
    std::deque<Kept> looked_at;
    for (;;) {
      {
        std::unique_lock<std::mutex> lock(kept_mu_);
        is_kept_.wait(lock, [&] {
          return !kept_.empty() || !looked_at.empty() || blocks_.HasGivenUp();
        });
        try {
          for (; !kept_.empty(); kept_.pop_front()) {
            looked_at.push_back(kept_.front());
          }
        } catch (const std::bad_alloc&) {
          // The rest is moved in the next round.
        }
      }
      looked_at.erase(
          std::remove_if(looked_at.begin(), looked_at.end(),
                         [](const Kept& k) { return k.event->IsReached(); }),
          looked_at.end());
      blocks_.FreeGivenUp();
      {
        std::lock_guard<std::mutex> lock(kept_mu_);
        num_kept_ = kept_.size() + looked_at.size();
      }
      std::this_thread::sleep_for(kLookAtKept);
    }
  }

  const int device_;
  cudaStream_t idle_ = nullptr;
  Blocks blocks_;
  std::mutex kept_mu_;
  std::condition_variable is_kept_;
  std::deque<Kept> kept_;  // that the thread has not taken yet
  std::atomic<size_t> num_kept_{0};
};

const bool kRegistered = RegisterExchangeDevice(&ExchangeGpu::Make);

}  // namespace
}  // namespace gpu
}  // namespace sok
