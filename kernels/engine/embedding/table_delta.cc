// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Exports parts of a table: rows that changed since a cut, or that are newer
// than a version.

#include <algorithm>
#include <string>
#include <utility>

#include "kernels/engine/embedding/embedding_table.h"
#include "kernels/engine/embedding/guard.h"
#include "kernels/engine/embedding/parts/key_order.h"
#include "kernels/engine/embedding/table_impl.h"
#include "kernels/engine/embedding/table_tensors.h"

namespace ev {
namespace {

struct Entry {
  int64_t key;
  RowHandle handle;
};

bool KeyBefore(int64_t a, int64_t b) {
  const int64_t pa = KeyPartition(a), pb = KeyPartition(b);
  return pa != pb ? pa < pb : a < b;
}

// Returns the entries of the index that the predicate selects, in snapshot
// order, and where each partition begins.
template <typename Wanted>  // bool(RowHandle)
std::vector<Entry> Select(const HashIndex& index, const Wanted& wanted,
                          std::vector<int32_t>* partition_offset) {
  std::vector<Entry> entries;
  index.ForEach([&](int64_t key, RowHandle handle) {
    if (handle < kFirstReservedHandle && wanted(handle)) {
      entries.push_back(Entry{key, handle});
    }
  });
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return KeyBefore(a.key, b.key);
  });
  partition_offset->assign(kKeyPartitions + 1, 0);
  for (const Entry& entry : entries) {
    ++(*partition_offset)[KeyPartition(entry.key) + 1];
  }
  for (int64_t p = 0; p < kKeyPartitions; ++p) {
    (*partition_offset)[p + 1] += (*partition_offset)[p];
  }
  return entries;
}

// Copies values and slots, column by column.
Status CopyRows(EmbeddingTable::Impl* table, const std::vector<Entry>& entries,
                Span<const int> columns, TableSnapshot* out) {
  const size_t n = entries.size();
  const int64_t dim = table->dim();
  out->values.resize(n * dim);
  out->slots.clear();
  std::vector<RowHandle> handles;
  handles.reserve(n);
  for (const Entry& entry : entries) handles.push_back(entry.handle);
  std::vector<int> read(1, 0);
  std::vector<float*> to(1, out->values.data());
  for (size_t s = 0; s < columns.size(); ++s) {
    read.push_back(1 + columns[s]);
    out->slots.emplace_back(n * table->WidthOf(read.back()));
    to.push_back(out->slots[s].data());
  }
  return table->CopyColumns(handles, read, to);
}

Status CopyOut(EmbeddingTable::Impl* table, const std::vector<Entry>& entries,
               Span<const std::string> slots, TableSnapshot* out) {
  std::vector<int> columns;
  for (const std::string& slot : slots) {
    columns.push_back(table->FindSlot(slot));
    if (columns.back() < 0) {
      return NotFound("no slot '" + slot + "', " + table->QuotedName());
    }
  }
  for (const Entry& entry : entries) {
    out->keys.push_back(entry.key);
    const RowMeta* meta = table->rows->Meta(entry.handle);
    if (table->options.record_version) {
      out->versions.push_back(meta->version());
    }
    if (table->options.record_frequency) {
      out->frequencies.push_back(meta->frequency);
    }
  }
  return CopyRows(table, entries, columns, out);
}

// Copies the keys without a row that a filter counts.
template <typename Wanted>
void CopyCounted(const EmbeddingTable::Impl& table, const Wanted& wanted,
                 TableSnapshot* out) {
  out->filtered_partition_offset.assign(kKeyPartitions + 1, 0);
  const AdmissionFilter* filter = table.filter.get();
  if (filter == nullptr) return;
  for (const Entry& entry :
       Select(filter->index(), wanted, &out->filtered_partition_offset)) {
    out->filtered_keys.push_back(entry.key);
    out->filtered_frequencies.push_back(filter->CountOf(entry.handle));
    if (table.options.record_version) {
      out->filtered_versions.push_back(filter->VersionOf(entry.handle));
    }
  }
}

}  // namespace

Status EmbeddingTable::CutChanges(int64_t* cut) {
  return NoThrow(*impl_, [&] {
    ExclusiveTableLock alone(&impl_->table_lock);
    EV_RETURN_IF_ERROR(impl_->CheckInitialized());
    EV_RETURN_IF_ERROR(impl_->TakeCounters());
    if (impl_->changes == nullptr) impl_->changes.reset(new TableChanges);
    *cut = impl_->changes->Cut();
    return Status::OK();
  });
}

Status EmbeddingTable::ExportChanges(int64_t since,
                                     Span<const std::string> slots,
                                     TableDelta* delta) {
  return NoThrow(*impl_, [&] {
    std::lock_guard<std::mutex> one(impl_->export_changes);
    FrozenTableLock frozen(&impl_->table_lock);
    EV_RETURN_IF_ERROR(impl_->CheckInitialized());
    EV_RETURN_IF_ERROR(impl_->TakeCounters());
    TableChanges* changes = impl_->changes.get();
    if (changes == nullptr) {
      return FailedPrecondition("changes are not recorded yet, " +
                                impl_->QuotedName());
    }
    if (since < 0 || since >= changes->epoch()) {
      return InvalidArgument(
          "cut " + std::to_string(since) + " does not exist, the last one is " +
          std::to_string(changes->epoch() - 1) + ", " + impl_->QuotedName());
    }
    TableDelta out;
    out.replaces = changes->NeedsEverything(since);
    const auto row_changed = [&](RowHandle handle) {
      return out.replaces || changes->RowChanged(handle, since);
    };
    const auto counter_changed = [&](RowHandle handle) {
      return out.replaces || changes->CounterChanged(handle, since);
    };
    EV_RETURN_IF_ERROR(CopyOut(
        impl_.get(),
        Select(impl_->index, row_changed, &out.changed.partition_offset), slots,
        &out.changed));
    CopyCounted(*impl_, counter_changed, &out.changed);
    out.changed.tensors = GetTableTensors(*impl_, out.replaces);
    if (!out.replaces) {
      // Erased keys that have a row again are overwritten; those that are
      // counted again are erased, then counted.
      const std::vector<int64_t> erased = changes->ErasedSince(since);
      std::vector<RowHandle> handles(erased.size());
      impl_->index.Find(erased, handles.data());
      for (size_t i = 0; i < erased.size(); ++i) {
        if (handles[i] >= kFirstReservedHandle) out.erased.push_back(erased[i]);
      }
      std::sort(out.erased.begin(), out.erased.end(), KeyBefore);
    }
    // Nothing can fail from here on.
    changes->Forget(since);
    out.cut = changes->Cut();
    *delta = std::move(out);
    return Status::OK();
  });
}

Status EmbeddingTable::ExportNewer(int64_t version,
                                   Span<const std::string> slots,
                                   TableSnapshot* snapshot) const {
  return NoThrow(*impl_, [&] {
    FrozenTableLock frozen(&impl_->table_lock);
    EV_RETURN_IF_ERROR(impl_->CheckInitialized());
    if (!impl_->options.record_version) {
      return FailedPrecondition(
          "cannot export rows by version: versions are not recorded, " +
          impl_->QuotedName());
    }
    EV_RETURN_IF_ERROR(impl_->TakeCounters());
    TableSnapshot out;
    EV_RETURN_IF_ERROR(
        CopyOut(impl_.get(),
                Select(
                    impl_->index,
                    [&](RowHandle handle) {
                      return impl_->rows->Meta(handle)->version() >= version;
                    },
                    &out.partition_offset),
                slots, &out));
    out.filtered_partition_offset.assign(kKeyPartitions + 1, 0);
    *snapshot = std::move(out);
    return Status::OK();
  });
}

}  // namespace ev
