// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef KERNELS_ENGINE_TESTING_HOST_DEVICE_UPDATE_H_
#define KERNELS_ENGINE_TESTING_HOST_DEVICE_UPDATE_H_

#include <cstdint>
#include <vector>

#include "kernels/engine/base/row_handle.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/rows/gpu_compute.h"
#include "kernels/engine/testing/host_device_distinct.h"

namespace ev {
namespace testing {

// The handles of an update, wherever they come from.
inline std::vector<RowHandle> HandlesOf(const DevicePooledUpdate& update) {
  if (update.distinct == nullptr || !update.handles.empty()) {
    Check(update.unknown_handles.empty(), "handles come twice",
          update.handles.size());
    return {update.handles.begin(), update.handles.end()};
  }
  const auto& distinct =
      static_cast<const HostDeviceDistinct&>(*update.distinct->made());
  std::vector<RowHandle> handles(distinct.all_names().begin(),
                                 distinct.all_names().end());
  const Span<const RowHandle> unknown = update.unknown_handles;
  if (unknown.empty()) return handles;
  Check(static_cast<int64_t>(unknown.size()) == distinct.num_unknown(),
        "handles are not those of the unknown keys", unknown.size());
  for (size_t k = 0; k < unknown.size(); ++k) {
    handles[distinct.unknown_numbers()[k]] = unknown[k];
  }
  return handles;
}

}  // namespace testing
}  // namespace ev

#endif  // KERNELS_ENGINE_TESTING_HOST_DEVICE_UPDATE_H_
