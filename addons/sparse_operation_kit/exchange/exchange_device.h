// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The seam between a lookup over ranks and the device of its rank: what it has
// rows and gradients done to there, so that they need not pass through CPU
// memory. Where keys go is the processor's.
//
// Calls begin work on the device, and do not wait for it unless they say so:
// what it reads, and what it writes, stays until a mark is reached
// (stream_mark.h). All calls are thread-safe. Results have the bits of the
// calls in CPU memory that they are named after.

#ifndef ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_EXCHANGE_DEVICE_H_
#define ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_EXCHANGE_DEVICE_H_

#include <cstdint>
#include <memory>

#include "addons/sparse_operation_kit/exchange/route.h"
#include "addons/sparse_operation_kit/exchange/stream_mark.h"
#include "addons/sparse_operation_kit/exchange/wire_type.h"
#include "kernels/engine/base/device_stream.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"

namespace sok {

// What a device knows of a route: which rows make a sample.
class DeviceRoute {
 public:
  virtual ~DeviceRoute() {}  // waits for what is under way

  // Begins what PoolReceived (pool.h) does: rows, in the device's memory when
  // 'there' (may be null) is reached; chunk_starts of row_chunks.h; outputs in
  // CPU memory, or, with a stream, in the device's, where they are written when
  // the device is through with what the stream has, and are there for what the
  // stream is given afterwards. Once. Rows, outputs and the route stay until
  // *done is reached.
  virtual ev::Status StartPool(const char* rows, WireType wire,
                               const std::shared_ptr<StreamMark>& there,
                               ev::Span<const int64_t> chunk_starts,
                               ev::Span<float* const> outputs,
                               const ev::DeviceStream* stream,
                               std::shared_ptr<StreamMark>* done) = 0;
  // Waits for outputs in CPU memory.
  virtual ev::Status Wait() = 0;

  // What PoolGradient (pool.h) does, after StartPool: grads are in the device's
  // memory, there when the device is through with what the stream has;
  // chunk_starts of row_chunks.h, of these tables; message in the device's
  // memory. Grads, message and the route stay until *done is reached. From any
  // thread.
  virtual ev::Status SumGradients(ev::Span<const int> tables,
                                  ev::Span<const float* const> grads,
                                  const ev::DeviceStream& stream,
                                  ev::Span<const int64_t> chunk_starts,
                                  WireType wire, char* message,
                                  std::shared_ptr<StreamMark>* done) = 0;
};

// A stretch of numbers that is copied, counted in numbers.
struct WireChunk {
  int64_t from = 0, to = 0, count = 0;
};

class ExchangeDevice : public DistinctDevice {
 public:
  // That of this process, made at the first call and never destroyed. Loads the
  // CUDA library if no factory is registered. FailedPrecondition, with the
  // reason, when there is none; Internal: the CUDA library cannot be loaded.
  static ev::Status Get(ExchangeDevice** device);

  // Memory of the device, not initialised, aligned to 256 bytes; kept for the
  // next caller that needs so much: nothing may be under way on it when it is
  // given back. Not null. Where there is none it waits a while for what is kept
  // (KeepUntil); ResourceExhausted.
  virtual ev::Status Allocate(int64_t bytes, std::shared_ptr<char>* memory) = 0;
  // A stream with nothing to do of its own, for calls that want one: what they
  // begin may go on after them.
  virtual ev::DeviceStream stream() = 0;
  // Behind what a stream of the device has been given so far.
  virtual ev::Status Mark(const ev::DeviceStream& stream,
                          std::shared_ptr<StreamMark>* mark) = 0;
  // Keeps something until the mark is reached, and a little longer. Where it
  // finds no memory for that it waits.
  virtual void KeepUntil(std::shared_ptr<StreamMark> mark,
                         std::shared_ptr<const void> what) = 0;
  // Of what is there; waits.
  virtual ev::Status CopyDown(const char* from, int64_t bytes, char* to) = 0;

  // As ToWire and FromWire of wire_type.h, both ends on the device, in the
  // order of stream(): when it is through with what it has, and for what it is
  // given afterwards. FromWire reads what is there when 'there' (may be null)
  // is reached, and its result is times 'scale'.
  virtual ev::Status ToWire(const float* from, int64_t count, WireType wire,
                            char* to) = 0;
  virtual ev::Status FromWire(const char* from, WireType wire,
                              const std::shared_ptr<StreamMark>& there,
                              ev::Span<const WireChunk> chunks, float scale,
                              float* to) = 0;

  // Begins to tell the device about a route, which may be of this device
  // (RouteOptions::device) or of none; what was told stays with *route.
  virtual ev::Status StartRoute(std::shared_ptr<const RoutePlan> plan,
                                std::unique_ptr<DeviceRoute>* route) = 0;
};

using ExchangeDeviceFactory = ev::Status (*)(ExchangeDevice** device);

// Called by a static initializer of the GPU code that a program links, or with
// the factory of a CUDA library that was loaded. Returns true.
bool RegisterExchangeDevice(ExchangeDeviceFactory factory);
// Null: none is registered. Loads no CUDA library.
ExchangeDeviceFactory RegisteredExchangeDevice();

}  // namespace sok

#endif  // ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_EXCHANGE_DEVICE_H_
