// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// In a program without a cache, as on a machine without a GPU, the cache tests
// are skipped. This program links the stand-in, so none may be skipped.

#include "addons/hierarchical_parameter_server/cache/testing/host_device_cache.h"

#include <memory>

#include "addons/hierarchical_parameter_server/cache/make_device_cache.h"
#include "gtest/gtest.h"

namespace hps {
namespace {

TEST(HostDeviceCacheTest, ProgramUsesThisCache) {
  std::shared_ptr<DeviceCache> cache;
  const ev::Status status = MakeDeviceCache(&cache);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(cache->name(), "the test device");
}

}  // namespace
}  // namespace hps
