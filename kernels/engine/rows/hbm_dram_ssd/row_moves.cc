// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/rows/hbm_dram_ssd/row_moves.h"

#include <algorithm>
#include <utility>

#include "kernels/engine/base/tasks.h"

namespace ev {
namespace {

using Slot = Slots::Slot;

// Bytes of rows that move together, and that Copy copies at most.
constexpr int64_t kMovedBytes = 4 << 20, kCopiedBytes = 64 << 20;
// Rows per task of a move, and handles per task that finds rows.
constexpr int64_t kRowsPerTask = 512, kHandlesPerTask = 4096;
// Rows that a move down takes at most if fewer have to leave.
constexpr int64_t kMostAhead = 4096;
constexpr size_t kNone = static_cast<size_t>(-1);

// Returns the number of rows in that many bytes.
size_t RowsIn(int64_t bytes, const RowShape& shape) {
  const int64_t row_bytes = shape.floats() * sizeof(float);
  return static_cast<size_t>(std::max<int64_t>(1, bytes / row_bytes));
}

}  // namespace

// Whole rows, column by column.
class RowMoves::Columns {
 public:
  Columns(const RowShape& shape, size_t num_rows) {
    for (size_t c = 0; c <= shape.num_slots(); ++c) {
      numbers_.push_back(static_cast<int>(c));
      widths_.push_back(shape.width(numbers_[c]));
      floats_.emplace_back(new float[num_rows * widths_[c]]);
    }
  }
  // Reads rows to [first, first + handles.size()).
  Status Read(RowHome* from, Span<const RowHandle> handles, size_t first) {
    std::vector<float*> to;
    for (int c : numbers_) to.push_back(At(c, first));
    return from->ReadColumnsOnce(handles, numbers_, to);
  }
  // Writes rows [first, first + handles.size()).
  Status Write(RowHome* to, Span<const RowHandle> handles, size_t first) const {
    for (int c : numbers_) {
      EV_RETURN_IF_ERROR(to->Write(handles, c, At(c, first)));
    }
    return Status::OK();
  }
  void CopyRow(const Columns& from, size_t row, size_t to) {
    for (int c : numbers_) {
      std::copy_n(from.At(c, row), widths_[c], At(c, to));
    }
  }

 private:
  float* At(int column, size_t row) const {
    return floats_[column].get() + row * widths_[column];
  }

  std::vector<int> numbers_;
  std::vector<int64_t> widths_;
  std::vector<std::unique_ptr<float[]>> floats_;
};

// A row that moves up.
struct RowMoves::Coming {
  RowHandle handle;
  uint32_t stamp;
  size_t i;  // its position in the call

  bool operator<(const Coming& other) const { return handle < other.handle; }
  bool operator==(const Coming& other) const { return handle == other.handle; }
};

// The rows of a call.
struct RowMoves::Plan {
  std::vector<Coming> coming;  // distinct, sorted
  std::vector<bool> stays;     // by slot: has a row of the call
  bool fits = false;
};

class RowMoves::Copies : public RowCopies {
 public:
  Copies(const TwoHomes& homes, std::vector<Coming> of)
      : layout(homes.layout),
        rows(std::move(of)),
        columns(homes.shape, rows.size()) {}
  // Returns whether the copies from 'first' on are those of all rows.
  bool AreOf(Span<const Coming> of, size_t first) const {
    return first < rows.size() && of.size() <= rows.size() - first &&
           std::equal(of.begin(), of.end(), rows.begin() + first,
                      [](const Coming& a, const Coming& b) {
                        return a == b && a.stamp == b.stamp;
                      });
  }
  // Returns the position of the row's copy; kNone if there is none, or the row
  // was written since.
  size_t Find(const Coming& row) const {
    const auto found = std::lower_bound(rows.begin(), rows.end(), row);
    const bool is_current =
        found != rows.end() && *found == row && found->stamp == row.stamp;
    return is_current ? found - rows.begin() : kNone;
  }

  const uint64_t layout;
  const std::vector<Coming> rows;
  Columns columns;
};

RowMoves::Plan RowMoves::MakePlan(Span<const RowHandle> handles,
                                  Parallel* parallel) const {
  const int64_t capacity = homes_.slots.capacity();
  std::vector<uint32_t> where(handles.size());
  ForRanges(parallel, handles.size(), kHandlesPerTask,
            [&](int64_t begin, int64_t end) {
              for (int64_t i = begin; i < end; ++i) {
                where[i] = homes_.WhereIs(handles[i]);
              }
            });
  Plan plan;
  plan.stays.resize(capacity);
  int64_t num_staying = 0;
  for (size_t i = 0; i < handles.size(); ++i) {
    const Slot slot = where[i] & kPayload;
    if (InSlowTier(where[i])) {
      plan.coming.push_back({handles[i], where[i], i});
    } else if (InFastTier(where[i]) && !plan.stays[slot]) {
      plan.stays[slot] = true;
      ++num_staying;
    }
  }
  std::vector<Coming>& coming = plan.coming;
  std::sort(coming.begin(), coming.end());
  coming.erase(std::unique(coming.begin(), coming.end()), coming.end());
  plan.fits = num_staying + static_cast<int64_t>(coming.size()) <= capacity;
  return plan;
}

std::unique_ptr<RowCopies> RowMoves::Copy(Span<const RowHandle> handles,
                                          Parallel* parallel) {
  std::unique_ptr<Copies> copies;
  const Status status = CatchBadAlloc([&] {
    Plan plan = MakePlan(handles, parallel);
    if (!plan.fits || plan.coming.empty()) return Status::OK();
    plan.coming.resize(
        std::min(RowsIn(kCopiedBytes, homes_.shape), plan.coming.size()));
    copies.reset(new Copies(homes_, std::move(plan.coming)));
    const Span<const Coming> rows(copies->rows);
    return ForRangesWithStatus(
        parallel, rows.size(), kRowsPerTask, [&](int64_t begin, int64_t end) {
          return ReadBelow(rows.subspan(begin, end - begin), nullptr, begin,
                           &copies->columns);
        });
  });
  if (!status.ok()) copies.reset();  // Bring returns the error
  return copies;
}

Status RowMoves::Bring(Span<const int64_t> keys, Span<const RowHandle> handles,
                       const RowCopies* row_copies, Parallel* parallel,
                       Brought* brought) {
  *brought = Brought();
  const Copies* copies = static_cast<const Copies*>(row_copies);
  // The table may have been initialized again, or got slots.
  if (copies != nullptr && copies->layout != homes_.layout) copies = nullptr;
  return CatchBadAlloc([&] {
    homes_.slots.StartBring();
    const Plan plan = MakePlan(handles, parallel);
    brought->fits = plan.fits;
    if (!plan.fits) return Status::OK();
    EV_RETURN_IF_ERROR(MakeRoom(plan, parallel, &brought->moved_below));
    const Span<const Coming> coming(plan.coming);
    const size_t at_once = RowsIn(kMovedBytes, homes_.shape);
    for (size_t begin = 0; begin < coming.size(); begin += at_once) {
      const size_t n = std::min(at_once, coming.size() - begin);
      EV_RETURN_IF_ERROR(
          MoveUp(coming.subspan(begin, n), keys, copies, parallel));
    }
    return Status::OK();
  });
}

// Moves rows down so that slots are free for the rows that come, and some more
// for new rows.
Status RowMoves::MakeRoom(const Plan& plan, Parallel* parallel,
                          bool* moved_down) {
  Slots& slots = homes_.slots;
  Slots::ReadWorth read_worth;
  if (strategy_ != CacheStrategy::kFifo) {
    read_worth = [this](Slot first, Span<uint32_t> worth) {
      return homes_.gpu->ReadWorth(first, worth);
    };
  }
  const int64_t num_coming = plan.coming.size();
  const int64_t needed = num_coming + slots.room();
  const int64_t missing = needed - slots.num_free();
  if (missing <= 0) return Status::OK();
  // Some more if few are missing: updates whose lookups were before a move down
  // have to find their rows again. Not many more, since this call would take
  // longer than those that need no move.
  std::vector<Slot> leaving;
  EV_RETURN_IF_ERROR(slots.Choose(
      std::max(missing,
               std::min({4 * needed, slots.capacity() / 32, kMostAhead})),
      plan.stays, read_worth, &leaving));
  *moved_down = !leaving.empty();
  return MoveDown(leaving, parallel);
}

Status RowMoves::MoveAllDown() {
  std::vector<Slot> all;
  for (int64_t slot = 0; slot < homes_.slots.num_used(); ++slot) {
    if (homes_.slots.at(static_cast<Slot>(slot)).handle == kNoRow) continue;
    all.push_back(static_cast<Slot>(slot));
  }
  return MoveDown(all, /*parallel=*/nullptr);
}

Status RowMoves::MoveDown(Span<const Slot> slots, Parallel* parallel) {
  const size_t at_once = RowsIn(kMovedBytes, homes_.shape);
  for (size_t begin = 0; begin < slots.size(); begin += at_once) {
    const size_t n = std::min(at_once, slots.size() - begin);
    EV_RETURN_IF_ERROR(MoveSomeDown(slots.subspan(begin, n), parallel));
  }
  return Status::OK();
}

Status RowMoves::MoveSomeDown(Span<const Slot> slots, Parallel* parallel) {
  Columns columns(homes_.shape, slots.size());
  std::vector<int64_t> keys;
  std::vector<RowHandle> handles;
  for (const Slot slot : slots) {
    keys.push_back(homes_.slots.at(slot).key);
    handles.push_back(homes_.slots.at(slot).handle);
  }
  EV_RETURN_IF_ERROR(columns.Read(homes_.gpu.get(), slots, 0));
  const TierStats before = homes_.ssd->tiers()->tier_stats();
  const Status status = WriteBelow(handles, columns, parallel);
  const TierStats after = homes_.ssd->tiers()->tier_stats();
  hits_of_moves_.fetch_add(after.hits - before.hits);
  misses_of_moves_.fetch_add(after.misses - before.misses);
  EV_RETURN_IF_ERROR(status);
  homes_.gpu->ForgetKeys(keys);
  homes_.gpu->Forget(slots);
  homes_.Stamp(handles);
  homes_.slots.GiveBack(slots);
  return Status::OK();
}

// Creates the rows in the lower home; none after an error.
Status RowMoves::WriteBelow(Span<const RowHandle> handles,
                            const Columns& columns, Parallel* parallel) {
  RowHome* const ssd = homes_.ssd.get();
  const int64_t n = handles.size();
  // Number of rows that each task has made.
  std::vector<int64_t> made((n + kRowsPerTask - 1) / kRowsPerTask);
  const Status status = ForRangesWithStatus(
      parallel, n, kRowsPerTask, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          EV_RETURN_IF_ERROR(ssd->NewRow(handles[i], 0));
          ++made[begin / kRowsPerTask];
        }
        return columns.Write(ssd, handles.subspan(begin, end - begin), begin);
      });
  for (size_t task = 0; task < made.size() && !status.ok(); ++task) {
    ssd->Forget(handles.subspan(task * kRowsPerTask, made[task]));
  }
  return status;
}

Status RowMoves::MoveUp(Span<const Coming> rows, Span<const int64_t> keys,
                        const Copies* copies, Parallel* parallel) {
  std::vector<RowHandle> handles;
  std::vector<int64_t> their_keys;
  for (const Coming& row : rows) {
    handles.push_back(row.handle);
    their_keys.push_back(keys[row.i]);
  }
  const size_t first = copies == nullptr ? kNone : copies->Find(rows[0]);
  const bool has_all = first != kNone && copies->AreOf(rows, first);
  Columns read(homes_.shape, has_all ? 0 : rows.size());
  std::atomic<int64_t> from_file{0};
  EV_RETURN_IF_ERROR(ForRangesWithStatus(
      parallel, rows.size(), kRowsPerTask, [&](int64_t begin, int64_t end) {
        int64_t stored = 0;
        for (int64_t i = begin; i < end; ++i) {
          stored += homes_.ssd->tiers()->TierOf(handles[i]);
        }
        from_file.fetch_add(stored);
        if (has_all) return Status::OK();
        return ReadBelow(rows.subspan(begin, end - begin), copies, begin,
                         &read);
      }));
  std::vector<Slot> slots;
  EV_RETURN_IF_ERROR(WriteAbove(handles, their_keys,
                                has_all ? copies->columns : read,
                                has_all ? first : 0, &slots));
  for (size_t k = 0; k < handles.size(); ++k) {
    homes_.where.at(handles[k])->store(kInFastTier | slots[k]);
  }
  homes_.ssd->Forget(handles);
  num_up_.fetch_add(static_cast<int64_t>(handles.size()));
  num_from_file_.fetch_add(from_file);
  return Status::OK();
}

// Sets rows [first, first + rows.size()) of the columns.
Status RowMoves::ReadBelow(Span<const Coming> rows, const Copies* copies,
                           size_t first, Columns* columns) const {
  std::vector<RowHandle> left;  // without a current copy
  std::vector<size_t> positions;
  for (size_t i = 0; i < rows.size(); ++i) {
    const size_t copy = copies == nullptr ? kNone : copies->Find(rows[i]);
    if (copy != kNone) {
      columns->CopyRow(copies->columns, copy, first + i);
    } else {
      left.push_back(rows[i].handle);
      positions.push_back(first + i);
    }
  }
  if (left.empty()) return Status::OK();
  RowHome* const ssd = homes_.ssd.get();
  if (left.size() == rows.size()) return columns->Read(ssd, left, first);
  Columns read(homes_.shape, left.size());
  EV_RETURN_IF_ERROR(read.Read(ssd, left, 0));
  for (size_t k = 0; k < left.size(); ++k) {
    columns->CopyRow(read, k, positions[k]);
  }
  return Status::OK();
}

// Creates the rows in the upper home, in free slots, from the columns' rows
// from 'first' on; none after an error.
Status RowMoves::WriteAbove(Span<const RowHandle> handles,
                            Span<const int64_t> keys, const Columns& columns,
                            size_t first, std::vector<Slot>* slots) {
  GpuRowHome* const gpu = homes_.gpu.get();
  slots->reserve(handles.size());
  size_t made = 0;
  const Status status = CatchBadAlloc([&] {
    for (; made < handles.size(); ++made) {
      slots->push_back(
          homes_.slots.Take(keys[made], handles[made], /*is_new=*/false));
      EV_RETURN_IF_ERROR(gpu->NewKeyedRow(keys[made], slots->back(), 0));
    }
    return columns.Write(gpu, *slots, first);
  });
  if (status.ok()) return status;
  gpu->ForgetKeys(keys.subspan(0, made));
  gpu->Forget(Span<const Slot>(slots->data(), made));
  homes_.slots.GiveBack(*slots);
  return status;
}

}  // namespace ev
