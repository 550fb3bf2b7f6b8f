// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/rows/hbm_dram_ssd/hbm_dram_ssd_rows.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "kernels/engine/base/row_shape.h"
#include "kernels/engine/base/tasks.h"
#include "kernels/engine/optimizer/row_rule.h"
#include "kernels/engine/rows/gpu_row_home.h"
#include "kernels/engine/rows/hbm_dram_ssd/row_moves.h"
#include "kernels/engine/rows/hbm_dram_ssd/two_homes.h"
#include "kernels/engine/rows/ssd/ssd_rows.h"

namespace ev {
namespace {

using Slot = Slots::Slot;

// Bytes of CPU memory per slot, beside its row.
constexpr int64_t kBytesBesideRow = 20;
constexpr int64_t kMinGpuRows = 64;  // of GpuRowHomeOptions::gpu_bytes

// The part of the CPU memory that the lower home gets. It needs some to write
// its file in order, and the GPU does not access it.
int64_t BytesBelow(int64_t cpu_bytes) { return cpu_bytes / 4; }

Status NewBelow(TwoHomes* homes, RowHandle handle, int64_t default_row) {
  EV_RETURN_IF_ERROR(homes->where.Make(handle, 0));
  const Status status =
      CatchBadAlloc([&] { return homes->ssd->NewRow(handle, default_row); });
  homes->where.at(handle)->store(status.ok() ? homes->NewStamp() : 0);
  return status;
}

class Tiers : public RowTiers {
 public:
  Tiers(const TwoHomes* homes, const RowMoves* moves)
      : homes_(*homes), moves_(*moves) {}

  // Moves rows to GPU memory that the GPU accesses already.
  Status Prefetch(Span<const RowHandle> handles) override {
    return CatchBadAlloc([&] {
      std::vector<Slot> slots;
      for (const RowHandle handle : handles) {
        const uint32_t where = homes_.WhereIs(handle);
        if (InFastTier(where)) slots.push_back(where & kPayload);
      }
      return homes_.gpu->tiers()->Prefetch(slots);
    });
  }
  int TierOf(RowHandle handle) const override {
    const uint32_t where = homes_.WhereIs(handle);
    return InFastTier(where) ? homes_.gpu->tiers()->TierOf(where & kPayload)
                             : 1 + homes_.ssd->tiers()->TierOf(handle);
  }
  TierStats tier_stats() const override {
    TierStats stats = homes_.gpu->tiers()->tier_stats();
    const TierStats below = homes_.ssd->tiers()->tier_stats();
    stats.stored_rows += below.memory_rows;
    stats.stored_bytes += homes_.ssd->bytes();
    stats.misses += below.hits + below.misses - moves_.hits_of_moves() -
                    moves_.misses_of_moves() + moves_.num_up();
    return stats;
  }
  TierStats tier_stats_below() const override {
    const TierStats above = homes_.gpu->tiers()->tier_stats();
    TierStats stats = homes_.ssd->tiers()->tier_stats();
    stats.memory_rows += above.stored_rows;
    const int64_t from_file = moves_.num_from_file();
    stats.hits +=
        above.misses - moves_.hits_of_moves() + moves_.num_up() - from_file;
    stats.misses += from_file - moves_.misses_of_moves();
    return stats;
  }

 private:
  const TwoHomes& homes_;
  const RowMoves& moves_;
};

class Gpu : public GpuRowCompute {
 public:
  Gpu(TwoHomes* homes, RowMoves* moves) : homes_(*homes), moves_(*moves) {}

  Status NewKeyedRow(int64_t key, RowHandle handle,
                     int64_t default_row) override {
    return CatchBadAlloc([&] {
      const Slot slot = homes_.slots.Take(key, handle, /*is_new=*/true);
      if (slot == kNoRow) return NewBelow(&homes_, handle, default_row);
      Status status = homes_.where.Make(handle, 0);
      if (status.ok()) {
        status = CatchBadAlloc(
            [&] { return homes_.gpu->NewKeyedRow(key, slot, default_row); });
        homes_.where.at(handle)->store(status.ok() ? kInFastTier | slot : 0);
      }
      if (!status.ok()) homes_.slots.GiveBack({&slot, 1});
      return status;
    });
  }
  GpuTableCompute* step_rows() override { return homes_.gpu.get(); }
  RowsBelow* below() override { return &moves_; }
  void ForgetKeys(Span<const int64_t> keys) override {
    homes_.gpu->ForgetKeys(keys);
  }
  Status StartGradients(ConstFloats grads, int64_t num_samples,
                        std::unique_ptr<DeviceGradients>* put) override {
    return homes_.gpu->StartGradients(grads, num_samples, put);
  }
  bool FindStepHandles(Span<const RowHandle> handles,
                       RowHandle* step_handles) const override {
    for (size_t i = 0; i < handles.size(); ++i) {
      step_handles[i] = handles[i];
      if (handles[i] >= kFirstReservedHandle) continue;
      const uint32_t where = homes_.WhereIs(handles[i]);
      if (!InFastTier(where)) return false;
      step_handles[i] = where & kPayload;
    }
    return true;
  }
  void FindTableHandles(Span<const RowHandle> step_handles,
                        RowHandle* handles) const override {
    homes_.slots.FindHandles(step_handles, handles);
  }

 private:
  TwoHomes& homes_;
  RowMoves& moves_;
};

class HbmDramSsdRows : public RowHome {
 public:
  HbmDramSsdRows(const RowHomeOptions& options, std::unique_ptr<GpuRowHome> gpu,
                 std::unique_ptr<RowHome> ssd)
      : gpu_bytes_(options.memory_bytes),
        cpu_bytes_(options.second_memory_bytes -
                   BytesBelow(options.second_memory_bytes)),
        homes_(RowShape(options.dim, {}, 1, options.value_type), std::move(gpu),
               std::move(ssd)),
        moves_(&homes_, options.tier_strategy),
        tiers_(&homes_, &moves_),
        gpu_(&homes_, &moves_) {
    homes_.slots.Resize(NumSlots());
  }

  // Without a key the GPU cannot find the row.
  Status NewRow(RowHandle handle, int64_t default_row) override {
    return CatchBadAlloc(
        [&] { return NewBelow(&homes_, handle, default_row); });
  }

  Status Read(Span<const RowHandle> handles, int column, float* out) override {
    const int64_t width = homes_.shape.width(column);
    return ReadRows<float>(
        handles, {&width, 1}, {&out, 1},
        [&](RowHome* home, Span<const RowHandle> rows, Span<float* const> to) {
          return home->Read(rows, column, to[0]);
        });
  }
  Status ReadColumnsOnce(Span<const RowHandle> handles, Span<const int> columns,
                         Span<float* const> out) override {
    std::vector<int64_t> widths;
    for (const int column : columns)
      widths.push_back(homes_.shape.width(column));
    return ReadRows<float>(
        handles, widths, out,
        [&](RowHome* home, Span<const RowHandle> rows, Span<float* const> to) {
          return home->ReadColumnsOnce(rows, columns, to);
        });
  }
  Status SquaredNorms(Span<const RowHandle> handles, double* out) override {
    const int64_t width = 1;
    return ReadRows<double>(
        handles, {&width, 1}, {&out, 1},
        [](RowHome* home, Span<const RowHandle> rows, Span<double* const> to) {
          return home->SquaredNorms(rows, to[0]);
        });
  }
  Status Write(Span<const RowHandle> handles, int column,
               const float* in) override {
    return WriteRows(handles, homes_.shape.width(column), in,
                     [&](const Part& part, const float* from) {
                       return part.home->Write(part.rows, column, from);
                     });
  }
  Status Apply(const RowRule& rule, Span<const RowHandle> handles,
               Span<const int> slot_columns, const float* grads,
               const uint64_t* salts) override {
    return WriteRows(
        handles, homes_.shape.dim(), grads,
        [&](const Part& part, const float* from) {
          std::vector<uint64_t> of_part;
          for (size_t k = 0; salts != nullptr && k < part.which.size(); ++k) {
            of_part.push_back(salts[part.which[k]]);
          }
          return part.home->Apply(rule, part.rows, slot_columns, from,
                                  salts == nullptr ? nullptr : of_part.data());
        });
  }
  int64_t overflows() const override {
    return homes_.gpu->overflows() + homes_.ssd->overflows();
  }

  Status Reserve(int64_t rows) override { return homes_.ssd->Reserve(rows); }
  void Unreserve(int64_t rows) override { homes_.ssd->Unreserve(rows); }

  // With other slots all rows move below first: the upper home has another
  // number of rows then.
  Status Relayout(Span<const SlotShape> slots) override {
    return CatchBadAlloc([&] {
      RowShape shape = homes_.shape.With(slots);
      homes_.layout = TwoHomes::NewLayout();
      const bool is_wider = slots.size() != homes_.shape.num_slots();
      if (is_wider) {
        EV_RETURN_IF_ERROR(moves_.MoveAllDown());
        homes_.gpu->Clear();
      }
      // Has the slots of an earlier call if the lower home could not add them.
      std::vector<SlotShape> of_gpu(slots.begin(), slots.end());
      for (size_t s = of_gpu.size(); s < gpu_slots_.size(); ++s) {
        of_gpu.push_back(gpu_slots_[s]);
      }
      EV_RETURN_IF_ERROR(homes_.gpu->Relayout(of_gpu));
      gpu_slots_ = std::move(of_gpu);
      EV_RETURN_IF_ERROR(homes_.ssd->Relayout(slots));
      homes_.shape = std::move(shape);
      if (is_wider) homes_.slots.Resize(NumSlots());
      return Status::OK();
    });
  }

  void Forget(Span<const RowHandle> handles) override {
    std::vector<Slot> slots;
    std::vector<RowHandle> below;
    slots.reserve(handles.size());
    below.reserve(handles.size());
    for (const RowHandle handle : handles) {
      const uint32_t where = homes_.where.at(handle)->exchange(0);
      if (InFastTier(where)) {
        slots.push_back(where & kPayload);
      } else {
        below.push_back(handle);
      }
    }
    if (!slots.empty()) homes_.gpu->Forget(slots);
    homes_.slots.GiveBack(slots);
    if (!below.empty()) homes_.ssd->Forget(below);
    homes_.where.DropUnused(handles);
  }
  void Clear() override {
    homes_.where.Clear();
    homes_.slots.Resize(NumSlots());
    homes_.gpu->Clear();
    homes_.ssd->Clear();
  }

  int64_t bytes() const override {
    return homes_.gpu->bytes() + homes_.ssd->bytes() + homes_.where.bytes() +
           homes_.slots.bytes();
  }
  const RowHomeCosts& costs() const override { return homes_.gpu->costs(); }
  Status Hold(Span<const RowHandle> handles, const float** rows,
              std::unique_ptr<RowHold>* hold, bool* held) override {
    return homes_.gpu->Hold(handles, rows, hold, held);
  }
  RowTiers* tiers() override { return &tiers_; }
  GpuRowCompute* gpu() override { return &gpu_; }

 private:
  int64_t NumSlots() const {
    const int64_t row_bytes = homes_.shape.floats() * sizeof(float);
    return std::min<int64_t>(std::max(kMinGpuRows, gpu_bytes_ / row_bytes) +
                                 cpu_bytes_ / (row_bytes + kBytesBesideRow),
                             kPayload);
  }

  // The rows of a call that are in one of the two homes.
  struct Part {
    RowHome* home;
    std::vector<size_t> which;    // their positions in the call
    std::vector<RowHandle> rows;  // their handles in the home
  };
  // Calls body(part) for each home that has rows of the call. Reserved handles
  // are in no part.
  template <typename Body>
  Status ForParts(Span<const RowHandle> handles, const Body& body) const {
    return CatchBadAlloc([&] {
      Part parts[2] = {{homes_.gpu.get(), {}, {}}, {homes_.ssd.get(), {}, {}}};
      for (size_t i = 0; i < handles.size(); ++i) {
        if (handles[i] >= kFirstReservedHandle) continue;
        const uint32_t where = homes_.WhereIs(handles[i]);
        if (where == 0) return NoSuchRow(handles[i]);
        Part& part = parts[InFastTier(where) ? 0 : 1];
        part.which.push_back(i);
        part.rows.push_back(InFastTier(where) ? where & kPayload : handles[i]);
      }
      for (const Part& part : parts) {
        if (!part.rows.empty()) EV_RETURN_IF_ERROR(body(part));
      }
      return Status::OK();
    });
  }
  // Calls read(home, rows, to) for the rows of each home: to[c] receives
  // widths[c] values per row, for out[c].
  template <typename T, typename Body>
  Status ReadRows(Span<const RowHandle> handles, Span<const int64_t> widths,
                  Span<T* const> out, const Body& read) const {
    return ForParts(handles, [&](const Part& part) {
      if (part.rows.size() == handles.size()) {
        return read(part.home, part.rows, out);
      }
      std::vector<std::vector<T>> values(out.size());
      std::vector<T*> to;
      for (size_t c = 0; c < out.size(); ++c) {
        values[c].resize(part.rows.size() * widths[c]);
        to.push_back(values[c].data());
      }
      EV_RETURN_IF_ERROR(read(part.home, part.rows, Span<T* const>(to)));
      for (size_t c = 0; c < out.size(); ++c) {
        for (size_t k = 0; k < part.rows.size(); ++k) {
          std::copy_n(to[c] + k * widths[c], widths[c],
                      out[c] + part.which[k] * widths[c]);
        }
      }
      return Status::OK();
    });
  }
  // Calls write(part, from) for the rows of each home. in: [N, width].
  template <typename Body>
  Status WriteRows(Span<const RowHandle> handles, int64_t width,
                   const float* in, const Body& write) {
    return ForParts(handles, [&](const Part& part) {
      const bool is_all = part.rows.size() == handles.size();
      std::vector<float> from(is_all ? 0 : part.rows.size() * width);
      for (size_t k = 0; k < part.rows.size() && !is_all; ++k) {
        std::copy_n(in + part.which[k] * width, width, from.data() + k * width);
      }
      const Status status = write(part, is_all ? in : from.data());
      if (part.home == homes_.ssd.get()) homes_.Stamp(part.rows);
      return status;
    });
  }

  const int64_t gpu_bytes_, cpu_bytes_;  // of the upper home's rows
  std::vector<SlotShape> gpu_slots_;     // of the upper home
  TwoHomes homes_;
  RowMoves moves_;
  Tiers tiers_;
  Gpu gpu_;
};

}  // namespace

Status MakeHbmDramSsdRows(const RowHomeOptions& options,
                          std::unique_ptr<RowHome>* rows) {
  GpuRowHomeOptions of_gpu;
  of_gpu.dim = options.dim;
  of_gpu.default_rows = options.default_rows;
  of_gpu.value_type = options.value_type;
  of_gpu.gpu_bytes = options.memory_bytes;
  of_gpu.tier_strategy = options.tier_strategy;
  std::unique_ptr<GpuRowHome> gpu;
  EV_RETURN_IF_ERROR(MakeGpuRowHome(of_gpu, &gpu));
  RowHomeOptions of_ssd = options;
  of_ssd.memory_bytes = BytesBelow(options.second_memory_bytes);
  std::unique_ptr<RowHome> ssd;
  EV_RETURN_IF_ERROR(MakeSsdRows(of_ssd, &ssd));
  return CatchBadAlloc([&] {
    rows->reset(new HbmDramSsdRows(options, std::move(gpu), std::move(ssd)));
    return Status::OK();
  });
}

}  // namespace ev
