// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Creates the device cache that is linked into the program: gpu/ links the
// GPU's, testing/ the stand-in in CPU memory. A program with neither serves
// from host memory.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_CACHE_MAKE_DEVICE_CACHE_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_CACHE_MAKE_DEVICE_CACHE_H_

#include <memory>

#include "addons/hierarchical_parameter_server/cache/device_cache.h"
#include "kernels/engine/base/status.h"

namespace hps {

// FailedPrecondition: this machine has no usable GPU, or the library was built
// without GPU code; the message has the reason.
ev::Status MakeDeviceCache(std::shared_ptr<DeviceCache>* cache);

using DeviceCacheFactory = ev::Status (*)(std::shared_ptr<DeviceCache>* cache);
// For static initializers of the linked cache; one at most. Returns true.
bool RegisterDeviceCache(DeviceCacheFactory factory);

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_CACHE_MAKE_DEVICE_CACHE_H_
