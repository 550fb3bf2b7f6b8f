// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_STREAM_MARK_H_
#define ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_STREAM_MARK_H_

#include "kernels/engine/base/device_stream.h"
#include "kernels/engine/base/status.h"

namespace sok {

// A point of the work of the rank's device. Where a null mark may come, it is
// one that has been reached. All calls are thread-safe.
class StreamMark {
 public:
  virtual ~StreamMark() {}
  // Whether the device is through with what came before, or has failed: what
  // uses the mark then says so.
  virtual bool IsReached() = 0;
  // What the stream, of the same device, is given from now on comes after the
  // mark. Waits for nothing.
  virtual ev::Status Before(const ev::DeviceStream& stream) = 0;
  // The processor waits. Internal where what came before has failed.
  virtual ev::Status Wait() = 0;
};

}  // namespace sok

#endif  // ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_STREAM_MARK_H_
