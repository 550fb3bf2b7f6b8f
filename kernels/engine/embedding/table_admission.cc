// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Admission: decides which keys of an update get a row.

#include <algorithm>
#include <limits>
#include <mutex>

#include "kernels/engine/embedding/embedding_table.h"
#include "kernels/engine/embedding/guard.h"
#include "kernels/engine/embedding/table_impl.h"

namespace ev {
namespace {

int64_t CountOf(const int32_t* counts, size_t i) {
  return counts == nullptr ? 1 : std::max<int32_t>(0, counts[i]);
}

// Creates a row of a key that has occurred before.
class SeenRow : public RowSource {
 public:
  SeenRow(EmbeddingTable::Impl* table, int64_t seen)
      : table_(table), seen_(seen) {}
  Status NewRow(int64_t key, RowHandle* handle) override {
    EV_RETURN_IF_ERROR(table_->NewRow(key, handle));
    constexpr int64_t kMax = std::numeric_limits<uint32_t>::max();
    __atomic_store_n(&table_->rows->Meta(*handle)->frequency,
                     static_cast<uint32_t>(std::min(kMax, seen_)),
                     __ATOMIC_RELAXED);
    return Status::OK();
  }

 private:
  EmbeddingTable::Impl* const table_;
  const int64_t seen_;
};

Status Insert(EmbeddingTable::Impl* table, int64_t key, int64_t seen,
              RowHandle* handle, JournalPart* part) {
  part->inserted.push_back(key);
  SeenRow source(table, seen);
  int64_t inserted = 0;
  const Status status = table->index.FindOrInsert(Span<const int64_t>(&key, 1),
                                                  &source, handle, &inserted);
  table->inserted_rows.fetch_add(inserted, std::memory_order_relaxed);
  if (inserted == 0) part->inserted.pop_back();
  return table->WithName(status);
}

// Decides about one absent key by its exact counter.
Status CountOrAdmit(EmbeddingTable::Impl* table, int64_t key,
                    int64_t occurrences, int64_t step, RowHandle* handle,
                    JournalPart* part) {
  AdmissionFilter* filter = table->filter.get();
  std::lock_guard<std::mutex> lock(*filter->stripe(key));
  // Another update may have admitted it since the caller looked.
  table->index.Find(Span<const int64_t>(&key, 1), handle);
  if (*handle < kFirstReservedHandle) return Status::OK();
  int64_t seen, version;
  const bool counted = filter->Read(key, &seen, &version);
  const JournalPart::Counter before = {key, counted, seen, version,
                                       occurrences};
  if (!filter->Admits(seen + occurrences)) {
    part->counted.push_back(before);
    const Status status = table->WriteCounter(key, seen + occurrences, step);
    if (!status.ok()) part->counted.pop_back();
    return status;
  }
  if (counted) part->admitted.push_back(key);
  const Status status = Insert(table, key, seen, handle, part);
  if (counted && !status.ok()) part->admitted.pop_back();
  return status;
}

}  // namespace

Status EmbeddingTable::Impl::WriteCounter(int64_t key, int64_t count,
                                          int64_t version) {
  RowHandle counter;
  EV_RETURN_IF_ERROR(WithName(filter->Write(key, count, version, &counter)));
  if (changes != nullptr) changes->MarkCounter(counter);
  return Status::OK();
}

void EmbeddingTable::Impl::CountAbsent(Span<const int64_t> keys,
                                       const int32_t* counts,
                                       const RowHandle* handles,
                                       JournalPart* part) {
  if (filter == nullptr || !filter->is_bloom()) return;
  for (size_t i = 0; i < keys.size(); ++i) {
    if (handles[i] < kFirstReservedHandle) continue;
    part->added.emplace_back(keys[i], CountOf(counts, i));
    filter->bloom()->Add(keys[i], CountOf(counts, i));
  }
}

Status EmbeddingTable::Impl::AdmitAbsent(Span<const int64_t> keys,
                                         const int32_t* counts, int64_t step,
                                         RowHandle* handles,
                                         JournalPart* part) {
  std::vector<int64_t> absent;
  for (size_t i = 0; i < keys.size(); ++i) {
    if (handles[i] >= kFirstReservedHandle) absent.push_back(keys[i]);
  }
  if (absent.empty()) return Status::OK();
  std::vector<RowHandle> found(absent.size());
  if (filter == nullptr) {
    EV_RETURN_IF_ERROR(FindOrInsert(absent, found.data(), part));
  } else {
    // Another update may have inserted some of them. This also brings the
    // memory read for the others into the cache.
    index.Find(absent, found.data());
    if (!filter->is_bloom()) filter->Warm(absent);
  }
  size_t next = 0;
  for (size_t i = 0; i < keys.size(); ++i) {
    if (handles[i] < kFirstReservedHandle) continue;
    handles[i] = found[next++];
    if (handles[i] < kFirstReservedHandle) continue;
    const int64_t occurrences = CountOf(counts, i);
    if (!filter->is_bloom()) {
      EV_RETURN_IF_ERROR(
          CountOrAdmit(this, keys[i], occurrences, step, &handles[i], part));
      continue;
    }
    // CountAbsent has added this update's occurrences already.
    const int64_t seen = filter->bloom()->Count(keys[i]);
    if (!filter->Admits(seen)) continue;
    EV_RETURN_IF_ERROR(Insert(this, keys[i],
                              std::max<int64_t>(0, seen - occurrences),
                              &handles[i], part));
  }
  return Status::OK();
}

void EmbeddingTable::Impl::ForgetCounted(Span<const int64_t> keys) {
  if (filter == nullptr || filter->is_bloom() || filter->size() == 0) return;
  for (const int64_t key : keys) {
    std::lock_guard<std::mutex> lock(*filter->stripe(key));
    filter->Forget(key);
  }
}

Status EmbeddingTable::Admit(Span<const int64_t> keys, const int64_t* counts,
                             int64_t step, std::vector<int32_t>* admitted) {
  TableJournal journal;
  const Status status = NoThrow(*impl_, [&] {
    EV_RETURN_IF_ERROR(impl_->CheckKeys(keys));
    std::vector<int32_t> result;
    result.reserve(keys.size());
    if (!impl_->options.admission.filters()) {
      EV_RETURN_IF_ERROR(impl_->CheckInitialized());
      for (size_t i = 0; i < keys.size(); ++i) {
        result.push_back(static_cast<int32_t>(i));
      }
      admitted->swap(result);
      return Status::OK();
    }
    std::vector<int32_t> occurrences(keys.size(), 1);
    constexpr int64_t kMax = std::numeric_limits<int32_t>::max();
    for (size_t i = 0; counts != nullptr && i < keys.size(); ++i) {
      occurrences[i] =
          static_cast<int32_t>(std::min(kMax, std::max<int64_t>(0, counts[i])));
    }
    {
      UpdatingTableLock updating(&impl_->table_lock);
      EV_RETURN_IF_ERROR(impl_->CheckInitialized());
      std::vector<RowHandle> handles(keys.size());
      impl_->index.Find(keys, handles.data());
      {
        TableJournal::Writer writer(&journal);
        impl_->CountAbsent(keys, occurrences.data(), handles.data(),
                           writer.part());
        EV_RETURN_IF_ERROR(impl_->AdmitAbsent(keys, occurrences.data(), step,
                                              handles.data(), writer.part()));
      }
      for (const JournalPart& part : journal.parts()) {
        impl_->ForgetAdmitted(part.admitted);
      }
      for (size_t i = 0; i < keys.size(); ++i) {
        if (handles[i] < kFirstReservedHandle) {
          result.push_back(static_cast<int32_t>(i));
        }
      }
    }
    admitted->swap(result);
    return Status::OK();
  });
  if (!status.ok()) impl_->TakeBack(journal);
  return status;
}

}  // namespace ev
