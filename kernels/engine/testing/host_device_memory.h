// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Memory and a stream of the stand-in device of host_device_rows.h, for a
// framework that stores its tensors in device memory.
//
// The memory has two addresses. The device address is the one that callers pass
// around, like that of cudaMalloc; the host cannot read or write it, so code
// that takes it for host memory crashes at once. The stand-in accesses the
// memory at the other address, which Reach returns.
//
// The stream runs its work as late as possible, so code that reads or writes
// without waiting gets wrong data.
//
// All calls are thread-safe.

#ifndef KERNELS_ENGINE_TESTING_HOST_DEVICE_MEMORY_H_
#define KERNELS_ENGINE_TESTING_HOST_DEVICE_MEMORY_H_

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "kernels/engine/base/device_stream.h"

namespace ev {
namespace testing {

// Returns the device address of new memory filled with NaN; null if there is no
// memory.
void* AllocateHostDeviceMemory(size_t bytes);
// memory: an address that AllocateHostDeviceMemory returned.
void FreeHostDeviceMemory(void* memory);
// Returns the address at which the stand-in accesses the memory; null if
// 'memory' is not a device address.
void* ReachHostDeviceMemory(const void* memory);
template <typename T>
T* Reach(T* memory) {
  return static_cast<T*>(ReachHostDeviceMemory(memory));
}

// A stream that runs its work only when something waits for it.
class HostStream {
 public:
  // The work that a stream was given before one point of it. That work may wait
  // for points of other streams.
  class Point {
   public:
    // Runs the work that has not run yet. If another thread is running it,
    // waits for that thread.
    void Reach();
    bool is_reached() const { return is_reached_; }

   private:
    friend class HostStream;
    std::once_flag once_;
    std::atomic<bool> is_reached_{false};
    std::shared_ptr<Point> before_;
    std::vector<std::function<void()>> works_;
  };

  void Give(std::function<void()> work);
  // Returns a point after all work that the stream was given so far.
  std::shared_ptr<Point> Record();
  // Runs all work that the stream was given so far.
  void Wait() { Record()->Reach(); }
  // The stream as a parameter of the engine's calls.
  DeviceStream stream() { return DeviceStream{this}; }
  static HostStream* Of(const DeviceStream& stream) {
    return static_cast<HostStream*>(stream.native);
  }
  static void Wait(const DeviceStream& stream) { Of(stream)->Wait(); }

 private:
  std::mutex mu_;
  std::shared_ptr<Point> last_;  // null, or perhaps not reached yet
  std::vector<std::function<void()>> works_;  // work after last_
};

}  // namespace testing
}  // namespace ev

#endif  // KERNELS_ENGINE_TESTING_HOST_DEVICE_MEMORY_H_
