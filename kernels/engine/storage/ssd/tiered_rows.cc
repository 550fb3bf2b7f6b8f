// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/storage/ssd/tiered_rows.h"

#include <algorithm>
#include <string>
#include <utility>

#include "kernels/engine/base/row_math.h"
#include "kernels/engine/storage/dram/row_layout.h"
#include "kernels/engine/storage/ssd/tiered_impl.h"
#include "kernels/engine/storage/tiered/read_rounds.h"

namespace ev {
namespace {

constexpr size_t kCopiedAtOnce = 512;
// Candidates to compare per evicted row.
constexpr size_t kCandidatesEach = 8;
// Entries and handles per huge page. Every use of a row reads them at random.
constexpr int kEntriesLog2 = 17;
constexpr int kHandlesLog2 = 19;

// Copies floats that a call may be writing.
EV_READS_LIVE_ROWS void CopyLive(const float* from, int64_t count, float* to) {
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) Store8(to + i, Load8(from + i));
  for (; i < count; ++i) to[i] = from[i];
}

}  // namespace

TieredRows::TieredRows(const TieredRowsOptions& options)
    : budget_(options.memory_bytes),
      compacts_in_thread_(options.compacts_in_thread),
      fresh_(RowShape(options.dim, {}, 1, options.value_type),
             options.default_rows),
      ranks_(options.strategy),
      entries_(sizeof(Entry), kEntriesLog2),
      handles_(sizeof(RowHandle), kHandlesLog2),
      hand_(&ranks_, kCandidatesEach),
      compactor_([this] { CompactWhileSparse(); }) {
  hand_.Reserve(kEvictAtOnce);
}

Status TieredRows::Create(const TieredRowsOptions& options,
                          std::unique_ptr<TieredRows>* rows) {
  std::unique_ptr<TieredRows> made(new TieredRows(options));
  RowFileOptions file;
  file.directory = options.directory;
  file.memory_bytes = options.memory_bytes;
  file.direct = options.direct;
  EV_RETURN_IF_ERROR(RowFile::Create(file, &made->file_));
  EV_RETURN_IF_ERROR(made->file_->SetFloats(made->floats()));
  made->UseRowMemory(NewRowMemory(made->floats()));
  *rows = std::move(made);
  return Status::OK();
}

TieredRows::~TieredRows() { compactor_.Stop(); }

std::unique_ptr<SlabArray> TieredRows::NewRowMemory(int64_t floats) {
  const size_t stride = RowStride(floats);
  return std::unique_ptr<SlabArray>(
      new SlabArray(stride, SlabRowsLog2(stride)));
}

// Allocates nothing, like DropCacheSlots.
void TieredRows::UseRowMemory(std::unique_ptr<SlabArray> rows) {
  rows_ = std::move(rows);
  const size_t cache_slot_bytes =
      rows_->stride() + sizeof(Entry) + sizeof(RowHandle);
  capacity_ =
      std::max<int64_t>(1, budget_ / static_cast<int64_t>(cache_slot_bytes));
  capacity_ = std::min<int64_t>(capacity_, kPayload);
  DropCacheSlots();
}

void TieredRows::DropCacheSlots() {
  rows_->Clear();
  entries_.Clear();
  handles_.Clear();
  used_ = 0;
  hand_.Reset();
  free_.clear();
}

Status TieredRows::NewRow(RowHandle handle, int64_t default_row) {
  return row_states_.Make(handle, default_row);
}

// Fills the slots that were added since the row was written.
void TieredRows::Complete(int64_t from_floats, float* row) const {
  if (from_floats == floats()) return;
  const RowShape& shape = fresh_.shape();
  for (size_t s = 0; s < added_.size(); ++s) {
    const int column = static_cast<int>(1 + s);
    if (shape.offset(column) < from_floats) continue;
    std::fill_n(row + shape.offset(column), shape.width(column), added_[s]);
  }
}

void TieredRows::Wrote(Span<const CacheSlot> cache_slots) {
  RecordNumber dead[64];
  size_t count = 0;
  for (const CacheSlot cache_slot : cache_slots) {
    if (cache_slot == kNoCacheSlot) continue;
    std::atomic<uint32_t>& record = entry(cache_slot)->record;
    if (record.load(std::memory_order_relaxed) == kNoRecord) continue;
    const RecordNumber old = record.exchange(kNoRecord);
    if (old == kNoRecord) continue;
    dead[count++] = old;
    if (count < 64) continue;
    file_->Drop({dead, count});
    count = 0;
  }
  file_->Drop({dead, count});
}

Status TieredRows::Copy(Span<const RowHandle> handles, int64_t offset,
                        int64_t count, float* out) {
  // A whole row is read to its destination, a part of one through a buffer.
  const bool whole = offset == 0 && count == floats();
  std::vector<float> fresh(floats());
  std::vector<float> read_rows;
  std::vector<RecordRead> reads;
  std::vector<size_t> which;
  CacheSlot cache_slots[kCopiedAtOnce];
  const auto round = [&](const std::vector<size_t>& left,
                         std::vector<size_t>* again) {
    reads.clear();
    which.clear();
    Holding holding;
    Enter(&holding);
    for (size_t k = 0; k < left.size(); ++k) {
      const uint32_t seen =
          row_state(handles[left[k]])->load(std::memory_order_acquire);
      cache_slots[k] = InFastTier(seen) ? seen & kPayload : kNoCacheSlot;
      if (InFastTier(seen)) Stamp(holding, cache_slots[k]);
    }
    holding.numbers_->Publish();
    for (size_t k = 0; k < left.size(); ++k) {
      const size_t i = left[k];
      float* const to = out + i * count;
      const uint32_t seen =
          row_state(handles[i])->load(std::memory_order_seq_cst);
      if (cache_slots[k] != kNoCacheSlot &&
          seen == (kInFastTier | cache_slots[k])) {
        CopyLive(row(cache_slots[k]) + offset, count, to);
      } else if (InFastTier(seen) || seen == kMoving) {
        again->push_back(i);
      } else if (IsFresh(seen)) {
        fresh_.Fill(seen & kPayload, fresh.data());
        std::copy_n(fresh.data() + offset, count, to);
      } else if (seen == 0) {
        return NoSuchRow(handles[i]);
      } else {
        RecordRead read;
        read.record = seen - 1;
        read.handle = handles[i];
        reads.push_back(read);
        which.push_back(i);
      }
    }
    holding.Release();
    if (!whole) read_rows.resize(reads.size() * floats());
    for (size_t k = 0; k < reads.size(); ++k) {
      reads[k].row =
          whole ? out + which[k] * count : read_rows.data() + k * floats();
    }
    file_->Read(Span<RecordRead>(reads.data(), reads.size()));
    for (size_t k = 0; k < reads.size(); ++k) {
      const size_t i = which[k];
      // The row may have moved, and its record may have been reused.
      const bool moved =
          row_state(handles[i])->load(std::memory_order_acquire) !=
          reads[k].record + 1;
      if (moved) {
        again->push_back(i);
        continue;
      }
      EV_RETURN_IF_ERROR(reads[k].status);
      Complete(reads[k].floats, reads[k].row);
      if (!whole) std::copy_n(reads[k].row + offset, count, out + i * count);
    }
    return Status::OK();
  };
  return ReadInRounds(handles, kCopiedAtOnce, round);
}

bool TieredRows::IsStored(RowHandle handle) const {
  const uint32_t seen = row_state(handle)->load(std::memory_order_acquire);
  return InSlowTier(seen) && file_->IsStored(seen - 1);
}

int64_t TieredRows::memory_bytes() const {
  std::lock_guard<std::mutex> lock(cache_slots_mu_);
  return rows_->bytes() + entries_.bytes() + handles_.bytes() +
         file_->buffer_bytes() + row_states_.bytes();
}

TieredRowsStats TieredRows::stats() const {
  TieredRowsStats stats;
  {
    std::lock_guard<std::mutex> lock(cache_slots_mu_);
    stats.memory_rows = used_ - static_cast<int64_t>(free_.size());
  }
  stats.file_rows = file_->live_records();
  stats.file_bytes = file_->file_bytes();
  stats.hits = hits_.load();
  stats.misses = misses_.load();
  stats.evicted_rows = evicted_.load();
  stats.written_bytes = file_->written_bytes();
  stats.compacted_rows = compacted_.load();
  return stats;
}

}  // namespace ev
