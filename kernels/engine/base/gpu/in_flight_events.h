// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// InFlightEvents: one event for each call whose work on a table's rows may be
// in flight. Later work on the rows must wait for all of them.

#ifndef KERNELS_ENGINE_BASE_GPU_IN_FLIGHT_EVENTS_H_
#define KERNELS_ENGINE_BASE_GPU_IN_FLIGHT_EVENTS_H_

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

namespace ev {
namespace gpu {

class DeviceEvent;

using InFlightEvents = std::vector<std::shared_ptr<DeviceEvent>>;

// Adds the event of a call whose work waits for the events in 'followed', and
// removes those events: they need not be waited for again. Events that other
// threads added after the call read the list stay, because their calls and this
// one may run in parallel. Throws std::bad_alloc.
inline void AddEvent(std::shared_ptr<DeviceEvent> event,
                     const InFlightEvents& followed,
                     InFlightEvents* in_flight) {
  in_flight->erase(std::remove_if(in_flight->begin(), in_flight->end(),
                                  [&](const std::shared_ptr<DeviceEvent>& one) {
                                    return std::find(followed.begin(),
                                                     followed.end(),
                                                     one) != followed.end();
                                  }),
                   in_flight->end());
  in_flight->push_back(std::move(event));
}

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_BASE_GPU_IN_FLIGHT_EVENTS_H_
