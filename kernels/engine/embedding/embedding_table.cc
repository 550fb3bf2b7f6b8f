// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/embedding/embedding_table.h"

#include <algorithm>
#include <new>
#include <utility>

#include "kernels/engine/base/tasks.h"
#include "kernels/engine/combine/pooling.h"
#include "kernels/engine/embedding/guard.h"
#include "kernels/engine/embedding/table_impl.h"
#include "kernels/engine/ids/unique.h"
#include "kernels/engine/rows/hbm_dram/hbm_dram_rows.h"
#include "kernels/engine/rows/ssd/ssd_rows.h"

namespace ev {
namespace {

// Keys that one task of a row-wise call takes, and that are found at a time.
constexpr int64_t kKeysPerTask = 2048;
constexpr int64_t kKeysAtOnce = 256;
// The same where rows are on a device, of which a call costs tens of us.
constexpr int64_t kKeysPerDeviceTask = 16384;

Status CheckSlotNames(const EmbeddingTable::Impl& table,
                      Span<const SlotSpec> slots) {
  for (size_t i = 0; i < slots.size(); ++i) {
    if (slots[i].name.empty()) {
      return InvalidArgument("a slot needs a name, " + table.Named());
    }
    for (size_t j = 0; j < i; ++j) {
      if (slots[i].name == slots[j].name) {
        return InvalidArgument("slot '" + slots[i].name + "' is named twice, " +
                               table.Named());
      }
    }
  }
  return Status::OK();
}

Status CheckCount(const EmbeddingTable::Impl& table, const char* what,
                  size_t got, size_t expected) {
  if (got == expected) return Status::OK();
  return InvalidArgument("expected " + std::to_string(expected) + " " + what +
                         ", got " + std::to_string(got) + ", " + table.Named());
}

// What the filter knows of a key that it keeps out.
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

}  // namespace

EmbeddingTable::EmbeddingTable(const TableOptions& options)
    : impl_(new Impl(options)) {}

EmbeddingTable::~EmbeddingTable() {}

const TableOptions& EmbeddingTable::options() const { return impl_->options; }

Status EmbeddingTable::CheckKeys(Span<const int64_t> keys) const {
  return impl_->CheckKeys(keys);
}

bool EmbeddingTable::initialized() const {
  return impl_->initialized.load(std::memory_order_acquire);
}

Status EmbeddingTable::Initialize(Span<const float> default_rows,
                                  int64_t num_default_rows) {
  const int64_t dim = impl_->dim();
  if (dim < 1) {
    return InvalidArgument("dim must be at least 1, got " +
                           std::to_string(dim) + ", " + impl_->Named());
  }
  if (num_default_rows < 1) {
    return InvalidArgument("at least 1 default row is needed, got " +
                           std::to_string(num_default_rows) + ", " +
                           impl_->Named());
  }
  if (default_rows.size() / dim != static_cast<size_t>(num_default_rows) ||
      default_rows.size() % dim != 0) {
    return InvalidArgument("expected " + std::to_string(num_default_rows) +
                           " default rows of dim " + std::to_string(dim) +
                           ", got " + std::to_string(default_rows.size()) +
                           " values, " + impl_->Named());
  }
  return NoThrow(*impl_, [&] {
    // All that can fail, first.
    std::vector<float> defaults(default_rows.begin(), default_rows.end());
    std::unique_ptr<DeviceRows> device;
    std::string why_not;
    if (impl_->options.storage == RowStorage::kDramSsd) {
      SsdRowsOptions options;
      options.name = impl_->options.name;
      options.dim = dim;
      options.default_rows = default_rows;
      options.path = impl_->options.ssd.path;
      options.memory_bytes = impl_->options.ssd.memory_bytes;
      options.strategy = impl_->options.ssd.strategy;
      EV_RETURN_IF_ERROR(impl_->Named(MakeSsdRows(options, &device)));
    } else if (impl_->options.storage != RowStorage::kDram) {
      DeviceRowsOptions options;
      options.dim = dim;
      // What absent keys read, if they read it on the device: AbsentOnDevice.
      std::vector<float> rows(defaults);
      if (impl_->options.admission.filters()) {
        rows.insert(rows.end(), dim, impl_->options.admission.no_permission);
      }
      options.default_rows = rows;
      if (impl_->options.storage == RowStorage::kHbmDram) {
        HbmDramRowsOptions tiers;
        tiers.dim = dim;
        tiers.default_rows = rows;
        tiers.device_bytes = impl_->options.hbm_dram.device_bytes;
        tiers.strategy = impl_->options.hbm_dram.strategy;
        EV_RETURN_IF_ERROR(impl_->Named(MakeHbmDramRows(tiers, &device)));
      }
      const Status made =
          device != nullptr ? Status::OK() : MakeDeviceRows(options, &device);
      if (!made.ok() && (impl_->options.storage != RowStorage::kAuto ||
                         made.code() != StatusCode::kFailedPrecondition)) {
        return impl_->Named(made);
      }
      why_not = made.message();
    }
    // Rows on a device leave it a float per handle, the least it can hold.
    std::unique_ptr<RowStore> rows(new RowStore(
        device == nullptr ? dim : 1,
        impl_->options.record_frequency || impl_->options.record_version));
    std::unique_ptr<AdmissionFilter> filter;
    std::vector<float> no_permission;
    const AdmissionOptions& admission = impl_->options.admission;
    if (admission.filters()) {
      const Status made = AdmissionFilter::Make(
          admission, impl_->options.record_version, &filter);
      if (!made.ok()) {
        return Status(made.code(), made.message() + ", " + impl_->Named());
      }
      no_permission.assign(dim, admission.no_permission);
    }
    ExclusiveGate alone(&impl_->gate);
    ++impl_->generation;
    impl_->index.Clear();
    impl_->rows = std::move(rows);
    impl_->device = std::move(device);
    impl_->why_not_on_device = std::move(why_not);
    impl_->defaults = std::move(defaults);
    impl_->num_defaults = num_default_rows;
    impl_->slots.clear();
    impl_->unused_handles.clear();
    impl_->filter = std::move(filter);
    impl_->no_permission = std::move(no_permission);
    impl_->hand.Reset();
    if (impl_->changes != nullptr) impl_->changes->Emptied();
    impl_->initialized.store(true, std::memory_order_release);
    return Status::OK();
  });
}

RowStorage EmbeddingTable::storage(std::string* why) const {
  SharedGate shared(&impl_->gate);
  if (why != nullptr) *why = impl_->why_not_on_device;
  if (!impl_->on_device()) return RowStorage::kDram;
  return impl_->options.storage == RowStorage::kAuto ? RowStorage::kHbm
                                                     : impl_->options.storage;
}

bool EmbeddingTable::takes_device_tensors() const {
  SharedGate shared(&impl_->gate);
  return impl_->on_device() && impl_->device->takes_device_tensors();
}

int64_t EmbeddingTable::size() const {
  SharedGate shared(&impl_->gate);
  return impl_->index.size();
}

TableStats EmbeddingTable::stats() const {
  SharedGate shared(&impl_->gate);
  TableStats stats;
  stats.rows = impl_->index.size();
  stats.index_bytes = impl_->index.bytes();
  stats.row_bytes = impl_->rows == nullptr ? 0 : impl_->rows->bytes();
  if (impl_->on_device()) stats.row_bytes += impl_->device->bytes();
  if (impl_->changes != nullptr) stats.row_bytes += impl_->changes->bytes();
  stats.inserted_rows = impl_->inserted_rows.load(std::memory_order_relaxed);
  const AdmissionFilter* filter = impl_->filter.get();
  stats.filtered_keys = filter == nullptr ? 0 : filter->size();
  stats.filter_bytes = filter == nullptr ? 0 : filter->bytes();
  stats.evicted_rows = impl_->evicted_rows.load(std::memory_order_relaxed);
  return stats;
}

TierStats EmbeddingTable::tier_stats() const {
  SharedGate shared(&impl_->gate);
  return impl_->on_device() ? impl_->device->tiers() : TierStats();
}

std::vector<SlotSpec> EmbeddingTable::slots() const {
  SharedGate shared(&impl_->gate);
  return impl_->slots;
}

std::vector<float> EmbeddingTable::default_rows() const {
  SharedGate shared(&impl_->gate);
  return impl_->defaults;
}

Status EmbeddingTable::EnsureSlots(Span<const SlotSpec> slots,
                                   std::vector<int>* columns) {
  EV_RETURN_IF_ERROR(CheckSlotNames(*impl_, slots));
  return NoThrow(*impl_, [&] {
    std::vector<int> found;
    {
      SharedGate shared(&impl_->gate);
      EV_RETURN_IF_ERROR(impl_->CheckInitialized());
      bool as_wanted = impl_->FindSlots(slots, &found);
      for (size_t s = 0; as_wanted && s < slots.size(); ++s) {
        as_wanted =
            impl_->slots[found[s]].initial_value == slots[s].initial_value;
      }
      if (as_wanted) {
        if (columns != nullptr) *columns = std::move(found);
        return Status::OK();
      }
    }
    ExclusiveGate alone(&impl_->gate);
    std::vector<SlotSpec> after = impl_->slots;
    found.clear();
    for (const SlotSpec& slot : slots) {
      int column = impl_->FindSlot(slot.name);
      if (column >= 0) {
        after[column].initial_value = slot.initial_value;
      } else {
        column = static_cast<int>(after.size());
        after.push_back(slot);
      }
      found.push_back(column);
    }
    const size_t before = impl_->slots.size();
    if (impl_->on_device()) {
      std::vector<float> initial;
      for (const SlotSpec& slot : after) initial.push_back(slot.initial_value);
      EV_RETURN_IF_ERROR(impl_->Named(impl_->device->Relayout(initial)));
    } else if (after.size() != before) {
      const int64_t dim = impl_->dim();
      const Status status = impl_->rows->Relayout(
          impl_->SlotOffset(static_cast<int>(after.size())), [&](float* row) {
            for (size_t c = before; c < after.size(); ++c) {
              std::fill_n(row + impl_->SlotOffset(static_cast<int>(c)), dim,
                          after[c].initial_value);
            }
          });
      if (!status.ok()) {
        return Status(status.code(), status.message() + ", " + impl_->Named());
      }
    }
    impl_->slots = std::move(after);
    if (columns != nullptr) *columns = std::move(found);
    return Status::OK();
  });
}

Status EmbeddingTable::Gather(Span<const int64_t> keys, float* out,
                              Parallel* parallel) const {
  return NoThrow(*impl_, [&] {
    EV_RETURN_IF_ERROR(impl_->CheckKeys(keys));
    SharedGate shared(&impl_->gate);
    EV_RETURN_IF_ERROR(impl_->CheckInitialized());
    const int64_t dim = impl_->dim();
    if (impl_->on_device()) {
      return ForRangesWithStatus(
          parallel, keys.size(), kKeysPerDeviceTask,
          [&](int64_t i, int64_t end) {
            std::vector<RowHandle> handles(end - i);
            const Span<const int64_t> some = keys.subspan(i, end - i);
            impl_->index.Find(some, handles.data());
            return impl_->CopyFromDevice(some, handles.data(), out + i * dim);
          });
    }
    ForRanges(parallel, keys.size(), kKeysPerTask, [&](int64_t i, int64_t end) {
      RowHandle handles[kKeysAtOnce];
      const float* rows[kKeysAtOnce];
      for (; i < end; i += kKeysAtOnce) {
        const int64_t n = std::min(kKeysAtOnce, end - i);
        impl_->FindRows(keys.subspan(i, n), handles, rows);
        CopyRows(rows, 0, n, dim, out + i * dim);
      }
    });
    return Status::OK();
  });
}

Status EmbeddingTable::GetMeta(Span<const int64_t> keys, int64_t* frequencies,
                               int64_t* versions) const {
  return NoThrow(*impl_, [&] {
    EV_RETURN_IF_ERROR(impl_->CheckKeys(keys));
    SharedGate shared(&impl_->gate);
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
      SharedGate shared(&impl_->gate);
      std::vector<int> columns;
      // Gone again when the table was initialized meanwhile.
      if (!impl_->FindSlots(slots, &columns)) continue;
      const int64_t dim = impl_->dim();
      if (impl_->on_device()) {
        return impl_->ReadDeviceRows(keys, slots, columns, values, slot_values);
      }
      ForRanges(parallel, keys.size(), kKeysPerTask,
                [&](int64_t i, int64_t end) {
                  RowHandle handles[kKeysAtOnce];
                  const float* rows[kKeysAtOnce];
                  for (; i < end; i += kKeysAtOnce) {
                    const int64_t n = std::min(kKeysAtOnce, end - i);
                    impl_->FindRows(keys.subspan(i, n), handles, rows);
                    // As a new row would be, which no filter keeps out.
                    for (int64_t j = 0; j < n; ++j) {
                      if (handles[j] >= kFirstReservedHandle) {
                        rows[j] = impl_->DefaultRow(keys[i + j]);
                      }
                    }
                    CopyRows(rows, 0, n, dim, values + i * dim);
                    for (size_t s = 0; s < slots.size(); ++s) {
                      const int64_t offset = impl_->SlotOffset(columns[s]);
                      for (int64_t j = 0; j < n; ++j) {
                        float* to = slot_values[s] + (i + j) * dim;
                        if (handles[j] < kFirstReservedHandle) {
                          const float* from = rows[j] + offset;
                          CopyRows(&from, 0, 1, dim, to);
                        } else {
                          std::fill_n(to, dim, slots[s].initial_value);
                        }
                      }
                    }
                  }
                });
      return Status::OK();
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
        return InvalidArgument("rows are written once per key, got " +
                               std::to_string(keys.size()) + " keys of which " +
                               std::to_string(num_distinct) +
                               " are distinct, " + impl_->Named());
      }
    }
    for (;;) {
      EV_RETURN_IF_ERROR(EnsureSlots(slots, nullptr));
      SharedGates gates({impl_.get()}, SharedGates::Purpose::kUpdating);
      std::vector<int> columns;
      if (!impl_->FindSlots(slots, &columns)) continue;
      std::vector<RowHandle> handles(keys.size());
      EV_RETURN_IF_ERROR(ForRangesWithStatus(
          parallel, keys.size(), kKeysPerTask, [&](int64_t i, int64_t end) {
            TableJournal::Writer writer(&journal);
            return impl_->FindOrInsert(keys.subspan(i, end - i),
                                       handles.data() + i, writer.part());
          }));
      UpdateLocks locks(gates.tables());
      const bool solo = locks.solo(impl_.get());
      impl_->BeforeChange(handles);
      const int64_t dim = impl_->dim();
      if (impl_->on_device()) {
        std::lock_guard<std::mutex> lock(*impl_->update_lock.stripe(0));
        DeviceRoom room;
        EV_RETURN_IF_ERROR(room.Reserve(impl_.get(), keys.size()));
        rows_change = true;
        impl_->ForgetCounted(keys);
        EV_RETURN_IF_ERROR(
            impl_->WriteDeviceRows(handles, columns, values, slot_values));
        for (size_t i = 0; i < keys.size(); ++i) {
          impl_->AddToMeta(handles[i], counts == nullptr ? 1 : counts[i], call);
        }
        break;
      }
      rows_change = true;
      impl_->ForgetCounted(keys);
      ForRanges(parallel, keys.size(), kKeysPerTask,
                [&](int64_t i, int64_t end) {
                  for (; i < end; ++i) {
                    std::unique_lock<std::mutex> lock;
                    if (!solo) {
                      lock = std::unique_lock<std::mutex>(
                          *impl_->update_lock.stripe(handles[i]));
                    }
                    float* row = impl_->rows->Row(handles[i]);
                    std::copy_n(values + i * dim, dim, row);
                    for (size_t s = 0; s < slots.size(); ++s) {
                      std::copy_n(slot_values[s] + i * dim, dim,
                                  row + impl_->SlotOffset(columns[s]));
                    }
                    impl_->AddToMeta(handles[i],
                                     counts == nullptr ? 1 : counts[i], call);
                  }
                });
      break;
    }
    impl_->EvictExcess(call);
    return Status::OK();
  });
  if (!status.ok() && !rows_change) impl_->TakeBack(journal);
  return status;
}

int64_t EmbeddingTable::Erase(Span<const int64_t> keys) {
  ExclusiveGate alone(&impl_->gate);
  if (impl_->rows == nullptr) return 0;
  if (impl_->filter != nullptr) {
    impl_->filter->Erase(keys);
    if (impl_->changes != nullptr) {
      impl_->changes->Erased(keys, impl_->index.size());
    }
  }
  return impl_->EraseRows(keys);
}

void EmbeddingTable::Uninitialize() {
  ExclusiveGate alone(&impl_->gate);
  if (impl_->rows == nullptr) return;
  impl_->Clear();
  impl_->initialized.store(false, std::memory_order_release);
}

Status EmbeddingTable::Clear() {
  ExclusiveGate alone(&impl_->gate);
  EV_RETURN_IF_ERROR(impl_->CheckInitialized());
  impl_->Clear();
  return Status::OK();
}

}  // namespace ev
