// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/storage/dram/row_store.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "kernels/engine/storage/dram/row_layout.h"

namespace ev {

RowStore::RowStore(int64_t floats_per_row, bool with_meta)
    : RowHandles(SlabRowsLog2(RowStride(floats_per_row)), with_meta),
      floats_per_row_(floats_per_row),
      rows_(new SlabArray(RowStride(floats_per_row), rows_log2())) {}

RowStore::~RowStore() {}

bool RowStore::AddRows(size_t slab) { return rows_->AddSlab(slab); }
void RowStore::UseRows(size_t slab, size_t rows) { rows_->Use(slab, rows); }
void RowStore::DropRows(size_t slab) { rows_->DropSlab(slab); }

int RowStore::DropAllRows() {
  const size_t stride = rows_->stride();
  rows_.reset(new SlabArray(stride, SlabRowsLog2(stride)));
  return rows_->rows_log2();
}

std::string RowStore::AnotherRow() const {
  return "another row of " + std::to_string(floats_per_row_) + " floats";
}

Status RowStore::Relayout(int64_t floats_per_row,
                          const std::function<void(float* row)>& fill) {
  std::lock_guard<std::mutex> lock(mu_);
  try {
    DrainStripes();
    const size_t stride = RowStride(floats_per_row);
    if (num_allocated() == 0) ReleaseEmptySlabs();
    // A handle implies the slab of its row, so the rows per slab can change
    // only while no row is allocated.
    const bool keep = num_allocated() != 0;
    std::unique_ptr<SlabArray> fresh(
        new SlabArray(stride, keep ? rows_log2() : SlabRowsLog2(stride)));
    if (!keep) {
      Restart(fresh->rows_log2());
      rows_ = std::move(fresh);
      floats_per_row_ = floats_per_row;
      return Status::OK();
    }
    const std::vector<bool> is_free = FreeRows();
    // Reserves address space for everything first, and nothing can fail after
    // that. It becomes memory slab by slab as rows are copied, and each old
    // slab is freed then.
    bool has_room = true;
    ForEachSlab([&](size_t slab, uint64_t, uint64_t) {
      has_room = has_room && fresh->AddSlab(slab);
    });
    if (!has_room) {
      return ResourceExhausted("no memory to widen rows from " +
                               std::to_string(floats_per_row_) + " to " +
                               std::to_string(floats_per_row) + " floats");
    }
    const size_t copied =
        std::min(floats_per_row_, floats_per_row) * sizeof(float);
    ForEachSlab([&](size_t slab, uint64_t begin, uint64_t end) {
      fresh->Use(slab, end - begin);
      for (uint64_t row = begin; row < end; ++row) {
        if (is_free[row]) continue;
        char* to = fresh->Address(static_cast<RowHandle>(row));
        std::memcpy(to, rows_->Address(static_cast<RowHandle>(row)), copied);
        fill(reinterpret_cast<float*>(to));
      }
      rows_->DropSlab(slab);
    });
    rows_ = std::move(fresh);
    floats_per_row_ = floats_per_row;
    return Status::OK();
  } catch (const std::bad_alloc&) {
    return ResourceExhausted("no memory to widen rows to " +
                             std::to_string(floats_per_row) + " floats");
  }
}

int64_t RowStore::bytes() const {
  std::lock_guard<std::mutex> lock(mu_);
  return static_cast<int64_t>(sizeof(*this) - sizeof(RowHandles) +
                              BookkeepingBytes() + rows_->bytes());
}

}  // namespace ev
