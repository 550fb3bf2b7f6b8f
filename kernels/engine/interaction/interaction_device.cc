// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/interaction/interaction_device.h"

#include <atomic>

#include "kernels/engine/base/gpu_library.h"

namespace ev {
namespace {

std::atomic<InteractionDevice*>& TheDevice() {
  static std::atomic<InteractionDevice*> device{nullptr};
  return device;
}

}  // namespace

bool RegisterInteractionDevice(InteractionDevice* device) {
  TheDevice() = device;
  return true;
}

InteractionDevice* RegisteredInteractionDevice() { return TheDevice(); }

Status InteractionDevice::Get(InteractionDevice** device) {
  if (RegisteredInteractionDevice() == nullptr) {
    EV_RETURN_IF_ERROR(LoadGpuLibrary(
        "dot products of vectors in GPU memory need a library with GPU code: "
        "this one was built without nvcc"));
  }
  *device = RegisteredInteractionDevice();
  return Status::OK();
}

}  // namespace ev
