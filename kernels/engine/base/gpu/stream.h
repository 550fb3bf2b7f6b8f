// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The engine's view of a CUDA stream that other code owns. Includes no CUDA
// header, so that code that only passes a stream compiles without CUDA.

#ifndef KERNELS_ENGINE_BASE_GPU_STREAM_H_
#define KERNELS_ENGINE_BASE_GPU_STREAM_H_

struct CUstream_st;  // the target of cudaStream_t

namespace ev {
namespace gpu {

// Copyable. The owner keeps the stream alive while calls with it run. A default
// StreamView is the legacy default stream.
class StreamView {
 public:
  StreamView() : stream_(nullptr) {}
  StreamView(CUstream_st* stream)  // NOLINT: implicit on purpose
      : stream_(stream) {}
  CUstream_st* get() const { return stream_; }

 private:
  CUstream_st* stream_;
};

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_BASE_GPU_STREAM_H_
