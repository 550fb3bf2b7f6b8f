// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/rows/gpu/row_events.h"

#include <new>
#include <utility>

namespace ev {
namespace gpu {

InFlightEvents RowEvents::in_flight() const {
  std::lock_guard<std::mutex> lock(mu_);
  return in_flight_;
}

Status RowEvents::Follow(StreamView stream) {
  std::lock_guard<std::mutex> lock(mu_);
  for (size_t i = 0; i < in_flight_.size();) {
    if (in_flight_[i]->has_passed()) {
      in_flight_.erase(in_flight_.begin() + i);
      continue;
    }
    EV_RETURN_IF_ERROR(in_flight_[i++]->Before(stream));
  }
  return Status::OK();
}

void RowEvents::Add(std::shared_ptr<DeviceEvent> event,
                    const InFlightEvents& behind) {
  std::lock_guard<std::mutex> lock(mu_);
  try {
    AddEvent(event, behind, &in_flight_);
  } catch (const std::bad_alloc&) {
    // After this wait the event need not be in the list.
    const Status status = event->Wait();
    (void)status;  // as in WaitForAll
  }
}

void RowEvents::AddKeys(std::shared_ptr<DeviceEvent> event,
                        const InFlightEvents& behind) {
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
  for (const std::shared_ptr<DeviceEvent>& event : in_flight_) {
    const Status status = event->Wait();
    (void)status;
  }
  in_flight_.clear();
}

}  // namespace gpu
}  // namespace ev
