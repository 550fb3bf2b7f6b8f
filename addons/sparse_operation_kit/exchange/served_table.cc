// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/sparse_operation_kit/exchange/served_table.h"

#include <algorithm>
#include <string>

#include "kernels/engine/base/tasks.h"

namespace sok {

int64_t LayOut(const MessageLayout& layout, ev::Span<const int> tables,
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

ev::Status LayOutGradients(const MessageLayout& layout,
                           const ev::LookupPlan& plan,
                           ev::Span<const int> tables, int64_t num_floats,
                           std::vector<ServedTable>* served) {
  const int num_tables = layout.num_tables();
  if (plan.num_tables() != num_tables) {
    return ev::InvalidArgument(
        "the gradient of a lookup of " + std::to_string(num_tables) +
        " tables got a plan of " + std::to_string(plan.num_tables()));
  }
  served->assign(num_tables, ServedTable());
  for (int t : tables) {
    if (t < 0 || t >= num_tables || (*served)[t].dim != 0) {
      return ev::InvalidArgument("table " + std::to_string(t) +
                                 " is given twice, or is not one of the " +
                                 std::to_string(num_tables) +
                                 " tables of the lookup");
    }
    (*served)[t].dim = plan.table(t)->options().dim;
  }
  const int64_t total = LayOut(layout, tables, served);
  if (total == num_floats) return ev::Status::OK();
  return ev::InvalidArgument(
      "lookup over ranks: " + std::to_string(num_floats) +
      " numbers came back for gradients of " + std::to_string(total) +
      " in all. All ranks must build the same graph");
}

ev::Recycler<ServedKeys::Buffer>& ServedKeys::Buffers() {
  static ev::Recycler<Buffer>* const buffers = new ev::Recycler<Buffer>(64);
  return *buffers;
}

ev::Status ServedKeys::Read(const MessageLayout& layout, const int64_t* message,
                            const Tables& tables, ev::Parallel* parallel) {
  const int num_tables = layout.num_tables();
  if (tables.size() != static_cast<size_t>(num_tables)) {
    return ev::InvalidArgument("a message of " + std::to_string(num_tables) +
                               " tables came for " +
                               std::to_string(tables.size()));
  }
  const bool with_occurrences = layout.format().with_occurrences;
  served_.assign(num_tables, ServedTable());
  inputs_.assign(num_tables, ev::RowsInput());
  std::vector<int> all(num_tables);
  ev::ArrayLayout arrays;
  std::vector<size_t> keys_at(num_tables), occurrences_at(num_tables);
  for (int t = 0; t < num_tables; ++t) {
    all[t] = t;
    served_[t].dim = tables[t]->options().dim;
    const int64_t n = layout.num_keys(t);
    keys_at[t] = arrays.Add<int64_t>(n);
    occurrences_at[t] = arrays.Add<int64_t>(with_occurrences ? n : 0);
  }
  num_floats_ = LayOut(layout, all, &served_);
  buffer_.reset(new ev::Recycler<Buffer>::Handle(Buffers().Acquire()));
  char* const base =
      static_cast<char*>((*buffer_)->line.Reserve(arrays.bytes()));
  ev::RunTasks(parallel, num_tables, [&](int64_t t) {
    int64_t* keys = reinterpret_cast<int64_t*>(base + keys_at[t]);
    int64_t* counts = reinterpret_cast<int64_t*>(base + occurrences_at[t]);
    inputs_[t].table = tables[t].get();
    inputs_[t].keys = ev::Span<const int64_t>(keys, layout.num_keys(t));
    if (with_occurrences) inputs_[t].occurrences = counts;
    for (int r = 0; r < layout.num_ranks(); ++r) {
      const int64_t n = layout.num_keys(r, t);
      const int64_t* from = message + layout.key_start(r, t);
      keys = std::copy_n(from, n, keys);
      if (with_occurrences) counts = std::copy_n(from + n, n, counts);
    }
  });
  return ev::Status::OK();
}

}  // namespace sok
