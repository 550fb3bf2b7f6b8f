// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/testing/late_streams.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <iterator>
#include <memory>
#include <mutex>
#include <random>
#include <utility>
#include <vector>

namespace {

// One entry of a stream's queue.
struct Work {
  std::function<void()> run;
  std::shared_ptr<bool> waits_for;  // null, or runs only once this is true
};

}  // namespace

struct CUstream_st {
  std::deque<Work> queue;
};

struct CUevent_st {
  std::shared_ptr<bool> has_passed;  // of the last record; null: none
};

namespace {

// Guards the streams and their work.
std::mutex mu;
std::vector<cudaStream_t> streams;
std::mt19937 random_bits;
cudaStream_t running = nullptr;  // the stream whose work ran last

bool CanRun(const CUstream_st& stream) {
  return !stream.queue.empty() && (stream.queue.front().waits_for == nullptr ||
                                   *stream.queue.front().waits_for);
}

// Runs the next work of a random stream that can run. Mostly continues with the
// same stream, so that some streams fall far behind others. Returns false if no
// stream can run.
bool RunOne() {
  std::vector<cudaStream_t> ready;
  std::copy_if(streams.begin(), streams.end(), std::back_inserter(ready),
               [](cudaStream_t stream) { return CanRun(*stream); });
  if (ready.empty()) return false;
  if (random_bits() % 4 == 0 ||
      std::find(ready.begin(), ready.end(), running) == ready.end()) {
    running = ready[random_bits() % ready.size()];
  }
  const Work work = std::move(running->queue.front());
  running->queue.pop_front();
  if (work.run != nullptr) work.run();
  return true;
}

template <typename Condition>
void RunUntil(const Condition& holds) {
  while (!holds()) {
    if (RunOne()) continue;
    std::fputs("streams wait for each other\n", stderr);
    std::abort();
  }
}

// Queries let some work run, so that they see every state.
template <typename Condition>
cudaError_t Query(const Condition& holds) {
  std::lock_guard<std::mutex> lock(mu);
  for (uint32_t n = random_bits() % 4; n > 0 && RunOne(); --n) {
  }
  return holds() ? cudaSuccess : cudaErrorNotReady;
}

template <typename Condition>
cudaError_t Wait(const Condition& holds) {
  std::lock_guard<std::mutex> lock(mu);
  RunUntil(holds);
  return cudaSuccess;
}

bool IsIdle(cudaStream_t stream) { return stream->queue.empty(); }
bool AreAllIdle() {
  return std::all_of(streams.begin(), streams.end(), IsIdle);
}
bool HasPassed(cudaEvent_t event) {
  return event->has_passed == nullptr || *event->has_passed;
}

cudaError_t Push(cudaStream_t stream, Work work) {
  std::lock_guard<std::mutex> lock(mu);
  stream->queue.push_back(std::move(work));
  return cudaSuccess;
}

cudaError_t Allocate(void** memory, size_t bytes) {
  *memory = std::malloc(bytes);
  return *memory == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
}

}  // namespace

const char* cudaGetErrorName(cudaError_t) { return "an error"; }
const char* cudaGetErrorString(cudaError_t) { return "an error"; }
cudaError_t cudaGetLastError() { return cudaSuccess; }
cudaError_t cudaSetDevice(int) { return cudaSuccess; }
cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** memory, size_t bytes) {
  return Allocate(memory, bytes);
}
cudaError_t cudaMallocHost(void** memory, size_t bytes) {
  return Allocate(memory, bytes);
}
cudaError_t cudaHostAlloc(void** memory, size_t bytes, unsigned) {
  return Allocate(memory, bytes);
}
cudaError_t cudaFree(void* memory) {
  Wait(AreAllIdle);
  std::free(memory);
  return cudaSuccess;
}
cudaError_t cudaFreeHost(void* memory) { return cudaFree(memory); }
cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  *free = *total = size_t{1} << 40;
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes,
                            cudaMemcpyKind, cudaStream_t stream) {
  return Push(stream, {[=] { std::memcpy(to, from, bytes); }, nullptr});
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = *greatest = 0;
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  std::lock_guard<std::mutex> lock(mu);
  *stream = new CUstream_st;
  streams.push_back(*stream);
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags,
                                         int) {
  return cudaStreamCreateWithFlags(stream, flags);
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  std::lock_guard<std::mutex> lock(mu);
  RunUntil([=] { return IsIdle(stream); });
  streams.erase(std::find(streams.begin(), streams.end(), stream));
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return Wait([=] { return IsIdle(stream); });
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return Query([=] { return IsIdle(stream); });
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event,
                                unsigned) {
  return Push(stream, {nullptr, event->has_passed});
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = new CUevent_st;
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  const auto has_passed = std::make_shared<bool>(false);
  event->has_passed = has_passed;
  return Push(stream, {[=] { *has_passed = true; }, nullptr});
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return Wait([=] { return HasPassed(event); });
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  return Query([=] { return HasPassed(event); });
}

namespace ev {
namespace testing {

void SeedLateStreams(uint32_t seed) {
  std::lock_guard<std::mutex> lock(mu);
  random_bits.seed(seed);
  running = nullptr;
}

void Enqueue(cudaStream_t stream, std::function<void()> work) {
  Push(stream, {std::move(work), nullptr});
}

void WaitForLateStreams() { Wait(AreAllIdle); }

}  // namespace testing
}  // namespace ev
