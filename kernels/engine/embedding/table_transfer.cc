// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// A whole table out, and rows from elsewhere in.

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <utility>

#include "kernels/engine/embedding/embedding_table.h"
#include "kernels/engine/embedding/guard.h"
#include "kernels/engine/embedding/table_impl.h"

namespace ev {
namespace {

// Partitions of a checkpoint, as DeepRec's: floormod(key, 1000).
constexpr int64_t kPartitions = 1000;

constexpr int64_t kMaxCount = std::numeric_limits<uint32_t>::max();

uint32_t Saturated(int64_t x) {
  return static_cast<uint32_t>(std::min(kMaxCount, std::max<int64_t>(0, x)));
}

struct Entry {
  int64_t key;
  RowHandle handle;
};

// Entries ordered by (partition, key), and where each partition begins: a
// counting sort by partition, then each partition by itself.
std::vector<Entry> SortedEntries(const HashIndex& index,
                                 std::vector<int32_t>* partition_offset) {
  std::vector<Entry> entries;
  entries.reserve(index.size());
  std::vector<int64_t> begins(kPartitions + 1, 0);
  index.ForEach([&](int64_t key, RowHandle handle) {
    if (handle >= kFirstReservedHandle) return;
    entries.push_back(Entry{key, handle});
    ++begins[FloorMod(key, kPartitions) + 1];
  });
  for (int64_t p = 0; p < kPartitions; ++p) begins[p + 1] += begins[p];
  std::vector<Entry> sorted(entries.size());
  std::vector<int64_t> next = begins;
  for (const Entry& entry : entries) {
    sorted[next[FloorMod(entry.key, kPartitions)]++] = entry;
  }
  for (int64_t p = 0; p < kPartitions; ++p) {
    std::sort(sorted.begin() + begins[p], sorted.begin() + begins[p + 1],
              [](const Entry& a, const Entry& b) { return a.key < b.key; });
  }
  partition_offset->assign(begins.begin(), begins.end());
  return sorted;
}

// Values and slots of the entries, whose rows are on a device.
Status ExportDeviceRows(EmbeddingTable::Impl* table,
                        const std::vector<Entry>& entries,
                        Span<const std::string> slots, TableSnapshot* out) {
  std::vector<RowHandle> handles;
  handles.reserve(entries.size());
  for (const Entry& entry : entries) handles.push_back(entry.handle);
  EV_RETURN_IF_ERROR(
      table->Named(table->device->Read(handles, 0, out->values.data())));
  for (size_t s = 0; s < slots.size(); ++s) {
    EV_RETURN_IF_ERROR(table->Named(table->device->Read(
        handles, 1 + table->FindSlot(slots[s]), out->slots[s].data())));
  }
  return Status::OK();
}

// Rows of one stretch of an import, on their way to a device: what the inputs
// hold of 'kept', column by column. source: which column gets which input.
Status ImportDeviceRows(EmbeddingTable::Impl* table,
                        Span<const RowHandle> handles,
                        const std::vector<size_t>& kept, const float* values,
                        Span<const float* const> slot_values,
                        const std::vector<int>& source) {
  // Of a key that comes twice the last counts, and a row is written once.
  std::vector<RowHandle> distinct;
  std::vector<size_t> last;
  std::unordered_map<RowHandle, size_t> places;
  for (size_t k = 0; k < kept.size(); ++k) {
    const auto found = places.emplace(handles[k], distinct.size());
    if (found.second) {
      distinct.push_back(handles[k]);
      last.push_back(kept[k]);
    } else {
      last[found.first->second] = kept[k];
    }
  }
  const int64_t dim = table->dim();
  std::vector<float> staged(distinct.size() * dim);
  for (int column = 0; column <= static_cast<int>(source.size()); ++column) {
    const float* from = column == 0 ? values
                        : source[column - 1] < 0
                            ? nullptr
                            : slot_values[source[column - 1]];
    for (size_t k = 0; k < last.size(); ++k) {
      if (from != nullptr) {
        std::copy_n(from + last[k] * dim, dim, staged.data() + k * dim);
      } else {
        std::fill_n(staged.data() + k * dim, dim,
                    table->slots[column - 1].initial_value);
      }
    }
    EV_RETURN_IF_ERROR(
        table->Named(table->device->Write(distinct, column, staged.data())));
  }
  return Status::OK();
}

Status CheckSize(const EmbeddingTable::Impl& table, const char* what,
                 size_t got, size_t expected) {
  if (got == expected) return Status::OK();
  return InvalidArgument(std::string("expected ") + std::to_string(expected) +
                         " " + what + ", got " + std::to_string(got) + ", " +
                         table.Named());
}

// The part of a snapshot that the filter knows.
void ExportFiltered(const EmbeddingTable::Impl& table, TableSnapshot* out) {
  out->filtered_partition_offset.assign(kPartitions + 1, 0);
  const AdmissionFilter* filter = table.filter.get();
  if (filter == nullptr) return;
  const std::vector<Entry> entries =
      SortedEntries(filter->index(), &out->filtered_partition_offset);
  for (const Entry& entry : entries) {
    out->filtered_keys.push_back(entry.key);
    out->filtered_frequencies.push_back(filter->CountOf(entry.handle));
    if (table.options.record_version) {
      out->filtered_versions.push_back(filter->VersionOf(entry.handle));
    }
  }
}

bool IsInPart(int64_t key, int part, int num_parts) {
  return FloorMod(FloorMod(key, kPartitions), num_parts) == part;
}

Status CheckPart(const EmbeddingTable::Impl& table, int part, int num_parts) {
  if (num_parts >= 1 && part >= 0 && part < num_parts) return Status::OK();
  return InvalidArgument("part must be in [0, num_parts), got part " +
                         std::to_string(part) + " of " +
                         std::to_string(num_parts) + ", " + table.Named());
}

}  // namespace

Status EmbeddingTable::Export(Span<const std::string> slots,
                              TableSnapshot* snapshot) const {
  return NoThrow(*impl_, [&] {
    ExclusiveGate alone(&impl_->gate);
    EV_RETURN_IF_ERROR(impl_->CheckInitialized());
    std::vector<int64_t> offsets;
    for (const std::string& slot : slots) {
      const int column = impl_->FindSlot(slot);
      if (column < 0) {
        return NotFound("no slot '" + slot + "', " + impl_->Named());
      }
      offsets.push_back(impl_->SlotOffset(column));
    }
    TableSnapshot out;
    const std::vector<Entry> entries =
        SortedEntries(impl_->index, &out.partition_offset);
    const size_t n = entries.size();
    const int64_t dim = impl_->dim();
    out.keys.resize(n);
    out.values.resize(n * dim);
    out.slots.resize(slots.size());
    for (std::vector<float>& slot : out.slots) slot.resize(n * dim);
    if (impl_->options.record_version) out.versions.resize(n);
    if (impl_->options.record_frequency) out.frequencies.resize(n);
    if (impl_->on_device()) {
      EV_RETURN_IF_ERROR(ExportDeviceRows(impl_.get(), entries, slots, &out));
    }
    for (size_t i = 0; i < n; ++i) {
      if (!impl_->on_device() && i + 4 < n) {
        impl_->rows->PrefetchRow(entries[i + 4].handle,
                                 impl_->rows->floats_per_row());
      }
      out.keys[i] = entries[i].key;
      if (!impl_->on_device()) {
        const float* row = impl_->rows->Row(entries[i].handle);
        std::copy_n(row, dim, out.values.data() + i * dim);
        for (size_t s = 0; s < slots.size(); ++s) {
          std::copy_n(row + offsets[s], dim, out.slots[s].data() + i * dim);
        }
      }
      const RowMeta* meta = impl_->rows->Meta(entries[i].handle);
      if (!out.versions.empty()) {
        out.versions[i] = int64_t{meta->version_plus1} - 1;
      }
      if (!out.frequencies.empty()) out.frequencies[i] = meta->frequency;
    }
    ExportFiltered(*impl_, &out);
    *snapshot = std::move(out);
    return Status::OK();
  });
}

Status EmbeddingTable::Import(Span<const int64_t> keys, const float* values,
                              Span<const SlotSpec> slots,
                              Span<const float* const> slot_values,
                              Span<const int64_t> versions,
                              Span<const int64_t> frequencies, int part,
                              int num_parts) {
  const Impl& table = *impl_;
  const size_t n = keys.size();
  EV_RETURN_IF_ERROR(CheckPart(table, part, num_parts));
  EV_RETURN_IF_ERROR(
      CheckSize(table, "slot inputs", slot_values.size(), slots.size()));
  if (!versions.empty()) {
    EV_RETURN_IF_ERROR(CheckSize(table, "versions", versions.size(), n));
  }
  if (!frequencies.empty()) {
    EV_RETURN_IF_ERROR(CheckSize(table, "frequencies", frequencies.size(), n));
  }
  // A row that was admitted once stays, whatever the threshold is now.
  const int64_t least =
      table.options.admission.filters() ? table.options.admission.threshold : 0;
  const auto import = [&] {
    for (;;) {
      EV_RETURN_IF_ERROR(EnsureSlots(slots, nullptr));
      ExclusiveGate alone(&impl_->gate);
      std::vector<int> columns;
      if (!impl_->FindSlots(slots, &columns)) continue;
      // Which column gets which input; -1: its initial value.
      std::vector<int> source(impl_->slots.size(), -1);
      for (size_t s = 0; s < slots.size(); ++s) {
        source[columns[s]] = static_cast<int>(s);
      }
      const int64_t dim = impl_->dim();
      std::vector<int64_t> kept_keys;
      std::vector<size_t> kept;
      std::vector<RowHandle> handles;
      const size_t kAtOnce = impl_->on_device() ? 65536 : 1024;
      for (size_t i = 0; i < n;) {
        kept_keys.clear();
        kept.clear();
        for (; i < n && kept.size() < kAtOnce; ++i) {
          if (!IsInPart(keys[i], part, num_parts)) continue;
          kept_keys.push_back(keys[i]);
          kept.push_back(i);
        }
        handles.resize(kept.size());
        EV_RETURN_IF_ERROR(impl_->FindOrInsert(kept_keys, handles.data()));
        impl_->ForgetCounted(kept_keys);
        if (impl_->filter != nullptr && impl_->filter->is_bloom()) {
          // As when these keys were admitted.
          for (const int64_t key : kept_keys) {
            impl_->filter->bloom()->Add(key, least);
          }
        }
        for (size_t k = 0; k < kept.size(); ++k) {
          float* row =
              impl_->on_device() ? nullptr : impl_->rows->Row(handles[k]);
          if (row != nullptr) {
            std::copy_n(values + kept[k] * dim, dim, row);
          }
          for (size_t c = 0; row != nullptr && c < source.size(); ++c) {
            float* slot = row + impl_->SlotOffset(static_cast<int>(c));
            if (source[c] < 0) {
              std::fill_n(slot, dim, impl_->slots[c].initial_value);
            } else {
              std::copy_n(slot_values[source[c]] + kept[k] * dim, dim, slot);
            }
          }
          if (RowMeta* meta = impl_->rows->Meta(handles[k])) {
            meta->frequency = Saturated(std::max(
                least, frequencies.empty() ? 0 : frequencies[kept[k]]));
            meta->version_plus1 =
                versions.empty()
                    ? 0
                    : Saturated(std::min(kMaxCount - 1, versions[kept[k]]) + 1);
          }
        }
        if (impl_->on_device()) {
          EV_RETURN_IF_ERROR(ImportDeviceRows(impl_.get(), handles, kept,
                                              values, slot_values, source));
        }
      }
      return Status::OK();
    }
  };
  return NoThrow(table, [&] {
    EV_RETURN_IF_ERROR(import());
    impl_->EvictExcess(/*step=*/-1);
    return Status::OK();
  });
}

Status EmbeddingTable::ImportFiltered(Span<const int64_t> keys,
                                      Span<const int64_t> versions,
                                      Span<const int64_t> frequencies, int part,
                                      int num_parts) {
  const size_t n = keys.size();
  EV_RETURN_IF_ERROR(CheckPart(*impl_, part, num_parts));
  if (!versions.empty()) {
    EV_RETURN_IF_ERROR(CheckSize(*impl_, "versions", versions.size(), n));
  }
  if (!frequencies.empty()) {
    EV_RETURN_IF_ERROR(CheckSize(*impl_, "frequencies", frequencies.size(), n));
  }
  const auto import = [&] {
    ExclusiveGate alone(&impl_->gate);
    EV_RETURN_IF_ERROR(impl_->CheckInitialized());
    AdmissionFilter* filter = impl_->filter.get();
    if (filter == nullptr) return Status::OK();
    for (size_t i = 0; i < n; ++i) {
      if (!IsInPart(keys[i], part, num_parts)) continue;
      const Span<const int64_t> key(&keys[i], 1);
      RowHandle handle;
      impl_->index.Find(key, &handle);
      if (handle < kFirstReservedHandle) continue;
      const int64_t seen = frequencies.empty() ? 1 : frequencies[i];
      const int64_t version = versions.empty() ? -1 : versions[i];
      if (filter->is_bloom()) filter->bloom()->Add(keys[i], seen);
      if (!filter->Admits(seen)) {
        if (filter->is_bloom()) continue;
        EV_RETURN_IF_ERROR(filter->Write(keys[i], seen, version));
        continue;
      }
      EV_RETURN_IF_ERROR(impl_->FindOrInsert(key, &handle));
      if (!filter->is_bloom()) filter->Forget(keys[i]);
      RowMeta* meta = impl_->rows->Meta(handle);
      meta->frequency = Saturated(seen);
      meta->version_plus1 = Saturated(std::min(kMaxCount - 1, version) + 1);
    }
    return Status::OK();
  };
  return NoThrow(*impl_, [&] {
    EV_RETURN_IF_ERROR(import());
    impl_->EvictExcess(/*step=*/-1);
    return Status::OK();
  });
}

}  // namespace ev
