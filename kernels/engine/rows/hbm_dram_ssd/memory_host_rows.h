// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Rows of one table in CPU memory that were evicted from a device: value and
// slots adjacent, and a rank. A row is kept until the device has a newer
// version.

#ifndef KERNELS_ENGINE_ROWS_HBM_DRAM_SSD_MEMORY_HOST_ROWS_H_
#define KERNELS_ENGINE_ROWS_HBM_DRAM_SSD_MEMORY_HOST_ROWS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "kernels/engine/base/row_handle.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/rows/hbm_dram_ssd/cached_rows.h"
#include "kernels/engine/rows/hbm_dram_ssd/host_rows.h"
#include "kernels/engine/storage/dram/row_store.h"

namespace ev {

class MemoryHostRows : public HostRows {
 public:
  explicit MemoryHostRows(int64_t dim)
      : dim_(dim), rows_(dim, /*with_meta=*/true) {}

  Status AddHandle(RowHandle) override { return Status::OK(); }
  Status Allocate(RowHandle handle, bool is_reserved, Row* row) override;
  void Free(Span<const Row> rows) override;
  Status Write(Span<const Row> rows, bool is_reserved, const float* floats,
               const uint32_t* ranks) override;
  Status Read(Span<const Row> rows, float* floats, uint32_t* ranks) override;
  bool IsInMemory(Row) const override { return true; }
  void SetRank(Row row, uint32_t rank) override {
    rows_.Meta(row)->frequency = rank;
  }
  bool IsStored(Row) const override { return false; }
  Status Visit(Span<const Row> rows,
               const std::function<void(size_t, const float*)>& body) override;

  Status Reserve(int64_t rows, int64_t most) override;
  void Unreserve(int64_t rows) override;

  void AddStats(TierStats* stats, TierStats* below) const override;
  int64_t bytes() const override { return rows_.bytes(); }

  Status AddSlots(Span<const float> initial_values) override;
  Status RemoveSlots(size_t count) override;
  void Forget(Span<const RowHandle> handles, Span<const Row> rows) override;
  void Clear(size_t num_slots) override;

 private:
  // Makes Free unable to fail.
  void MakeRoomToFree();

  const int64_t dim_;
  RowStore rows_;
  mutable std::mutex rows_mu_;
  std::vector<Row> free_;  // allocated in rows_, but without a handle
  int64_t in_use_ = 0, reserved_ = 0;
};

// Creates rows on a device above rows in CPU memory. Returns the errors of
// MakeRowsBelowDevice.
inline Status MakeRowsAboveMemory(const RowHomeOptions& options,
                                  std::unique_ptr<RowHome>* rows) {
  return MakeRowsBelowDevice(
      options,
      [&options](const std::shared_ptr<UseRanks>&,
                 std::unique_ptr<HostRows>* host) {
        host->reset(new MemoryHostRows(options.dim));
        return Status::OK();
      },
      rows);
}

}  // namespace ev

#endif  // KERNELS_ENGINE_ROWS_HBM_DRAM_SSD_MEMORY_HOST_ROWS_H_
