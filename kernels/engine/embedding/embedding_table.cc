// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Creation, sizes, slots and clearing of an EmbeddingTable. table_rows.cc has
// the calls that read and write rows.

#include "kernels/engine/embedding/embedding_table.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernels/engine/base/typed_columns.h"
#include "kernels/engine/embedding/guard.h"
#include "kernels/engine/embedding/table_impl.h"
#include "kernels/engine/rows/make_row_home.h"

namespace ev {
namespace {

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

// Rounds default rows to nearest numbers of a narrow type; returns those.
std::vector<char> RoundDefaults(FloatType type, std::vector<float>* rows) {
  if (type == FloatType::kFloat32) return {};
  std::vector<char> narrow(rows->size() * FloatBytes(type));
  const MutableFloats numbers(narrow.data(), type);
  const int64_t count = static_cast<int64_t>(rows->size());
  WriteNumbers(rows->data(), count, numbers);
  ReadNumbers(ConstFloats(narrow.data(), type), count, rows->data());
  return narrow;
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
    return InvalidArgument("dim: expected at least 1, got " +
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
    // First everything that can fail.
    const AdmissionOptions& admission = impl_->options.admission;
    std::vector<float> defaults(default_rows.begin(), default_rows.end());
    if (admission.filters()) {
      defaults.insert(defaults.end(), dim, admission.no_permission);
    }
    std::vector<char> narrow =
        RoundDefaults(impl_->options.value_type, &defaults);
    RowHomeOptions options;
    static_cast<RowStorageOptions&>(options) = impl_->options;
    options.name = impl_->options.name;
    options.dim = dim;
    options.default_rows = defaults;
    options.with_meta =
        impl_->options.record_frequency || impl_->options.record_version;
    // Evictions during training choose rows by their metadata, and pending
    // counters do not record which call was a row's first.
    options.keeps_counters = impl_->options.counts_on_gpu &&
                             options.with_meta &&
                             !impl_->options.capacity.bounded() &&
                             !KeepsFirstCall(impl_->options.capacity.strategy);
    TableRows made;
    EV_RETURN_IF_ERROR(impl_->WithName(MakeRowHome(options, &made)));
    std::unique_ptr<AdmissionFilter> filter;
    if (admission.filters()) {
      EV_RETURN_IF_ERROR(impl_->WithName(AdmissionFilter::Make(
          admission, impl_->options.record_version, &filter)));
    }
    ExclusiveTableLock alone(&impl_->table_lock);
    ++impl_->generation;
    impl_->index.Clear();
    // The home is replaced before the data that it reads.
    impl_->home = std::move(made.home);
    impl_->rows = std::move(made.handles);
    impl_->defaults = std::move(defaults);
    impl_->narrow_defaults = std::move(narrow);
    impl_->rounded_updates.store(0, std::memory_order_relaxed);
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
  SharedTableLock shared(&impl_->table_lock);
  if (why != nullptr) *why = impl_->why_not_on_gpu;
  return impl_->storage;
}

bool EmbeddingTable::pools_on_device() const {
  SharedTableLock shared(&impl_->table_lock);
  return impl_->home != nullptr && impl_->home->gpu() != nullptr;
}

bool EmbeddingTable::takes_device_tensors() const {
  SharedTableLock shared(&impl_->table_lock);
  return impl_->home != nullptr && impl_->home->gpu_table() != nullptr;
}

int64_t EmbeddingTable::size() const {
  SharedTableLock shared(&impl_->table_lock);
  return impl_->index.size();
}

TableStats EmbeddingTable::stats() const {
  SharedTableLock shared(&impl_->table_lock);
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
  stats.overflows = impl_->home == nullptr ? 0 : impl_->home->overflows();
  return stats;
}

TierStats EmbeddingTable::tier_stats() const {
  SharedTableLock shared(&impl_->table_lock);
  TierStats stats;
  if (impl_->home == nullptr) return stats;
  if (impl_->home->tiers() != nullptr)
    return impl_->home->tiers()->tier_stats();
  if (impl_->home->gpu_table() != nullptr) {
    stats.memory_rows = impl_->index.size();
    stats.hits = impl_->ids_by_gpu.load(std::memory_order_relaxed);
    stats.misses = impl_->ids_by_cpu.load(std::memory_order_relaxed);
  }
  return stats;
}

TierStats EmbeddingTable::tier_stats_below() const {
  SharedTableLock shared(&impl_->table_lock);
  if (impl_->home == nullptr || impl_->home->tiers() == nullptr) {
    return TierStats();
  }
  return impl_->home->tiers()->tier_stats_below();
}

std::vector<SlotSpec> EmbeddingTable::slots() const {
  SharedTableLock shared(&impl_->table_lock);
  return impl_->slots;
}

std::vector<float> EmbeddingTable::default_rows() const {
  SharedTableLock shared(&impl_->table_lock);
  const Span<const float> rows = impl_->default_rows();
  return std::vector<float>(rows.begin(), rows.end());
}

Status EmbeddingTable::EnsureSlots(Span<const SlotSpec> slots,
                                   std::vector<int>* columns) {
  EV_RETURN_IF_ERROR(CheckSlotNames(*impl_, slots));
  return NoThrow(*impl_, [&] {
    std::vector<int> found;
    {
      SharedTableLock shared(&impl_->table_lock);
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
    ExclusiveTableLock alone(&impl_->table_lock);
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
    std::vector<SlotShape> shapes;
    for (const SlotSpec& slot : after) {
      shapes.push_back({slot.initial_value, slot.WidthIn(impl_->dim())});
    }
    // If the GPU does not access all rows, they may move.
    if (impl_->rows_below() != nullptr) ++impl_->generation;
    EV_RETURN_IF_ERROR(impl_->WithName(impl_->home->Relayout(shapes)));
    impl_->slots = std::move(after);
    if (columns != nullptr) *columns = std::move(found);
    return Status::OK();
  });
}

Status EmbeddingTable::Erase(Span<const int64_t> keys, int64_t* erased_rows) {
  return NoThrow(*impl_, [&] {
    ExclusiveTableLock alone(&impl_->table_lock);
    int64_t erased = 0;
    if (impl_->rows != nullptr) {
      EV_RETURN_IF_ERROR(impl_->TakeCounters());
      if (impl_->filter != nullptr) {
        impl_->filter->Erase(keys);
        if (impl_->changes != nullptr) {
          impl_->changes->Erased(keys, impl_->index.size());
        }
      }
      erased = impl_->EraseRows(keys);
    }
    if (erased_rows != nullptr) *erased_rows = erased;
    return Status::OK();
  });
}

void EmbeddingTable::Uninitialize() {
  ExclusiveTableLock alone(&impl_->table_lock);
  if (impl_->rows == nullptr) return;
  // First, so that the table is not used if Clear throws.
  impl_->initialized.store(false, std::memory_order_release);
  impl_->Clear();
}

Status EmbeddingTable::Clear() {
  return NoThrow(*impl_, [&] {
    ExclusiveTableLock alone(&impl_->table_lock);
    EV_RETURN_IF_ERROR(impl_->CheckInitialized());
    // Without memory the table stays uninitialized.
    impl_->initialized.store(false, std::memory_order_release);
    impl_->Clear();
    impl_->initialized.store(true, std::memory_order_release);
    return Status::OK();
  });
}

}  // namespace ev
