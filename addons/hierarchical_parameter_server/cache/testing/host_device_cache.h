// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Cache stand-in for machines without a GPU. It uses the device of
// kernels/engine/testing/host_device_memory.h: the CPU cannot access its memory
// directly, and its stream runs late. Programs linked with this library use it,
// so code above a cache is tested on every machine.
//
// It is strict: it fails a Fill without a Stage and an address that is not in
// the memory that the batch names. It writes device rows only once the lookup
// is finished and the stream has reached that point.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_CACHE_TESTING_HOST_DEVICE_CACHE_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_CACHE_TESTING_HOST_DEVICE_CACHE_H_

#include <cstdint>
#include <memory>

#include "addons/hierarchical_parameter_server/cache/device_cache.h"
#include "kernels/engine/base/status.h"

namespace hps {

ev::Status MakeHostDeviceCache(std::shared_ptr<DeviceCache>* cache);

// Most misses of one Fill. Small, so that short batches take several.
constexpr int64_t kHostDeviceMaxFill = 100;

// Limits the total size of OpenTable; beyond it OpenTable returns
// ResourceExhausted. For tests of a full device. Negative (the default): no
// limit.
void SetHostDeviceCacheBytes(int64_t bytes);
// Makes the machine look as if it had no device. Default: false.
void SetHostDeviceIsGone(bool is_gone);
// Bytes of all existing tables, by CacheBytes.
int64_t HostDeviceCacheBytes();

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_CACHE_TESTING_HOST_DEVICE_CACHE_H_
