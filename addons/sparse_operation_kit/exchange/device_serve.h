// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The functions of serve.h and pool.h with rows and gradients in device memory;
// results have the same bits. Whether rows are in host or device memory is
// decided per rank and per call, and ranks need not agree. The host does not
// wait for data in device memory: each buffer holds an event
// (WireBuffer::ready) for its readers.

#ifndef ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_DEVICE_SERVE_H_
#define ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_DEVICE_SERVE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "addons/sparse_operation_kit/exchange/exchange_device.h"
#include "addons/sparse_operation_kit/exchange/message.h"
#include "addons/sparse_operation_kit/exchange/pool.h"
#include "addons/sparse_operation_kit/exchange/route.h"
#include "addons/sparse_operation_kit/exchange/wire_buffer.h"
#include "kernels/engine/base/parallel.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/embedding/embedding_table.h"
#include "kernels/engine/embedding/lookup/lookup_plan.h"

namespace sok {

// Serve (serve.h). *rows is in device memory if all tables keep their rows
// there, else in host memory.
ev::Status ServeRows(
    const MessageLayout& layout, const int64_t* message,
    const std::vector<std::shared_ptr<ev::EmbeddingTable>>& tables,
    WireType wire, ExchangeDevice* device, ev::Parallel* parallel,
    WireBuffer* rows, std::shared_ptr<const ev::LookupPlan>* plan);

// PoolReceived (pool.h) for rows in host or device memory. route: that of
// 'plan'; used only if the rows are in device memory, and then only once.
// stream: null if the outputs are in host memory; they are written when the
// call returns. Otherwise outputs and rows are in device memory
// (DeviceRoute::StartPool), and the caller keeps rows, outputs and route until
// *done is reached.
// occurrences: may be null. If it is not and the device pools, *occurrences is
// set (GroupRoute of pool.h) by CPU threads that would otherwise wait for the
// device.
ev::Status PoolRows(const RoutePlan& plan, DeviceRoute* route,
                    const WireBuffer& rows,
                    ev::Span<const ev::MutableFloats> outputs,
                    const ev::DeviceStream* stream, ev::Parallel* parallel,
                    std::shared_ptr<const RouteOccurrences>* occurrences,
                    std::shared_ptr<StreamEvent>* done);

// PoolGradient (pool.h) for gradients in device memory, ordered after the
// stream's work so far. *message is in device memory too. route: that of
// 'plan', already pooled. The route and the gradients must stay until
// message->ready is reached.
ev::Status PoolGradientOnDevice(const RoutePlan& plan, DeviceRoute* route,
                                ev::Span<const int> tables,
                                ev::Span<const ev::ConstFloats> grads,
                                const ev::DeviceStream& stream, WireType wire,
                                ExchangeDevice* device, WireBuffer* message);

// Gradients of served keys as float32, table by table, on the device.
struct ServedGradients {
  std::shared_ptr<char> memory;
  // One entry per element of 'tables': the gradients [N, dim] of the keys of
  // all ranks in rank order, which is the order of the plan's samples.
  std::vector<const float*> grads;
};
// gradients: in device memory; otherwise as in ServeGradient. Each is
// multiplied by 'scale'. The result is complete for work enqueued on
// device->stream() after this call.
ev::Status SpreadGradients(const MessageLayout& layout,
                           const ev::LookupPlan& plan,
                           ev::Span<const int> tables,
                           const WireBuffer& gradients, float scale,
                           ExchangeDevice* device, ServedGradients* served);

}  // namespace sok

#endif  // ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_DEVICE_SERVE_H_
