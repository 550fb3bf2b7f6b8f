// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The home of rows in CPU memory: the rows of a RowStore
// (storage/dram/row_store.h), value, of any type, and slots adjacent. A row's
// address depends only on its handle, so holding rows is a no-op. The memory of
// a row is allocated with its handle, so only Relayout can fail.

#ifndef KERNELS_ENGINE_ROWS_DRAM_DRAM_ROWS_H_
#define KERNELS_ENGINE_ROWS_DRAM_DRAM_ROWS_H_

#include <atomic>
#include <cstdint>
#include <memory>

#include "kernels/engine/base/row_handle.h"
#include "kernels/engine/base/row_shape.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/rows/row_home.h"
#include "kernels/engine/storage/dram/row_store.h"

namespace ev {

class DramRows : public RowHome {
 public:
  // shape: a row without slots. store: allocates the table's handles and has
  // the memory of their rows, initially shape.floats() each. default_rows: [R,
  // dim]. Both must outlive this object.
  DramRows(const RowShape& shape, Span<const float> default_rows,
           RowStore* store)
      : shape_(shape), default_rows_(default_rows), store_(store) {}

  // Never fails: the memory was allocated with the handle.
  Status NewRow(RowHandle handle, int64_t default_row) override;
  Status Read(Span<const RowHandle> handles, int column, float* out) override;
  Status ReadColumnsOnce(Span<const RowHandle> handles, Span<const int> columns,
                         Span<float* const> out) override;
  Status SquaredNorms(Span<const RowHandle> handles, double* out) override;
  Status Write(Span<const RowHandle> handles, int column,
               const float* in) override;
  Status Relayout(Span<const SlotShape> slots) override;
  // Rows and their memory are freed with the handles (RowStore::Free, Clear).
  void Forget(Span<const RowHandle>) override {}
  void Clear() override {}
  // The store's bytes() includes the rows.
  int64_t bytes() const override { return 0; }

  Status Hold(Span<const RowHandle> handles, const float** rows,
              std::unique_ptr<RowHold>* hold, bool* held) override;

  Status Apply(const RowRule& rule, Span<const RowHandle> handles,
               Span<const int> slot_columns, const float* grads,
               const uint64_t* salts) override;
  int64_t overflows() const override {
    return overflows_.load(std::memory_order_relaxed);
  }

  const RowHomeCosts& costs() const override;

 private:
  RowShape shape_;  // changed only by calls that run alone
  const Span<const float> default_rows_;
  RowStore* const store_;
  std::atomic<int64_t> overflows_{0};
};

}  // namespace ev

#endif  // KERNELS_ENGINE_ROWS_DRAM_DRAM_ROWS_H_
