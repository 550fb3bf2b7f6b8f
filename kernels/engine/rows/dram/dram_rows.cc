// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/rows/dram/dram_rows.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "kernels/engine/base/typed_columns.h"
#include "kernels/engine/combine/pooling.h"
#include "kernels/engine/optimizer/row_rule.h"
#include "kernels/engine/policy/eviction.h"

namespace ev {
namespace {

// Addresses computed at a time; they stay in the first-level cache.
constexpr size_t kRowsAtOnce = 256;
// Prefetch distance in rows, in loops that prefetch themselves.
constexpr size_t kRowsAhead = 8;

RowHomeCosts MakeCosts() {
  RowHomeCosts costs;
  costs.calls_are_cheap = true;
  costs.rows_per_copy = kRowsAtOnce;
  costs.rows_per_hold = 2048;
  costs.floats_per_update = 32768;  // about 50 us of work
  costs.rows_per_apply = kRowsAtOnce;
  costs.writes_side_by_side = true;
  return costs;
}

inline float* RowAt(const SlabView& view, RowHandle handle) {
  return reinterpret_cast<float*>(view.Address(handle));
}

}  // namespace

const RowHomeCosts& DramRows::costs() const {
  static const RowHomeCosts costs = MakeCosts();
  return costs;
}

Status DramRows::NewRow(RowHandle handle, int64_t default_row) {
  const int64_t dim = shape_.dim();
  float* const to = store_->Row(handle);
  to[shape_.offset(1) - 1] = 0.0f;  // padding, if the value has some
  WriteNumbers(default_rows_.data() + default_row * dim, dim,
               ColumnOf(shape_, to, 0));
  shape_.FillSlots(0, to);
  return Status::OK();
}

Status DramRows::Read(Span<const RowHandle> handles, int column, float* out) {
  const SlabView view = store_->view();
  const int64_t offset = shape_.offset(column), width = shape_.width(column);
  const float* rows[kRowsAtOnce];
  for (size_t begin = 0; begin < handles.size(); begin += kRowsAtOnce) {
    const size_t n = std::min(kRowsAtOnce, handles.size() - begin);
    float* const to = out + begin * width;
    for (size_t i = 0; i < n; ++i) {
      const RowHandle handle = handles[begin + i];
      // Without a row the output is copied onto itself.
      rows[i] = handle < kFirstReservedHandle ? RowAt(view, handle) + offset
                                              : to + i * width;
    }
    CopyRows(rows, 0, n, width, to, shape_.type(column));
  }
  return Status::OK();
}

Status DramRows::ReadColumnsOnce(Span<const RowHandle> handles,
                                 Span<const int> columns,
                                 Span<float* const> out) {
  for (size_t i = 0; i < handles.size(); ++i) {
    if (i + kRowsAhead < handles.size()) {
      store_->PrefetchRow(handles[i + kRowsAhead], shape_.floats());
    }
    const float* const row = store_->Row(handles[i]);
    for (size_t c = 0; c < columns.size(); ++c) {
      const int64_t width = shape_.width(columns[c]);
      ReadNumbers(ColumnOf(shape_, row, columns[c]), width, out[c] + i * width);
    }
  }
  return Status::OK();
}

Status DramRows::SquaredNorms(Span<const RowHandle> handles, double* out) {
  const int64_t dim = shape_.dim();
  const bool is_narrow = shape_.value_type() != FloatType::kFloat32;
  std::vector<float> widened(is_narrow ? dim : 0);
  for (size_t i = 0; i < handles.size(); ++i) {
    if (i + kRowsAhead < handles.size()) {
      store_->PrefetchRow(handles[i + kRowsAhead], shape_.offset(1));
    }
    const float* const row = store_->Row(handles[i]);
    if (is_narrow) ReadNumbers(ColumnOf(shape_, row, 0), dim, widened.data());
    out[i] = SumOfSquares(is_narrow ? widened.data() : row, dim);
  }
  return Status::OK();
}

Status DramRows::Write(Span<const RowHandle> handles, int column,
                       const float* in) {
  const SlabView view = store_->view();
  const int64_t offset = shape_.offset(column), width = shape_.width(column);
  for (size_t i = 0; i < handles.size(); ++i) {
    if (i + kRowsAhead < handles.size()) {
      PrefetchBytes(RowAt(view, handles[i + kRowsAhead]) + offset,
                    width * sizeof(float));
    }
    WriteNumbers(in + i * width, width,
                 ColumnOf(shape_, RowAt(view, handles[i]), column));
  }
  return Status::OK();
}

Status DramRows::Relayout(Span<const SlotShape> slots) {
  const size_t before = shape_.num_slots();
  RowShape after = shape_.With(slots);
  if (slots.size() != before) {
    EV_RETURN_IF_ERROR(store_->Relayout(
        after.floats(), [&](float* row) { after.FillSlots(before, row); }));
  }
  shape_ = std::move(after);
  return Status::OK();
}

Status DramRows::Hold(Span<const RowHandle> handles, const float** rows,
                      std::unique_ptr<RowHold>*, bool* held) {
  const SlabView view = store_->view();
  for (size_t i = 0; i < handles.size(); ++i) {
    if (handles[i] < kFirstReservedHandle) rows[i] = RowAt(view, handles[i]);
  }
  *held = true;
  return Status::OK();
}

Status DramRows::Apply(const RowRule& rule, Span<const RowHandle> handles,
                       Span<const int> slot_columns, const float* grads,
                       const uint64_t* salts) {
  const SlabView view = store_->view();
  float* rows[kRowsAtOnce];
  int64_t slot_offsets[kMaxRuleSlots];
  for (size_t k = 0; k < slot_columns.size(); ++k) {
    slot_offsets[k] = shape_.offset(1 + slot_columns[k]);
  }
  RowBlock block;
  block.rows = rows;
  block.dim = shape_.dim();
  block.slot_offsets = slot_offsets;
  block.value_type = shape_.value_type();
  int64_t overflows = 0;
  block.overflows = &overflows;
  // Gradients are adjacent, rows need not be. A run ends at a handle without a
  // row.
  for (size_t i = 0; i < handles.size();) {
    const size_t most = std::min(kRowsAtOnce, handles.size() - i);
    size_t n = 0;
    for (; n < most && handles[i + n] < kFirstReservedHandle; ++n) {
      rows[n] = RowAt(view, handles[i + n]);
    }
    if (n == 0) {
      ++i;
      continue;
    }
    block.num_rows = static_cast<int64_t>(n);
    block.grads = grads + i * shape_.dim();
    if (salts != nullptr) block.salts = salts + i;
    rule.Apply(block);
    i += n;
  }
  if (overflows > 0) overflows_.fetch_add(overflows, std::memory_order_relaxed);
  return Status::OK();
}

}  // namespace ev
