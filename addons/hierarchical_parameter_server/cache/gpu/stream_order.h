// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Orders the streams that use a table's device memory: reads run concurrently,
// a write runs alone. Only streams wait, not the host.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_CACHE_GPU_STREAM_ORDER_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_CACHE_GPU_STREAM_ORDER_H_

#include <algorithm>
#include <memory>
#include <vector>

#include "kernels/engine/base/gpu/device_event.h"
#include "kernels/engine/base/gpu/stream.h"
#include "kernels/engine/base/status.h"

namespace hps {

// All methods are called under the table's lock, which is held from Begin to
// End of one use.
class StreamOrder {
 public:
  ev::Status BeginRead(ev::gpu::StreamView stream) {
    return written_ == nullptr ? ev::Status::OK() : written_->Before(stream);
  }
  ev::Status EndRead(ev::gpu::StreamView stream) {
    // Callers wait for their own reads, so most events of a long list are
    // complete.
    if (reads_.size() >= kLookAfter) {
      reads_.erase(
          std::remove_if(reads_.begin(), reads_.end(),
                         [](const auto& read) { return read->has_passed(); }),
          reads_.end());
    }
    reads_.emplace_back();
    const ev::Status status =
        ev::gpu::DeviceEvent::Record(stream, &reads_.back());
    if (!status.ok()) reads_.pop_back();
    return status;
  }

  ev::Status BeginWrite(ev::gpu::StreamView stream) {
    EV_RETURN_IF_ERROR(BeginRead(stream));
    for (const auto& read : reads_) EV_RETURN_IF_ERROR(read->Before(stream));
    return ev::Status::OK();
  }
  ev::Status EndWrite(ev::gpu::StreamView stream) {
    EV_RETURN_IF_ERROR(ev::gpu::DeviceEvent::Record(stream, &written_));
    reads_.clear();
    return ev::Status::OK();
  }

  // Blocks the host until all uses are complete.
  ev::Status Wait() {
    for (const auto& read : reads_) EV_RETURN_IF_ERROR(read->Wait());
    return written_ == nullptr ? ev::Status::OK() : written_->Wait();
  }

 private:
  static constexpr size_t kLookAfter = 64;
  std::shared_ptr<ev::gpu::DeviceEvent> written_;
  // Reads enqueued since the last write.
  std::vector<std::shared_ptr<ev::gpu::DeviceEvent>> reads_;
};

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_CACHE_GPU_STREAM_ORDER_H_
