// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include <cuda_runtime_api.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <thread>
#include <utility>

#include "kernels/engine/testing/stream_under_test.h"

namespace ev {
namespace testing {
namespace {

void Must(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
  std::abort();
}

void CUDART_CB Dawdle(void*) {
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
}

void CUDART_CB DoLate(void* given) {
  const std::unique_ptr<std::function<void()>> work(
      static_cast<std::function<void()>*>(given));
  Dawdle(nullptr);
  (*work)();
}

// Uses the current device, that of the rows created last.
class GpuStreamUnderTest : public StreamUnderTest {
 public:
  GpuStreamUnderTest() {
    Must(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "stream");
    Must(cudaStreamCreateWithFlags(&peeks_, cudaStreamNonBlocking), "stream");
  }
  ~GpuStreamUnderTest() override {
    Must(cudaStreamSynchronize(stream_), "wait");
    for (float* memory : memory_) Must(cudaFree(memory), "free");
    Must(cudaStreamDestroy(stream_), "stream");
    Must(cudaStreamDestroy(peeks_), "stream");
  }
  DeviceStream stream() override { return DeviceStream{stream_}; }
  float* Allocate(int64_t n) override {
    void* memory = nullptr;
    Must(cudaMalloc(&memory, n * sizeof(float)), "memory");
    Must(cudaMemset(memory, 0xff, n * sizeof(float)), "memory");
    // cudaMemset returns before the memory is set, and other streams do not
    // wait for it.
    Must(cudaStreamSynchronize(nullptr), "wait");
    memory_.push_back(static_cast<float*>(memory));
    return memory_.back();
  }
  void Fill(const std::vector<float>& from, float* to) override {
    Must(cudaLaunchHostFunc(stream_, &Dawdle, nullptr), "a host's function");
    Must(cudaMemcpyAsync(to, from.data(), from.size() * sizeof(float),
                         cudaMemcpyHostToDevice, stream_),
         "a copy");
  }
  std::vector<float> Peek(const float* from, int64_t n) override {
    std::vector<float> out(n);
    Must(cudaMemcpyAsync(out.data(), from, n * sizeof(float),
                         cudaMemcpyDeviceToHost, peeks_),
         "a copy");
    Must(cudaStreamSynchronize(peeks_), "wait");
    return out;
  }

  void Wait() override { Must(cudaStreamSynchronize(stream_), "wait"); }

 private:
  cudaStream_t stream_ = nullptr, peeks_ = nullptr;
  std::vector<float*> memory_;
};

}  // namespace

std::unique_ptr<StreamUnderTest> StreamUnderTest::Make() {
  return std::unique_ptr<StreamUnderTest>(new GpuStreamUnderTest);
}

void GiveLate(const DeviceStream& stream, std::function<void()> work) {
  Must(cudaLaunchHostFunc(static_cast<cudaStream_t>(stream.native), &DoLate,
                          new std::function<void()>(std::move(work))),
       "a host's function");
}

}  // namespace testing
}  // namespace ev
