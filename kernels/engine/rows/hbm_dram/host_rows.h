// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The rows of one table that left a device's memory, in CPU memory: value and
// slots adjacent, and a rank that the keeper of the device's memory gave them.
// A row is here for as long as the device has no newer one.

#ifndef KERNELS_ENGINE_ROWS_HBM_DRAM_HOST_ROWS_H_
#define KERNELS_ENGINE_ROWS_HBM_DRAM_HOST_ROWS_H_

#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

#include "kernels/engine/base/prefetch.h"
#include "kernels/engine/base/row_handle.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/storage/dram/row_store.h"

namespace ev {

class HostRows {
 public:
  using Row = RowHandle;

  explicit HostRows(int64_t floats) : rows_(floats, /*with_meta=*/true) {}
  HostRows(const HostRows&) = delete;
  HostRows& operator=(const HostRows&) = delete;

  // --- May be called by any number of threads at once ---

  // A row with unspecified contents. is_reserved: one of those of Reserve.
  // ResourceExhausted.
  Status Allocate(bool is_reserved, Row* row);
  // They are given out again before memory is taken.
  void Free(Span<const Row> rows);

  // So many Allocates that say so cannot fail, until Unreserve; of all rows
  // that are reserved no more is taken than makes 'most' rows in use.
  // ResourceExhausted: nothing has changed.
  Status Reserve(int64_t rows, int64_t most);
  void Unreserve(int64_t rows);

  // Meta of a row in use.
  float* floats(Row row) const { return rows_.Row(row); }
  void PrefetchRank(Row row) const { PrefetchLine(rows_.Meta(row)); }
  uint32_t rank(Row row) const { return rows_.Meta(row)->frequency; }
  void set_rank(Row row, uint32_t rank) { rows_.Meta(row)->frequency = rank; }

  int64_t in_use() const;
  int64_t bytes() const { return rows_.bytes(); }
  int64_t floats_per_row() const { return rows_.floats_per_row(); }

  // --- REQUIRE that no other call is running ---

  // Every row keeps the first of its floats; fill(row) completes it.
  // ResourceExhausted: nothing has changed.
  Status Relayout(int64_t floats, const std::function<void(float*)>& fill) {
    return rows_.Relayout(floats, fill);
  }
  // As Free, and memory in which no row is left goes back to the system.
  void Return(Span<const Row> rows);
  void Clear();

 private:
  RowStore rows_;
  mutable std::mutex mu_;
  std::vector<Row> free_;  // live for rows_, and without a handle
  int64_t in_use_ = 0, reserved_ = 0;
};

}  // namespace ev

#endif  // KERNELS_ENGINE_ROWS_HBM_DRAM_HOST_ROWS_H_
