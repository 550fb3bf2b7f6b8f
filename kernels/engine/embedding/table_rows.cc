// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The calls of an EmbeddingTable that read and write rows by their keys.

#include <algorithm>
#include <limits>
#include <memory>
#include <mutex>
#include <numeric>
#include <string>
#include <vector>

#include "kernels/engine/base/tasks.h"
#include "kernels/engine/embedding/embedding_table.h"
#include "kernels/engine/embedding/guard.h"
#include "kernels/engine/embedding/table_impl.h"
#include "kernels/engine/ids/unique.h"
#include "kernels/engine/rows/gpu_compute.h"

namespace ev {
namespace {

// Keys per task of a row-wise call, unless the home prefers more at once; and
// keys found at a time by calls that read no rows.
constexpr int64_t kKeysPerTask = 2048;
constexpr int64_t kKeysAtOnce = 256;

Status CheckCount(const EmbeddingTable::Impl& table, const char* what,
                  size_t got, size_t expected) {
  if (got == expected) return Status::OK();
  return InvalidArgument("expected " + std::to_string(expected) + " " + what +
                         ", got " + std::to_string(got) + ", " +
                         table.QuotedName());
}

// Reads the filter's count of a key that it keeps out.
void GetCounted(const EmbeddingTable::Impl& table, int64_t key,
                int64_t* frequency, int64_t* version) {
  const AdmissionFilter& filter = *table.filter;
  *version = -1;
  if (filter.is_bloom()) {
    *frequency = filter.bloom()->Count(key);
    return;
  }
  std::lock_guard<std::mutex> lock(*filter.stripe(key));
  filter.Read(key, frequency, version);
  if (!table.options.record_version) *version = -1;
}

// Reads values and slots of keys that were looked up, to position 'at' of the
// outputs. A key without a row reads as a new row would, regardless of a
// filter.
Status ReadSome(const EmbeddingTable::Impl& table, Span<const int64_t> keys,
                const std::vector<RowHandle>& handles,
                Span<const SlotSpec> slots, Span<const int> columns, int64_t at,
                float* values, Span<float* const> slot_values) {
  const int64_t dim = table.dim();
  const Span<const RowHandle> found(handles.data(), keys.size());
  float* const to = values + at * dim;
  EV_RETURN_IF_ERROR(table.WithName(table.home->Read(found, 0, to)));
  for (size_t i = 0; i < keys.size(); ++i) {
    if (found[i] < kFirstReservedHandle) continue;
    std::copy_n(table.DefaultRow(keys[i]), dim, to + i * dim);
  }
  for (size_t s = 0; s < slots.size(); ++s) {
    const int64_t width = slots[s].WidthIn(dim);
    float* const slot_to = slot_values[s] + at * width;
    EV_RETURN_IF_ERROR(
        table.WithName(table.home->Read(found, 1 + columns[s], slot_to)));
    for (size_t i = 0; i < keys.size(); ++i) {
      if (found[i] < kFirstReservedHandle) continue;
      std::fill_n(slot_to + i * width, width, slots[s].initial_value);
    }
  }
  return Status::OK();
}

// Input of WriteRows: values and slots of distinct rows.
struct RowsToWrite {
  Span<const RowHandle> handles;
  Span<const int> columns;
  const float* values;
  Span<const float* const> slot_values;
};

// Writes rows [begin, end).
Status WriteSome(const EmbeddingTable::Impl& table, const RowsToWrite& rows,
                 int64_t begin, int64_t end) {
  const int64_t dim = table.dim();
  const Span<const RowHandle> some = rows.handles.subspan(begin, end - begin);
  EV_RETURN_IF_ERROR(
      table.WithName(table.home->Write(some, 0, rows.values + begin * dim)));
  for (size_t s = 0; s < rows.columns.size(); ++s) {
    const int column = 1 + rows.columns[s];
    EV_RETURN_IF_ERROR(table.WithName(table.home->Write(
        some, column, rows.slot_values[s] + begin * table.WidthOf(column))));
  }
  return Status::OK();
}

}  // namespace

Status EmbeddingTable::Gather(Span<const int64_t> keys, float* out,
                              Parallel* parallel) const {
  return NoThrow(*impl_, [&] {
    EV_RETURN_IF_ERROR(impl_->CheckKeys(keys));
    SharedTableLock shared(&impl_->table_lock);
    EV_RETURN_IF_ERROR(impl_->CheckInitialized());
    const int64_t dim = impl_->dim();
    const int64_t at_once = impl_->home->costs().rows_per_copy;
    impl_->CountIds(keys.size(), /*by_gpu=*/false);
    return ForRangesWithStatus(
        parallel, keys.size(), std::max(kKeysPerTask, at_once),
        [&](int64_t begin, int64_t end) {
          std::vector<RowHandle> handles(std::min(at_once, end - begin));
          for (int64_t i = begin; i < end; i += at_once) {
            const Span<const int64_t> some =
                keys.subspan(i, std::min(at_once, end - i));
            impl_->index.Find(some, handles.data());
            EV_RETURN_IF_ERROR(
                impl_->ReadValues(some, handles.data(), out + i * dim));
          }
          return Status::OK();
        });
  });
}

Status EmbeddingTable::GetMeta(Span<const int64_t> keys, int64_t* frequencies,
                               int64_t* versions) const {
  return NoThrow(*impl_, [&] {
    EV_RETURN_IF_ERROR(impl_->CheckKeys(keys));
    bool has_counters;
    {
      SharedTableLock shared(&impl_->table_lock);
      EV_RETURN_IF_ERROR(impl_->CheckInitialized());
      has_counters = impl_->has_counters();
    }
    if (has_counters) {
      FrozenTableLock frozen(&impl_->table_lock);
      EV_RETURN_IF_ERROR(impl_->TakeCounters());
    }
    SharedTableLock shared(&impl_->table_lock);
    EV_RETURN_IF_ERROR(impl_->CheckInitialized());
    RowHandle handles[kKeysAtOnce];
    const int64_t end = keys.size();
    for (int64_t i = 0; i < end; i += kKeysAtOnce) {
      const int64_t n = std::min(kKeysAtOnce, end - i);
      impl_->index.Find(keys.subspan(i, n), handles);
      for (int64_t j = 0; j < n; ++j) {
        if (handles[j] >= kFirstReservedHandle && impl_->filter != nullptr) {
          GetCounted(*impl_, keys[i + j], &frequencies[i + j],
                     &versions[i + j]);
          continue;
        }
        const RowMeta* meta = handles[j] < kFirstReservedHandle
                                  ? impl_->rows->Meta(handles[j])
                                  : nullptr;
        frequencies[i + j] =
            meta != nullptr && impl_->options.record_frequency
                ? __atomic_load_n(&meta->frequency, __ATOMIC_RELAXED)
                : 0;
        versions[i + j] =
            meta != nullptr && impl_->options.record_version
                ? static_cast<int64_t>(
                      __atomic_load_n(&meta->version_plus1, __ATOMIC_RELAXED) -
                      1)
                : -1;
      }
    }
    return Status::OK();
  });
}

Status EmbeddingTable::ReadRows(Span<const int64_t> keys,
                                Span<const SlotSpec> slots, float* values,
                                Span<float* const> slot_values,
                                Parallel* parallel) {
  EV_RETURN_IF_ERROR(
      CheckCount(*impl_, "slot outputs", slot_values.size(), slots.size()));
  return NoThrow(*impl_, [&] {
    EV_RETURN_IF_ERROR(impl_->CheckKeys(keys));
    for (;;) {
      EV_RETURN_IF_ERROR(EnsureSlots(slots, nullptr));
      SharedTableLock shared(&impl_->table_lock);
      std::vector<int> columns;
      // Missing again if the table was initialized meanwhile.
      if (!impl_->FindSlots(slots, &columns)) continue;
      const int64_t at_once = impl_->home->costs().rows_per_copy;
      return ForRangesWithStatus(
          parallel, keys.size(), std::max(kKeysPerTask, at_once),
          [&](int64_t begin, int64_t end) {
            std::vector<RowHandle> handles(std::min(at_once, end - begin));
            for (int64_t i = begin; i < end; i += at_once) {
              const int64_t n = std::min(at_once, end - i);
              impl_->index.Find(keys.subspan(i, n), handles.data());
              EV_RETURN_IF_ERROR(ReadSome(*impl_, keys.subspan(i, n), handles,
                                          slots, columns, i, values,
                                          slot_values));
            }
            return Status::OK();
          });
    }
  });
}

Status EmbeddingTable::WriteRows(Span<const int64_t> keys,
                                 Span<const SlotSpec> slots,
                                 const float* values,
                                 Span<const float* const> slot_values,
                                 const int64_t* counts, int64_t step,
                                 Parallel* parallel) {
  EV_RETURN_IF_ERROR(
      CheckCount(*impl_, "slot inputs", slot_values.size(), slots.size()));
  TableJournal journal;
  bool rows_change = false;
  const UpdateCall call = impl_->BeginCall(step);
  const Status status = NoThrow(*impl_, [&] {
    EV_RETURN_IF_ERROR(impl_->CheckKeys(keys));
    EV_RETURN_IF_ERROR(impl_->CheckInitialized());
    {
      Unique unique;
      std::vector<int64_t> distinct(keys.size());
      std::vector<int32_t> inverse(keys.size());
      int64_t num_distinct = 0;
      EV_RETURN_IF_ERROR(unique.Run(keys, distinct.data(), inverse.data(),
                                    nullptr, &num_distinct));
      if (num_distinct != static_cast<int64_t>(keys.size())) {
        return InvalidArgument("keys to write: expected distinct keys, got " +
                               std::to_string(keys.size()) + " keys of which " +
                               std::to_string(num_distinct) +
                               " are distinct, " + impl_->QuotedName());
      }
    }
    for (;;) {
      EV_RETURN_IF_ERROR(EnsureSlots(slots, nullptr));
      SharedTableLocks table_locks({impl_.get()},
                                   SharedTableLocks::Purpose::kUpdating);
      std::vector<int> columns;
      if (!impl_->FindSlots(slots, &columns)) continue;
      std::vector<RowHandle> handles(keys.size());
      EV_RETURN_IF_ERROR(ForRangesWithStatus(
          parallel, keys.size(), kKeysPerTask, [&](int64_t i, int64_t end) {
            TableJournal::Writer writer(&journal);
            return impl_->FindOrInsert(keys.subspan(i, end - i),
                                       handles.data() + i, writer.part());
          }));
      UpdateLocks locks(table_locks.tables());
      const bool solo = locks.solo(impl_.get());
      impl_->BeforeChange(handles);
      RowRoom room;
      EV_RETURN_IF_ERROR(room.Reserve(impl_.get(), keys.size()));
      rows_change = true;
      impl_->ForgetCounted(keys);
      const RowHomeCosts& costs = impl_->home->costs();
      const bool row_by_row = !solo && costs.writes_side_by_side;
      const int64_t at_once = row_by_row ? 1 : costs.rows_per_copy;
      const RowsToWrite rows = {handles, columns, values, slot_values};
      EV_RETURN_IF_ERROR(ForRangesWithStatus(
          parallel, keys.size(), std::max(kKeysPerTask, costs.rows_per_copy),
          [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; i += at_once) {
              const int64_t last = std::min(end, i + at_once);
              std::unique_lock<std::mutex> lock;
              if (!solo) {
                lock = std::unique_lock<std::mutex>(
                    *impl_->update_lock.stripe(row_by_row ? handles[i] : 0));
              }
              EV_RETURN_IF_ERROR(WriteSome(*impl_, rows, i, last));
              for (int64_t j = i; j < last; ++j) {
                impl_->AddToMeta(handles[j], counts == nullptr ? 1 : counts[j],
                                 call);
              }
            }
            return Status::OK();
          }));
      break;
    }
    impl_->EvictExcess(call);
    return Status::OK();
  });
  if (!status.ok() && !rows_change) impl_->TakeBack(journal);
  return status;
}

}  // namespace ev
