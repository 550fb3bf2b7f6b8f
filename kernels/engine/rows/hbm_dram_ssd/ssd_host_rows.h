// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Rows of one table in CPU memory and on an SSD, below a device's memory
// (host_rows.h). A row has the number of its handle. Every handle has
// a row in the tiers; it is fresh while the device has its newest contents.

#ifndef KERNELS_ENGINE_ROWS_HBM_DRAM_SSD_SSD_HOST_ROWS_H_
#define KERNELS_ENGINE_ROWS_HBM_DRAM_SSD_SSD_HOST_ROWS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "kernels/engine/base/row_handle.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/rows/hbm_dram_ssd/host_rows.h"
#include "kernels/engine/storage/ssd/tiered_rows.h"

namespace ev {

class SsdHostRows : public HostRows {
 public:
  SsdHostRows(int64_t dim, std::unique_ptr<TieredRows> tiers)
      : dim_(dim), tiers_(std::move(tiers)) {}

  Status AddHandle(RowHandle handle) override;
  Status Allocate(RowHandle handle, bool is_reserved, Row* row) override;
  void Free(Span<const Row> rows) override;
  Status Write(Span<const Row> rows, bool is_reserved, const float* floats,
               const uint32_t* ranks) override;
  Status Read(Span<const Row> rows, float* floats, uint32_t* ranks) override;
  bool IsInMemory(Row row) const override { return tiers_->IsInMemory(row); }
  void SetRank(Row row, uint32_t rank) override { tiers_->SetRank(row, rank); }
  bool IsStored(Row row) const override { return tiers_->IsStored(row); }
  Status Visit(Span<const Row> rows,
               const std::function<void(size_t, const float*)>& body) override;

  Status Reserve(int64_t rows, int64_t most) override;
  void Unreserve(int64_t rows) override { tiers_->Unreserve(rows); }

  void AddStats(TierStats* stats, TierStats* below) const override;
  int64_t bytes() const override { return tiers_->memory_bytes(); }

  Status AddSlots(Span<const float> initial_values) override;
  Status RemoveSlots(size_t count) override;
  void Forget(Span<const RowHandle> handles, Span<const Row> rows) override;
  void Clear(size_t num_slots) override;

 private:
  int64_t floats() const {
    return dim_ * (1 + static_cast<int64_t>(slots_.size()));
  }

  const int64_t dim_;
  const std::unique_ptr<TieredRows> tiers_;
  // Initial values with which slots were added. Fresh rows of the tiers have no
  // contents, so later changes of the values do not matter here.
  std::vector<float> slots_;
};

}  // namespace ev

#endif  // KERNELS_ENGINE_ROWS_HBM_DRAM_SSD_SSD_HOST_ROWS_H_
