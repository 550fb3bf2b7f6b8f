// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/rows/gpu_row_home.h"

#include <algorithm>
#include <atomic>

#include "kernels/engine/base/gpu_library.h"

namespace ev {
namespace {

std::atomic<GpuRowHomeFactory>& Factory() {
  static std::atomic<GpuRowHomeFactory> factory{nullptr};
  return factory;
}

}  // namespace

bool GpuRowCompute::FindStepHandles(Span<const RowHandle> handles,
                                    RowHandle* step_handles) const {
  std::copy(handles.begin(), handles.end(), step_handles);
  return true;
}

void GpuRowCompute::FindTableHandles(Span<const RowHandle> step_handles,
                                     RowHandle* handles) const {
  std::copy(step_handles.begin(), step_handles.end(), handles);
}

const RowHomeCosts& GpuRowHome::costs() const {
  static const RowHomeCosts costs = RowHomeCosts::OfDistantMemory();
  return costs;
}

Status GpuRowHome::Hold(Span<const RowHandle>, const float**,
                        std::unique_ptr<RowHold>*, bool* held) {
  *held = false;
  return Status::OK();
}

bool RegisterGpuRowHome(GpuRowHomeFactory factory) {
  Factory() = factory;
  return true;
}

GpuRowHomeFactory RegisteredGpuRowHome() { return Factory(); }

Status MakeGpuRowHome(const GpuRowHomeOptions& options,
                      std::unique_ptr<GpuRowHome>* home) {
  if (RegisteredGpuRowHome() == nullptr) {
    EV_RETURN_IF_ERROR(LoadGpuLibrary(
        "rows in GPU memory need a library with GPU code: this one was built "
        "without nvcc"));
  }
  return RegisteredGpuRowHome()(options, home);
}

}  // namespace ev
