// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The kind of cache that a program has: in a GPU if it links gpu/ or loads a
// CUDA library, in CPU memory if it links the stand-in of testing/. A program
// without either serves from host memory.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_CACHE_MAKE_DEVICE_CACHE_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_CACHE_MAKE_DEVICE_CACHE_H_

#include <memory>

#include "addons/hierarchical_parameter_server/cache/device_cache.h"
#include "kernels/engine/base/status.h"

namespace hps {

// Loads the CUDA library if no factory is registered. FailedPrecondition: this
// machine has no GPU that can be used, or this library was built without CUDA;
// the message is the reason. Internal: the CUDA library cannot be loaded.
ev::Status MakeDeviceCache(std::shared_ptr<DeviceCache>* cache);

using DeviceCacheFactory = ev::Status (*)(std::shared_ptr<DeviceCache>* cache);
// Called by a static initializer of the code that a program links, or with the
// factory of a CUDA library that was loaded. Returns true.
bool RegisterDeviceCache(DeviceCacheFactory factory);
// Null: none is registered. Loads no CUDA library.
DeviceCacheFactory RegisteredDeviceCache();

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_CACHE_MAKE_DEVICE_CACHE_H_
