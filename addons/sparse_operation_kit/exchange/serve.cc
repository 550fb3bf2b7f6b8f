// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/sparse_operation_kit/exchange/serve.h"

#include <algorithm>
#include <string>

#include "addons/sparse_operation_kit/exchange/served_table.h"
#include "kernels/engine/base/scratch.h"
#include "kernels/engine/base/tasks.h"
#include "kernels/engine/combine/pooling.h"
#include "kernels/engine/embedding/lookup/pooled_lookup.h"
#include "kernels/engine/embedding/lookup/row_lookup.h"

namespace sok {
namespace {

using ev::LineBuffer;
using ev::Span;
using ev::Status;

constexpr int64_t kFloatsPerTask = 65536;
constexpr int64_t kFloatsAtOnce = 4096;

struct Buffer {
  LineBuffer line;
};

ev::Recycler<Buffer>& Buffers() {
  static ev::Recycler<Buffer>* const buffers = new ev::Recycler<Buffer>(64);
  return *buffers;
}

// Copies rows into the message.
void WriteRows(const float* const* rows, int64_t count, int64_t dim,
               WireType wire, char* out) {
  if (wire == WireType::kFloat32) {
    ev::CopyRows(rows, 0, count, dim, reinterpret_cast<float*>(out));
    return;
  }
  auto buffer = Buffers().Acquire();
  const int64_t at_once = std::max<int64_t>(1, kFloatsAtOnce / dim);
  float* floats = buffer->line.ReserveOf<float>(at_once * dim);
  for (int64_t i = 0; i < count; i += at_once) {
    const int64_t n = std::min(at_once, count - i);
    ev::CopyRows(rows + i, 0, n, dim, floats);
    ToWire(floats, n * dim, wire, out);
    out += n * dim * WireBytes(wire);
  }
}

}  // namespace

int64_t RowFloats(const MessageLayout& layout, int r, Span<const int> tables,
                  Span<const int64_t> dims) {
  int64_t floats = 0;
  for (int t : tables) floats += layout.num_keys(r, t) * dims[t];
  return floats;
}

Status Serve(const MessageLayout& layout, const int64_t* message,
             const std::vector<std::shared_ptr<ev::EmbeddingTable>>& tables,
             WireType wire, void* rows, ev::Parallel* parallel,
             std::shared_ptr<const ev::LookupPlan>* plan) {
  return ev::CatchBadAlloc([&] {
    ServedKeys keys;
    EV_RETURN_IF_ERROR(keys.Read(layout, message, tables, parallel));
    const ev::RowsVisitor visit = [&](int t, int64_t begin, int64_t end,
                                      const float* const* found) {
      const ServedTable& table = keys.served()[t];
      for (int r = 0; r < layout.num_ranks(); ++r) {
        const int64_t first = std::max(begin, table.first_key[r]);
        const int64_t last = std::min(end, table.first_key[r + 1]);
        if (first >= last) continue;
        const int64_t at =
            table.chunk[r] + (first - table.first_key[r]) * table.dim;
        WriteRows(found + (first - begin), last - first, table.dim, wire,
                  static_cast<char*>(rows) + at * WireBytes(wire));
      }
    };
    return ev::LookupRows(keys.inputs(), tables, visit, parallel, plan);
  });
}

Status ServeGradient(const MessageLayout& layout, const ev::LookupPlan& plan,
                     Span<const int> tables, const void* gradients,
                     int64_t num_floats, WireType wire,
                     Span<float* const> unique_grads, ev::Parallel* parallel,
                     int divisor) {
  if (unique_grads.size() != tables.size()) {
    return ev::InvalidArgument(
        "the gradient of " + std::to_string(tables.size()) + " tables got " +
        std::to_string(unique_grads.size()) + " outputs");
  }
  return ev::CatchBadAlloc([&] {
    std::vector<ServedTable> served;
    EV_RETURN_IF_ERROR(
        LayOutGradients(layout, plan, tables, num_floats, &served));
    std::vector<float*> out(served.size(), nullptr);
    for (size_t k = 0; k < tables.size(); ++k) out[tables[k]] = unique_grads[k];
    auto buffer = Buffers().Acquire();
    const float* floats = static_cast<const float*>(gradients);
    if (wire != WireType::kFloat32) {
      float* converted = buffer->line.ReserveOf<float>(num_floats);
      ev::ForRanges(parallel, num_floats, kFloatsPerTask,
                    [&](int64_t begin, int64_t end) {
                      FromWire(static_cast<const char*>(gradients) +
                                   begin * WireBytes(wire),
                               end - begin, wire, converted + begin);
                    });
      floats = converted;
    }
    std::vector<ev::RowGradients> grads(served.size());
    for (int t : tables) {
      grads[t].starts = served[t].first_key;
      for (int64_t chunk : served[t].chunk) {
        grads[t].pieces.push_back(floats + chunk);
      }
    }
    EV_RETURN_IF_ERROR(ev::SumRowGradients(plan, grads, out, parallel));
    if (divisor == 1) return Status::OK();
    for (int t : tables) {
      float* const sums = out[t];
      Span<const int64_t> keys;
      EV_RETURN_IF_ERROR(plan.UniqueKeys(t, &keys));
      ev::ForRanges(parallel, keys.size() * served[t].dim, kFloatsPerTask,
                    [&](int64_t begin, int64_t end) {
                      for (int64_t i = begin; i < end; ++i) {
                        sums[i] = sums[i] / static_cast<float>(divisor);
                      }
                    });
    }
    return Status::OK();
  });
}

Status ServeGivenRows(const MessageLayout& layout, const ev::LookupPlan& plan,
                      Span<const int> tables, Span<const float* const> given,
                      int64_t num_floats, WireType wire, void* values,
                      ev::Parallel* parallel, int divisor) {
  if (given.size() != tables.size()) {
    return ev::InvalidArgument("rows of " + std::to_string(given.size()) +
                               " tables came for " +
                               std::to_string(tables.size()));
  }
  return ev::CatchBadAlloc([&] {
    std::vector<ServedTable> served;
    EV_RETURN_IF_ERROR(
        LayOutGradients(layout, plan, tables, num_floats, &served));
    auto buffer = Buffers().Acquire();
    for (size_t k = 0; k < tables.size(); ++k) {
      const ServedTable& table = served[tables[k]];
      const int64_t num_keys = table.first_key[layout.num_ranks()];
      // In this plan each key is a sample of one id, so pooling copies rows.
      float* const rows = buffer->line.ReserveOf<float>(num_keys * table.dim);
      EV_RETURN_IF_ERROR(
          ev::PoolGivenRows(plan, tables[k], given[k], rows, parallel));
      if (divisor != 1) {
        for (int64_t i = 0; i < num_keys * table.dim; ++i) {
          rows[i] = rows[i] / static_cast<float>(divisor);
        }
      }
      for (int r = 0; r < layout.num_ranks(); ++r) {
        ToWire(rows + table.first_key[r] * table.dim,
               (table.first_key[r + 1] - table.first_key[r]) * table.dim, wire,
               static_cast<char*>(values) + table.chunk[r] * WireBytes(wire));
      }
    }
    return Status::OK();
  });
}

}  // namespace sok
