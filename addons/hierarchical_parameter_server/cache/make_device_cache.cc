// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/hierarchical_parameter_server/cache/make_device_cache.h"

#include <atomic>

#include "kernels/engine/base/gpu_library.h"

namespace hps {
namespace {

// Constant-initialized, so it is valid before any static initializer runs.
std::atomic<DeviceCacheFactory> the_factory{nullptr};

}  // namespace

bool RegisterDeviceCache(DeviceCacheFactory factory) {
  the_factory.store(factory);
  return true;
}

DeviceCacheFactory RegisteredDeviceCache() { return the_factory.load(); }

ev::Status MakeDeviceCache(std::shared_ptr<DeviceCache>* cache) {
  if (RegisteredDeviceCache() == nullptr) {
    EV_RETURN_IF_ERROR(
        ev::LoadGpuLibrary("this library was built without CUDA"));
  }
  return RegisteredDeviceCache()(cache);
}

}  // namespace hps
