// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/embedding/lookup/find_rows.h"

#include "kernels/engine/base/typed_columns.h"

namespace ev {
namespace {

void CountAbsent(int64_t absent, PlannedTable* planned) {
  if (absent == 0) return;
  planned->num_absent.fetch_add(absent, std::memory_order_relaxed);
}

}  // namespace

void FindHandles(PlannedTable* planned, int64_t begin, int64_t end) {
  const RowHandle* const found = planned->handles + begin;
  planned->table->impl()->index.Find(
      Span<const int64_t>(planned->unique + begin, end - begin),
      planned->handles + begin);
  CountAbsent(
      std::count_if(found, found + (end - begin),
                    [](RowHandle h) { return h >= kFirstReservedHandle; }),
      planned);
}

Status FindRows(PlannedTable* planned, int64_t begin, int64_t end,
                RowHolds* holds) {
  const EmbeddingTable::Impl& table = *planned->table->impl();
  const Span<const int64_t> keys(planned->unique + begin, end - begin);
  if (planned->keeps_rows()) {
    FindHandles(planned, begin, end);
  } else {
    std::unique_ptr<RowHold> hold;
    int64_t absent = 0;
    bool held = false;
    EV_RETURN_IF_ERROR(table.FindAndHold(keys, planned->handles + begin,
                                         planned->rows + begin, &absent, &hold,
                                         &held));
    CountAbsent(absent, planned);
    if (hold != nullptr) holds->Add(std::move(hold));
    if (held) return Status::OK();
  }
  float* const copies = planned->ReserveCopies() + begin * planned->dim;
  EV_RETURN_IF_ERROR(table.ReadValues(keys, planned->handles + begin, copies));
  const FloatType type = planned->row_type();
  const bool is_narrow = type != FloatType::kFloat32;
  std::vector<float> wide(is_narrow ? planned->dim : 0);
  for (int64_t u = begin; u < end; ++u) {
    float* const row = copies + (u - begin) * planned->dim;
    planned->rows[u] = row;
    if (!is_narrow) continue;
    // Other rows of the table may be held, in the table's type.
    std::copy_n(row, planned->dim, wide.data());
    WriteNumbers(wide.data(), planned->dim,
                 MutableFloats(reinterpret_cast<char*>(row), type));
  }
  return Status::OK();
}

}  // namespace ev
