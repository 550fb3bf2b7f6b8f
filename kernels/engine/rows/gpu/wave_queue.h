// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Waves of work that several threads prepare: each is launched when all of it,
// and all of the waves before, has arrived.

#ifndef KERNELS_ENGINE_ROWS_GPU_WAVE_QUEUE_H_
#define KERNELS_ENGINE_ROWS_GPU_WAVE_QUEUE_H_

#include <atomic>
#include <cstddef>
#include <functional>
#include <vector>

#include "kernels/engine/base/status.h"

namespace ev {
namespace gpu {

class WaveQueue {
 public:
  // sizes: how many parts of each wave arrive. Throws std::bad_alloc.
  explicit WaveQueue(const std::vector<int>& sizes) : left_(sizes.size()) {
    for (size_t w = 0; w < sizes.size(); ++w) left_[w] = sizes[w];
  }

  // A part of wave w is there. Calls launch(v) for the waves that are whole, in
  // their order, one at a time; or, where another thread is launching, leaves
  // them to that without a wait. When the calls for all parts have returned,
  // all waves were launched, or one of the calls returned the error of a
  // launch, after which there are no more. By several threads at once.
  Status Arrive(size_t w, const std::function<Status(size_t)>& launch) {
    if (left_[w].fetch_sub(1) != 1) return Status::OK();
    for (;;) {
      // The thread that launches looks again after it has said that it does no
      // more: a wave that is whole now is seen by one of the two.
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
  // Stays after an error.
  std::atomic<bool> is_launching_{false};
  size_t next_ = 0;  // of the thread that launches
};

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_ROWS_GPU_WAVE_QUEUE_H_
