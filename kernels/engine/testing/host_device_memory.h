// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Memory and a stream of the device of host_device_rows.h, for a framework that
// has its tensors there.
//
// The memory has two addresses. The one that is handed round, as cudaMalloc's
// would be, cannot be read or written: code that takes it for ordinary memory
// is noticed at once. At the other the device works.
//
// The stream does nothing before it has to: code that reads, or writes, without
// having waited for it sees the difference.
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

// Filled with NaN. Null without memory.
void* AllocateHostDeviceMemory(size_t bytes);
// Takes memory of AllocateHostDeviceMemory only.
void FreeHostDeviceMemory(void* memory);
// Where the device works; null for what is no address in such memory.
void* ReachHostDeviceMemory(const void* memory);
template <typename T>
T* Reach(T* memory) {
  return static_cast<T*>(ReachHostDeviceMemory(memory));
}

class HostStream {
 public:
  // What a stream was given before it, which may reach other streams' points.
  class Point {
   public:
    // Does what is left to do; another thread's call waits for this one's.
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
  // Behind all that it has been given.
  std::shared_ptr<Point> Here();
  // Does all that it has been given.
  void Wait() { Here()->Reach(); }
  // To pass it on.
  DeviceStream stream() { return DeviceStream{this}; }
  static HostStream* Of(const DeviceStream& stream) {
    return static_cast<HostStream*>(stream.native);
  }
  static void Wait(const DeviceStream& stream) { Of(stream)->Wait(); }

 private:
  std::mutex mu_;
  std::shared_ptr<Point> last_;  // null, or not known to be reached
  std::vector<std::function<void()>> works_;  // given after it
};

}  // namespace testing
}  // namespace ev

#endif  // KERNELS_ENGINE_TESTING_HOST_DEVICE_MEMORY_H_
