// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/ids/device_distinct.h"

#include <algorithm>
#include <cstdlib>

namespace ev {

Status DeviceDistinct::Samples(int32_t* offsets) const {
  return Internal("the caller has the samples of ids that were given by Put");
}

Status DeviceDistinct::Places(int32_t* places) const {
  return Internal("keys are sorted by owner only if the request has owners");
}

int64_t MinIdsToDeduplicate(int64_t otherwise) {
  // Negative: not set.
  static const int64_t given = [] {
    const char* const value = std::getenv("TF_EV_GPU_DEDUP_MIN_IDS");
    char* end = nullptr;
    const int64_t ids = value == nullptr ? -1 : std::strtoll(value, &end, 10);
    return value == nullptr || end == value ? int64_t{-1}
                                            : std::max<int64_t>(0, ids);
  }();
  return given < 0 ? otherwise : given;
}

}  // namespace ev
