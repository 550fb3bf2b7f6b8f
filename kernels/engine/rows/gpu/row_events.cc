// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/rows/gpu/row_events.h"

#include <new>
#include <utility>

namespace ev {
namespace gpu {

BegunEvents RowEvents::begun() const {
  std::lock_guard<std::mutex> lock(mu_);
  return begun_;
}

Status RowEvents::Follow(StreamView stream) {
  std::lock_guard<std::mutex> lock(mu_);
  for (size_t i = 0; i < begun_.size();) {
    if (begun_[i]->has_passed()) {
      begun_.erase(begun_.begin() + i);
      continue;
    }
    EV_RETURN_IF_ERROR(begun_[i++]->Before(stream));
  }
  return Status::OK();
}

void RowEvents::Add(std::shared_ptr<DeviceEvent> event,
                    const BegunEvents& behind) {
  std::lock_guard<std::mutex> lock(mu_);
  try {
    AddEvent(event, behind, &begun_);
  } catch (const std::bad_alloc&) {
    // After this wait the event need not be in the list.
    const Status status = event->Wait();
    (void)status;  // as in WaitForAll
  }
}

void RowEvents::AddKeys(std::shared_ptr<DeviceEvent> event,
                        const BegunEvents& behind) {
  Add(event, behind);
  std::lock_guard<std::mutex> lock(mu_);
  keys_ = std::move(event);
}

std::shared_ptr<DeviceEvent> RowEvents::last_keys() {
  std::lock_guard<std::mutex> lock(mu_);
  if (keys_ != nullptr && keys_->has_passed()) keys_.reset();
  return keys_;
}

void RowEvents::WaitForAll() {
  std::lock_guard<std::mutex> lock(mu_);
  for (const std::shared_ptr<DeviceEvent>& event : begun_) {
    const Status status = event->Wait();
    (void)status;
  }
  begun_.clear();
}

}  // namespace gpu
}  // namespace ev
