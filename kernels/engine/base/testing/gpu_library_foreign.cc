// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/base/gpu_library.h"

extern "C" __attribute__((visibility("default"))) const ev::GpuLibrary*
ev_cuda_library() {
  static const ev::GpuLibrary library = {"6-build\xff"};
  return &library;
}
