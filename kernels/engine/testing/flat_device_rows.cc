// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// A GpuRowHome that takes next to no time. Rows are in an array in CPU memory,
// no key is kept, and no step runs. A program that links it times what a home
// above it does on the CPU (three_tiers_benchmark --only_prefetch).

#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "kernels/engine/rows/gpu_row_home.h"

namespace ev {
namespace {

Status Refuse() { return Internal("flat rows are only stored"); }

class FlatGpuRows : public GpuRowHome, public RowTiers {
 public:
  explicit FlatGpuRows(int64_t dim) : shape_(dim) { FlatGpuRows::Clear(); }
  static Status Make(const GpuRowHomeOptions& options,
                     std::unique_ptr<GpuRowHome>* home) {
    home->reset(new FlatGpuRows(options.dim));
    return Status::OK();
  }

  Status NewRow(RowHandle, int64_t) override { return Status::OK(); }
  Status NewKeyedRow(int64_t, RowHandle handle, int64_t) override {
    return handle < kRows ? Status::OK()
                          : ResourceExhausted("2^20 flat rows are all");
  }
  Status Read(Span<const RowHandle> handles, int column, float* out) override {
    const int64_t width = shape_.width(column);
    for (size_t i = 0; i < handles.size(); ++i) {
      std::copy_n(At(handles[i], column), width, out + i * width);
    }
    return Status::OK();
  }
  Status Write(Span<const RowHandle> handles, int column,
               const float* in) override {
    const int64_t width = shape_.width(column);
    for (size_t i = 0; i < handles.size(); ++i) {
      std::copy_n(in + i * width, width, At(handles[i], column));
    }
    return Status::OK();
  }
  Status Relayout(Span<const SlotShape> slots) override {
    shape_ = shape_.With(slots);
    Clear();
    return Status::OK();
  }
  void Forget(Span<const RowHandle>) override {}
  void ForgetKeys(Span<const int64_t>) override {}
  void Clear() override { rows_.reset(new float[kRows * shape_.floats()]); }
  int64_t bytes() const override { return 0; }
  Status Flush() override { return Status::OK(); }
  // Some rows have been used more often than others.
  Status ReadWorth(RowHandle first, Span<uint32_t> worth) override {
    for (size_t i = 0; i < worth.size(); ++i) {
      worth[i] = ((first + i) * 2654435761u >> 28) % 8;
    }
    return Status::OK();
  }

  RowTiers* tiers() override { return this; }
  Status Prefetch(Span<const RowHandle>) override { return Status::OK(); }
  int TierOf(RowHandle) const override { return 0; }
  TierStats tier_stats() const override { return TierStats(); }

  bool keeps_counters() const override { return false; }
  bool has_counters() const override { return false; }
  Status TakeCounters(const TakeRowCounters&) override { return Status::OK(); }
  Status SquaredNorms(Span<const RowHandle>, double*) override {
    return Refuse();
  }
  Status Apply(const RowRule&, Span<const RowHandle>, Span<const int>,
               const float*, const uint64_t*) override {
    return Refuse();
  }
  Status StartGradients(ConstFloats, int64_t,
                        std::unique_ptr<DeviceGradients>*) override {
    return Refuse();
  }
  Status StartStep(Span<const GpuStepTable>, const DeviceStream*,
                   std::shared_ptr<GpuStep>*) override {
    return Refuse();
  }
  Status BringGradients(ConstFloats, int64_t, const DeviceStream&,
                        void*) override {
    return Refuse();
  }

 private:
  static constexpr int64_t kRows = 1 << 20;

  float* At(RowHandle handle, int column) const {
    return rows_.get() + handle * shape_.floats() + shape_.offset(column);
  }

  RowShape shape_;
  std::unique_ptr<float[]> rows_;
};

const bool kRegistered = RegisterGpuRowHome(&FlatGpuRows::Make);

}  // namespace
}  // namespace ev
