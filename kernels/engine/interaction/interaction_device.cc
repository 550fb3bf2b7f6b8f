// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/interaction/interaction_device.h"

#include <atomic>

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

Status InteractionDevice::Get(InteractionDevice** device) {
  *device = TheDevice();
  if (*device != nullptr) return Status::OK();
  return FailedPrecondition(
      "dot products of vectors in GPU memory need a library with GPU code: "
      "this "
      "one was built without nvcc");
}

}  // namespace ev
