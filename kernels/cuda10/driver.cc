// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/cuda10/driver.h"

#include <dlfcn.h>

#include "kernels/cuda10/errors.h"

namespace cuda10 {
namespace {

struct Found {
  Driver driver;
  int error;
};

template <typename Function>
bool Look(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
  return *function != nullptr;
}

Found Find() {
  Found found = {};
  found.error = kInsufficientDriver;
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return found;
  Driver* d = &found.driver;
  bool all =
      Look(library, "cuInit", &d->init) &&
      Look(library, "cuDeviceGetCount", &d->device_get_count) &&
      Look(library, "cuDeviceGet", &d->device_get) &&
      Look(library, "cuDeviceGetName", &d->device_get_name) &&
      Look(library, "cuDeviceGetUuid", &d->device_get_uuid) &&
      Look(library, "cuDeviceTotalMem_v2", &d->device_total_mem) &&
      Look(library, "cuDeviceGetAttribute", &d->device_get_attribute) &&
      Look(library, "cuDevicePrimaryCtxRetain", &d->primary_retain) &&
      Look(library, "cuCtxGetCurrent", &d->ctx_get_current) &&
      Look(library, "cuCtxSetCurrent", &d->ctx_set_current) &&
      Look(library, "cuCtxGetDevice", &d->ctx_get_device) &&
      Look(library, "cuMemFree_v2", &d->mem_free) &&
      Look(library, "cuPointerGetAttribute", &d->pointer_get_attribute) &&
      Look(library, "cuStreamAddCallback", &d->stream_add_callback);
  if (all) found.error = FromDriver(d->init(0));
  return found;
}

}  // namespace

const Driver* GetDriver(int* error) {
  static const Found found = Find();
  *error = found.error;
  return found.error == kSuccess ? &found.driver : nullptr;
}

}  // namespace cuda10
