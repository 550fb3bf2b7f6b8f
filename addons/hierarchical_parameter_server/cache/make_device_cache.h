// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Which kind of cache a program has is decided when it is linked: gpu/ links a
// GPU's, testing/ the stand-in in CPU memory. A library without either serves
// from host memory.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_CACHE_MAKE_DEVICE_CACHE_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_CACHE_MAKE_DEVICE_CACHE_H_

#include <memory>

#include "addons/hierarchical_parameter_server/cache/device_cache.h"
#include "kernels/engine/base/status.h"

namespace hps {

// FailedPrecondition: this machine has no GPU that can be used, or this library
// was built without one; the message says which.
ev::Status MakeDeviceCache(std::shared_ptr<DeviceCache>* cache);

using DeviceCacheFactory = ev::Status (*)(std::shared_ptr<DeviceCache>* cache);
// For static initialisers of what is linked in; one at most. Returns true.
bool RegisterDeviceCache(DeviceCacheFactory factory);

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_CACHE_MAKE_DEVICE_CACHE_H_
