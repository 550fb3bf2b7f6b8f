// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include <limits>
#include <utility>

#include "addons/hierarchical_parameter_server/cache/table/launch.cuh"
#include "addons/hierarchical_parameter_server/cache/table/table_set.h"
#include "addons/hierarchical_parameter_server/cache/table/table_size.h"
#include "kernels/engine/base/gpu/cuda_error.h"
#include "kernels/engine/base/gpu/device_buffer.h"

namespace ev {
namespace gpu {
namespace {

constexpr int64_t kMaxSlots =
    static_cast<int64_t>(std::numeric_limits<uint32_t>::max()) * kPairSlots;

Status ValidateOptions(const TableSetOptions& options) {
  if (options.tables.empty()) {
    return InvalidArgument("a table set needs at least one table, got none");
  }
  if (options.probe_limit < 0 || options.probe_limit > kMaxProbeLimit) {
    return InvalidArgument("probe_limit: expected a number in [0, " +
                           std::to_string(kMaxProbeLimit) + "], got " +
                           std::to_string(options.probe_limit));
  }
  for (const TableOptions& table : options.tables) {
    // Leaves room, so that the next prime still fits in 32 bits.
    if (table.capacity < 1 || table.capacity > kMaxSlots - 1024 * kPairSlots) {
      return InvalidArgument("capacity: expected a number in [1, " +
                             std::to_string(kMaxSlots - 1024 * kPairSlots) +
                             "], got " + std::to_string(table.capacity) +
                             ", table '" + table.name + "'");
    }
  }
  return Status::OK();
}

}  // namespace

class TableSet::Impl {
 public:
  Status Create(const TableSetOptions& options, StreamView stream);
  Status Check(const KeyBatch& batch) const;
  Batch ToBatch(const KeyBatch& batch) const;
  Status CheckTable(int table) const;
  int64_t num_slots(int table) const {
    return static_cast<int64_t>(views[table].num_pairs) * kPairSlots;
  }
  Status AllocateMarks();
  int64_t* sizes() const { return counters.as<int64_t>(); }
  int64_t* rejected() const {
    return sizes() + num_tables() * kStripes * kStripeInts;
  }
  int num_tables() const { return static_cast<int>(views.size()); }

  TableSetOptions options;
  std::vector<TableView> views;
  std::vector<DeviceBuffer> keys, scores;
  DeviceBuffer device_views;
  DeviceBuffer counters;  // sizes, then rejected: [num_tables, stripes] each
  DeviceBuffer state, locks, marks;
  DeviceBuffer lists;
  DeviceBuffer rows;
  Scratch scratch = {};
  int64_t max_keys = 0;
  int64_t dim = 0;
  DeviceInfo device_info = {};
};

Status TableSet::Impl::Create(const TableSetOptions& given, StreamView stream) {
  EV_RETURN_IF_ERROR(ValidateOptions(given));
  options = given;
  const bool evicts = options.eviction != Eviction::kNone;
  if (options.probe_limit == 0) {
    options.probe_limit = DefaultProbeLimit(evicts);
  }
  int device = 0;
  EV_CUDA_RETURN_IF_ERROR(cudaGetDevice(&device));
  EV_CUDA_RETURN_IF_ERROR(cudaDeviceGetAttribute(
      &device_info.num_processors, cudaDevAttrMultiProcessorCount, device));
  EV_RETURN_IF_ERROR(EvictingKernelsWait(&device_info.overlaps_kernels));
  const size_t n = options.tables.size();
  views.resize(n);
  keys.resize(n);
  scores.resize(n);
  for (size_t t = 0; t < n; ++t) {
    const TableOptions& table = options.tables[t];
    TableView& view = views[t];
    view.num_pairs = PairsFor(table.capacity, options.probe_limit);
    view.probe_limit = static_cast<uint32_t>(options.probe_limit);
    const size_t bytes = static_cast<size_t>(num_slots(t)) * 8;
    EV_RETURN_IF_ERROR(
        keys[t].Allocate(bytes, "keys of table '" + table.name + "'"));
    view.keys = keys[t].as<int64_t>();
    view.scores = nullptr;
    if (evicts) {
      EV_RETURN_IF_ERROR(
          scores[t].Allocate(bytes, "scores of table '" + table.name + "'"));
      view.scores = scores[t].as<uint64_t>();
    }
  }
  EV_RETURN_IF_ERROR(
      device_views.Allocate(n * sizeof(TableView), "the table set"));
  EV_CUDA_RETURN_IF_ERROR(
      cudaMemcpyAsync(device_views.data(), views.data(), n * sizeof(TableView),
                      cudaMemcpyHostToDevice, stream.get()));
  EV_RETURN_IF_ERROR(counters.Allocate(
      2 * n * kStripes * kStripeInts * sizeof(int64_t), "the table set"));
  if (evicts) {
    EV_RETURN_IF_ERROR(state.Allocate(sizeof(CallState), "the table set"));
    EV_RETURN_IF_ERROR(
        locks.Allocate(kNumLocks * sizeof(unsigned), "the table set's locks"));
    EV_RETURN_IF_ERROR(AllocateMarks());
    EV_CUDA_RETURN_IF_ERROR(
        cudaMemsetAsync(state.data(), 0, state.size_bytes(), stream.get()));
    EV_CUDA_RETURN_IF_ERROR(
        cudaMemsetAsync(locks.data(), 0, locks.size_bytes(), stream.get()));
    scratch.state = state.as<CallState>();
    scratch.locks = locks.as<unsigned>();
  }
  return Status::OK();
}

Status TableSet::Impl::AllocateMarks() {
  int64_t buckets = 0;
  for (const TableView& view : views) buckets += 2 * int64_t{view.num_pairs};
  const int64_t num_marks = MarksFor(buckets);
  // Every call clears them at its start.
  EV_RETURN_IF_ERROR(marks.Allocate(
      kMarkSets * (num_marks / 8),
      "the marks of the set of table '" + options.tables[0].name + "'"));
  scratch.num_marks = static_cast<uint32_t>(num_marks);
  scratch.filled = marks.as<unsigned>();
  scratch.claimed = scratch.filled + num_marks / 32;
  scratch.stale = scratch.claimed + num_marks / 32;
  return Status::OK();
}

Status TableSet::Impl::CheckTable(int table) const {
  if (table >= 0 && table < num_tables()) return Status::OK();
  return InvalidArgument("table: expected a number in [0, " +
                         std::to_string(num_tables()) + "), got " +
                         std::to_string(table));
}

Status TableSet::Impl::Check(const KeyBatch& batch) const {
  const int64_t limit = std::numeric_limits<int32_t>::max();
  if (batch.num_keys < 0 || batch.num_keys > limit) {
    return InvalidArgument("num_keys: expected a number in [0, " +
                           std::to_string(limit) + "], got " +
                           std::to_string(batch.num_keys) + ", table '" +
                           options.tables[0].name + "'");
  }
  if (num_tables() > 1 && batch.offsets == nullptr) {
    return InvalidArgument(
        "offsets are needed for " + std::to_string(num_tables()) +
        " tables, got null, table '" + options.tables[0].name + "'");
  }
  return Status::OK();
}

Batch TableSet::Impl::ToBatch(const KeyBatch& batch) const {
  Batch b;
  b.keys = batch.keys;
  b.num_keys = batch.num_keys;
  b.offsets = batch.offsets;
  b.views = device_views.as<TableView>();
  b.num_tables = num_tables();
  b.only = views[0];
  return b;
}

TableSet::TableSet(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TableSet::~TableSet() {}

Status TableSet::Create(const TableSetOptions& options, StreamView stream,
                        std::unique_ptr<TableSet>* set) {
  std::unique_ptr<Impl> impl(new Impl);
  EV_RETURN_IF_ERROR(impl->Create(options, stream));
  std::unique_ptr<TableSet> made(new TableSet(std::move(impl)));
  EV_RETURN_IF_ERROR(made->Clear(stream));
  *set = std::move(made);
  return Status::OK();
}

int TableSet::num_tables() const { return impl_->num_tables(); }

int64_t TableSet::num_slots(int table) const { return impl_->num_slots(table); }

int64_t TableSet::index_bytes() const {
  size_t bytes = impl_->device_views.size_bytes() +
                 impl_->counters.size_bytes() + impl_->state.size_bytes() +
                 impl_->locks.size_bytes() + impl_->marks.size_bytes() +
                 impl_->lists.size_bytes() + impl_->rows.size_bytes();
  for (const DeviceBuffer& b : impl_->keys) bytes += b.size_bytes();
  for (const DeviceBuffer& b : impl_->scores) bytes += b.size_bytes();
  return static_cast<int64_t>(bytes);
}

Status TableSet::Find(const KeyBatch& batch, int64_t* slots,
                      StreamView stream) const {
  EV_RETURN_IF_ERROR(impl_->Check(batch));
  if (batch.num_keys == 0) return Status::OK();
  return LaunchFind(impl_->ToBatch(batch), slots, stream.get());
}

Status TableSet::SetRowsSync(Span<const RowBlock> rows, int64_t dim) {
  Impl& impl = *impl_;
  if (rows.size() != impl.views.size()) {
    return InvalidArgument("rows must be given for " +
                           std::to_string(impl.views.size()) + " tables, got " +
                           std::to_string(rows.size()));
  }
  for (size_t t = 0; t < rows.size(); ++t) {
    const bool pieces =
        dim % 4 != 0 || (rows[t].stride % 4 == 0 &&
                         reinterpret_cast<uintptr_t>(rows[t].base) % 16 == 0);
    if (dim < 1 || dim > rows[t].stride || dim > (1 << 20) ||
        rows[t].base == nullptr || !pieces) {
      return InvalidArgument(
          "rows: expected 1 <= dim <= stride and, when 4 divides dim, a "
          "16-byte "
          "aligned base and a stride that 4 divides; got dim " +
          std::to_string(dim) + ", stride " + std::to_string(rows[t].stride) +
          ", table '" + impl.options.tables[t].name + "'");
    }
  }
  const size_t bytes = rows.size() * sizeof(RowBlock);
  if (impl.rows.size_bytes() != bytes) {
    EV_RETURN_IF_ERROR(impl.rows.Allocate(bytes, "the table set"));
  }
  EV_CUDA_RETURN_IF_ERROR(
      cudaMemcpy(impl.rows.data(), rows.data(), bytes, cudaMemcpyHostToDevice));
  // cudaMemcpy may return before pageable memory has arrived, and streams that
  // do not synchronize with the null stream read it.
  EV_CUDA_RETURN_IF_ERROR(cudaStreamSynchronize(nullptr));
  impl.dim = dim;
  return Status::OK();
}

Status TableSet::FindAndCopy(const KeyBatch& batch, const float* absent_row,
                             float* out, int64_t* slots,
                             StreamView stream) const {
  EV_RETURN_IF_ERROR(impl_->Check(batch));
  if (impl_->dim == 0) {
    return FailedPrecondition("FindAndCopy needs SetRowsSync first, table '" +
                              impl_->options.tables[0].name + "'");
  }
  if (batch.num_keys == 0) return Status::OK();
  return LaunchFindAndCopy(impl_->ToBatch(batch), impl_->rows.as<RowBlock>(),
                           impl_->dim, absent_row, out, slots, stream.get());
}

Status TableSet::ReserveSync(int64_t max_keys) {
  Impl& impl = *impl_;
  if (impl.options.eviction == Eviction::kNone || max_keys <= impl.max_keys) {
    return Status::OK();
  }
  const size_t n = static_cast<size_t>(max_keys + 31) / 32 * 32;
  impl.max_keys = 0;
  EV_RETURN_IF_ERROR(impl.lists.Allocate(n * kScratchBytesPerKey,
                                         "the lists of an inserting call"));
  Scratch& s = impl.scratch;
  s.pending = impl.lists.as<Pending>();
  s.contest_fill = s.pending + n;
  s.contest_evict = s.contest_fill + n;
  s.missed = reinterpret_cast<uint8_t*>(s.contest_evict + n);
  impl.max_keys = max_keys;
  return Status::OK();
}

Status TableSet::FindOrInsert(const KeyBatch& batch, int64_t* slots,
                              uint8_t* is_new, const EvictedKeys& evicted,
                              StreamView stream) {
  Impl& impl = *impl_;
  EV_RETURN_IF_ERROR(impl.Check(batch));
  if ((evicted.keys == nullptr) != (evicted.count == nullptr)) {
    return InvalidArgument(
        "evicted.keys and evicted.count must both be given or both be null, "
        "table '" +
        impl.options.tables[0].name + "'");
  }
  if (batch.num_keys == 0) {
    if (evicted.count != nullptr) {
      EV_CUDA_RETURN_IF_ERROR(
          cudaMemsetAsync(evicted.count, 0, sizeof(int64_t), stream.get()));
    }
    return Status::OK();
  }
  const InsertOutputs outputs = {slots, is_new, evicted};
  const Batch b = impl.ToBatch(batch);
  if (impl.options.eviction == Eviction::kNone) {
    return LaunchInsert(b, outputs, impl.sizes(), impl.rejected(),
                        stream.get());
  }
  if (batch.num_keys > impl.max_keys) {
    return FailedPrecondition("ReserveSync must allow for " +
                              std::to_string(batch.num_keys) + " keys, got " +
                              std::to_string(impl.max_keys) + ", table '" +
                              impl.options.tables[0].name + "'");
  }
  return LaunchInsertAndEvict(b, impl.options.eviction, outputs, impl.scratch,
                              impl.sizes(), impl.rejected(), impl.device_info,
                              stream.get());
}

Status TableSet::Touch(const KeyBatch& batch, const int64_t* slots,
                       StreamView stream) {
  EV_RETURN_IF_ERROR(impl_->Check(batch));
  if (batch.num_keys == 0 || impl_->options.eviction == Eviction::kNone) {
    return Status::OK();
  }
  return LaunchTouch(impl_->ToBatch(batch), slots, impl_->options.eviction,
                     impl_->scratch.state, stream.get());
}

Status TableSet::Erase(const KeyBatch& batch, int64_t* slots,
                       StreamView stream) {
  EV_RETURN_IF_ERROR(impl_->Check(batch));
  if (batch.num_keys == 0) return Status::OK();
  return LaunchErase(impl_->ToBatch(batch), impl_->options.eviction, slots,
                     impl_->sizes(), stream.get());
}

Status TableSet::Export(int table, int64_t first_slot, int64_t slots_wanted,
                        const ExportedKeys& out, StreamView stream) const {
  EV_RETURN_IF_ERROR(impl_->CheckTable(table));
  if (first_slot < 0 || slots_wanted < 0 || first_slot % kBucketSlots != 0 ||
      slots_wanted % kBucketSlots != 0 ||
      slots_wanted > num_slots(table) - first_slot) {
    return OutOfRange("slots to export: expected multiples of 16 within [0, " +
                      std::to_string(num_slots(table)) + "), got " +
                      std::to_string(first_slot) + " and " +
                      std::to_string(slots_wanted) + " of them, table '" +
                      impl_->options.tables[table].name + "'");
  }
  return LaunchExport(impl_->views[table], first_slot, slots_wanted,
                      impl_->options.eviction, out, stream.get());
}

Status TableSet::Clear(StreamView stream) {
  for (const TableView& view : impl_->views) {
    EV_RETURN_IF_ERROR(LaunchClear(view, stream.get()));
  }
  EV_CUDA_RETURN_IF_ERROR(cudaMemsetAsync(
      impl_->counters.data(), 0, impl_->counters.size_bytes(), stream.get()));
  return Status::OK();
}

Status TableSet::CountsSync(std::vector<int64_t>* sizes,
                            std::vector<int64_t>* rejected,
                            StreamView stream) const {
  std::vector<int64_t> counters(impl_->counters.size_bytes() / sizeof(int64_t));
  EV_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(
      counters.data(), impl_->counters.data(), impl_->counters.size_bytes(),
      cudaMemcpyDeviceToHost, stream.get()));
  EV_CUDA_RETURN_IF_ERROR(cudaStreamSynchronize(stream.get()));
  const int n = num_tables();
  std::vector<int64_t>* const outs[2] = {sizes, rejected};
  for (int kind = 0; kind < 2; ++kind) {
    if (outs[kind] == nullptr) continue;
    outs[kind]->assign(n, 0);
    for (int t = 0; t < n; ++t) {
      for (int s = 0; s < kStripes; ++s) {
        (*outs[kind])[t] +=
            counters[((kind * n + t) * kStripes + s) * kStripeInts];
      }
    }
  }
  return Status::OK();
}

}  // namespace gpu
}  // namespace ev
