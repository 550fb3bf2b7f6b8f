// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The seam between a lookup over ranks and the device of its rank: what it has
// rows and gradients done to there, so that they need not pass through CPU
// memory. Where keys go is the processor's.
//
// Every call that does not begin something returns when the device is
// done. All calls are thread-safe. Results have the bits of the calls in CPU
// memory that they are named after.

#ifndef ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_EXCHANGE_DEVICE_H_
#define ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_EXCHANGE_DEVICE_H_

#include <cstdint>
#include <memory>

#include "addons/sparse_operation_kit/exchange/route.h"
#include "addons/sparse_operation_kit/exchange/wire_type.h"
#include "kernels/engine/base/device_stream.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"

namespace sok {

// What a device knows of a route: which rows make a sample.
class DeviceRoute {
 public:
  virtual ~DeviceRoute() {}  // waits for what is under way

  // Begins what PoolReceived (pool.h) does: rows, in the device's memory;
  // chunk_starts of row_chunks.h; outputs in CPU memory, or, with a stream, in
  // the device's, where they are written when the device is through with what
  // the stream has. Once. Rows and outputs stay until it has been waited for,
  // or this is destroyed.
  virtual ev::Status StartPool(const char* rows, WireType wire,
                               ev::Span<const int64_t> chunk_starts,
                               ev::Span<float* const> outputs,
                               const ev::DeviceStream* stream) = 0;
  virtual ev::Status Wait() = 0;

  // What PoolGradient (pool.h) does, after Wait: grads are in the device's
  // memory, there when the device is through with what the stream has;
  // chunk_starts of row_chunks.h, of these tables; message in the device's
  // memory. From any thread.
  virtual ev::Status SumGradients(ev::Span<const int> tables,
                                  ev::Span<const float* const> grads,
                                  const ev::DeviceStream& stream,
                                  ev::Span<const int64_t> chunk_starts,
                                  WireType wire, char* message) = 0;
};

// A stretch of numbers that is copied, counted in numbers.
struct WireChunk {
  int64_t from = 0, to = 0, count = 0;
};

class ExchangeDevice : public DistinctDevice {
 public:
  // That of this process, made when it is first asked for and never destroyed.
  // FailedPrecondition, with the reason, when there is none.
  static ev::Status Get(ExchangeDevice** device);

  // Memory of the device, not initialised, aligned to 256 bytes; kept for the
  // next caller that needs so much. Not null. ResourceExhausted.
  virtual ev::Status Allocate(int64_t bytes, std::shared_ptr<char>* memory) = 0;
  // A stream with nothing to do of its own, for calls that want one: what they
  // begin may go on after them.
  virtual ev::DeviceStream stream() = 0;
  // Keeps the memory until the device is through with what that stream has been
  // given so far. Does not wait.
  virtual ev::Status KeepUntilDone(std::shared_ptr<char> memory) = 0;
  virtual ev::Status CopyDown(const char* from, int64_t bytes, char* to) = 0;

  // As ToWire and FromWire of wire_type.h, both ends on the device; FromWire's
  // result times 'scale'.
  virtual ev::Status ToWire(const float* from, int64_t count, WireType wire,
                            char* to) = 0;
  virtual ev::Status FromWire(const char* from, WireType wire,
                              ev::Span<const WireChunk> chunks, float scale,
                              float* to) = 0;

  // Begins to tell the device about a route, which may be of this device
  // (RouteOptions::device) or of none; what was told stays with *route.
  virtual ev::Status StartRoute(std::shared_ptr<const RoutePlan> plan,
                                std::unique_ptr<DeviceRoute>* route) = 0;
};

using ExchangeDeviceFactory = ev::Status (*)(ExchangeDevice** device);

// Called by the static initializer of the library that is linked in. Returns
// true.
bool RegisterExchangeDevice(ExchangeDeviceFactory factory);

}  // namespace sok

#endif  // ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_EXCHANGE_DEVICE_H_
