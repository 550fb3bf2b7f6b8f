// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Rows of one table in CPU memory that were evicted from a device: value and
// slots adjacent, and a rank that the cache stored with them. A row is kept
// until the device has a newer version.

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

  // --- Thread-safe: any number of threads may call these at once ---

  // Returns a row with unspecified contents. is_reserved: it uses the
  // reservation. ResourceExhausted.
  Status Allocate(bool is_reserved, Row* row);
  // Frees rows for reuse, before new memory is allocated.
  void Free(Span<const Row> rows);

  // Reserves rows: that many Allocate calls with is_reserved cannot fail until
  // Unreserve. All reservations together allocate at most enough for 'most'
  // rows in use. ResourceExhausted: nothing has changed.
  Status Reserve(int64_t rows, int64_t most);
  void Unreserve(int64_t rows);

  // The following access the meta of a row in use.
  float* floats(Row row) const { return rows_.Row(row); }
  void PrefetchRank(Row row) const { PrefetchLine(rows_.Meta(row)); }
  uint32_t rank(Row row) const { return rows_.Meta(row)->frequency; }
  void set_rank(Row row, uint32_t rank) { rows_.Meta(row)->frequency = rank; }

  int64_t in_use() const;
  int64_t bytes() const { return rows_.bytes(); }
  int64_t floats_per_row() const { return rows_.floats_per_row(); }

  // --- REQUIRE that no other call is running ---

  // Changes the width of all rows. Each keeps its first floats, and fill(row)
  // completes it. ResourceExhausted: nothing has changed.
  Status Relayout(int64_t floats, const std::function<void(float*)>& fill) {
    return rows_.Relayout(floats, fill);
  }
  // Like Free, but also returns memory that holds no row to the system.
  void Return(Span<const Row> rows);
  void Clear();

 private:
  RowStore rows_;
  mutable std::mutex mu_;
  std::vector<Row> free_;  // allocated in rows_, but without a handle
  int64_t in_use_ = 0, reserved_ = 0;
};

}  // namespace ev

#endif  // KERNELS_ENGINE_ROWS_HBM_DRAM_HOST_ROWS_H_
