// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/sparse_operation_kit/exchange/serve.h"

#include <algorithm>
#include <string>

#include "kernels/engine/combine/pooling.h"
#include "kernels/engine/embedding/row_lookup.h"
#include "kernels/engine/embedding/scratch.h"
#include "kernels/engine/embedding/tasks.h"

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

// One table's keys of all ranks as one list, and where each rank's lie in it
// and in the rows.
struct ServedTable {
  int64_t dim = 0;
  std::vector<int64_t> first_key;  // [W + 1]
  std::vector<int64_t> chunk;      // [W]: of the rows, in numbers
};

// The chunks of 'tables', one after the other for each rank. Returns the total.
int64_t LayOut(const MessageLayout& layout, Span<const int> tables,
               std::vector<ServedTable>* served) {
  int64_t at = 0;
  for (ServedTable& table : *served) table.first_key.assign(1, 0);
  for (int r = 0; r < layout.num_ranks(); ++r) {
    for (int t : tables) {
      ServedTable& table = (*served)[t];
      const int64_t n = layout.num_keys(r, t);
      table.first_key.push_back(table.first_key.back() + n);
      table.chunk.push_back(at);
      at += n * table.dim;
    }
  }
  return at;
}

// Copies rows to where they are sent from.
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
  const int num_tables = layout.num_tables();
  if (tables.size() != static_cast<size_t>(num_tables)) {
    return ev::InvalidArgument("a message about " + std::to_string(num_tables) +
                               " tables met " + std::to_string(tables.size()));
  }
  return ev::CatchBadAlloc([&] {
    std::vector<ServedTable> served(num_tables);
    std::vector<int> all(num_tables);
    std::vector<ev::RowsInput> inputs(num_tables);
    const bool with_occurrences = layout.format().with_occurrences;
    ev::ArrayLayout arrays;
    std::vector<size_t> keys_at(num_tables), occurrences_at(num_tables);
    for (int t = 0; t < num_tables; ++t) {
      all[t] = t;
      served[t].dim = tables[t]->options().dim;
      const int64_t n = layout.num_keys(t);
      keys_at[t] = arrays.Add<int64_t>(n);
      occurrences_at[t] = arrays.Add<int64_t>(with_occurrences ? n : 0);
    }
    LayOut(layout, all, &served);
    auto buffer = Buffers().Acquire();
    char* base = static_cast<char*>(buffer->line.Reserve(arrays.bytes()));
    ev::RunTasks(parallel, num_tables, [&](int64_t t) {
      int64_t* keys = reinterpret_cast<int64_t*>(base + keys_at[t]);
      int64_t* counts = reinterpret_cast<int64_t*>(base + occurrences_at[t]);
      inputs[t].table = tables[t].get();
      inputs[t].keys = Span<const int64_t>(keys, layout.num_keys(t));
      if (with_occurrences) inputs[t].occurrences = counts;
      for (int r = 0; r < layout.num_ranks(); ++r) {
        const int64_t n = layout.num_keys(r, t);
        const int64_t* from = message + layout.key_start(r, t);
        keys = std::copy_n(from, n, keys);
        if (with_occurrences) counts = std::copy_n(from + n, n, counts);
      }
    });
    const ev::RowsVisitor visit = [&](int t, int64_t begin, int64_t end,
                                      const float* const* found) {
      const ServedTable& table = served[t];
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
    return ev::LookupRows(inputs, tables, visit, parallel, plan);
  });
}

Status ServeGradient(const MessageLayout& layout, const ev::LookupPlan& plan,
                     Span<const int> tables, const void* gradients,
                     int64_t num_floats, WireType wire,
                     Span<float* const> unique_grads, ev::Parallel* parallel) {
  const int num_tables = layout.num_tables();
  if (plan.num_tables() != num_tables || unique_grads.size() != tables.size()) {
    return ev::InvalidArgument(
        "the gradient of a lookup of " + std::to_string(num_tables) +
        " tables got a plan of " + std::to_string(plan.num_tables()) + " and " +
        std::to_string(unique_grads.size()) + " outputs for " +
        std::to_string(tables.size()) + " tables");
  }
  return ev::CatchBadAlloc([&] {
    std::vector<ServedTable> served(num_tables);
    std::vector<float*> out(num_tables, nullptr);
    for (size_t k = 0; k < tables.size(); ++k) {
      const int t = tables[k];
      if (t < 0 || t >= num_tables || out[t] != nullptr) {
        return ev::InvalidArgument(
            "table " + std::to_string(t) + " of a lookup of " +
            std::to_string(num_tables) + ", or named twice");
      }
      out[t] = unique_grads[k];
      served[t].dim = plan.table(t)->options().dim;
    }
    const int64_t total = LayOut(layout, tables, &served);
    if (total != num_floats) {
      return ev::InvalidArgument(
          "lookup over ranks: " + std::to_string(num_floats) +
          " numbers came back for gradients of " + std::to_string(total) +
          " in all. All ranks must build the same graph");
    }
    auto buffer = Buffers().Acquire();
    const float* floats = static_cast<const float*>(gradients);
    if (wire != WireType::kFloat32) {
      float* converted = buffer->line.ReserveOf<float>(total);
      ev::ForRanges(
          parallel, total, kFloatsPerTask, [&](int64_t begin, int64_t end) {
            FromWire(
                static_cast<const char*>(gradients) + begin * WireBytes(wire),
                end - begin, wire, converted + begin);
          });
      floats = converted;
    }
    std::vector<ev::RowGradients> grads(num_tables);
    for (int t : tables) {
      grads[t].starts = served[t].first_key;
      for (int64_t chunk : served[t].chunk) {
        grads[t].pieces.push_back(floats + chunk);
      }
    }
    return ev::SumRowGradients(plan, grads, out, parallel);
  });
}

}  // namespace sok
