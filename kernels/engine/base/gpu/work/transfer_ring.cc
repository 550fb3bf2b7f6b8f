// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/base/gpu/work/transfer_ring.h"

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
  std::vector<std::unique_ptr<TransferRing>> rings;
};

// Never destroyed: at process exit the driver may be gone already.
Idle* IdleRings() {
  static Idle* const idle = new Idle;
  return idle;
}

}  // namespace

TransferRing::~TransferRing() {
  if (stream_ != nullptr) {
    EV_CUDA_LOG_IF_ERROR(cudaStreamSynchronize(stream_));
    EV_CUDA_LOG_IF_ERROR(cudaStreamDestroy(stream_));
  }
  for (Turn& turn : turns_) {
    if (turn.done != nullptr) EV_CUDA_LOG_IF_ERROR(cudaEventDestroy(turn.done));
    if (turn.host != nullptr) EV_CUDA_LOG_IF_ERROR(cudaFreeHost(turn.host));
  }
}

Status TransferRing::Create(size_t bytes) {
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

Status TransferRing::Acquire(size_t bytes,
                             std::unique_ptr<TransferRing>* ring) {
  int device = 0;
  EV_CUDA_RETURN_IF_ERROR(cudaGetDevice(&device));
  {
    Idle* const idle = IdleRings();
    std::lock_guard<std::mutex> lock(idle->mu);
    for (size_t i = idle->rings.size(); i-- > 0;) {
      if (idle->rings[i]->device_ != device ||
          idle->rings[i]->turns_[0].bytes < bytes) {
        continue;
      }
      *ring = std::move(idle->rings[i]);
      idle->rings.erase(idle->rings.begin() + i);
      return Status::OK();
    }
  }
  std::unique_ptr<TransferRing> made(new TransferRing);
  EV_RETURN_IF_ERROR(made->Create(bytes));
  *ring = std::move(made);
  return Status::OK();
}

void TransferRing::Release(std::unique_ptr<TransferRing> ring) {
  Idle* const idle = IdleRings();
  std::lock_guard<std::mutex> lock(idle->mu);
  if (idle->rings.size() >= kMaxIdle) return;
  try {
    idle->rings.push_back(std::move(ring));
  } catch (const std::bad_alloc&) {
    // The ring is freed. The call that had it has succeeded.
  }
}

Status TransferRing::Next(Turn** turn) {
  *turn = &turns_[next_];
  next_ ^= 1;
  EV_CUDA_RETURN_IF_ERROR(cudaEventSynchronize((*turn)->done));
  return Status::OK();
}

Status TransferRing::End(Turn* turn) {
  EV_CUDA_RETURN_IF_ERROR(cudaEventRecord(turn->done, stream_));
  return Status::OK();
}

Status TransferRing::Wait() {
  EV_CUDA_RETURN_IF_ERROR(cudaStreamSynchronize(stream_));
  return Status::OK();
}

}  // namespace gpu
}  // namespace ev
