// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The interface between a lookup over ranks and the device of this rank. It
// pools rows and sums gradients in device memory, so that they need not pass
// through host memory. Routing of keys stays on the CPU.
//
// Calls enqueue work on the device and do not wait for it unless documented.
// Their inputs and outputs must stay until an event is reached
// (stream_event.h). All calls are thread-safe. Results have the same bits as
// the host functions that they are named after.

#ifndef ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_EXCHANGE_DEVICE_H_
#define ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_EXCHANGE_DEVICE_H_

#include <cstdint>
#include <memory>

#include "addons/sparse_operation_kit/exchange/route.h"
#include "addons/sparse_operation_kit/exchange/stream_event.h"
#include "addons/sparse_operation_kit/exchange/wire_type.h"
#include "kernels/engine/base/device_stream.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"

namespace sok {

// A route's copy in device memory: which rows make up each sample.
class DeviceRoute {
 public:
  virtual ~DeviceRoute() {}  // waits for work in flight

  // Starts PoolReceived (pool.h). May be called once.
  // rows: in device memory, valid when 'ready' is reached (null: now).
  // chunk_starts: result of row_chunks.h.
  // outputs: one per table; null: the table is not pooled. In host memory if
  // 'stream' is null. Otherwise in device memory: they are written after the
  // stream's work so far, and are complete for work that is enqueued on the
  // stream later.
  // Rows, outputs and the route must stay until *done is reached. *done is not
  // set if no table is pooled, nor if 'stream' is null: call Wait then. On
  // error no work is in flight.
  virtual ev::Status StartPool(const char* rows, WireType wire,
                               const std::shared_ptr<StreamEvent>& ready,
                               ev::Span<const int64_t> chunk_starts,
                               ev::Span<const ev::MutableFloats> outputs,
                               const ev::DeviceStream* stream,
                               std::shared_ptr<StreamEvent>* done) = 0;
  // Waits until outputs in host memory are written.
  virtual ev::Status Wait() = 0;

  // Starts PoolGradient (pool.h); call it after StartPool, from any thread.
  // grads: in device memory, valid after the stream's work so far.
  // chunk_starts: result of row_chunks.h for these tables. message: in device
  // memory. Grads, message and the route must stay until *done is reached. On
  // error no work is in flight.
  virtual ev::Status SumGradients(ev::Span<const int> tables,
                                  ev::Span<const ev::ConstFloats> grads,
                                  const ev::DeviceStream& stream,
                                  ev::Span<const int64_t> chunk_starts,
                                  WireType wire, char* message,
                                  std::shared_ptr<StreamEvent>* done) = 0;
};

// One contiguous copy; offsets and count are in elements, not bytes.
struct WireChunk {
  int64_t from = 0, to = 0, count = 0;
};

class ExchangeDevice : public DistinctDevice {
 public:
  // Returns this process's device, which the first call creates and which is
  // never destroyed. Loads the CUDA library if no factory is registered.
  // FailedPrecondition, with the reason, if there is no device; Internal if the
  // CUDA library cannot be loaded. Later calls return the error of the first
  // one.
  static ev::Status Get(ExchangeDevice** device);

  // Allocates device memory: not initialised, aligned to 256 bytes, never null.
  // Released memory is kept for the next caller of the same size, so no work
  // may be in flight on it when it is released. If memory is short, waits up
  // to 10 s for memory that KeepUntil holds. ResourceExhausted.
  virtual ev::Status Allocate(int64_t bytes, std::shared_ptr<char>* memory) = 0;
  // A stream without work of its own, for calls that take one. The work that
  // such a call enqueues may go on after it returns.
  virtual ev::DeviceStream stream() = 0;
  // Returns an event for the work enqueued on 'stream' so far. If there is no
  // memory for one, waits for that work and sets *event to null.
  virtual ev::Status RecordEvent(const ev::DeviceStream& stream,
                                 std::shared_ptr<StreamEvent>* event) = 0;
  // Keeps 'what' alive until the event is reached, or a little longer. Waits
  // for the event if there is no host memory to record it.
  virtual void KeepUntil(std::shared_ptr<StreamEvent> event,
                         std::shared_ptr<const void> what) = 0;
  // Copies device memory that is valid now to host memory; waits.
  virtual ev::Status CopyDown(const char* from, int64_t bytes, char* to) = 0;

  // ToWire and FromWire of wire_type.h with both ends in device memory, in the
  // order of stream(). FromWire reads 'from' when 'ready' (may be null) is
  // reached and multiplies its result by 'scale'.
  virtual ev::Status ToWire(const float* from, int64_t count, WireType wire,
                            char* to) = 0;
  virtual ev::Status FromWire(const char* from, WireType wire,
                              const std::shared_ptr<StreamEvent>& ready,
                              ev::Span<const WireChunk> chunks, float scale,
                              float* to) = 0;

  // Starts copying a route to the device. The plan may be deduplicated by this
  // device (RouteOptions::device) or by the CPU. *route owns the copy.
  virtual ev::Status StartRoute(std::shared_ptr<const RoutePlan> plan,
                                std::unique_ptr<DeviceRoute>* route) = 0;
};

using ExchangeDeviceFactory = ev::Status (*)(ExchangeDevice** device);

// Called by a static initializer of the library that implements the device, or
// with the factory of a loaded CUDA library. Returns true.
bool RegisterExchangeDevice(ExchangeDeviceFactory factory);
// Null: none is registered. Loads no CUDA library.
ExchangeDeviceFactory RegisteredExchangeDevice();

}  // namespace sok

#endif  // ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_EXCHANGE_DEVICE_H_
