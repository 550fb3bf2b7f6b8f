// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/embedding/embedding_table.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <mutex>
#include <new>
#include <numeric>
#include <utility>

#include "kernels/engine/base/tasks.h"
#include "kernels/engine/embedding/guard.h"
#include "kernels/engine/embedding/table_impl.h"
#include "kernels/engine/ids/unique.h"
#include "kernels/engine/rows/gpu_compute.h"
#include "kernels/engine/rows/make_row_home.h"

namespace ev {
namespace {

// Keys that one task of a row-wise call takes, unless the home wants more at
// once, and that are found at a time where no row is wanted.
constexpr int64_t kKeysPerTask = 2048;
constexpr int64_t kKeysAtOnce = 256;

Status CheckSlotNames(const EmbeddingTable::Impl& table,
                      Span<const SlotSpec> slots) {
  for (size_t i = 0; i < slots.size(); ++i) {
    if (slots[i].name.empty()) {
      return InvalidArgument("a slot needs a name, " + table.QuotedName());
    }
    for (size_t j = 0; j < i; ++j) {
      if (slots[i].name == slots[j].name) {
        return InvalidArgument("slot '" + slots[i].name + "' is named twice, " +
                               table.QuotedName());
      }
    }
  }
  return Status::OK();
}

Status CheckCount(const EmbeddingTable::Impl& table, const char* what,
                  size_t got, size_t expected) {
  if (got == expected) return Status::OK();
  return InvalidArgument("expected " + std::to_string(expected) + " " + what +
                         ", got " + std::to_string(got) + ", " +
                         table.QuotedName());
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

// Values and slots of keys that were found, to place 'at' of the outputs. A key
// without a row is read as a new row would be, which no filter keeps out.
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
    float* const slot_to = slot_values[s] + at * dim;
    EV_RETURN_IF_ERROR(
        table.WithName(table.home->Read(found, 1 + columns[s], slot_to)));
    for (size_t i = 0; i < keys.size(); ++i) {
      if (found[i] < kFirstReservedHandle) continue;
      std::fill_n(slot_to + i * dim, dim, slots[s].initial_value);
    }
  }
  return Status::OK();
}

// What WriteRows writes: values and slots of rows, each named once.
struct RowsToWrite {
  Span<const RowHandle> handles;
  Span<const int> columns;
  const float* values;
  Span<const float* const> slot_values;
};

// Rows [begin, end) of them.
Status WriteSome(const EmbeddingTable::Impl& table, const RowsToWrite& rows,
                 int64_t begin, int64_t end) {
  const int64_t dim = table.dim();
  const Span<const RowHandle> some = rows.handles.subspan(begin, end - begin);
  EV_RETURN_IF_ERROR(
      table.WithName(table.home->Write(some, 0, rows.values + begin * dim)));
  for (size_t s = 0; s < rows.columns.size(); ++s) {
    EV_RETURN_IF_ERROR(table.WithName(table.home->Write(
        some, 1 + rows.columns[s], rows.slot_values[s] + begin * dim)));
  }
  return Status::OK();
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
                           std::to_string(dim) + ", " + impl_->QuotedName());
  }
  if (num_default_rows < 1) {
    return InvalidArgument("at least 1 default row is needed, got " +
                           std::to_string(num_default_rows) + ", " +
                           impl_->QuotedName());
  }
  if (default_rows.size() / dim != static_cast<size_t>(num_default_rows) ||
      default_rows.size() % dim != 0) {
    return InvalidArgument("expected " + std::to_string(num_default_rows) +
                           " default rows of dim " + std::to_string(dim) +
                           ", got " + std::to_string(default_rows.size()) +
                           " values, " + impl_->QuotedName());
  }
  return NoThrow(*impl_, [&] {
    // All that can fail, first.
    const AdmissionOptions& admission = impl_->options.admission;
    std::vector<float> defaults(default_rows.begin(), default_rows.end());
    if (admission.filters()) {
      defaults.insert(defaults.end(), dim, admission.no_permission);
    }
    RowHomeOptions options;
    static_cast<RowStorageOptions&>(options) = impl_->options;
    options.name = impl_->options.name;
    options.dim = dim;
    options.default_rows = defaults;
    options.with_meta =
        impl_->options.record_frequency || impl_->options.record_version;
    TableRows made;
    EV_RETURN_IF_ERROR(impl_->WithName(MakeRowHome(options, &made)));
    std::unique_ptr<AdmissionFilter> filter;
    if (admission.filters()) {
      EV_RETURN_IF_ERROR(impl_->WithName(AdmissionFilter::Make(
          admission, impl_->options.record_version, &filter)));
    }
    ExclusiveGate alone(&impl_->gate);
    ++impl_->generation;
    impl_->index.Clear();
    // The home before what it reads.
    impl_->home = std::move(made.home);
    impl_->rows = std::move(made.handles);
    impl_->defaults = std::move(defaults);
    impl_->storage = made.storage;
    impl_->why_not_on_gpu = std::move(made.why_not_on_gpu);
    impl_->num_defaults = num_default_rows;
    impl_->slots.clear();
    impl_->unused_handles.clear();
    impl_->filter = std::move(filter);
    impl_->hand.Reset();
    if (impl_->changes != nullptr) impl_->changes->Emptied();
    impl_->initialized.store(true, std::memory_order_release);
    return Status::OK();
  });
}

RowStorage EmbeddingTable::storage(std::string* why) const {
  SharedGate shared(&impl_->gate);
  if (why != nullptr) *why = impl_->why_not_on_gpu;
  return impl_->storage;
}

bool EmbeddingTable::takes_device_tensors() const {
  SharedGate shared(&impl_->gate);
  return impl_->home != nullptr && impl_->home->gpu_table() != nullptr;
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
  if (impl_->home != nullptr) stats.row_bytes += impl_->home->bytes();
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
  const RowTiers* const tiers =
      impl_->home == nullptr ? nullptr : impl_->home->tiers();
  return tiers == nullptr ? TierStats() : tiers->tier_stats();
}

std::vector<SlotSpec> EmbeddingTable::slots() const {
  SharedGate shared(&impl_->gate);
  return impl_->slots;
}

std::vector<float> EmbeddingTable::default_rows() const {
  SharedGate shared(&impl_->gate);
  const Span<const float> rows = impl_->default_rows();
  return std::vector<float>(rows.begin(), rows.end());
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
    std::vector<float> initial_values;
    for (const SlotSpec& slot : after) {
      initial_values.push_back(slot.initial_value);
    }
    EV_RETURN_IF_ERROR(impl_->WithName(impl_->home->Relayout(initial_values)));
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
    const int64_t at_once = impl_->home->costs().rows_per_copy;
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

Status EmbeddingTable::GatherOnDevice(Span<const int64_t> keys,
                                      const DeviceStream& stream, float* out,
                                      Parallel* parallel) const {
  return NoThrow(*impl_, [&] {
    const SharedGate shared(&impl_->gate);
    EV_RETURN_IF_ERROR(impl_->CheckInitialized());
    EV_RETURN_IF_ERROR(impl_->CheckKeys(keys));
    EV_RETURN_IF_ERROR(impl_->CheckTakesDeviceTensors("the output"));
    const int64_t n = keys.size();
    if (n >= std::numeric_limits<int32_t>::max()) {
      return InvalidArgument("fewer than 2^31 keys are read at once, got " +
                             std::to_string(n) + ", " + impl_->QuotedName());
    }
    // Each key is a sample of one id, so its sum is its row, bit for bit.
    std::vector<RowHandle> rows(n);
    std::vector<int32_t> numbers(n + 1);
    std::iota(numbers.begin(), numbers.end(), 0);
    ForRanges(parallel, n, kKeysPerTask, [&](int64_t begin, int64_t end) {
      impl_->index.Find(keys.subspan(begin, end - begin), &rows[begin]);
      for (int64_t i = begin; i < end; ++i) {
        if (rows[i] >= kFirstReservedHandle) {
          rows[i] = impl_->AbsentOnGpu(keys[i]);
        }
      }
    });
    DevicePooling pooling;
    pooling.rows = rows;
    pooling.inverse = Span<const int32_t>(numbers.data(), n);
    pooling.offsets = numbers;
    pooling.stream = &stream;
    std::unique_ptr<DeviceWork> work;
    EV_RETURN_IF_ERROR(
        impl_->WithName(impl_->home->gpu()->StartPool(pooling, out, &work)));
    return work == nullptr ? Status::OK() : impl_->WithName(work->Wait());
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
        return InvalidArgument("rows are written once per key, got " +
                               std::to_string(keys.size()) + " keys of which " +
                               std::to_string(num_distinct) +
                               " are distinct, " + impl_->QuotedName());
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
