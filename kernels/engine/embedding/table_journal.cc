// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/embedding/table_journal.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <numeric>
#include <vector>

#include "kernels/engine/embedding/table_impl.h"

namespace ev {
namespace {

constexpr size_t kKeysAtOnce = 1024;
// Keys whose cache lines fit the cache together.
constexpr size_t kKeysWarm = 64;

bool IsFilledWith(const float* row, int64_t dim, float value) {
  for (int64_t c = 0; c < dim; ++c) {
    if (std::memcmp(row + c, &value, sizeof(value)) != 0) return false;
  }
  return true;
}

// Returns those of 'keys' whose row is as it was created. Empty if the rows
// cannot be read.
std::vector<int64_t> Untouched(const EmbeddingTable::Impl& table,
                               Span<const int64_t> keys) {
  std::vector<RowHandle> all(keys.size()), handles;
  std::vector<int64_t> found;
  table.index.Find(keys, all.data());
  for (size_t i = 0; i < keys.size(); ++i) {
    if (all[i] >= kFirstReservedHandle) continue;
    const RowMeta* const meta = table.rows->Meta(all[i]);
    if (meta != nullptr && (meta->version_plus1 != 0 || meta->call != 0)) {
      continue;
    }
    handles.push_back(all[i]);
    found.push_back(keys[i]);
  }
  const size_t n = found.size();
  const int64_t dim = table.dim();
  std::vector<int> columns(1 + table.slots.size());
  std::iota(columns.begin(), columns.end(), 0);
  // Slots may be narrower than the value.
  std::vector<float> floats(columns.size() * n * dim);
  std::vector<float*> out;
  for (size_t c = 0; c < columns.size(); ++c) {
    out.push_back(floats.data() + c * n * dim);
  }
  std::vector<int64_t> untouched;
  if (!table.CopyColumns(handles, columns, out).ok()) return untouched;
  for (size_t i = 0; i < n; ++i) {
    bool is_new = std::memcmp(out[0] + i * dim, table.DefaultRow(found[i]),
                              dim * sizeof(float)) == 0;
    for (size_t s = 0; is_new && s < table.slots.size(); ++s) {
      const int64_t width = table.slots[s].WidthIn(dim);
      is_new = IsFilledWith(out[1 + s] + i * width, width,
                            table.slots[s].initial_value);
    }
    if (is_new) untouched.push_back(found[i]);
  }
  return untouched;
}

void EraseInserted(const JournalPart& part, bool only_untouched,
                   EmbeddingTable::Impl* table) {
  const Span<const int64_t> keys(part.inserted);
  for (size_t i = 0; i < keys.size(); i += kKeysAtOnce) {
    const Span<const int64_t> some =
        keys.subspan(i, std::min(kKeysAtOnce, keys.size() - i));
    const std::vector<int64_t> gone =
        only_untouched ? Untouched(*table, some)
                       : std::vector<int64_t>(some.begin(), some.end());
    if (gone.empty()) continue;
    table->inserted_rows.fetch_sub(table->EraseRows(gone),
                                   std::memory_order_relaxed);
  }
}

// Restores counters, except for what other calls have counted since.
void RestoreCounters(const JournalPart& part, EmbeddingTable::Impl* table) {
  AdmissionFilter* const filter = table->filter.get();
  if (filter == nullptr) return;
  if (filter->is_bloom()) {
    for (const auto& key_and_count : part.added) {
      filter->bloom()->Remove(key_and_count.first, key_and_count.second);
    }
    return;
  }
  std::vector<int64_t> forgotten;
  for (const JournalPart::Counter& before : part.counted) {
    int64_t count, version;
    if (!filter->Read(before.key, &count, &version)) continue;
    count = std::max<int64_t>(0, count - before.occurrences);
    if (!before.existed && count == 0) {
      filter->Forget(before.key);
      forgotten.push_back(before.key);
      continue;
    }
    const bool alone = before.existed && count == before.count;
    // The counter exists already: this cannot fail.
    table->WriteCounter(before.key, count, alone ? before.version : version);
  }
  for (const int64_t key : part.admitted) {
    RowHandle handle;
    table->index.Find(Span<const int64_t>(&key, 1), &handle);
    // Another call has trained it.
    if (handle < kFirstReservedHandle) filter->Forget(key);
  }
  if (table->changes != nullptr && !forgotten.empty()) {
    table->changes->Erased(forgotten, table->index.size());
  }
}

}  // namespace

void EmbeddingTable::Impl::ForgetAdmitted(Span<const int64_t> keys) {
  for (size_t i = 0; i < keys.size(); i += kKeysWarm) {
    const Span<const int64_t> some =
        keys.subspan(i, std::min(kKeysWarm, keys.size() - i));
    filter->Warm(some);
    for (const int64_t key : some) {
      std::lock_guard<std::mutex> lock(*filter->stripe(key));
      filter->Forget(key);
    }
  }
}

void EmbeddingTable::Impl::TakeBackAlone(const TableJournal& journal,
                                         bool only_untouched) {
  if (rows == nullptr) return;
  try {
    // Metadata shows whether another call has updated a row since; if it cannot
    // be read, the inserted keys stay.
    const bool is_known = TakeCounters().ok();
    // In reverse order: a table may have been updated several times.
    const std::list<JournalPart>& parts = journal.parts();
    for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
      if (is_known) EraseInserted(*part, only_untouched, this);
      RestoreCounters(*part, this);
    }
    if (!unused_handles.empty()) rows->Free(unused_handles);
    unused_handles.clear();
  } catch (const std::bad_alloc&) {
    // The remaining keys have their default rows.
  }
}

void EmbeddingTable::Impl::TakeBack(const TableJournal& journal) {
  bool is_empty = true;
  for (const JournalPart& part : journal.parts()) {
    is_empty = is_empty && part.inserted.empty() && part.counted.empty() &&
               part.admitted.empty() && part.added.empty();
  }
  {
    std::lock_guard<std::mutex> lock(unused_handles_mu);
    if (is_empty && unused_handles.empty()) return;
  }
  ExclusiveTableLock alone(&table_lock);
  TakeBackAlone(journal);
}

}  // namespace ev
