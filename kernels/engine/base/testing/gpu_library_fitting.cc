// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/base/gpu_library.h"

namespace {

struct Library : ev::GpuLibrary {
  int answer;
};

}  // namespace

extern "C" __attribute__((visibility("default"))) const ev::GpuLibrary*
ev_cuda_library() {
  static const Library library = {{"7-build"}, 42};
  return &library;
}
