// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Creates the device cache of this program: the GPU's if it links gpu/ or loads
// a CUDA library, the stand-in in CPU memory if it links testing/. A program
// without either serves from host memory.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_CACHE_MAKE_DEVICE_CACHE_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_CACHE_MAKE_DEVICE_CACHE_H_

#include <memory>

#include "addons/hierarchical_parameter_server/cache/device_cache.h"
#include "kernels/engine/base/status.h"

namespace hps {

// Loads the CUDA library if no factory is registered. FailedPrecondition: this
// machine has no usable GPU, or the library was built without CUDA; the message
// has the reason. Internal: the CUDA library cannot be loaded.
ev::Status MakeDeviceCache(std::shared_ptr<DeviceCache>* cache);

using DeviceCacheFactory = ev::Status (*)(std::shared_ptr<DeviceCache>* cache);
// Called by a static initializer of the linked cache, or with the factory of a
// loaded CUDA library. Returns true.
bool RegisterDeviceCache(DeviceCacheFactory factory);
// Null: none is registered. Loads no CUDA library.
DeviceCacheFactory RegisteredDeviceCache();

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_CACHE_MAKE_DEVICE_CACHE_H_
