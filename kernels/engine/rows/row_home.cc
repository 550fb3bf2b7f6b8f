// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/rows/row_home.h"

#include <atomic>

namespace ev {
namespace {

std::atomic<DeviceRowsFactory>& Factory() {
  static std::atomic<DeviceRowsFactory> factory{nullptr};
  return factory;
}

}  // namespace

bool RegisterDeviceRows(DeviceRowsFactory factory) {
  Factory() = factory;
  return true;
}

Status MakeDeviceRows(const DeviceRowsOptions& options,
                      std::unique_ptr<DeviceRows>* rows) {
  const DeviceRowsFactory factory = Factory();
  if (factory == nullptr) {
    return FailedPrecondition(
        "rows in GPU memory need a library with GPU code: this one was built "
        "without nvcc");
  }
  return factory(options, rows);
}

}  // namespace ev
