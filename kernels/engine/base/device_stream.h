// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef KERNELS_ENGINE_BASE_DEVICE_STREAM_H_
#define KERNELS_ENGINE_BASE_DEVICE_STREAM_H_

namespace ev {

// A framework's stream on the device that holds the rows. Pointers passed along
// with a stream are in that device's memory. The callee reads or writes them
// only after all work that the stream holds at the time of the call, and
// arranges that wait itself. This includes memory that the framework allocated
// for an output: earlier work may still be using it.
struct DeviceStream {
  void* native = nullptr;  // for a GPU: cudaStream_t
};

}  // namespace ev

#endif  // KERNELS_ENGINE_BASE_DEVICE_STREAM_H_
