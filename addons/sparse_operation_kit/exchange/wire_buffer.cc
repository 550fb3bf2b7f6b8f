// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/sparse_operation_kit/exchange/wire_buffer.h"

#include <algorithm>
#include <new>

#include "kernels/engine/base/transfer_scratch.h"

namespace sok {

ev::Status WireBuffer::OnHost(WireType wire, int64_t count,
                              WireBuffer* buffer) {
  try {
    const auto scratch = std::make_shared<ev::TransferScratch>();
    buffer->wire = wire;
    buffer->count = count;
    buffer->on_device = false;
    // An empty buffer has an address too.
    char* const data = static_cast<char*>(
        scratch->Reserve(std::max<int64_t>(1, buffer->bytes())));
    buffer->memory = std::shared_ptr<char>(scratch, data);
  } catch (const std::bad_alloc&) {
    return ev::ResourceExhausted("lookup over ranks: out of memory");
  }
  return ev::Status::OK();
}

ev::Status WireBuffer::OnDevice(ExchangeDevice* device, WireType wire,
                                int64_t count, WireBuffer* buffer) {
  EV_RETURN_IF_ERROR(
      device->Allocate(count * WireBytes(wire), &buffer->memory));
  buffer->wire = wire;
  buffer->count = count;
  buffer->on_device = true;
  return ev::Status::OK();
}

ev::Status WireBuffer::ToHost(ExchangeDevice* device, WireBuffer* copy) const {
  if (!on_device) {
    *copy = *this;
    return ev::Status::OK();
  }
  EV_RETURN_IF_ERROR(OnHost(wire, count, copy));
  if (ready != nullptr) EV_RETURN_IF_ERROR(ready->Wait());
  return device->CopyDown(data(), bytes(), copy->data());
}

}  // namespace sok
