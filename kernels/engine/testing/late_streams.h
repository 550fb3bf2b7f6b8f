// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Stand-in for CUDA's streams and events (late_cuda/cuda_runtime_api.h). Work
// enqueued on a stream runs when somebody waits for it, in a random order that
// streams and events allow. A test that repeats its calls with many seeds sees
// an order that the tested code does not enforce.
//
// There are no kernels: a test enqueues functions instead. Device memory is
// ordinary memory. The legacy default stream is not supported.

#ifndef KERNELS_ENGINE_TESTING_LATE_STREAMS_H_
#define KERNELS_ENGINE_TESTING_LATE_STREAMS_H_

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>

namespace ev {
namespace testing {

// Starts the random order anew. REQUIRES: no work is in flight.
void SeedLateStreams(uint32_t seed);

// Enqueues work in place of a kernel. It must not call the runtime.
void Enqueue(cudaStream_t stream, std::function<void()> work);

// Runs all work of all streams.
void WaitForLateStreams();

}  // namespace testing
}  // namespace ev

#endif  // KERNELS_ENGINE_TESTING_LATE_STREAMS_H_
