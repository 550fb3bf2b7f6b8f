// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/base/gpu/lanes/transfer_lane.h"

#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "kernels/engine/base/gpu/cuda_error.h"

namespace ev {
namespace gpu {
namespace {

constexpr size_t kMaxIdle = 64;

struct Idle {
  std::mutex mu;
  std::vector<std::unique_ptr<TransferLane>> lanes;
};

// Never destroyed: at process exit the driver may be gone already.
Idle* IdleLanes() {
  static Idle* const idle = new Idle;
  return idle;
}

}  // namespace

TransferLane::~TransferLane() {
  if (stream_ != nullptr) {
    EV_CUDA_LOG_IF_ERROR(cudaStreamSynchronize(stream_));
    EV_CUDA_LOG_IF_ERROR(cudaStreamDestroy(stream_));
  }
  for (Turn& turn : turns_) {
    if (turn.done != nullptr) EV_CUDA_LOG_IF_ERROR(cudaEventDestroy(turn.done));
    if (turn.host != nullptr) EV_CUDA_LOG_IF_ERROR(cudaFreeHost(turn.host));
  }
}

Status TransferLane::Create(size_t bytes) {
  EV_CUDA_RETURN_IF_ERROR(cudaGetDevice(&device_));
  EV_CUDA_RETURN_IF_ERROR(
      cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
  for (int k = 0; k < 2; ++k) {
    Turn& turn = turns_[k];
    void* host = nullptr;
    EV_CUDA_RETURN_IF_ERROR(cudaMallocHost(&host, bytes));
    turn.host = static_cast<char*>(host);
    EV_RETURN_IF_ERROR(memory_[k].Allocate(bytes, "a transfer"));
    turn.device = memory_[k].as<char>();
    turn.bytes = bytes;
    EV_CUDA_RETURN_IF_ERROR(
        cudaEventCreateWithFlags(&turn.done, cudaEventDisableTiming));
  }
  return Status::OK();
}

Status TransferLane::Acquire(size_t bytes,
                             std::unique_ptr<TransferLane>* lane) {
  int device = 0;
  EV_CUDA_RETURN_IF_ERROR(cudaGetDevice(&device));
  {
    Idle* const idle = IdleLanes();
    std::lock_guard<std::mutex> lock(idle->mu);
    for (size_t i = idle->lanes.size(); i-- > 0;) {
      if (idle->lanes[i]->device_ != device ||
          idle->lanes[i]->turns_[0].bytes < bytes) {
        continue;
      }
      *lane = std::move(idle->lanes[i]);
      idle->lanes.erase(idle->lanes.begin() + i);
      return Status::OK();
    }
  }
  std::unique_ptr<TransferLane> made(new TransferLane);
  EV_RETURN_IF_ERROR(made->Create(bytes));
  *lane = std::move(made);
  return Status::OK();
}

void TransferLane::Release(std::unique_ptr<TransferLane> lane) {
  Idle* const idle = IdleLanes();
  std::lock_guard<std::mutex> lock(idle->mu);
  if (idle->lanes.size() >= kMaxIdle) return;
  try {
    idle->lanes.push_back(std::move(lane));
  } catch (const std::bad_alloc&) {
    // The lane is freed. The call that had it has succeeded.
  }
}

Status TransferLane::Next(Turn** turn) {
  *turn = &turns_[next_];
  next_ ^= 1;
  EV_CUDA_RETURN_IF_ERROR(cudaEventSynchronize((*turn)->done));
  return Status::OK();
}

Status TransferLane::End(Turn* turn) {
  EV_CUDA_RETURN_IF_ERROR(cudaEventRecord(turn->done, stream_));
  return Status::OK();
}

Status TransferLane::Wait() {
  EV_CUDA_RETURN_IF_ERROR(cudaStreamSynchronize(stream_));
  return Status::OK();
}

}  // namespace gpu
}  // namespace ev
