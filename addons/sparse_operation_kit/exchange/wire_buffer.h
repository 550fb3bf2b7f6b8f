// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_WIRE_BUFFER_H_
#define ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_WIRE_BUFFER_H_

#include <cstdint>
#include <memory>

#include "addons/sparse_operation_kit/exchange/exchange_device.h"
#include "addons/sparse_operation_kit/exchange/stream_mark.h"
#include "addons/sparse_operation_kit/exchange/wire_type.h"
#include "kernels/engine/base/status.h"

namespace sok {

// Rows or gradients on their way, flat, in CPU memory or in the device's. Its
// memory goes back with the last copy, to be used again: what the device may
// still do with it has a copy (ExchangeDevice::KeepUntil).
struct WireBuffer {
  WireType wire = WireType::kFloat32;
  int64_t count = 0;  // numbers of that type
  bool on_device = false;
  std::shared_ptr<char> memory;
  std::shared_ptr<StreamMark> there;  // null: the numbers are there

  int64_t bytes() const { return count * WireBytes(wire); }
  char* data() const { return memory.get(); }

  // Not initialised. ResourceExhausted.
  static ev::Status OnHost(WireType wire, int64_t count, WireBuffer* buffer);
  static ev::Status OnDevice(ExchangeDevice* device, WireType wire,
                             int64_t count, WireBuffer* buffer);

  // These numbers in CPU memory: itself, if it is there. 'device': whose the
  // memory is. Waits.
  ev::Status ToHost(ExchangeDevice* device, WireBuffer* copy) const;
};

}  // namespace sok

#endif  // ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_WIRE_BUFFER_H_
