// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// serve.h and pool.h with rows and gradients that stay on the device: the same
// bits. What is on which side is decided rank by rank and call by call; ranks
// need not agree. What is on the device is waited for by the device alone:
// buffers say when they are there.

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

// Serve: *rows is on the device where all tables have theirs there, else in CPU
// memory.
ev::Status ServeRows(
    const MessageLayout& layout, const int64_t* message,
    const std::vector<std::shared_ptr<ev::EmbeddingTable>>& tables,
    WireType wire, ExchangeDevice* device, ev::Parallel* parallel,
    WireBuffer* rows, std::shared_ptr<const ev::LookupPlan>* plan);

// PoolReceived, wherever the rows are. route: of the plan; used once where they
// are on the device. stream: outputs are on the device, which then has to have
// the rows (DeviceRoute::StartPool), and *done says until when rows, outputs
// and the route stay; null: they are in CPU memory, and written. Not null:
// *occurrences is set (pool.h) where the device pools, by processors that would
// wait for it otherwise.
ev::Status PoolRows(const RoutePlan& plan, DeviceRoute* route,
                    const WireBuffer& rows, ev::Span<float* const> outputs,
                    const ev::DeviceStream* stream, ev::Parallel* parallel,
                    std::shared_ptr<const RouteOccurrences>* occurrences,
                    std::shared_ptr<StreamMark>* done);

// PoolGradient of gradients that are on the device, as the stream has them;
// *message is there, too. route: of the plan, whose rows have been pooled; it
// and the gradients stay until the message is there.
ev::Status PoolGradientThere(const RoutePlan& plan, DeviceRoute* route,
                             ev::Span<const int> tables,
                             ev::Span<const float* const> grads,
                             const ev::DeviceStream& stream, WireType wire,
                             ExchangeDevice* device, WireBuffer* message);

// Gradients of served keys as float32, table by table, on the device.
struct ServedGradients {
  std::shared_ptr<char> memory;
  // For each of 'tables' the gradients [N, dim] of the keys of all ranks, in
  // rank order, as they are samples of the plan.
  std::vector<const float*> grads;
};
// gradients: on the device; otherwise as for ServeGradient. Each comes out
// times 'scale', there for what stream() of the device is given afterwards.
ev::Status SpreadGradients(const MessageLayout& layout,
                           const ev::LookupPlan& plan,
                           ev::Span<const int> tables,
                           const WireBuffer& gradients, float scale,
                           ExchangeDevice* device, ServedGradients* served);

}  // namespace sok

#endif  // ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_DEVICE_SERVE_H_
