// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/rows/hbm_dram_ssd/hbm_dram_ssd_rows.h"

#include <algorithm>
#include <atomic>
#include <numeric>
#include <utility>
#include <vector>

#include "kernels/engine/base/row_shape.h"
#include "kernels/engine/base/tasks.h"
#include "kernels/engine/optimizer/row_rule.h"
#include "kernels/engine/rows/gpu_row_home.h"
#include "kernels/engine/rows/hbm_dram_ssd/slots.h"
#include "kernels/engine/rows/ssd/ssd_rows.h"
#include "kernels/engine/storage/tiered/row_states.h"

namespace ev {
namespace {

using Slot = Slots::Slot;

// The state of a row in the lower home (storage/tiered/row_states.h).
constexpr uint32_t kBelow = 1;
// Bytes of CPU memory per slot, beside its row.
constexpr int64_t kBytesBesideRow = 20;
// Rows that move together.
constexpr size_t kMovedAtOnce = 4096;
constexpr int64_t kMinGpuRows = 64;  // of GpuRowHomeOptions::gpu_bytes

// The part of the CPU memory that the lower home gets. It needs some to write
// its file in order, and the GPU does not access it.
int64_t BytesBelow(int64_t cpu_bytes) { return cpu_bytes / 4; }

// Whole rows, column by column.
class Columns {
 public:
  Columns(const RowShape& shape, size_t num_rows)
      : floats_(1 + shape.num_slots()) {
    for (size_t c = 0; c < floats_.size(); ++c) {
      numbers_.push_back(static_cast<int>(c));
      floats_[c].resize(num_rows * shape.width(numbers_[c]));
      data_.push_back(floats_[c].data());
    }
  }
  Status Read(RowHome* from, Span<const RowHandle> handles) {
    return from->ReadColumnsOnce(handles, numbers_, data_);
  }
  Status Write(RowHome* to, Span<const RowHandle> handles) const {
    for (int c : numbers_) {
      EV_RETURN_IF_ERROR(to->Write(handles, c, data_[c]));
    }
    return Status::OK();
  }

 private:
  std::vector<std::vector<float>> floats_;
  std::vector<int> numbers_;
  std::vector<float*> data_;
};

class HbmDramSsdRows : public RowHome,
                       public RowTiers,
                       public GpuRowCompute,
                       public RowsBelow {
 public:
  HbmDramSsdRows(const RowHomeOptions& options, std::unique_ptr<GpuRowHome> gpu,
                 std::unique_ptr<RowHome> ssd)
      : shape_(options.dim),
        gpu_bytes_(options.memory_bytes),
        cpu_bytes_(options.second_memory_bytes -
                   BytesBelow(options.second_memory_bytes)),
        strategy_(options.tier_strategy),
        gpu_(std::move(gpu)),
        ssd_(std::move(ssd)) {
    slots_.Resize(NumSlots());
  }

  // A key is needed for the GPU to find the row.
  Status NewRow(RowHandle handle, int64_t default_row) override {
    return CatchBadAlloc([&] { return NewBelow(handle, default_row); });
  }
  Status NewKeyedRow(int64_t key, RowHandle handle,
                     int64_t default_row) override {
    return CatchBadAlloc([&] {
      const Slot slot = slots_.Take(key, handle, /*is_new=*/true);
      if (slot == kNoRow) return NewBelow(handle, default_row);
      Status status = where_.Make(handle, 0);
      if (status.ok()) {
        status = CatchBadAlloc(
            [&] { return gpu_->NewKeyedRow(key, slot, default_row); });
        where_.at(handle)->store(status.ok() ? kInFastTier | slot : 0);
      }
      if (!status.ok()) slots_.GiveBack({&slot, 1});
      return status;
    });
  }

  Status Read(Span<const RowHandle> handles, int column, float* out) override {
    const int64_t width = shape_.width(column);
    return ReadRows<float>(
        handles, {&width, 1}, {&out, 1},
        [&](RowHome* home, Span<const RowHandle> rows, Span<float* const> to) {
          return home->Read(rows, column, to[0]);
        });
  }
  Status ReadColumnsOnce(Span<const RowHandle> handles, Span<const int> columns,
                         Span<float* const> out) override {
    std::vector<int64_t> widths;
    for (const int column : columns) widths.push_back(shape_.width(column));
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
    return WriteRows(
        handles, shape_.width(column), in,
        [&](RowHome* home, Span<const RowHandle> rows, const float* from) {
          return home->Write(rows, column, from);
        });
  }
  Status Apply(const RowRule& rule, Span<const RowHandle> handles,
               Span<const int> slot_columns, const float* grads,
               const uint64_t* /*salts*/) override {
    return WriteRows(
        handles, shape_.dim(), grads,
        [&](RowHome* home, Span<const RowHandle> rows, const float* from) {
          return home->Apply(rule, rows, slot_columns, from, nullptr);
        });
  }

  Status Reserve(int64_t rows) override { return ssd_->Reserve(rows); }
  void Unreserve(int64_t rows) override { ssd_->Unreserve(rows); }

  // With other slots all rows move below first: the upper home has another
  // number of rows then.
  Status Relayout(Span<const SlotShape> slots) override {
    return CatchBadAlloc([&] {
      RowShape shape = shape_.With(slots);
      const bool is_wider = slots.size() != shape_.num_slots();
      if (is_wider) {
        EV_RETURN_IF_ERROR(MoveAllDown());
        gpu_->Clear();
      }
      // Has the slots of an earlier call if the lower home could not add them.
      std::vector<SlotShape> of_gpu(slots.begin(), slots.end());
      for (size_t s = of_gpu.size(); s < gpu_slots_.size(); ++s) {
        of_gpu.push_back(gpu_slots_[s]);
      }
      EV_RETURN_IF_ERROR(gpu_->Relayout(of_gpu));
      gpu_slots_ = std::move(of_gpu);
      EV_RETURN_IF_ERROR(ssd_->Relayout(slots));
      shape_ = std::move(shape);
      if (is_wider) slots_.Resize(NumSlots());
      return Status::OK();
    });
  }

  void Forget(Span<const RowHandle> handles) override {
    std::vector<Slot> slots;
    std::vector<RowHandle> below;
    slots.reserve(handles.size());
    below.reserve(handles.size());
    for (const RowHandle handle : handles) {
      const uint32_t where = where_.at(handle)->exchange(0);
      if (InFastTier(where)) {
        slots.push_back(where & kPayload);
      } else {
        below.push_back(handle);
      }
    }
    if (!slots.empty()) gpu_->Forget(slots);
    slots_.GiveBack(slots);
    if (!below.empty()) ssd_->Forget(below);
    where_.DropUnused(handles);
  }
  void Clear() override {
    where_.Clear();
    slots_.Resize(NumSlots());
    gpu_->Clear();
    ssd_->Clear();
  }

  int64_t bytes() const override {
    return gpu_->bytes() + ssd_->bytes() + where_.bytes() + slots_.bytes();
  }
  const RowHomeCosts& costs() const override { return gpu_->costs(); }
  Status Hold(Span<const RowHandle> handles, const float** rows,
              std::unique_ptr<RowHold>* hold, bool* held) override {
    return gpu_->Hold(handles, rows, hold, held);
  }

  // --- RowTiers ---

  RowTiers* tiers() override { return this; }
  // Moves rows to GPU memory that the GPU accesses already.
  Status Prefetch(Span<const RowHandle> handles) override {
    return CatchBadAlloc([&] {
      std::vector<Slot> slots;
      for (const RowHandle handle : handles) {
        const uint32_t where = WhereIs(handle);
        if (InFastTier(where)) slots.push_back(where & kPayload);
      }
      return gpu_->tiers()->Prefetch(slots);
    });
  }
  int TierOf(RowHandle handle) const override {
    const uint32_t where = WhereIs(handle);
    return InFastTier(where) ? gpu_->tiers()->TierOf(where & kPayload)
                             : 1 + ssd_->tiers()->TierOf(handle);
  }
  TierStats tier_stats() const override {
    TierStats stats = gpu_->tiers()->tier_stats();
    const TierStats below = ssd_->tiers()->tier_stats();
    stats.stored_rows += below.memory_rows;
    stats.stored_bytes += ssd_->bytes();
    stats.misses += below.hits + below.misses - hits_of_moves_.load() -
                    misses_of_moves_.load() + brought_.load();
    return stats;
  }
  TierStats tier_stats_below() const override {
    const TierStats above = gpu_->tiers()->tier_stats();
    TierStats stats = ssd_->tiers()->tier_stats();
    stats.memory_rows += above.stored_rows;
    stats.hits +=
        above.misses - hits_of_moves_.load() + brought_.load() - read_.load();
    stats.misses += read_.load() - misses_of_moves_.load();
    return stats;
  }

  // --- GpuRowCompute ---

  GpuRowCompute* gpu() override { return this; }
  GpuTableCompute* step_rows() override { return gpu_.get(); }
  RowsBelow* below() override { return this; }
  void ForgetKeys(Span<const int64_t> keys) override { gpu_->ForgetKeys(keys); }
  Status StartGradients(ConstFloats grads, int64_t num_samples,
                        std::unique_ptr<DeviceGradients>* put) override {
    return gpu_->StartGradients(grads, num_samples, put);
  }
  bool FindStepHandles(Span<const RowHandle> handles,
                       RowHandle* step_handles) const override {
    for (size_t i = 0; i < handles.size(); ++i) {
      step_handles[i] = handles[i];
      if (handles[i] >= kFirstReservedHandle) continue;
      const uint32_t where = WhereIs(handles[i]);
      if (!InFastTier(where)) return false;
      step_handles[i] = where & kPayload;
    }
    return true;
  }
  void FindTableHandles(Span<const RowHandle> step_handles,
                        RowHandle* handles) const override {
    slots_.FindHandles(step_handles, handles);
  }

  // --- RowsBelow ---

  bool NeedsRoom() override { return slots_.NeedsRoom(); }
  Status Bring(Span<const int64_t> keys, Span<const RowHandle> handles,
               Brought* brought) override {
    *brought = Brought();
    return CatchBadAlloc([&] {
      slots_.StartBring();
      std::vector<bool> stays(slots_.num_used());
      std::vector<Coming> coming;
      int64_t num_staying = 0;
      for (size_t i = 0; i < handles.size(); ++i) {
        const uint32_t where = WhereIs(handles[i]);
        if (where == kBelow) {
          coming.emplace_back(handles[i], keys[i]);
        } else if (InFastTier(where) && !stays[where & kPayload]) {
          stays[where & kPayload] = true;
          ++num_staying;
        }
      }
      std::sort(coming.begin(), coming.end());
      coming.erase(std::unique(coming.begin(), coming.end()), coming.end());
      const int64_t num_coming = coming.size();
      brought->fits = num_staying + num_coming <= slots_.capacity();
      if (!brought->fits) return Status::OK();
      EV_RETURN_IF_ERROR(MakeRoom(num_coming, stays, &brought->moved_below));
      for (size_t begin = 0; begin < coming.size(); begin += kMovedAtOnce) {
        const size_t n = std::min(kMovedAtOnce, coming.size() - begin);
        EV_RETURN_IF_ERROR(
            MoveUp(Span<const Coming>(coming.data() + begin, n)));
      }
      return Status::OK();
    });
  }

 private:
  using Coming = std::pair<RowHandle, int64_t>;  // a row that moves up, its key

  int64_t NumSlots() const {
    const int64_t row_bytes = shape_.floats() * sizeof(float);
    return std::min<int64_t>(std::max(kMinGpuRows, gpu_bytes_ / row_bytes) +
                                 cpu_bytes_ / (row_bytes + kBytesBesideRow),
                             kPayload);
  }
  uint32_t WhereIs(RowHandle handle) const {
    return where_.Has(handle)
               ? where_.at(handle)->load(std::memory_order_acquire)
               : 0;
  }
  Status NewBelow(RowHandle handle, int64_t default_row) {
    EV_RETURN_IF_ERROR(where_.Make(handle, 0));
    const Status status =
        CatchBadAlloc([&] { return ssd_->NewRow(handle, default_row); });
    where_.at(handle)->store(status.ok() ? kBelow : 0);
    return status;
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
      Part parts[2] = {{gpu_.get(), {}, {}}, {ssd_.get(), {}, {}}};
      for (size_t i = 0; i < handles.size(); ++i) {
        if (handles[i] >= kFirstReservedHandle) continue;
        const uint32_t where = WhereIs(handles[i]);
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
  // Calls write(home, rows, from) for the rows of each home. in: [N, width].
  template <typename Body>
  Status WriteRows(Span<const RowHandle> handles, int64_t width,
                   const float* in, const Body& write) {
    return ForParts(handles, [&](const Part& part) {
      if (part.rows.size() == handles.size()) {
        return write(part.home, part.rows, in);
      }
      std::vector<float> from(part.rows.size() * width);
      for (size_t k = 0; k < part.rows.size(); ++k) {
        std::copy_n(in + part.which[k] * width, width, from.data() + k * width);
      }
      return write(part.home, part.rows, from.data());
    });
  }

  // --- Moves; called alone ---

  // Moves rows down so that num_coming slots are free, and some more for new
  // rows.
  Status MakeRoom(int64_t num_coming, const std::vector<bool>& stays,
                  bool* moved_down) {
    Slots::ReadWorth read_worth;
    if (strategy_ != CacheStrategy::kFifo) {
      read_worth = [this](Slot first, Span<uint32_t> worth) {
        return gpu_->ReadWorth(first, worth);
      };
    }
    const int64_t needed = num_coming + slots_.room();
    const int64_t missing = needed - slots_.num_free();
    if (missing <= 0) return Status::OK();
    // More at a time, so that few calls move rows down: updates whose lookups
    // were before such a call have to find their rows again.
    std::vector<Slot> leaving;
    EV_RETURN_IF_ERROR(slots_.Choose(
        std::max(missing, std::min(4 * needed, slots_.capacity() / 32)), stays,
        read_worth, &leaving));
    *moved_down = !leaving.empty();
    return MoveDown(leaving);
  }
  Status MoveAllDown() {
    std::vector<Slot> all;
    for (int64_t slot = 0; slot < slots_.num_used(); ++slot) {
      if (slots_.at(static_cast<Slot>(slot)).handle == kNoRow) continue;
      all.push_back(static_cast<Slot>(slot));
    }
    return MoveDown(all);
  }

  // After an error each row is in one home.
  Status MoveDown(const std::vector<Slot>& slots) {
    for (size_t begin = 0; begin < slots.size(); begin += kMovedAtOnce) {
      const size_t n = std::min(kMovedAtOnce, slots.size() - begin);
      EV_RETURN_IF_ERROR(
          MoveSomeDown(Span<const Slot>(slots.data() + begin, n)));
    }
    return Status::OK();
  }
  Status MoveSomeDown(Span<const Slot> slots) {
    Columns columns(shape_, slots.size());
    std::vector<int64_t> keys;
    std::vector<RowHandle> handles;
    for (const Slot slot : slots) {
      keys.push_back(slots_.at(slot).key);
      handles.push_back(slots_.at(slot).handle);
    }
    EV_RETURN_IF_ERROR(columns.Read(gpu_.get(), slots));
    size_t made = 0;
    const TierStats before = ssd_->tiers()->tier_stats();
    const Status status = CatchBadAlloc([&] {
      for (; made < handles.size(); ++made) {
        EV_RETURN_IF_ERROR(ssd_->NewRow(handles[made], 0));
      }
      return columns.Write(ssd_.get(), handles);
    });
    const TierStats after = ssd_->tiers()->tier_stats();
    hits_of_moves_.fetch_add(after.hits - before.hits);
    misses_of_moves_.fetch_add(after.misses - before.misses);
    if (!status.ok()) {
      ssd_->Forget(Span<const RowHandle>(handles.data(), made));
      return status;
    }
    gpu_->ForgetKeys(keys);
    gpu_->Forget(slots);
    for (const RowHandle handle : handles) where_.at(handle)->store(kBelow);
    slots_.GiveBack(slots);
    return Status::OK();
  }

  Status MoveUp(Span<const Coming> coming) {
    std::vector<RowHandle> handles;
    std::vector<int64_t> keys;
    int64_t from_file = 0;
    for (const Coming& row : coming) {
      handles.push_back(row.first);
      keys.push_back(row.second);
      from_file += ssd_->tiers()->TierOf(row.first);
    }
    Columns columns(shape_, handles.size());
    EV_RETURN_IF_ERROR(columns.Read(ssd_.get(), handles));
    std::vector<Slot> slots;
    slots.reserve(handles.size());
    size_t made = 0;
    const Status status = CatchBadAlloc([&] {
      for (; made < handles.size(); ++made) {
        slots.push_back(
            slots_.Take(keys[made], handles[made], /*is_new=*/false));
        EV_RETURN_IF_ERROR(gpu_->NewKeyedRow(keys[made], slots.back(), 0));
      }
      return columns.Write(gpu_.get(), slots);
    });
    if (!status.ok()) {
      gpu_->ForgetKeys(Span<const int64_t>(keys.data(), made));
      gpu_->Forget(Span<const Slot>(slots.data(), made));
      slots_.GiveBack(slots);
      return status;
    }
    for (size_t k = 0; k < handles.size(); ++k) {
      where_.at(handles[k])->store(kInFastTier | slots[k]);
    }
    ssd_->Forget(handles);
    brought_.fetch_add(static_cast<int64_t>(handles.size()));
    read_.fetch_add(from_file);
    return Status::OK();
  }

  RowShape shape_;                       // changed only by calls that run alone
  const int64_t gpu_bytes_, cpu_bytes_;  // of the upper home's rows
  const CacheStrategy strategy_;
  const std::unique_ptr<GpuRowHome> gpu_;
  const std::unique_ptr<RowHome> ssd_;
  std::vector<SlotShape> gpu_slots_;  // of the upper home
  // By the table's handle: kBelow, or kInFastTier and the slot.
  RowStates where_;
  Slots slots_;
  // Rows that Bring has moved up, and how many of them were in the file.
  std::atomic<int64_t> brought_{0}, read_{0};
  // Uses that the lower home has counted for rows that moved down.
  std::atomic<int64_t> hits_of_moves_{0}, misses_of_moves_{0};
};

}  // namespace

Status MakeHbmDramSsdRows(const RowHomeOptions& options,
                          std::unique_ptr<RowHome>* rows) {
  GpuRowHomeOptions of_gpu;
  of_gpu.dim = options.dim;
  of_gpu.default_rows = options.default_rows;
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
