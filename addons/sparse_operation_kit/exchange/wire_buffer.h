// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_WIRE_BUFFER_H_
#define ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_WIRE_BUFFER_H_

#include <cstdint>
#include <memory>

#include "addons/sparse_operation_kit/exchange/exchange_device.h"
#include "addons/sparse_operation_kit/exchange/stream_event.h"
#include "addons/sparse_operation_kit/exchange/wire_type.h"
#include "kernels/engine/base/status.h"

namespace sok {

// A flat array of rows or gradients for an exchange, in host or device memory.
// Copies share the memory, and it is reused after the last one is destroyed:
// ExchangeDevice::KeepUntil holds a copy while the device may still use it.
struct WireBuffer {
  WireType wire = WireType::kFloat32;
  int64_t count = 0;  // numbers of type 'wire'
  bool on_device = false;
  std::shared_ptr<char> memory;
  std::shared_ptr<StreamEvent> ready;  // when they are valid; null: now

  int64_t bytes() const { return count * WireBytes(wire); }
  char* data() const { return memory.get(); }

  // Allocates a buffer, not initialised. ResourceExhausted.
  static ev::Status OnHost(WireType wire, int64_t count, WireBuffer* buffer);
  static ev::Status OnDevice(ExchangeDevice* device, WireType wire,
                             int64_t count, WireBuffer* buffer);

  // Sets *copy to the same numbers in host memory: this buffer itself if it is
  // there already. 'device' owns the device memory. Waits for the device.
  ev::Status ToHost(ExchangeDevice* device, WireBuffer* copy) const;
};

}  // namespace sok

#endif  // ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_WIRE_BUFFER_H_
