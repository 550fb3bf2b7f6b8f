// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/sparse_operation_kit/exchange/device_serve.h"

#include "addons/sparse_operation_kit/exchange/row_chunks.h"
#include "addons/sparse_operation_kit/exchange/serve.h"
#include "addons/sparse_operation_kit/exchange/served_table.h"
#include "kernels/engine/base/tasks.h"
#include "kernels/engine/embedding/lookup/row_lookup.h"

namespace sok {
namespace {

using ev::Span;
using ev::Status;

// Records an event behind the work of the device's stream. The reader of the
// buffer waits for it, and the buffer's memory is kept until then.
Status RecordAndKeep(ExchangeDevice* device, WireBuffer* buffer) {
  EV_RETURN_IF_ERROR(device->RecordEvent(device->stream(), &buffer->ready));
  device->KeepUntil(buffer->ready, buffer->memory);
  return Status::OK();
}

}  // namespace

Status ServeRows(const MessageLayout& layout, const int64_t* message,
                 const std::vector<std::shared_ptr<ev::EmbeddingTable>>& tables,
                 WireType wire, ExchangeDevice* device, ev::Parallel* parallel,
                 WireBuffer* rows,
                 std::shared_ptr<const ev::LookupPlan>* plan) {
  bool on_device = true;
  for (const auto& table : tables) on_device &= table->takes_device_tensors();
  return ev::CatchBadAlloc([&] {
    if (!on_device) {
      std::vector<int> all;
      std::vector<int64_t> dims;
      for (size_t t = 0; t < tables.size(); ++t) {
        all.push_back(static_cast<int>(t));
        dims.push_back(tables[t]->options().dim);
      }
      int64_t total = 0;
      for (int r = 0; r < layout.num_ranks(); ++r) {
        total += RowFloats(layout, r, all, dims);
      }
      EV_RETURN_IF_ERROR(WireBuffer::OnHost(wire, total, rows));
      return Serve(layout, message, tables, wire, rows->data(), parallel, plan);
    }
    ServedKeys keys;
    EV_RETURN_IF_ERROR(keys.Read(layout, message, tables, parallel));
    // Gathered as float32; the message may be narrower.
    WireBuffer floats;
    EV_RETURN_IF_ERROR(WireBuffer::OnDevice(device, WireType::kFloat32,
                                            keys.num_floats(), &floats));
    float* const base = reinterpret_cast<float*>(floats.data());
    std::vector<ev::RowPlaces> places;
    for (const ServedTable& table : keys.served()) {
      ev::RowPlaces place;
      place.starts = table.first_key;
      for (int64_t chunk : table.chunk) place.pieces.push_back(base + chunk);
      places.push_back(place);
    }
    const Status gathered = ev::GatherRows(keys.inputs(), tables, places,
                                           device->stream(), parallel, plan);
    // Also after an error: reads of some rows may be in flight.
    const Status kept = RecordAndKeep(device, &floats);
    EV_RETURN_IF_ERROR(gathered);
    EV_RETURN_IF_ERROR(kept);
    if (wire == WireType::kFloat32) {
      *rows = floats;
      return Status::OK();
    }
    EV_RETURN_IF_ERROR(
        WireBuffer::OnDevice(device, wire, keys.num_floats(), rows));
    const Status status =
        device->ToWire(base, floats.count, wire, rows->data());
    EV_RETURN_IF_ERROR(RecordAndKeep(device, rows));
    device->KeepUntil(rows->ready, floats.memory);
    return status;
  });
}

Status PoolRows(const RoutePlan& plan, DeviceRoute* route,
                const WireBuffer& rows, Span<const ev::MutableFloats> outputs,
                const ev::DeviceStream* stream, ev::Parallel* parallel,
                std::shared_ptr<const RouteOccurrences>* occurrences,
                std::shared_ptr<StreamEvent>* done) {
  if (!rows.on_device) {
    if (stream != nullptr) {
      return ev::InvalidArgument(
          "lookup over ranks: rows in host memory cannot be pooled on a "
          "device");
    }
    return PoolReceived(plan, rows.data(), rows.count, rows.wire, outputs,
                        parallel);
  }
  return ev::CatchBadAlloc([&] {
    std::vector<int64_t> starts;
    EV_RETURN_IF_ERROR(ChunkStartsOf(plan, rows.count, &starts));
    if (route == nullptr) {
      return ev::InvalidArgument(
          "lookup over ranks: rows are in device memory, but the route was "
          "made without a device");
    }
    EV_RETURN_IF_ERROR(route->StartPool(rows.data(), rows.wire, rows.ready,
                                        starts, outputs, stream, done));
    const Status grouped = occurrences == nullptr
                               ? Status::OK()
                               : GroupRoute(plan, parallel, occurrences);
    if (stream == nullptr) {
      EV_RETURN_IF_ERROR(route->Wait());
      // Return the error if the rows' transfer failed.
      if (rows.ready != nullptr) EV_RETURN_IF_ERROR(rows.ready->Wait());
    }
    return grouped;
  });
}

Status PoolGradientOnDevice(const RoutePlan& plan, DeviceRoute* route,
                            Span<const int> tables,
                            Span<const ev::ConstFloats> grads,
                            const ev::DeviceStream& stream, WireType wire,
                            ExchangeDevice* device, WireBuffer* message) {
  if (grads.size() != tables.size()) {
    return ev::InvalidArgument(std::to_string(grads.size()) +
                               " gradients came for " +
                               std::to_string(tables.size()) + " tables");
  }
  return ev::CatchBadAlloc([&] {
    const std::vector<int64_t> starts = ChunkStarts(plan, tables);
    EV_RETURN_IF_ERROR(
        WireBuffer::OnDevice(device, wire, starts.back(), message));
    EV_RETURN_IF_ERROR(route->SumGradients(tables, grads, stream, starts, wire,
                                           message->data(), &message->ready));
    device->KeepUntil(message->ready, message->memory);
    return Status::OK();
  });
}

Status SpreadGradients(const MessageLayout& layout, const ev::LookupPlan& plan,
                       Span<const int> tables, const WireBuffer& gradients,
                       float scale, ExchangeDevice* device,
                       ServedGradients* served) {
  return ev::CatchBadAlloc([&] {
    std::vector<ServedTable> places;
    EV_RETURN_IF_ERROR(
        LayOutGradients(layout, plan, tables, gradients.count, &places));
    EV_RETURN_IF_ERROR(
        device->Allocate(gradients.count * sizeof(float), &served->memory));
    float* const base = reinterpret_cast<float*>(served->memory.get());
    std::vector<WireChunk> chunks;
    int64_t at = 0;
    for (int t : tables) {
      served->grads.push_back(base + at);
      const ServedTable& place = places[t];
      for (int r = 0; r < layout.num_ranks(); ++r) {
        WireChunk chunk;
        chunk.from = place.chunk[r];
        chunk.to = at;
        chunk.count = (place.first_key[r + 1] - place.first_key[r]) * place.dim;
        at += chunk.count;
        if (chunk.count > 0) chunks.push_back(chunk);
      }
    }
    const Status status = device->FromWire(
        gradients.data(), gradients.wire, gradients.ready, chunks, scale, base);
    std::shared_ptr<StreamEvent> done;
    EV_RETURN_IF_ERROR(device->RecordEvent(device->stream(), &done));
    device->KeepUntil(done, gradients.memory);
    device->KeepUntil(done, served->memory);
    return status;
  });
}

}  // namespace sok
