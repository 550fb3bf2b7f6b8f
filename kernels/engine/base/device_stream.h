// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef KERNELS_ENGINE_BASE_DEVICE_STREAM_H_
#define KERNELS_ENGINE_BASE_DEVICE_STREAM_H_

namespace ev {

// A stream of a framework on the device that has the rows. What comes with one
// is in that device's memory: it may be read, or written, when the device is
// through with what the stream has been given so far; the receiver waits for
// that. Memory that the framework gave out for an output counts too: work
// before may still be using it.
struct DeviceStream {
  void* native = nullptr;  // of a GPU: cudaStream_t
};

}  // namespace ev

#endif  // KERNELS_ENGINE_BASE_DEVICE_STREAM_H_
