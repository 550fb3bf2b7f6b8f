// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The cache of a machine without a GPU: the device of
// kernels/engine/testing/host_device_memory.h, whose memory the processor
// cannot touch and whose stream is late. A program that is linked with it has
// this cache, so that all that stands above a cache is tested everywhere.
//
// It is strict: it fails a Fill without its Stage, an address that is not where
// the batch says, and writes rows on the device only when the lookup is
// finished and the stream has come so far.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_CACHE_TESTING_HOST_DEVICE_CACHE_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_CACHE_TESTING_HOST_DEVICE_CACHE_H_

#include <cstdint>
#include <memory>

#include "addons/hierarchical_parameter_server/cache/device_cache.h"
#include "kernels/engine/base/status.h"

namespace hps {

ev::Status MakeHostDeviceCache(std::shared_ptr<DeviceCache>* cache);

// Misses of one Fill: few, so that short batches take several.
constexpr int64_t kHostDeviceMaxFill = 100;

// What OpenTable may give out in all; beyond it is ResourceExhausted. For tests
// of a full device; negative: no limit, which is how it begins.
void SetHostDeviceCacheBytes(int64_t bytes);
// Without a device, as on a machine that has none. Begins as false.
void SetHostDeviceIsGone(bool is_gone);
// Bytes of all tables that live, by CacheBytes.
int64_t HostDeviceCacheBytes();

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_CACHE_TESTING_HOST_DEVICE_CACHE_H_
