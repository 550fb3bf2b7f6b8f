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
#include "kernels/engine/embedding/table_reader.h"

namespace ev {
namespace {

constexpr int64_t kMaxCount = std::numeric_limits<uint32_t>::max();

uint32_t Saturated(int64_t x) {
  return static_cast<uint32_t>(std::min(kMaxCount, std::max<int64_t>(0, x)));
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

template <typename T>
void Append(Span<const T> piece, std::vector<T>* column) {
  column->insert(column->end(), piece.begin(), piece.end());
}

// Appends what a reader shows to 'column'.
template <typename T>
TableReader::Visit<T> Into(std::vector<T>* column) {
  return [column](Span<const T> piece) {
    Append(piece, column);
    return Status::OK();
  };
}

// A key's count in the table's Bloom filter becomes at least 'seen'. Not an
// addition: a key that is imported again was not seen again.
void RaiseTo(int64_t seen, int64_t key, EmbeddingTable::Impl* table) {
  CountingBloomFilter* bloom = table->filter->bloom();
  bloom->Add(key, std::max<int64_t>(0, seen - bloom->Count(key)));
}

bool IsInPart(int64_t key, int part, int num_parts) {
  return FloorMod(FloorMod(key, kKeyPartitions), num_parts) == part;
}

Status CheckPart(const EmbeddingTable::Impl& table, int part, int num_parts) {
  if (num_parts >= 1 && part >= 0 && part < num_parts) return Status::OK();
  return InvalidArgument("part must be in [0, num_parts), got part " +
                         std::to_string(part) + " of " +
                         std::to_string(num_parts) + ", " + table.Named());
}

// Of another part's keys nothing is asked.
Status CheckKeysOf(const EmbeddingTable::Impl& table, Span<const int64_t> keys,
                   int part, int num_parts) {
  if (!table.options.int32_keys) return Status::OK();
  for (size_t i = 0; i < keys.size(); ++i) {
    if (!IsInPart(keys[i], part, num_parts)) continue;
    EV_RETURN_IF_ERROR(table.CheckKeys(keys.subspan(i, 1)));
  }
  return Status::OK();
}

}  // namespace

Status EmbeddingTable::Export(Span<const std::string> slots,
                              TableSnapshot* snapshot) const {
  return NoThrow(*impl_, [&] {
    std::unique_ptr<TableReader> reader;
    EV_RETURN_IF_ERROR(TableReader::Open(*this, slots, &reader));
    TableSnapshot out;
    const size_t n = reader->num_keys();
    EV_RETURN_IF_ERROR(reader->FilteredKeys(Into(&out.filtered_keys)));
    if (reader->has_versions()) {
      EV_RETURN_IF_ERROR(
          reader->FilteredVersions(Into(&out.filtered_versions)));
    }
    EV_RETURN_IF_ERROR(
        reader->FilteredFrequencies(Into(&out.filtered_frequencies)));
    out.partition_offset.assign(reader->partition_begins().begin(),
                                reader->partition_begins().end());
    out.filtered_partition_offset.assign(
        reader->filtered_partition_begins().begin(),
        reader->filtered_partition_begins().end());
    out.keys.reserve(n);
    out.values.reserve(n * impl_->dim());
    out.slots.resize(slots.size());
    for (std::vector<float>& slot : out.slots) slot.reserve(n * impl_->dim());
    if (reader->has_versions()) out.versions.reserve(n);
    if (reader->has_frequencies()) out.frequencies.reserve(n);
    EV_RETURN_IF_ERROR(reader->Rows([&](const RowPiece& piece) {
      Append(piece.keys, &out.keys);
      Append(piece.columns[0], &out.values);
      for (size_t s = 0; s < slots.size(); ++s) {
        Append(piece.columns[1 + s], &out.slots[s]);
      }
      Append(piece.versions, &out.versions);
      Append(piece.frequencies, &out.frequencies);
      return Status::OK();
    }));
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
  EV_RETURN_IF_ERROR(CheckKeysOf(table, keys, part, num_parts));
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
          for (const int64_t key : kept_keys) RaiseTo(least, key, impl_.get());
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
          impl_->MarkChanged(handles[k]);
          if (RowMeta* meta = impl_->rows->Meta(handles[k])) {
            meta->frequency = Saturated(std::max(
                least, frequencies.empty() ? 0 : frequencies[kept[k]]));
            meta->version_plus1 =
                versions.empty() ? 0 : RowMeta::PlusOne(versions[kept[k]]);
            meta->call = 0;
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
    impl_->EvictExcess(UpdateCall());
    return Status::OK();
  });
}

Status EmbeddingTable::ImportSlot(Span<const int64_t> keys,
                                  const SlotSpec& slot, const float* values) {
  const Span<const SlotSpec> slots(&slot, 1);
  return NoThrow(*impl_, [&] {
    for (;;) {
      EV_RETURN_IF_ERROR(EnsureSlots(slots, nullptr));
      ExclusiveGate alone(&impl_->gate);
      std::vector<int> columns;
      if (!impl_->FindSlots(slots, &columns)) continue;
      const int64_t dim = impl_->dim();
      std::vector<RowHandle> handles(keys.size());
      impl_->index.Find(keys, handles.data());
      for (const RowHandle handle : handles) {
        if (handle < kFirstReservedHandle) impl_->MarkChanged(handle);
      }
      if (!impl_->on_device()) {
        for (size_t i = 0; i < keys.size(); ++i) {
          if (handles[i] >= kFirstReservedHandle) continue;
          std::copy_n(
              values + i * dim, dim,
              impl_->rows->Row(handles[i]) + impl_->SlotOffset(columns[0]));
        }
        return Status::OK();
      }
      // A device writes each row once.
      std::unordered_map<RowHandle, size_t> last;
      for (size_t i = 0; i < keys.size(); ++i) {
        if (handles[i] < kFirstReservedHandle) last[handles[i]] = i;
      }
      std::vector<RowHandle> distinct;
      std::vector<float> staged;
      for (size_t i = 0; i < keys.size(); ++i) {
        const auto found = last.find(handles[i]);
        if (found == last.end() || found->second != i) continue;
        distinct.push_back(handles[i]);
        staged.insert(staged.end(), values + i * dim, values + (i + 1) * dim);
      }
      return impl_->Named(
          impl_->device->Write(distinct, 1 + columns[0], staged.data()));
    }
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
  EV_RETURN_IF_ERROR(CheckKeysOf(*impl_, keys, part, num_parts));
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
      if (filter->is_bloom()) RaiseTo(seen, keys[i], impl_.get());
      if (!filter->Admits(seen)) {
        if (filter->is_bloom()) continue;
        EV_RETURN_IF_ERROR(impl_->WriteCounter(keys[i], seen, version));
        continue;
      }
      EV_RETURN_IF_ERROR(impl_->FindOrInsert(key, &handle));
      if (!filter->is_bloom()) filter->Forget(keys[i]);
      RowMeta* meta = impl_->rows->Meta(handle);
      meta->frequency = Saturated(seen);
      meta->version_plus1 = RowMeta::PlusOne(version);
    }
    return Status::OK();
  };
  return NoThrow(*impl_, [&] {
    EV_RETURN_IF_ERROR(import());
    impl_->EvictExcess(UpdateCall());
    return Status::OK();
  });
}

}  // namespace ev
