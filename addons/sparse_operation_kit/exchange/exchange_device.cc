// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/sparse_operation_kit/exchange/exchange_device.h"

#include <atomic>

#include "kernels/engine/base/gpu_library.h"

namespace sok {
namespace {

std::atomic<ExchangeDeviceFactory>& Factory() {
  static std::atomic<ExchangeDeviceFactory> factory{nullptr};
  return factory;
}

struct Made {
  ev::Status status;
  ExchangeDevice* device = nullptr;
};

Made Make() {
  Made made;
  if (RegisteredExchangeDevice() == nullptr) {
    made.status = ev::LoadGpuLibrary(
        "exchanging rows between GPUs needs a library with GPU code: "
        "this one was built without nvcc");
  }
  if (made.status.ok()) made.status = RegisteredExchangeDevice()(&made.device);
  return made;
}

}  // namespace

bool RegisterExchangeDevice(ExchangeDeviceFactory factory) {
  Factory() = factory;
  return true;
}

ExchangeDeviceFactory RegisteredExchangeDevice() { return Factory(); }

ev::Status ExchangeDevice::Get(ExchangeDevice** device) {
  static const Made* const made = new Made(Make());
  *device = made->device;
  return made->status;
}

}  // namespace sok
