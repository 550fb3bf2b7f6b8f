// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// SideStreams: a pool of CUDA streams for work that runs parallel to a
// context's own stream.

#ifndef KERNELS_ENGINE_BASE_GPU_SIDE_STREAMS_H_
#define KERNELS_ENGINE_BASE_GPU_SIDE_STREAMS_H_

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "kernels/engine/base/gpu/side_stream.h"
#include "kernels/engine/base/status.h"

namespace ev {
namespace gpu {

// One per process. Thread-safe. Never destroyed, because the driver may be gone
// at process exit.
class SideStreams {
 public:
  static SideStreams* Get() {
    static SideStreams* const streams = new SideStreams;
    return streams;
  }
  // Takes an idle stream of the device, or creates one. REQUIRES: the device is
  // current.
  Status Acquire(int device, std::unique_ptr<SideStream>* stream) {
    {
      std::lock_guard<std::mutex> lock(mu_);
      for (size_t i = 0; i < idle_.size(); ++i) {
        if (idle_[i].first != device) continue;
        *stream = std::move(idle_[i].second);
        idle_.erase(idle_.begin() + i);
        return Status::OK();
      }
    }
    stream->reset(new SideStream);
    return (*stream)->Create();
  }
  // Returns a stream to the pool. Its work may still be in flight.
  void Release(int device, std::unique_ptr<SideStream> stream) {
    std::lock_guard<std::mutex> lock(mu_);
    idle_.emplace_back(device, std::move(stream));
  }

 private:
  std::mutex mu_;
  std::vector<std::pair<int, std::unique_ptr<SideStream>>> idle_;
};

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_BASE_GPU_SIDE_STREAMS_H_
