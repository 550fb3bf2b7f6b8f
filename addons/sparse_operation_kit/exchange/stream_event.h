// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_STREAM_EVENT_H_
#define ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_STREAM_EVENT_H_

#include "kernels/engine/base/device_stream.h"
#include "kernels/engine/base/status.h"

namespace sok {

// A position in the work of this rank's device. Where a parameter may be null,
// null stands for an event that is reached. All calls are thread-safe.
class StreamEvent {
 public:
  virtual ~StreamEvent() {}
  // True if the device has finished the work before the event, or has failed.
  // After a failure of the device, Before and Wait return the error. After an
  // aborted transfer between ranks Wait alone does: Before succeeds, and the
  // buffer has the bytes 'when_failed' (carrier.h).
  virtual bool IsReached() = 0;
  // Makes work that is enqueued on 'stream', of the same device, after this
  // call wait for the event. The host does not wait.
  virtual ev::Status Before(const ev::DeviceStream& stream) = 0;
  // Blocks the calling thread. Internal if the work before the event failed.
  virtual ev::Status Wait() = 0;
};

}  // namespace sok

#endif  // ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_STREAM_EVENT_H_
