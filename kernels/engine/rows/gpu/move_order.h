// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// MoveOrder: orders the moves of a table's rows among other work on the rows.
// Moves run in the order of a stream, after all earlier work on the rows and
// before all later. A call that is going to enqueue work on the rows, and to
// add its event to RowEvents later, holds a Use meanwhile. Moves are enqueued
// only while there is no Use (Moving), and a Use that starts meanwhile waits
// for that. Moves never wait.

#ifndef KERNELS_ENGINE_ROWS_GPU_MOVE_ORDER_H_
#define KERNELS_ENGINE_ROWS_GPU_MOVE_ORDER_H_

#include <condition_variable>
#include <memory>
#include <mutex>
#include <utility>

namespace ev {
namespace gpu {

// Thread-safe.
class MoveOrder {
 public:
  // Starting one waits while moves are enqueued.
  class Use {
   public:
    explicit Use(std::shared_ptr<MoveOrder> order) : order_(std::move(order)) {
      std::unique_lock<std::mutex> lock(order_->order_mu_);
      order_->opened_.wait(lock, [this] { return !order_->is_moving_; });
      ++order_->num_uses_;
    }
    ~Use() {
      std::lock_guard<std::mutex> lock(order_->order_mu_);
      --order_->num_uses_;
    }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    const std::shared_ptr<MoveOrder> order_;
  };
  // While it lives, no Use starts. is_closed() is false, and it does nothing,
  // if there is a Use or another Moving.
  class Moving {
   public:
    explicit Moving(std::shared_ptr<MoveOrder> order)
        : order_(std::move(order)) {
      std::lock_guard<std::mutex> lock(order_->order_mu_);
      is_closed_ = order_->num_uses_ == 0 && !order_->is_moving_;
      if (is_closed_) order_->is_moving_ = true;
    }
    ~Moving() {
      if (!is_closed_) return;
      {
        std::lock_guard<std::mutex> lock(order_->order_mu_);
        order_->is_moving_ = false;
      }
      order_->opened_.notify_all();
    }
    Moving(const Moving&) = delete;
    Moving& operator=(const Moving&) = delete;
    bool is_closed() const { return is_closed_; }

   private:
    const std::shared_ptr<MoveOrder> order_;
    bool is_closed_ = false;
  };

 private:
  std::mutex order_mu_;
  std::condition_variable opened_;
  int num_uses_ = 0;
  bool is_moving_ = false;
};

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_ROWS_GPU_MOVE_ORDER_H_
