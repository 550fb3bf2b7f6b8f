// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// RowEvents: the events of steps' work on a table's rows in GPU memory. The
// work is in flight after the call that has enqueued it. A stream must wait for
// all of these events before it reads or writes rows.

#ifndef KERNELS_ENGINE_ROWS_GPU_ROW_EVENTS_H_
#define KERNELS_ENGINE_ROWS_GPU_ROW_EVENTS_H_

#include <memory>
#include <mutex>

#include "kernels/engine/base/gpu/device_event.h"
#include "kernels/engine/base/gpu/in_flight_events.h"
#include "kernels/engine/base/gpu/stream.h"
#include "kernels/engine/base/status.h"

namespace ev {
namespace gpu {

// Thread-safe.
class RowEvents {
 public:
  // Returns the events of work that may be in flight, in any order.
  InFlightEvents in_flight() const;
  // Makes later work of the stream wait for all of them.
  Status Follow(StreamView stream);
  // Adds the event of a call's work on the rows, which waits for the events in
  // 'behind', and removes those. Events that other threads have added since the
  // call read in_flight() stay (base/gpu/in_flight_events.h). If there is no
  // host memory for the event, waits for it instead.
  void Add(std::shared_ptr<DeviceEvent> event, const InFlightEvents& behind);
  // Like Add, for work that also inserts keys into the key table.
  void AddKeys(std::shared_ptr<DeviceEvent> event,
               const InFlightEvents& behind);
  // Event recorded after the last insertion of keys; null if there is none. A
  // lookup must wait for it, since a key that it does not find has no row.
  std::shared_ptr<DeviceEvent> last_keys();
  // Waits until the work has finished, and forgets its events. Other calls wait
  // meanwhile. Errors of the work are ignored: the next call on the device
  // returns them.
  void WaitForAll();

 private:
  mutable std::mutex mu_;
  InFlightEvents in_flight_;
  std::shared_ptr<DeviceEvent> keys_;
};

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_ROWS_GPU_ROW_EVENTS_H_
