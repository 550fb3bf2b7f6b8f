// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/hierarchical_parameter_server/cache/make_device_cache.h"

#include <atomic>

namespace hps {
namespace {

// Constant-initialized, so it is valid before any static initializer runs.
std::atomic<DeviceCacheFactory> the_factory{nullptr};

}  // namespace

bool RegisterDeviceCache(DeviceCacheFactory factory) {
  the_factory.store(factory);
  return true;
}

ev::Status MakeDeviceCache(std::shared_ptr<DeviceCache>* cache) {
  const DeviceCacheFactory factory = the_factory.load();
  if (factory == nullptr) {
    return ev::FailedPrecondition("this library was built without CUDA");
  }
  return factory(cache);
}

}  // namespace hps
