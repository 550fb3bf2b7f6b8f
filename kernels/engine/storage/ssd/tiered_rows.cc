// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/storage/ssd/tiered_rows.h"

#include <sched.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <new>
#include <utility>

#include "kernels/engine/base/prefetch.h"
#include "kernels/engine/storage/dram/row_layout.h"
#include "kernels/engine/storage/ssd/tiered_impl.h"

namespace ev {
namespace {

// A use in a rank of kLfu; a 16th of them fades with each visit of the hand.
constexpr uint32_t kUse = 16;
constexpr uint32_t kMaxUses = 0x7FFFFFFFu - kUse;

constexpr int64_t kMinPlaces = 64;
constexpr size_t kCopiedAtOnce = 512;

}  // namespace

struct TieredRows::Absent {
  size_t i;
  uint32_t seen;  // its word
};

struct TieredRows::Load {
  size_t i;
  Place place;
  RecordNumber record;
};

TieredRows::TieredRows(const TieredRowsOptions& options)
    : dim_(options.dim),
      budget_(options.memory_bytes),
      strategy_(options.strategy),
      compacts_in_thread_(options.compacts_in_thread),
      defaults_(options.default_rows.begin(), options.default_rows.end()) {}

Status TieredRows::Create(const TieredRowsOptions& options,
                          std::unique_ptr<TieredRows>* rows) {
  std::unique_ptr<TieredRows> made(new TieredRows(options));
  RowFileOptions file;
  file.directory = options.directory;
  file.memory_bytes = options.memory_bytes;
  file.direct = options.direct;
  EV_RETURN_IF_ERROR(RowFile::Create(file, &made->file_));
  EV_RETURN_IF_ERROR(made->file_->SetFloats(made->floats()));
  made->MakeWords();
  made->MakeMemory();
  *rows = std::move(made);
  return Status::OK();
}

TieredRows::~TieredRows() {
  {
    std::lock_guard<std::mutex> lock(thread_mu_);
    stop_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void TieredRows::MakeMemory() {
  const size_t stride = RowStride(floats());
  capacity_ = std::max<int64_t>(
      kMinPlaces, budget_ / static_cast<int64_t>(stride + sizeof(Entry)));
  capacity_ = std::min<int64_t>(capacity_, kPayload);
  rows_.reset(new SlabArray(stride, SlabRowsLog2(stride)));
  entries_.reset(new SlabArray(sizeof(Entry), rows_->rows_log2()));
  used_ = 0;
  hand_ = 0;
  free_.clear();
}

void TieredRows::MakeWords() {
  words_.reset(new SlabArray(sizeof(uint32_t), kWordsLog2));
  has_words_.reset(new std::atomic<bool>[kMaxWordSlabs]());
  word_bytes_.store(kMaxWordSlabs);
}

bool TieredRows::HasWord(RowHandle handle) const {
  return handle < kFirstReservedHandle &&
         has_words_[handle >> kWordsLog2].load(std::memory_order_acquire);
}

std::atomic<uint32_t>* TieredRows::word(RowHandle handle) const {
  return reinterpret_cast<std::atomic<uint32_t>*>(words_->Address(handle));
}

TieredRows::Entry* TieredRows::entry(Place place) const {
  return reinterpret_cast<Entry*>(entries_->Address(place));
}

float* TieredRows::row(Place place) const {
  return reinterpret_cast<float*>(rows_->Address(place));
}

Status TieredRows::NewRow(RowHandle handle, int64_t default_row) {
  const size_t slab = handle >> kWordsLog2;
  if (!has_words_[slab].load(std::memory_order_acquire)) {
    std::lock_guard<std::mutex> lock(words_mu_);
    if (!words_->has_slab(slab)) {
      if (!words_->AddSlab(slab)) {
        return ResourceExhausted("no memory to remember another row");
      }
      word_bytes_.fetch_add(kWordSlabBytes);
      has_words_[slab].store(true, std::memory_order_release);
    }
  }
  word(handle)->store(kFresh | static_cast<uint32_t>(default_row),
                      std::memory_order_release);
  return Status::OK();
}

void TieredRows::FillFresh(int64_t default_row, float* row) const {
  std::copy_n(defaults_.data() + default_row * dim_, dim_, row);
  for (size_t s = 0; s < initial_.size(); ++s) {
    std::fill_n(row + (1 + s) * dim_, dim_, initial_[s]);
  }
}

// Slots that were added since the row was written.
void TieredRows::Complete(int64_t from_floats, float* row) const {
  for (int64_t at = from_floats; at < floats(); at += dim_) {
    std::fill_n(row + at, dim_, added_[at / dim_ - 1]);
  }
}

void TieredRows::Use(Entry* entry) {
  uint32_t rank;
  if (strategy_ == CacheStrategy::kLru) {
    rank = now_.load(std::memory_order_relaxed);
  } else {
    rank = entry->rank.load(std::memory_order_relaxed) & ~kUsed;
    rank = std::min(rank, kMaxUses) + kUse;
  }
  entry->rank.store(rank | kUsed, std::memory_order_relaxed);
}

TieredRows::Got TieredRows::TryHold(RowHandle handle, Place* place,
                                    uint32_t* elsewhere) {
  std::atomic<uint32_t>* const where = word(handle);
  for (;;) {
    const uint32_t seen = where->load(std::memory_order_acquire);
    if (!IsInMemory(seen)) {
      *elsewhere = seen;
      return Got::kElsewhere;
    }
    *place = seen & kPayload;
    Entry* const in = entry(*place);
    const uint32_t before = in->state.fetch_add(1, std::memory_order_acquire);
    const bool still = where->load(std::memory_order_acquire) == seen;
    if ((before & kBusy) == 0 && still) {
      Use(in);
      return Got::kHeld;
    }
    in->state.fetch_sub(1, std::memory_order_release);
    if (still) return Got::kBusy;
  }
}

// Makes a place, which is busy, that of a row that was elsewhere: not yet made
// rows are made, others are to be loaded. False: it is elsewhere no more.
bool TieredRows::MoveIn(RowHandle handle, uint32_t seen, Place place) {
  Entry* const taken = entry(place);
  taken->handle = handle;
  taken->rank.store(0, std::memory_order_relaxed);
  taken->record.store(IsRecord(seen) ? seen - 1 : kNoRecord);
  if (!word(handle)->compare_exchange_strong(seen, kInMemory | place,
                                             std::memory_order_acq_rel)) {
    return false;
  }
  if (IsRecord(seen)) return true;
  FillFresh(seen & kPayload, row(place));
  Use(taken);
  taken->state.fetch_sub(kBusy - 1, std::memory_order_release);
  return true;
}

Status TieredRows::Hold(Span<const RowHandle> handles, bool is_reserved,
                        float** rows, Place* places, size_t* held) {
  return HoldFor(Touch::kNow, handles, is_reserved, rows, places, held);
}

Status TieredRows::HoldFor(Touch touch, Span<const RowHandle> handles,
                           bool is_reserved, float** rows, Place* places,
                           size_t* held) {
  *held = 0;
  size_t size = handles.size();
  const size_t bytes = floats() * sizeof(float);
  std::vector<size_t> busy;
  std::vector<Absent> absent;
  std::vector<Load> loads;
  std::vector<Place> taken, spare;
  now_.fetch_add(1, std::memory_order_relaxed);
  const auto set = [&](size_t i, Place place) {
    places[i] = place;
    rows[i] = row(place);
  };
  const auto release = [&](size_t begin, size_t end) {
    Release(Span<const Place>(places + begin, end - begin));
  };
  while (size > 0) {
    busy.clear();
    absent.clear();
    loads.clear();
    spare.clear();
    int64_t hits = 0;
    for (size_t i = 0; i < size; ++i) {
      if (i + 24 < size && handles[i + 24] < kFirstReservedHandle) {
        PrefetchLine(word(handles[i + 24]));
      }
      if (i + 8 < size && handles[i + 8] < kFirstReservedHandle) {
        const uint32_t ahead =
            word(handles[i + 8])->load(std::memory_order_acquire);
        if (IsInMemory(ahead)) {
          PrefetchLine(entry(ahead & kPayload));
          // What is touched much later would be out of the cache again.
          if (touch == Touch::kNow) {
            PrefetchBytes(row(ahead & kPayload), bytes);
          }
        }
      }
      places[i] = kNoPlace;
      rows[i] = nullptr;
      if (handles[i] >= kFirstReservedHandle) continue;
      Place place;
      uint32_t seen;
      switch (TryHold(handles[i], &place, &seen)) {
        case Got::kHeld:
          set(i, place);
          ++hits;
          break;
        case Got::kBusy:
          busy.push_back(i);
          break;
        case Got::kElsewhere:
          absent.push_back(Absent{i, seen});
          break;
      }
    }
    hits_.fetch_add(hits, std::memory_order_relaxed);

    // Places for those that are not in memory, and what is in the file is read.
    size_t whole = size;  // of which all are held
    Status status;
    taken.resize(absent.size());
    const size_t num_taken = TakePlaces(
        is_reserved, Span<Place>(taken.data(), taken.size()), &status);
    if (num_taken < absent.size()) whole = absent[num_taken].i;
    for (size_t k = 0; k < num_taken; ++k) {
      const size_t i = absent[k].i;
      if (absent[k].seen == 0) {
        status =
            Internal("handle " + std::to_string(handles[i]) + " names no row");
        spare.push_back(taken[k]);
      } else if (!MoveIn(handles[i], absent[k].seen, taken[k])) {
        spare.push_back(taken[k]);
        busy.push_back(i);
      } else if (IsRecord(absent[k].seen)) {
        loads.push_back(Load{i, taken[k], absent[k].seen - 1});
      } else {
        set(i, taken[k]);
      }
    }
    GiveBack(spare);
    const Status loaded = LoadAll(handles, loads, rows, places);
    if (status.ok()) status = loaded;
    // Rows that another call was reading or writing out. It needs nothing of
    // this one to be done with them.
    for (size_t b = 0; b < busy.size() && status.ok(); ++b) {
      const size_t i = busy[b];
      if (i >= whole) continue;
      Place place;
      uint32_t seen;
      Got got;
      while ((got = TryHold(handles[i], &place, &seen)) == Got::kBusy) {
        sched_yield();
      }
      if (got == Got::kHeld) {
        set(i, place);
      } else {
        whole = i;  // gone: with the next call
      }
    }
    if (!status.ok()) {
      release(0, size);
      return status;
    }
    release(whole, size);
    if (whole > 0) {
      *held = whole;
      return Status::OK();
    }
    // Others hold all there is, or the first had to make way for those behind.
    size = (size + 1) / 2;
    sched_yield();
  }
  return Status::OK();
}

Status TieredRows::Keep(Span<const RowHandle> handles, const float** rows,
                        Place* places, bool* all) {
  const size_t size = handles.size();
  std::vector<float*> found(size);
  size_t done = 0;
  const int64_t count = static_cast<int64_t>(size);
  *all = kept_.fetch_add(count) + count <= capacity_ / 2;
  const auto give_up = [&] {
    ReleaseKept(Span<const Place>(places, done));
    kept_.fetch_sub(count - static_cast<int64_t>(done));
  };
  if (!*all) {
    give_up();
    return Status::OK();
  }
  // Who waits here for room waits for those who hold rows briefly.
  while (done < size) {
    size_t held = 0;
    const Status status = HoldFor(
        Touch::kLater, handles.subspan(done, size - done),
        /*is_reserved=*/false, found.data() + done, places + done, &held);
    if (!status.ok()) {
      give_up();
      *all = false;
      return status;
    }
    done += held;
  }
  for (size_t i = 0; i < size; ++i) {
    if (found[i] != nullptr) rows[i] = found[i];
  }
  return Status::OK();
}

void TieredRows::ReleaseKept(Span<const Place> places) {
  Release(places);
  kept_.fetch_sub(static_cast<int64_t>(places.size()));
}

Status TieredRows::LoadAll(Span<const RowHandle> handles,
                           const std::vector<Load>& loads, float** rows,
                           Place* places) {
  if (loads.empty()) return Status::OK();
  misses_.fetch_add(loads.size(), std::memory_order_relaxed);
  std::vector<RecordRead> reads(loads.size());
  for (size_t k = 0; k < loads.size(); ++k) {
    reads[k].record = loads[k].record;
    reads[k].handle = handles[loads[k].i];
    reads[k].row = row(loads[k].place);
  }
  file_->Read(Span<RecordRead>(reads.data(), reads.size()));
  Status status;
  for (size_t k = 0; k < loads.size(); ++k) {
    const Load& load = loads[k];
    Entry* const in = entry(load.place);
    if (!reads[k].status.ok()) {
      if (status.ok()) status = reads[k].status;
      word(reads[k].handle)->store(load.record + 1, std::memory_order_release);
      GiveBack({&load.place, 1});
      continue;
    }
    Complete(reads[k].floats, reads[k].row);
    in->rank.store(reads[k].rank, std::memory_order_relaxed);
    Use(in);
    in->state.fetch_sub(kBusy - 1, std::memory_order_release);
    rows[load.i] = reads[k].row;
    places[load.i] = load.place;
  }
  return status;
}

void TieredRows::Wrote(Place place) {
  if (place == kNoPlace) return;
  std::atomic<uint32_t>& record = entry(place)->record;
  if (record.load(std::memory_order_relaxed) == kNoRecord) return;
  const RecordNumber old = record.exchange(kNoRecord);
  if (old != kNoRecord) file_->Drop(old);
}

void TieredRows::Release(Span<const Place> places) {
  for (const Place place : places) {
    if (place == kNoPlace) continue;
    entry(place)->state.fetch_sub(1, std::memory_order_release);
  }
}

Status TieredRows::Copy(Span<const RowHandle> handles, int64_t offset,
                        int64_t count, float* out) {
  const size_t size = handles.size();
  std::vector<float> fresh(floats());
  std::vector<float> read_rows;
  std::vector<RecordRead> reads;
  std::vector<size_t> which;
  // All are looked at; those that are in the file, or whose place changes
  // hands, are done a round later if need be.
  std::vector<size_t> left, again;
  for (size_t begin = 0; begin < size; begin += kCopiedAtOnce) {
    left.clear();
    for (size_t i = begin; i < std::min(size, begin + kCopiedAtOnce); ++i) {
      if (handles[i] < kFirstReservedHandle) left.push_back(i);
    }
    while (!left.empty()) {
      reads.clear();
      which.clear();
      again.clear();
      for (const size_t i : left) {
        float* const to = out + i * count;
        const uint32_t seen = word(handles[i])->load(std::memory_order_acquire);
        if (IsInMemory(seen)) {
          Entry* const in = entry(seen & kPayload);
          const uint32_t before =
              in->state.fetch_add(1, std::memory_order_acquire);
          const bool mine =
              (before & kBusy) == 0 &&
              word(handles[i])->load(std::memory_order_acquire) == seen;
          if (mine) std::copy_n(row(seen & kPayload) + offset, count, to);
          in->state.fetch_sub(1, std::memory_order_release);
          if (!mine) again.push_back(i);
        } else if (IsFresh(seen)) {
          FillFresh(seen & kPayload, fresh.data());
          std::copy_n(fresh.data() + offset, count, to);
        } else if (seen == 0) {
          return Internal("handle " + std::to_string(handles[i]) +
                          " names no row");
        } else {
          RecordRead read;
          read.record = seen - 1;
          read.handle = handles[i];
          reads.push_back(read);
          which.push_back(i);
        }
      }
      read_rows.resize(reads.size() * floats());
      for (size_t k = 0; k < reads.size(); ++k) {
        reads[k].row = read_rows.data() + k * floats();
      }
      file_->Read(Span<RecordRead>(reads.data(), reads.size()));
      for (size_t k = 0; k < reads.size(); ++k) {
        const size_t i = which[k];
        // It may have been moved, and its record used again.
        const bool moved = word(handles[i])->load(std::memory_order_acquire) !=
                           reads[k].record + 1;
        if (moved) {
          again.push_back(i);
          continue;
        }
        EV_RETURN_IF_ERROR(reads[k].status);
        Complete(reads[k].floats, reads[k].row);
        std::copy_n(reads[k].row + offset, count, out + i * count);
      }
      if (again.size() == left.size()) sched_yield();
      left.swap(again);
    }
  }
  return Status::OK();
}

bool TieredRows::IsStored(RowHandle handle) const {
  const uint32_t seen = word(handle)->load(std::memory_order_acquire);
  return IsRecord(seen) && file_->IsStored(seen - 1);
}

int64_t TieredRows::memory_bytes() const {
  std::lock_guard<std::mutex> lock(places_mu_);
  return rows_->bytes() + entries_->bytes() + file_->buffer_bytes() +
         word_bytes_.load();
}

TieredRowsStats TieredRows::stats() const {
  TieredRowsStats stats;
  {
    std::lock_guard<std::mutex> lock(places_mu_);
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
