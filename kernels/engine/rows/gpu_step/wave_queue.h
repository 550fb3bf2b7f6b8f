// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// WaveQueue: launches waves of work in order. Several threads prepare the parts
// of a wave; a wave is launched when all of its parts, and all parts of earlier
// waves, have arrived.

#ifndef KERNELS_ENGINE_ROWS_GPU_STEP_WAVE_QUEUE_H_
#define KERNELS_ENGINE_ROWS_GPU_STEP_WAVE_QUEUE_H_

#include <atomic>
#include <cstddef>
#include <functional>
#include <vector>

#include "kernels/engine/base/status.h"

namespace ev {
namespace gpu {

class WaveQueue {
 public:
  // sizes: number of parts of each wave. Throws std::bad_alloc.
  explicit WaveQueue(const std::vector<int>& sizes) : left_(sizes.size()) {
    for (size_t w = 0; w < sizes.size(); ++w) left_[w] = sizes[w];
  }

  // Reports that a part of wave w has arrived. Calls launch(v) for each wave v
  // that is complete, in order and one at a time. If another thread is
  // launching, returns at once and leaves that to it. Thread-safe.
  //
  // When the calls for all parts have returned, either all waves were launched,
  // or one call returned the error of a launch, and no later wave is launched.
  Status Arrive(size_t w, const std::function<Status(size_t)>& launch) {
    if (left_[w].fetch_sub(1) != 1) return Status::OK();
    for (;;) {
      // The launching thread checks again after it has cleared is_launching_,
      // so a wave that becomes complete meanwhile is seen by one of the two
      // threads.
      if (is_launching_.exchange(true)) return Status::OK();
      size_t next = next_;
      for (; IsWhole(next); next_ = ++next) EV_RETURN_IF_ERROR(launch(next));
      is_launching_.store(false);
      if (!IsWhole(next)) return Status::OK();
    }
  }

 private:
  bool IsWhole(size_t w) const { return w < left_.size() && left_[w] == 0; }

  std::vector<std::atomic<int>> left_;
  // Stays true after an error.
  std::atomic<bool> is_launching_{false};
  size_t next_ = 0;  // used by the launching thread only
};

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_ROWS_GPU_STEP_WAVE_QUEUE_H_
