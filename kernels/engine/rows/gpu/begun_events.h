// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Behind what calls began on a GPU's rows, and did not wait for.

#ifndef KERNELS_ENGINE_ROWS_GPU_BEGUN_EVENTS_H_
#define KERNELS_ENGINE_ROWS_GPU_BEGUN_EVENTS_H_

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

namespace ev {
namespace gpu {

class DeviceEvent;

using BegunEvents = std::vector<std::shared_ptr<DeviceEvent>>;

// Adds the event of a call that comes after 'followed', which need not be
// remembered then. What another thread added since the call looked stays: that
// and the call may run at once. Throws std::bad_alloc.
inline void AddBegun(std::shared_ptr<DeviceEvent> event,
                     const BegunEvents& followed, BegunEvents* begun) {
  begun->erase(std::remove_if(begun->begin(), begun->end(),
                              [&](const std::shared_ptr<DeviceEvent>& one) {
                                return std::find(followed.begin(),
                                                 followed.end(),
                                                 one) != followed.end();
                              }),
               begun->end());
  begun->push_back(std::move(event));
}

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_ROWS_GPU_BEGUN_EVENTS_H_
