// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/base/gpu/work/work_context.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "kernels/engine/base/gpu/cuda_error.h"
#include "kernels/engine/base/gpu/urgent_stream.h"

namespace ev {
namespace gpu {
namespace {

// Enough for simultaneous lookups of some 200 tables, each with a context for
// its ids and one for its rows. A context beyond that is freed, which waits for
// the device.
constexpr size_t kMaxIdle = 512;

struct Idle {
  std::mutex mu;
  // in the order they were released
  std::vector<std::unique_ptr<WorkContext>> contexts;
  std::map<int, size_t> max_bytes_in_flight;  // bytes, by device
};

// Never destroyed: at process exit the driver may be gone already.
Idle* IdleContexts() {
  static Idle* const idle = new Idle;
  return idle;
}

// Limits the device memory of contexts in flight. Without a limit, a program
// that does not wait for the GPU at the end of its steps
// (TF_SYNC_ON_FINISH=false) would create contexts for as many steps as the
// driver queues, which is dozens. REQUIRES: the device is current, and 'mu'
// held.
Status MaxBytesInFlight(int device, Idle* idle, size_t* bytes) {
  size_t& most = idle->max_bytes_in_flight[device];
  if (most == 0) {
    size_t free = 0, total = 0;
    EV_CUDA_RETURN_IF_ERROR(cudaMemGetInfo(&free, &total));
    most = std::max<size_t>(total / WorkContext::kInFlightShare, 1);
  }
  *bytes = most;
  return Status::OK();
}

// A quarter more, so that batches of varying size do not reallocate forever.
size_t WithRoom(size_t bytes) { return bytes + bytes / 4; }

}  // namespace

WorkContext::~WorkContext() {
  if (stream_ != nullptr) {
    EV_CUDA_LOG_IF_ERROR(cudaStreamSynchronize(stream_));
    EV_CUDA_LOG_IF_ERROR(cudaStreamDestroy(stream_));
  }
  if (followed_ != nullptr) EV_CUDA_LOG_IF_ERROR(cudaEventDestroy(followed_));
  if (host_ != nullptr) EV_CUDA_LOG_IF_ERROR(cudaFreeHost(host_));
}

Status WorkContext::Create() {
  EV_CUDA_RETURN_IF_ERROR(cudaGetDevice(&device_number_));
  return CreateUrgentStream(/*most=*/false, &stream_);
}

Status WorkContext::Acquire(size_t host_bytes, size_t device_bytes,
                            std::unique_ptr<WorkContext>* context) {
  int device = 0;
  EV_CUDA_RETURN_IF_ERROR(cudaGetDevice(&device));
  std::unique_ptr<WorkContext> found;
  bool must_wait = false;
  {
    Idle* const idle = IdleContexts();
    std::lock_guard<std::mutex> lock(idle->mu);
    size_t best = idle->contexts.size();
    // The oldest context in flight whose memory fits this call.
    size_t like = best, bytes_in_flight = 0;
    const auto fits = [&](const WorkContext& it) {
      return it.host_bytes_ >= host_bytes &&
             it.memory_.size_bytes() >= device_bytes;
    };
    for (size_t i = 0; i < idle->contexts.size(); ++i) {
      WorkContext& it = *idle->contexts[i];
      if (it.device_number_ != device) continue;
      if (it.may_be_busy_) {
        if (cudaStreamQuery(it.stream_) == cudaErrorNotReady) {
          bytes_in_flight += it.memory_.size_bytes();
          if (like == idle->contexts.size() && fits(it) &&
              it.memory_.size_bytes() / 2 <= device_bytes) {
            like = i;
          }
          continue;
        }
        it.may_be_busy_ = false;
      }
      if (best == idle->contexts.size()) {
        best = i;
        continue;
      }
      const WorkContext& other = *idle->contexts[best];
      const bool is_smaller =
          it.memory_.size_bytes() < other.memory_.size_bytes();
      if (fits(it) ? !fits(other) || is_smaller : !fits(other) && !is_smaller) {
        best = i;
      }
    }
    if (like < idle->contexts.size() &&
        (best == idle->contexts.size() || !fits(*idle->contexts[best]))) {
      size_t most = 0;
      EV_RETURN_IF_ERROR(MaxBytesInFlight(device, idle, &most));
      must_wait = bytes_in_flight + device_bytes > most;
      if (must_wait) best = like;
    }
    if (best < idle->contexts.size()) {
      found = std::move(idle->contexts[best]);
      idle->contexts.erase(idle->contexts.begin() + best);
    }
  }
  if (found == nullptr) {
    found.reset(new WorkContext);
    EV_RETURN_IF_ERROR(found->Create());
  }
  if (must_wait) {
    EV_RETURN_IF_ERROR(found->Wait());
    found->may_be_busy_ = false;
  }
  EV_RETURN_IF_ERROR(found->Reserve(host_bytes, device_bytes));
  *context = std::move(found);
  return Status::OK();
}

void WorkContext::Release(std::unique_ptr<WorkContext> context) {
  Idle* const idle = IdleContexts();
  std::lock_guard<std::mutex> lock(idle->mu);
  if (idle->contexts.size() >= kMaxIdle) return;
  try {
    idle->contexts.push_back(std::move(context));
  } catch (const std::bad_alloc&) {
    // The context is freed. The call that had it has succeeded.
  }
}

void WorkContext::ReleaseBusy(std::unique_ptr<WorkContext> context) {
  context->may_be_busy_ = true;
  Release(std::move(context));
}

Status WorkContext::Reserve(size_t host_bytes, size_t device_bytes) {
  if (host_bytes > host_bytes_) {
    void* host = nullptr;
    const cudaError_t error = cudaMallocHost(&host, WithRoom(host_bytes));
    if (error == cudaErrorMemoryAllocation) cudaGetLastError();  // clears it
    EV_CUDA_RETURN_IF_ERROR(error);
    if (host_ != nullptr) EV_CUDA_LOG_IF_ERROR(cudaFreeHost(host_));
    host_ = static_cast<char*>(host);
    host_bytes_ = WithRoom(host_bytes);
  }
  if (device_bytes > memory_.size_bytes()) {
    EV_RETURN_IF_ERROR(
        memory_.Allocate(WithRoom(device_bytes), "the work of a batch"));
  }
  return Status::OK();
}

Status WorkContext::Follow(const DeviceStream& other) {
  if (followed_ == nullptr) {
    EV_CUDA_RETURN_IF_ERROR(
        cudaEventCreateWithFlags(&followed_, cudaEventDisableTiming));
  }
  EV_CUDA_RETURN_IF_ERROR(
      cudaEventRecord(followed_, static_cast<cudaStream_t>(other.native)));
  EV_CUDA_RETURN_IF_ERROR(cudaStreamWaitEvent(stream_, followed_, 0));
  return Status::OK();
}

Status WorkContext::BringDown(size_t at, size_t bytes, void* to) const {
  EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(device_number_));
  // Uses another context, since this context's pinned memory and stream belong
  // to one thread.
  std::unique_ptr<WorkContext> context;
  EV_RETURN_IF_ERROR(Acquire(bytes, 0, &context));
  EV_RETURN_IF_ERROR(context->Follow(DeviceStream{stream_}));
  EV_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(context->host(), device() + at, bytes,
                                          cudaMemcpyDeviceToHost,
                                          context->stream()));
  EV_RETURN_IF_ERROR(context->Wait());
  std::memcpy(to, context->host(), bytes);
  Release(std::move(context));
  return Status::OK();
}

Status WorkContext::Wait() {
  EV_CUDA_RETURN_IF_ERROR(cudaStreamSynchronize(stream_));
  return Status::OK();
}

}  // namespace gpu
}  // namespace ev
