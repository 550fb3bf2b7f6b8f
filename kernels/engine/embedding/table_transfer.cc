// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Exports a whole table, and imports rows.

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "kernels/engine/embedding/embedding_table.h"
#include "kernels/engine/embedding/guard.h"
#include "kernels/engine/embedding/row_numbers.h"
#include "kernels/engine/embedding/table_impl.h"
#include "kernels/engine/embedding/table_reader.h"
#include "kernels/engine/policy/cache_strategy.h"

namespace ev {
namespace {

// Maps inputs to the rows that they are written to: each row is written once,
// and if a key occurs twice, the last one counts.
struct Stretch {
  std::vector<RowHandle> rows;
  std::vector<size_t> inputs;  // inputs[k]: index of the key of rows[k]

  // are_distinct: the caller guarantees that no handle occurs twice.
  void Set(const std::vector<RowHandle>& handles,
           const std::vector<size_t>& numbers, bool are_distinct) {
    if (are_distinct || AreDistinct(handles)) {
      rows = handles;
      inputs = numbers;
      return;
    }
    rows.clear();
    inputs.clear();
    std::unordered_map<RowHandle, size_t> places;
    for (size_t k = 0; k < handles.size(); ++k) {
      const auto found = places.emplace(handles[k], rows.size());
      if (found.second) {
        rows.push_back(handles[k]);
        inputs.push_back(numbers[k]);
      } else {
        inputs[found.first->second] = numbers[k];
      }
    }
  }

 private:
  static bool AreDistinct(std::vector<RowHandle> handles) {
    std::sort(handles.begin(), handles.end());
    return std::adjacent_find(handles.begin(), handles.end()) == handles.end();
  }
};

// Writes one column of the stretch's rows, from 'input' [N, width].
Status WriteColumn(EmbeddingTable::Impl* table, const Stretch& stretch,
                   int column, const float* input, std::vector<float>* staged) {
  const int64_t width = table->WidthOf(column);
  const size_t n = stretch.rows.size();
  if (n == 0) return Status::OK();
  const size_t first = stretch.inputs[0];
  const float* from = input + first * width;
  bool are_adjacent = true;
  for (size_t k = 1; k < n && are_adjacent; ++k) {
    are_adjacent = stretch.inputs[k] == first + k;
  }
  if (!are_adjacent) {
    staged->resize(n * width);
    for (size_t k = 0; k < n; ++k) {
      std::copy_n(input + stretch.inputs[k] * width, width,
                  staged->data() + k * width);
    }
    from = staged->data();
  }
  return table->WithName(table->home->Write(stretch.rows, column, from));
}

// Returns the number of keys per stretch.
size_t KeysAtOnce(const EmbeddingTable::Impl& table) {
  return 4 * table.home->costs().rows_per_copy;
}

// Writes 'value' to every element of one column of the stretch's rows.
Status FillColumn(EmbeddingTable::Impl* table, const Stretch& stretch,
                  int column, float value, std::vector<float>* staged) {
  staged->assign(stretch.rows.size() * table->WidthOf(column), value);
  return table->WithName(
      table->home->Write(stretch.rows, column, staged->data()));
}

Status CheckSize(const EmbeddingTable::Impl& table, const char* what,
                 size_t got, size_t expected) {
  if (got == expected) return Status::OK();
  return InvalidArgument(std::string("expected ") + std::to_string(expected) +
                         " " + what + ", got " + std::to_string(got) + ", " +
                         table.QuotedName());
}

template <typename T>
void Append(Span<const T> piece, std::vector<T>* column) {
  column->insert(column->end(), piece.begin(), piece.end());
}

// Returns a visitor that appends to 'column'.
template <typename T>
TableReader::Visit<T> Into(std::vector<T>* column) {
  return [column](Span<const T> piece) {
    Append(piece, column);
    return Status::OK();
  };
}

// Raises a key's count in the table's Bloom filter to at least 'seen'. It does
// not add: a key that is imported again has not occurred again.
void RaiseTo(int64_t seen, int64_t key, EmbeddingTable::Impl* table) {
  CountingBloomFilter* bloom = table->filter->bloom();
  bloom->Add(key, std::max<int64_t>(0, seen - bloom->Count(key)));
}

Status CheckPart(const EmbeddingTable::Impl& table, int part, int num_parts) {
  if (num_parts >= 1 && part >= 0 && part < num_parts) return Status::OK();
  return InvalidArgument(
      "part: expected a number in [0, num_parts), got part " +
      std::to_string(part) + " of " + std::to_string(num_parts) + ", " +
      table.QuotedName());
}

// Checks only keys of this part.
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
    out.tensors = reader->tensors();
    const size_t n = reader->num_keys();
    EV_RETURN_IF_ERROR(reader->FilteredKeys(Into(&out.filtered_keys)));
    if (reader->records(kVersion)) {
      EV_RETURN_IF_ERROR(
          reader->FilteredNumbers(kVersion, Into(&out.filtered_versions)));
    }
    EV_RETURN_IF_ERROR(
        reader->FilteredNumbers(kFrequency, Into(&out.filtered_frequencies)));
    out.partition_offset.assign(reader->partition_begins().begin(),
                                reader->partition_begins().end());
    out.filtered_partition_offset.assign(
        reader->filtered_partition_begins().begin(),
        reader->filtered_partition_begins().end());
    out.keys.reserve(n);
    out.values.reserve(n * impl_->dim());
    out.slots.resize(slots.size());
    for (size_t s = 0; s < slots.size(); ++s) {
      const int column = 1 + impl_->FindSlot(slots[s]);
      out.slots[s].reserve(n * impl_->WidthOf(column));
    }
    if (reader->records(kVersion)) out.versions.reserve(n);
    if (reader->records(kFrequency)) out.frequencies.reserve(n);
    EV_RETURN_IF_ERROR(reader->Rows([&](const RowPiece& piece) {
      Append(piece.keys, &out.keys);
      Append(piece.columns[0], &out.values);
      for (size_t s = 0; s < slots.size(); ++s) {
        Append(piece.columns[1 + s], &out.slots[s]);
      }
      Append(piece.numbers[kVersion], &out.versions);
      Append(piece.numbers[kFrequency], &out.frequencies);
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
  ImportedNumbers numbers;
  numbers.of[kVersion] = versions;
  numbers.of[kFrequency] = frequencies;
  return Import(keys, values, slots, slot_values, numbers, part, num_parts);
}

Status EmbeddingTable::Import(Span<const int64_t> keys, const float* values,
                              Span<const SlotSpec> slots,
                              Span<const float* const> slot_values,
                              const ImportedNumbers& numbers, int part,
                              int num_parts) {
  const Impl& table = *impl_;
  const size_t n = keys.size();
  EV_RETURN_IF_ERROR(CheckPart(table, part, num_parts));
  EV_RETURN_IF_ERROR(
      CheckSize(table, "slot inputs", slot_values.size(), slots.size()));
  for (int i = 0; i < kNumRowNumbers; ++i) {
    if (numbers.of[i].empty()) continue;
    EV_RETURN_IF_ERROR(
        CheckSize(table, SpecOf(i).plural, numbers.of[i].size(), n));
  }
  EV_RETURN_IF_ERROR(CheckKeysOf(table, keys, part, num_parts));
  // A row that was once admitted stays, whatever the threshold is now.
  const int64_t least =
      table.options.admission.filters() ? table.options.admission.threshold : 0;
  const auto import = [&] {
    for (;;) {
      EV_RETURN_IF_ERROR(EnsureSlots(slots, nullptr));
      ExclusiveTableLock alone(&impl_->table_lock);
      std::vector<int> columns;
      if (!impl_->FindSlots(slots, &columns)) continue;
      EV_RETURN_IF_ERROR(impl_->TakeCounters());
      // The input of each column; -1: its initial value.
      std::vector<int> source(impl_->slots.size(), -1);
      for (size_t s = 0; s < slots.size(); ++s) {
        source[columns[s]] = static_cast<int>(s);
      }
      std::vector<int64_t> kept_keys;
      std::vector<size_t> kept;
      std::vector<RowHandle> handles;
      Stretch stretch;
      std::vector<float> staged;
      const size_t at_once = KeysAtOnce(*impl_);
      for (size_t i = 0; i < n;) {
        kept_keys.clear();
        kept.clear();
        for (; i < n && kept.size() < at_once; ++i) {
          if (!IsInPart(keys[i], part, num_parts)) continue;
          kept_keys.push_back(keys[i]);
          kept.push_back(i);
        }
        handles.resize(kept.size());
        const int64_t rows_before = impl_->index.size();
        EV_RETURN_IF_ERROR(impl_->FindOrInsert(kept_keys, handles.data()));
        const int64_t num_new = impl_->index.size() - rows_before;
        impl_->ForgetCounted(kept_keys);
        if (impl_->filter != nullptr && impl_->filter->is_bloom()) {
          // The counts that these keys had when they were admitted.
          for (const int64_t key : kept_keys) RaiseTo(least, key, impl_.get());
        }
        for (size_t k = 0; k < kept.size(); ++k) {
          impl_->MarkChanged(handles[k]);
          if (RowMeta* meta = impl_->rows->Meta(handles[k])) {
            for (int i = 0; i < kNumRowNumbers; ++i) {
              const Span<const int64_t> column = numbers.of[i];
              const RowNumberSpec& spec = SpecOf(i);
              spec.set(column.empty() ? spec.unknown : column[kept[k]], meta);
            }
            meta->frequency = std::max(meta->frequency, SaturatedCount(least));
            meta->call = CallToKeep(impl_->options.capacity.strategy,
                                    meta->call, impl_->ImportCall());
          }
        }
        // Keys that are all new are distinct.
        const bool are_distinct = num_new == static_cast<int64_t>(kept.size());
        stretch.Set(handles, kept, are_distinct);
        EV_RETURN_IF_ERROR(
            WriteColumn(impl_.get(), stretch, 0, values, &staged));
        for (size_t c = 0; c < source.size(); ++c) {
          const int column = 1 + static_cast<int>(c);
          EV_RETURN_IF_ERROR(
              source[c] < 0 ? FillColumn(impl_.get(), stretch, column,
                                         impl_->slots[c].initial_value, &staged)
                            : WriteColumn(impl_.get(), stretch, column,
                                          slot_values[source[c]], &staged));
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
      ExclusiveTableLock alone(&impl_->table_lock);
      std::vector<int> columns;
      if (!impl_->FindSlots(slots, &columns)) continue;
      const size_t at_once = KeysAtOnce(*impl_);
      std::vector<RowHandle> all(at_once), handles;
      std::vector<size_t> numbers;
      Stretch stretch;
      std::vector<float> staged;
      for (size_t begin = 0; begin < keys.size(); begin += at_once) {
        const size_t n = std::min(at_once, keys.size() - begin);
        handles.clear();
        numbers.clear();
        impl_->index.Find(keys.subspan(begin, n), all.data());
        for (size_t i = 0; i < n; ++i) {
          if (all[i] >= kFirstReservedHandle) continue;
          impl_->MarkChanged(all[i]);
          handles.push_back(all[i]);
          numbers.push_back(begin + i);
        }
        stretch.Set(handles, numbers, /*are_distinct=*/false);
        EV_RETURN_IF_ERROR(
            WriteColumn(impl_.get(), stretch, 1 + columns[0], values, &staged));
      }
      return Status::OK();
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
    ExclusiveTableLock alone(&impl_->table_lock);
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
      meta->frequency = SaturatedCount(seen);
      meta->version_plus1 = RowMeta::PlusOne(version);
      meta->call = CallToKeep(impl_->options.capacity.strategy, meta->call,
                              impl_->ImportCall());
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
