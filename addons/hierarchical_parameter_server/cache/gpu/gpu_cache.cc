// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The cache of this process's GPU. A program that links this file uses it if
// the machine has a GPU.

#include <cuda_runtime_api.h>

#include <memory>
#include <string>
#include <utility>

#include "addons/hierarchical_parameter_server/cache/gpu/cache_kernels.h"
#include "addons/hierarchical_parameter_server/cache/gpu/gpu_table.h"
#include "addons/hierarchical_parameter_server/cache/make_device_cache.h"
#include "kernels/engine/base/gpu/cuda_error.h"
#include "kernels/engine/base/gpu/pinned_memory.h"
#include "kernels/engine/base/gpu/process_device.h"

namespace hps {
namespace {

class GpuCache : public DeviceCache {
 public:
  explicit GpuCache(int device)
      : device_(device), name_("GPU " + std::to_string(device)) {}
  const std::string& name() const override { return name_; }
  ev::Status OpenTable(const CacheTableOptions& options,
                       std::shared_ptr<CacheTable>* table) override {
    std::shared_ptr<GpuTable> made;
    EV_RETURN_IF_ERROR(GpuTable::Make(device_, options, &made));
    *table = std::move(made);
    return ev::Status::OK();
  }

 private:
  const int device_;
  const std::string name_;
};

ev::Status MakeGpuCache(std::shared_ptr<DeviceCache>* cache) {
  int device = 0;
  EV_RETURN_IF_ERROR(
      ev::gpu::ProcessDevice("a cache in GPU memory needs", &device));
  EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(device));
  EV_RETURN_IF_ERROR(CheckDeviceRunsCache());
  // Rows can then be copied straight into outputs in pinned memory.
  ev::gpu::OfferPinnedMemory(device);
  *cache = std::make_shared<GpuCache>(device);
  return ev::Status::OK();
}

const bool registered = RegisterDeviceCache(&MakeGpuCache);

}  // namespace
}  // namespace hps
