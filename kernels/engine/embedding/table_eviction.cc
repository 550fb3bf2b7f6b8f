// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Eviction of rows: on demand by age or weight, and by rank beyond the
// capacity.

#include <algorithm>
#include <limits>
#include <new>
#include <utility>

#include "kernels/engine/base/hash.h"
#include "kernels/engine/embedding/embedding_table.h"
#include "kernels/engine/embedding/guard.h"
#include "kernels/engine/embedding/table_impl.h"
#include "kernels/engine/policy/cache_strategy.h"
#include "kernels/engine/policy/eviction.h"
#include "kernels/engine/storage/dram/row_layout.h"

namespace ev {
namespace {

// Number of candidates per evicted row.
constexpr int64_t kCandidatesEach = 8;
// Bytes of a row beside its floats: its metadata and its share of the index.
constexpr int64_t kBytesBesideRow = sizeof(RowMeta) + 24;
constexpr size_t kRowsAhead = 8;
// Rows' calls are limited to this age, at least once in half as many calls.
constexpr uint32_t kOldestCall = uint32_t{1} << 31;
// Number of rows whose weight is computed at a time.
constexpr size_t kNormsAtOnce = 65536;

// A candidate's rank and its index.
using Ranked = std::pair<EvictionRank, size_t>;

// Ranks all candidates. The first 'excess' of *ranked are those with the lowest
// ranks, the highest of them last.
void RankAll(const EmbeddingTable::Impl& table, const UpdateCall& call,
             const std::vector<EvictionCandidate>& candidates, int64_t excess,
             std::vector<Ranked>* ranked) {
  ranked->resize(candidates.size());
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (i + kRowsAhead < candidates.size()) {
      __builtin_prefetch(table.rows->Meta(candidates[i + kRowsAhead].handle));
    }
    const RowMeta& meta = *table.rows->Meta(candidates[i].handle);
    (*ranked)[i] = {
        RankOf(table.options.capacity.strategy,
               RowHistory{meta.version(), meta.frequency, meta.call}, call,
               MixKey(candidates[i].key)),
        i};
  }
  std::nth_element(ranked->begin(), ranked->begin() + (excess - 1),
                   ranked->end());
}

}  // namespace

int64_t EmbeddingTable::Impl::EraseRows(Span<const int64_t> keys) {
  // First everything that can fail.
  std::vector<RowHandle> handles;
  std::vector<int64_t> gone;
  handles.reserve(keys.size());
  GpuRowCompute* const gpu = home->gpu();
  const bool names_keys = changes != nullptr || gpu != nullptr;
  if (names_keys) gone.reserve(keys.size());
  rows->ReserveFree(keys.size());
  ++generation;
  const int64_t erased = index.Erase(keys, [&](int64_t key, RowHandle handle) {
    handles.push_back(handle);
    if (names_keys) gone.push_back(key);
  });
  if (changes != nullptr) changes->Erased(gone, index.size());
  if (gpu != nullptr) gpu->ForgetKeys(gone);
  FreeRows(handles);
  return erased;
}

int64_t EmbeddingTable::Impl::MaxRows() const {
  const CapacityOptions& capacity = options.capacity;
  int64_t most = std::numeric_limits<int64_t>::max();
  if (capacity.max_rows > 0) most = capacity.max_rows;
  if (capacity.max_bytes > 0 && rows != nullptr) {
    // The same number for every kind of home.
    int64_t floats = dim();
    for (const SlotSpec& slot : slots) floats += slot.WidthIn(dim());
    const int64_t each =
        static_cast<int64_t>(RowStride(floats)) + kBytesBesideRow;
    most = std::min(most, std::max<int64_t>(1, capacity.max_bytes / each));
  }
  return most;
}

bool EmbeddingTable::Impl::CallsAreOld() const {
  return calls.load(std::memory_order_relaxed) - last_aged >= kOldestCall / 2;
}

void EmbeddingTable::Impl::AgeCalls() {
  const uint32_t now = calls.load(std::memory_order_relaxed);
  last_aged = now;
  index.ForEach([&](int64_t, RowHandle handle) {
    RowMeta* const meta = rows->Meta(handle);
    if (meta->call == 0 || now - meta->call <= kOldestCall) return;
    meta->call = std::max<uint32_t>(1, now - kOldestCall);
  });
}

void EmbeddingTable::Impl::EvictExcess(const UpdateCall& call) {
  if (!options.capacity.bounded()) return;
  {
    SharedTableLock shared(&table_lock);
    if (index.size() <= MaxRows() && !CallsAreOld()) return;
  }
  ExclusiveTableLock alone(&table_lock);
  // Only 'before' could fail.
  EvictExcessAlone(call, nullptr);
}

Status EmbeddingTable::Impl::EvictExcessAlone(const UpdateCall& call,
                                              const BeforeEviction& before) {
  const int64_t size = index.size();
  const int64_t excess = size - MaxRows();
  if (!options.capacity.bounded()) return Status::OK();
  if (CallsAreOld()) AgeCalls();
  if (excess <= 0) return Status::OK();
  try {
    std::vector<EvictionCandidate> candidates;
    hand.Next(index, excess * kCandidatesEach, &candidates);
    if (static_cast<int64_t>(candidates.size()) < excess) {
      hand.Next(index, index.size(), &candidates);
    }
    std::vector<Ranked> ranked;
    RankAll(*this, call, candidates, excess, &ranked);
    if (ranked[excess - 1].first.is_of_call() &&
        static_cast<int64_t>(candidates.size()) < index.size()) {
      // The sample consists of little but the call's own rows.
      hand.Next(index, index.size(), &candidates);
      RankAll(*this, call, candidates, excess, &ranked);
    }
    std::vector<int64_t> keys(excess);
    std::vector<RowHandle> handles(excess);
    for (int64_t i = 0; i < excess; ++i) {
      keys[i] = candidates[ranked[i].second].key;
      handles[i] = candidates[ranked[i].second].handle;
    }
    if (before) EV_RETURN_IF_ERROR(before(keys, handles));
    evicted_rows.fetch_add(EraseRows(keys), std::memory_order_relaxed);
  } catch (const std::bad_alloc&) {
    // Rows that 'before' has got, and that stay, must not count as evicted.
    if (before && index.size() == size) {
      return WithName(ResourceExhausted("out of memory"));
    }
    // The update is complete, and the next one evicts the surplus.
  }
  return Status::OK();
}

Status EmbeddingTable::ReadAndEvict(Span<const int64_t> keys, int64_t step,
                                    float* out,
                                    std::vector<int64_t>* evicted_keys,
                                    std::vector<float>* evicted_values) {
  return NoThrow(*impl_, [&] {
    Impl* const table = impl_.get();
    const int64_t dim = table->dim();
    std::vector<RowHandle> handles(keys.size());
    std::vector<RowMeta> metas;  // before the call
    std::vector<int64_t> gone;
    std::vector<float> values;
    TableJournal journal;
    EV_RETURN_IF_ERROR(table->CheckKeys(keys));
    const UpdateCall call = table->BeginCall(step);
    ExclusiveTableLock alone(&table->table_lock);
    EV_RETURN_IF_ERROR(table->CheckInitialized());
    EV_RETURN_IF_ERROR(table->TakeCounters());
    const auto read = [&](Span<const RowHandle> of, float* to) {
      return table->WithName(table->home->Read(of, 0, to));
    };
    const auto read_and_evict = [&] {
      TableJournal::Writer writer(&journal);
      EV_RETURN_IF_ERROR(
          table->FindOrInsert(keys, handles.data(), writer.part()));
      EV_RETURN_IF_ERROR(read(handles, out));
      for (const RowHandle handle : handles) {
        const RowMeta* const meta = table->rows->Meta(handle);
        if (meta != nullptr) metas.push_back(*meta);
      }
      for (const RowHandle handle : handles) table->AddToMeta(handle, 1, call);
      return table->EvictExcessAlone(
          call, [&](Span<const int64_t> leaving, Span<const RowHandle> of) {
            gone.assign(leaving.begin(), leaving.end());
            values.resize(leaving.size() * dim);
            return read(of, values.data());
          });
    };
    const Status status = NoThrow(*table, read_and_evict);
    if (!status.ok()) {
      // In reverse order: for a key that occurs twice, the first entry is the
      // original.
      if (metas.size() == handles.size()) {
        for (size_t i = metas.size(); i > 0; --i) {
          *table->rows->Meta(handles[i - 1]) = metas[i - 1];
        }
      }
      table->TakeBackAlone(journal);
      return status;
    }
    table->ForgetCounted(keys);
    evicted_keys->swap(gone);
    evicted_values->swap(values);
    return Status::OK();
  });
}

Status EmbeddingTable::EvictStale(int64_t step, int64_t steps_to_live,
                                  int64_t* evicted_rows) {
  return NoThrow(*impl_, [&] {
    if (!impl_->options.record_version) {
      return FailedPrecondition(
          "cannot evict rows by global step: versions are not recorded, " +
          impl_->QuotedName());
    }
    if (steps_to_live < 1) {
      return InvalidArgument("steps_to_live: expected at least 1, got " +
                             std::to_string(steps_to_live) + ", " +
                             impl_->QuotedName());
    }
    ExclusiveTableLock alone(&impl_->table_lock);
    EV_RETURN_IF_ERROR(impl_->CheckInitialized());
    EV_RETURN_IF_ERROR(impl_->TakeCounters());
    const uint64_t now = RowMeta::PlusOne(step);
    std::vector<int64_t> stale;
    std::vector<RowHandle> unversioned;
    impl_->index.ForEach([&](int64_t key, RowHandle handle) {
      RowMeta* meta = impl_->rows->Meta(handle);
      if (meta->version_plus1 == 0) {
        unversioned.push_back(handle);
      } else if (IsStale(meta->version(), step, steps_to_live)) {
        stale.push_back(key);
      }
    });
    std::vector<int64_t> counted;
    AdmissionFilter* filter = impl_->filter.get();
    if (filter != nullptr) {
      filter->index().ForEach([&](int64_t key, RowHandle handle) {
        if (IsStale(filter->VersionOf(handle), step, steps_to_live)) {
          counted.push_back(key);
        }
      });
    }
    // New keys reuse rows in this order. The index's order differs from process
    // to process.
    std::sort(stale.begin(), stale.end());
    *evicted_rows = impl_->EraseRows(stale);
    impl_->evicted_rows.fetch_add(*evicted_rows, std::memory_order_relaxed);
    for (const RowHandle handle : unversioned) {
      impl_->rows->Meta(handle)->version_plus1 = now;
      impl_->MarkChanged(handle);
    }
    if (!counted.empty()) {
      std::sort(counted.begin(), counted.end());
      filter->Erase(counted);
      if (impl_->changes != nullptr) {
        impl_->changes->Erased(counted, impl_->index.size());
      }
    }
    return Status::OK();
  });
}

Status EmbeddingTable::Impl::FindWeak(float threshold,
                                      std::vector<int64_t>* weak) const {
  std::vector<int64_t> keys;
  std::vector<RowHandle> handles;
  std::vector<double> squares;
  Status status;
  const auto take = [&] {
    squares.resize(keys.size());
    status = WithName(home->SquaredNorms(handles, squares.data()));
    for (size_t i = 0; status.ok() && i < keys.size(); ++i) {
      if (IsWeak(squares[i], threshold)) weak->push_back(keys[i]);
    }
    keys.clear();
    handles.clear();
  };
  index.ForEach([&](int64_t key, RowHandle handle) {
    if (!status.ok()) return;
    keys.push_back(key);
    handles.push_back(handle);
    if (keys.size() == kNormsAtOnce) take();
  });
  if (status.ok() && !keys.empty()) take();
  return status;
}

Status EmbeddingTable::EvictWeak(float threshold, int64_t* evicted_rows) {
  return NoThrow(*impl_, [&] {
    ExclusiveTableLock alone(&impl_->table_lock);
    EV_RETURN_IF_ERROR(impl_->CheckInitialized());
    EV_RETURN_IF_ERROR(impl_->TakeCounters());
    std::vector<int64_t> weak;
    EV_RETURN_IF_ERROR(impl_->FindWeak(threshold, &weak));
    std::sort(weak.begin(), weak.end());  // as above
    *evicted_rows = impl_->EraseRows(weak);
    impl_->evicted_rows.fetch_add(*evicted_rows, std::memory_order_relaxed);
    return Status::OK();
  });
}

}  // namespace ev
