// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/rows/hbm_dram_ssd/cached_rows.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "kernels/engine/base/tasks.h"
#include "kernels/engine/optimizer/row_rule.h"
#include "kernels/engine/policy/eviction.h"
#include "kernels/engine/rows/gpu_row_home.h"
#include "kernels/engine/rows/hbm_dram_ssd/device_cache.h"

namespace ev {
namespace {

using CacheSlot = DeviceCache::CacheSlot;
using Use = DeviceCache::Use;

// Holds rows until destroyed.
class HeldRows : public RowHold {
 public:
  HeldRows(DeviceCache* cache, size_t most)
      : cache_(cache), cache_slots_(most) {}
  ~HeldRows() override { Release(); }
  HeldRows(const HeldRows&) = delete;
  HeldRows& operator=(const HeldRows&) = delete;

  // See DeviceCache::Hold. REQUIRES: no row is held.
  Status Hold(Span<const RowHandle> handles, Use use) {
    EV_RETURN_IF_ERROR(cache_->Hold(handles, use, cache_slots_.data(), &size_));
    if (use == Use::kWrites) cache_->Wrote(cache_slots());
    return Status::OK();
  }
  void Release() {
    cache_->Release(cache_slots());
    size_ = 0;
  }
  size_t size() const { return size_; }
  Span<const CacheSlot> cache_slots() const {
    return Span<const CacheSlot>(cache_slots_.data(), size_);
  }

 private:
  DeviceCache* const cache_;
  std::vector<CacheSlot> cache_slots_;
  size_t size_ = 0;
};

class HbmDramRows : public RowHome, public RowTiers, public GpuRowCompute {
 public:
  HbmDramRows(const DeviceCacheOptions& options,
              std::unique_ptr<GpuRowHome> device,
              std::unique_ptr<HostRows> host)
      : dim_(options.dim),
        cache_(options, std::move(device), std::move(host)) {}

  Status NewRow(RowHandle handle, int64_t default_row) override {
    return CatchBadAlloc([&] { return cache_.NewRow(handle, default_row); });
  }

  Status Read(Span<const RowHandle> handles, int column, float* out) override {
    return ReadStretches(
        handles,
        [&](size_t begin, Span<const CacheSlot> cache_slots) {
          if (cache_slots.empty()) return Status::OK();
          return device()->Read(cache_slots, column, out + begin * dim_);
        },
        [&](size_t begin, size_t n) {
          float* const to = out + begin * dim_;
          return CopyOnce(handles.subspan(begin, n),
                          Span<const int>(&column, 1),
                          Span<float* const>(&to, 1));
        });
  }

  Status ReadColumnsOnce(Span<const RowHandle> handles, Span<const int> columns,
                         Span<float* const> out) override {
    return CopyOnce(handles, columns, out);
  }

  // The CPU cannot address rows on the device: it copies them.
  Status Hold(Span<const RowHandle>, const float**, std::unique_ptr<RowHold>*,
              bool* held) override {
    *held = false;
    return Status::OK();
  }

  Status Prefetch(Span<const RowHandle> handles) override {
    return ReadStretches(
        handles, [](size_t, Span<const CacheSlot>) { return Status::OK(); },
        [](size_t, size_t) { return Status::OK(); });
  }

  Status SquaredNorms(Span<const RowHandle> handles, double* out) override {
    return CatchBadAlloc([&] {
      std::vector<double> squares;
      DeviceCache::Visitor visitor;
      visitor.fresh = [&](size_t i, int64_t default_row) {
        out[i] = SumOfSquares(cache_.fresh().default_row(default_row), dim_);
      };
      visitor.host = [&](size_t i, const float* row) {
        out[i] = SumOfSquares(row, dim_);
      };
      visitor.device = [&](Span<const size_t> which,
                           Span<const CacheSlot> cache_slots) {
        squares.resize(cache_slots.size());
        EV_RETURN_IF_ERROR(device()->SquaredNorms(cache_slots, squares.data()));
        for (size_t k = 0; k < which.size(); ++k) out[which[k]] = squares[k];
        return Status::OK();
      };
      return cache_.Visit(handles, visitor);
    });
  }

  // Held as for a read, since that does not wait for rows that others hold.
  Status PlaceRows(Span<const RowHandle> handles, bool writes,
                   RowHandle* gpu_handles, std::unique_ptr<RowHold>* hold,
                   bool* placed) override {
    *placed = false;
    return CatchBadAlloc([&] {
      const size_t size = handles.size();
      if (static_cast<int64_t>(size) > cache_.capacity()) return Status::OK();
      std::unique_ptr<HeldRows> held(new HeldRows(&cache_, size));
      EV_RETURN_IF_ERROR(held->Hold(handles, Use::kReads));
      if (held->size() < size) return Status::OK();
      if (writes) cache_.Wrote(held->cache_slots());
      std::copy_n(held->cache_slots().begin(), size, gpu_handles);
      *hold = std::move(held);
      *placed = true;
      return Status::OK();
    });
  }
  GpuTableCompute* placed_rows() override { return device(); }

  Status StartGradients(ConstFloats grads, int64_t num_samples,
                        std::unique_ptr<DeviceGradients>* put) override {
    return device()->StartGradients(grads, num_samples, put);
  }

  Status Write(Span<const RowHandle> handles, int column,
               const float* in) override {
    return WriteStretches(
        handles, [&](size_t begin, Span<const CacheSlot> cache_slots) {
          return device()->Write(cache_slots, column, in + begin * dim_);
        });
  }

  Status Apply(const RowRule& rule, Span<const RowHandle> handles,
               Span<const int> slot_columns, const float* grads) override {
    return WriteStretches(
        handles, [&](size_t begin, Span<const CacheSlot> cache_slots) {
          return device()->Apply(rule, cache_slots, slot_columns,
                                 grads + begin * dim_);
        });
  }

  Status Reserve(int64_t rows) override {
    return CatchBadAlloc([&] { return cache_.Reserve(rows); });
  }
  void Unreserve(int64_t rows) override { cache_.Unreserve(rows); }

  Status Relayout(Span<const SlotShape> slots) override {
    return CatchBadAlloc([&] {
      std::vector<float> initial_values;
      for (const SlotShape& slot : slots) {
        if (slot.width != dim_) {
          return InvalidArgument(
              "slots of one number per row are not supported in GPU memory, "
              "CPU memory and an SSD (HBM_DRAM_SSDHASH); use another storage "
              "or another optimizer");
        }
        initial_values.push_back(slot.initial_value);
      }
      return cache_.Relayout(initial_values);
    });
  }
  void Forget(Span<const RowHandle> handles) override {
    cache_.Forget(handles);
  }
  void Clear() override { cache_.Clear(); }

  int64_t bytes() const override { return cache_.bytes(); }
  int TierOf(RowHandle handle) const override { return cache_.TierOf(handle); }
  TierStats tier_stats() const override { return cache_.stats(); }
  TierStats tier_stats_below() const override { return cache_.stats_below(); }

  const RowHomeCosts& costs() const override { return device()->costs(); }
  RowTiers* tiers() override { return this; }
  GpuRowCompute* gpu() override { return this; }

 private:
  GpuRowHome* device() const { return cache_.device(); }

  // Reads each row where it is; rows do not become hot by it.
  Status CopyOnce(Span<const RowHandle> handles, Span<const int> columns,
                  Span<float* const> out) {
    return CatchBadAlloc([&] {
      std::vector<float> rows;
      DeviceCache::Visitor visitor;
      visitor.fresh = [&](size_t i, int64_t default_row) {
        for (size_t c = 0; c < columns.size(); ++c) {
          float* const to = out[c] + i * dim_;
          if (columns[c] == 0) {
            std::copy_n(cache_.fresh().default_row(default_row), dim_, to);
          } else {
            std::fill_n(
                to, dim_,
                cache_.fresh().shape().slots()[columns[c] - 1].initial_value);
          }
        }
      };
      visitor.host = [&](size_t i, const float* row) {
        for (size_t c = 0; c < columns.size(); ++c) {
          std::copy_n(row + columns[c] * dim_, dim_, out[c] + i * dim_);
        }
      };
      visitor.device = [&](Span<const size_t> which,
                           Span<const CacheSlot> cache_slots) {
        rows.resize(cache_slots.size() * dim_);
        for (size_t c = 0; c < columns.size(); ++c) {
          EV_RETURN_IF_ERROR(
              device()->Read(cache_slots, columns[c], rows.data()));
          for (size_t k = 0; k < which.size(); ++k) {
            std::copy_n(rows.data() + k * dim_, dim_, out[c] + which[k] * dim_);
          }
        }
        return Status::OK();
      };
      return cache_.Visit(handles, visitor);
    });
  }

  // Reads rows in stretches. Calls held(begin, cache slots) for each stretch
  // that could be held completely, else elsewhere(begin, n).
  template <typename Held, typename Elsewhere>
  Status ReadStretches(Span<const RowHandle> handles, const Held& held,
                       const Elsewhere& elsewhere) {
    return CatchBadAlloc([&] {
      // Half of the cache slots, so that two concurrent calls can both hold a
      // stretch.
      const size_t most = std::max<size_t>(1, cache_.capacity() / 2);
      HeldRows rows(&cache_, std::min(most, handles.size()));
      for (size_t begin = 0; begin < handles.size();) {
        const size_t n = std::min(most, handles.size() - begin);
        EV_RETURN_IF_ERROR(rows.Hold(handles.subspan(begin, n), Use::kReads));
        const size_t done = rows.size();
        if (done > 0) EV_RETURN_IF_ERROR(held(begin, rows.cache_slots()));
        rows.Release();
        if (done == 0) EV_RETURN_IF_ERROR(elsewhere(begin, n));
        begin += done > 0 ? done : n;
      }
      return Status::OK();
    });
  }

  template <typename Body>
  Status WriteStretches(Span<const RowHandle> handles, const Body& body) {
    return CatchBadAlloc([&] {
      HeldRows rows(&cache_,
                    std::min<size_t>(handles.size(), cache_.capacity()));
      for (size_t begin = 0; begin < handles.size();) {
        EV_RETURN_IF_ERROR(rows.Hold(
            handles.subspan(begin, handles.size() - begin), Use::kWrites));
        EV_RETURN_IF_ERROR(body(begin, rows.cache_slots()));
        begin += rows.size();
        rows.Release();
      }
      return Status::OK();
    });
  }

  const int64_t dim_;
  DeviceCache cache_;
};

}  // namespace

Status MakeRowsBelowDevice(const RowHomeOptions& options,
                           const MakeHostRows& make_host,
                           std::unique_ptr<RowHome>* rows) {
  constexpr size_t kMaxDefaultRows = size_t{1} << 30;
  const size_t num_defaults = options.default_rows.size() / options.dim;
  if (num_defaults >= kMaxDefaultRows) {
    return InvalidArgument(
        "rows in GPU and CPU memory need fewer than 2^30 default rows, got " +
        std::to_string(num_defaults));
  }
  GpuRowHomeOptions device_options;
  device_options.dim = options.dim;
  device_options.default_rows = options.default_rows;
  std::unique_ptr<GpuRowHome> device;
  EV_RETURN_IF_ERROR(MakeGpuRowHome(device_options, &device));
  DeviceCacheOptions cache;
  cache.dim = options.dim;
  cache.default_rows = options.default_rows;
  cache.device_bytes = options.memory_bytes;
  return CatchBadAlloc([&] {
    cache.ranks = std::make_shared<UseRanks>(options.tier_strategy);
    std::unique_ptr<HostRows> host;
    EV_RETURN_IF_ERROR(make_host(cache.ranks, &host));
    rows->reset(new HbmDramRows(cache, std::move(device), std::move(host)));
    return Status::OK();
  });
}

}  // namespace ev
