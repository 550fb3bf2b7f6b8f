// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>
#include <utility>

#include "kernels/engine/base/gpu/block_parts.h"
#include "kernels/engine/base/gpu/cuda_error.h"
#include "kernels/engine/base/gpu/pinned_memory.h"
#include "kernels/engine/base/gpu/side_streams.h"
#include "kernels/engine/gpu_step/place_sort.h"
#include "kernels/engine/gpu_step/step_plan.cuh"
#include "kernels/engine/ids/occurrences.h"
#include "kernels/engine/rows/gpu_step/step_call.h"
#include "kernels/engine/rows/gpu_step/step_fetch.h"
#include "kernels/engine/rows/gpu_step/step_groups.h"

namespace ev {
namespace gpu {
namespace {

int BlocksOf(int64_t n, int64_t tile) {
  return static_cast<int>((n + tile - 1) / tile);
}

// Returns the bytes of a description of n entries: n StepLookupTables and four
// arrays of tiles. A multiple of 8, the largest alignment among them.
size_t DescriptionBytes(size_t n) {
  const size_t bytes =
      n * sizeof(StepLookupTable) + 4 * (n + 1) * sizeof(int32_t);
  static_assert(sizeof(StepLookupTable) % 8 == 0, "pointers are aligned");
  return (bytes + 7) / 8 * 8;
}

// Outputs in pinned memory of tables with rows in host memory are written over
// the link by the kernels that read the rows, if rows have that many floats.
// Writes of shorter rows are slower than a copy of all outputs.
constexpr int64_t kMinDimInPlace = 64;

// Maximum number of bytes that a small step (is_small_) sends.
constexpr size_t kSmallBytes = 128 << 10;

const bool kRegistered = RegisterGpuStepFactory(&StepCall::Make);

}  // namespace

StepCall::StepCall(int device) : device_(device) {}

Status StepCall::Make(int device, Span<const GpuStepTable> tables,
                      const DeviceStream* stream,
                      std::shared_ptr<GpuStep>* step) {
  (void)kRegistered;
  std::shared_ptr<StepCall> made(new StepCall(device));
  if (stream != nullptr) made->stream_.reset(new DeviceStream(*stream));
  EV_RETURN_IF_ERROR(made->Create(tables));
  *step = std::move(made);
  return Status::OK();
}

Status StepCall::Create(Span<const GpuStepTable> tables) {
  for (const GpuStepTable& given : tables) EV_RETURN_IF_ERROR(AddTable(given));
  EV_RETURN_IF_ERROR(CutIntoWaves());
  PlaceIds();
  EV_RETURN_IF_ERROR(LayOut());
  misfits_ = std::vector<std::atomic<bool>>(tables_.size());
  EV_RETURN_IF_ERROR(
      WorkContext::Acquire(on_host_.bytes, on_device_.bytes, &context_));
  for (Table& table : tables_) {
    if (stream_ != nullptr) break;
    if (table.out == nullptr) {
      table.out = MutableFloats(
          OnDevice<char>(on_device_.outputs + table.out_at), table.out_type);
    }
  }
  return are_pinned_ ? SendPinned() : Status::OK();
}

Status StepCall::AddTable(const GpuStepTable& given) {
  Table table;
  table.rows = static_cast<GpuRows*>(given.table);
  table.known = table.rows->known();
  table.dim = table.rows->dim();
  if (table.rows->places() != nullptr) {
    table.use.reset(new RowPlaces::Use(table.rows->places()));
    table.has_host_rows = table.rows->has_host_rows();
    has_places_ = true;
  }
  if (table.has_host_rows) {
    has_host_rows_ = true;
    // Other tables nearly always have one id per sample.
    may_pool_host_rows_ |= given.num_ids != given.num_samples ||
                           given.out.type() != FloatType::kFloat32;
    staged_stride_ = std::max(staged_stride_, (table.dim + 3) / 4 * 4);
  }
  table.num_ids = given.num_ids;
  table.num_samples = given.num_samples;
  table.combiner = given.combiner;
  table.is_narrow = given.is_narrow;
  table.are_handles = given.are_handles;
  table.first_default = given.first_default;
  table.num_defaults = given.num_defaults;
  table.pieces = given.pieces;
  table.out_type = given.out.type();
  if (stream_ != nullptr) {
    table.out = given.out;
  } else {
    table.host_out = given.out.data();
    table.is_host_out_pinned = IsPinned(table.host_out);
    if (table.is_host_out_pinned && table.has_host_rows &&
        table.dim >= kMinDimInPlace) {
      table.out = given.out;
    } else {
      table.out_at = output_bytes_;
      // Aligned, since kernels access four floats at once.
      output_bytes_ += (table.out_bytes() + sizeof(float4) - 1) /
                       sizeof(float4) * sizeof(float4);
    }
  }
  table.occurrences = given.occurrences;
  table.has_occurrences = given.occurrences != nullptr;
  if (table.has_occurrences && given.num_ids != given.num_samples) {
    return Internal("ids that stand for several are not one for each sample");
  }
  have_occurrences_ |= table.has_occurrences;
  table.given = given.ids;
  table.splits = given.splits;
  table.indices = given.indices;
  if (!given.on_device && IsPinned(given.ids)) {
    table.where = IdsAre::kPinned;
    table.ids_owner = given.ids_owner;
    are_pinned_ = true;
  } else if (!given.on_device && !given.is_narrow) {
    table.narrows = table.is_narrow = !table.rows->hints().has_wide_ids;
  }
  if (given.on_device) {
    table.where = IdsAre::kOnGpu;
    are_on_device_ = true;
    for (const void* array : {given.ids, static_cast<const void*>(given.splits),
                              static_cast<const void*>(given.indices)}) {
      // Tables with the same samples share one tensor, which was checked.
      if (array == nullptr || (array != given.ids && given.samples_of >= 0)) {
        continue;
      }
      EV_RETURN_IF_ERROR(
          CheckIsOn(device_, array, "a tensor of ids or samples"));
    }
  }
  table.id_begin = num_ids_;
  table.sample_begin = num_samples_;
  num_ids_ += given.num_ids;
  num_samples_ += given.num_samples;
  const int number = static_cast<int>(tables_.size());
  table.first = given.samples_of < 0 ? number : given.samples_of;
  table.offsets_at =
      table.first == number ? num_offsets_ : tables_[table.first].offsets_at;
  if (table.first == number) num_offsets_ += given.num_samples + 1;
  divides_ |= Divides(given.combiner);
  tables_.push_back(std::move(table));
  return Status::OK();
}

Status StepCall::LayOut() {
  const size_t n = tables_.size();
  const size_t counter_bytes = (1 + n) * sizeof(uint32_t);
  table_bytes_ = DescriptionBytes(NumEntries(0, static_cast<int>(n)));
  // The description is followed by zeros for the counters.
  const size_t sent_bytes = table_bytes_ + counter_bytes;
  // Each wave has its own description in pinned memory, since several may be in
  // flight.
  size_t wave_bytes = 0;
  for (const auto& wave : waves_) {
    if (waves_.size() > 1) {
      wave->tables_at = wave_bytes;
      wave_bytes += DescriptionBytes(NumEntries(wave->begin, wave->end));
    }
    const Table& last = tables_[wave->end - 1];
    most_wave_ids_ =
        std::max(most_wave_ids_,
                 last.id_begin + last.num_ids - tables_[wave->begin].id_begin);
    for (int t = wave->begin; t < wave->end; ++t) {
      if (tables_[t].first != t) continue;
      if (wave->num_offsets == 0) wave->offsets_at = tables_[t].offsets_at;
      wave->num_offsets += tables_[t].num_samples + 1;
    }
  }
  Parts on_host, on_device;
  on_host_ = on_device_ = Layout();
  // The data that a small step sends is contiguous in both memories.
  on_host_.ids = on_host.AddBytes(id_bytes_);
  on_host_.offsets = on_host.AddBytes(num_offsets_ * sizeof(int32_t));
  on_host_.tables = on_host.AddBytes(sent_bytes);
  is_small_ = pools_early_ && waves_.size() == 1 && !are_pinned_ &&
              on_host.bytes() <= kSmallBytes;
  on_host_.unknown = on_host.AddBytes(num_ids_ * sizeof(uint32_t));
  on_host_.unknown_keys =
      on_host.AddBytes(all_put() ? 0 : num_ids_ * sizeof(int64_t));
  const size_t occurrence_bytes =
      have_occurrences_ ? num_ids_ * sizeof(int32_t) : 0;
  on_host_.occurrences = on_host.AddBytes(occurrence_bytes);
  on_host_.waves = on_host.AddBytes(wave_bytes);
  on_host_.pool_tables = on_host.AddBytes(table_bytes_);
  on_host_.counter = on_host.AddBytes(counter_bytes);
  const bool is_staged =
      std::any_of(tables_.begin(), tables_.end(), [](const Table& table) {
        return table.host_out != nullptr && !table.is_host_out_pinned;
      });
  on_host_.outputs = on_host.AddBytes(is_staged ? output_bytes_ : 0);
  on_host_.bytes = on_host.bytes();
  on_device_.ids = on_device.AddBytes(id_bytes_);
  on_device_.offsets = on_device.AddBytes(num_offsets_ * sizeof(int32_t));
  on_device_.tables = on_device.AddBytes(sent_bytes);
  on_device_.counter = on_device_.tables + table_bytes_;
  on_device_.handles = on_device.AddBytes(num_ids_ * sizeof(RowHandle));
  on_device_.rows =
      on_device.AddBytes(has_places_ ? num_ids_ * sizeof(float*) : 0);
  if (has_host_rows_) {
    size_t sort_bytes = 0;
    EV_RETURN_IF_ERROR(PlaceSort::Bytes(most_wave_ids_, &sort_bytes));
    on_device_.sort = on_device.AddBytes(sort_bytes);
    const int64_t row_bytes = staged_stride_ * sizeof(float);
    num_staged_ = may_pool_host_rows_
                      ? std::min(most_wave_ids_, kMaxStagedBytes / row_bytes)
                      : 0;
    on_device_.staged = on_device.AddBytes(num_staged_ * row_bytes);
  }
  on_device_.samples = on_device.AddBytes(num_ids_ * sizeof(uint32_t));
  on_device_.factors =
      on_device.AddBytes(divides_ ? num_samples_ * sizeof(float) : 0);
  on_device_.occurrences = on_device.AddBytes(occurrence_bytes);
  on_device_.outputs = on_device.AddBytes(output_bytes_);
  on_device_.bytes = on_device.bytes();
  return Status::OK();
}

StepCall::~StepCall() {
  EV_CUDA_LOG_IF_ERROR(cudaSetDevice(device_));
  // If Pool was not called or failed, no stream waits for the outputs.
  has_failed_ |= writes_outputs_ && end_ == nullptr;
  if (stream_ == nullptr && end_ != nullptr && !are_outputs_taken_) {
    has_failed_ |= !end_->Wait().ok();
  }
  if (context_ != nullptr) {
    // The GPU may still read the caller's ids. Ids in GPU memory need no wait
    // if 'end_' was recorded, because the caller's stream waits for it.
    const bool may_be_read = are_pinned_ || (are_on_device_ && end_ == nullptr);
    if (may_be_read && !is_taken_) has_failed_ |= !context_->Wait().ok();
    if (groups_ != nullptr) has_failed_ |= !groups_->End(context_.get()).ok();
    // Copies of ids of waves that were not launched may be in flight.
    if (uploads_ != nullptr) {
      has_failed_ |= !uploads_->Join(context_->stream()).ok();
    }
  }
  if (uploads_ != nullptr) {
    SideStreams::Get()->Release(device_, std::move(uploads_));
  }
  const auto release = [this](std::unique_ptr<WorkContext>* context) {
    // A context whose state is unknown is not reused; its destructor waits.
    if (*context == nullptr || has_failed_ ||
        (end_ != nullptr && !end_->Before((*context)->stream()).ok())) {
      return;
    }
    WorkContext::ReleaseBusy(std::move(*context));
  };
  for (std::unique_ptr<WorkContext>& context : contexts_) release(&context);
  release(&context_);
}

Status StepCall::Start(int t, Span<const int32_t> offsets) {
  Table* const table = &tables_[t];
  if (misfits_[t].load(std::memory_order_relaxed)) {
    EV_RETURN_IF_ERROR(PutWide(table));
  }
  if (!offsets.empty()) {
    if (table->has_occurrences) {
      return Internal("a sample with ids that stand for several is not one id");
    }
    table->one_id_each = false;
    has_lists_.store(true, std::memory_order_relaxed);
    std::copy(offsets.begin(), offsets.end(),
              OnHost<int32_t>(on_host_.offsets) + table->offsets_at);
  }
  if (table->has_occurrences) {
    std::transform(table->occurrences, table->occurrences + table->num_ids,
                   OnHost<int32_t>(on_host_.occurrences) + table->id_begin,
                   ToOccurrences);
    table->occurrences = nullptr;
  }
  return queue_->Arrive(table->wave,
                        [this](size_t w) { return Launch(*waves_[w]); });
}

size_t StepCall::NumEntries(int begin, int end) const {
  size_t count = 0;
  for (int t = begin; t < end; ++t) {
    count += std::max<size_t>(1, tables_[t].pieces.size());
  }
  return count;
}

std::vector<StepCall::Entry> StepCall::EntriesOf(const Described& what) const {
  std::vector<Entry> entries;
  for (int t = what.begin; t < what.end; ++t) {
    const Table& table = tables_[t];
    Entry entry;
    entry.t = t;
    if (!what.pools || table.pieces.empty()) {
      entry.num_ids = table.num_ids;
      entry.num_samples = table.num_samples;
      if (what.pools) entry.out = table.out;
      entries.push_back(entry);
      continue;
    }
    for (const GpuStepPiece& piece : table.pieces) {
      if (piece.count == 0) continue;
      entry.begin = piece.begin;
      entry.num_ids = entry.num_samples = piece.count;
      entry.out = piece.out;
      entries.push_back(entry);
    }
  }
  return entries;
}

Status StepCall::CheckOutput(int t) const {
  if (stream_ == nullptr) return Status::OK();
  if (tables_[t].pieces.empty()) {
    return CheckIsOn(device_, tables_[t].out.data(), "the output");
  }
  for (const GpuStepPiece& piece : tables_[t].pieces) {
    if (piece.count == 0) continue;
    EV_RETURN_IF_ERROR(CheckIsOn(device_, piece.out, "the output"));
  }
  return Status::OK();
}

StepLookup StepCall::LookupView(int num_entries) const {
  const size_t n = num_entries;
  StepLookup view;
  view.tables = OnDevice<StepLookupTable>(on_device_.tables);
  view.num_tables = static_cast<int>(n);
  const int32_t* const tiles =
      reinterpret_cast<const int32_t*>(view.tables + n);
  view.find_tiles = tiles;
  view.pool_tiles = tiles + (n + 1);
  view.pool_order = tiles + 2 * (n + 1);
  view.handles = OnDevice<RowHandle>(on_device_.handles);
  if (has_places_) view.rows = OnDevice<const float*>(on_device_.rows);
  view.unknown = OnHost<uint32_t>(on_host_.unknown);
  if (!all_put()) view.unknown_keys = OnHost<int64_t>(on_host_.unknown_keys);
  view.num_unknown = is_small_ ? OnHost<uint32_t>(on_host_.counter)
                               : OnDevice<uint32_t>(on_device_.counter);
  view.found = OnDevice<uint32_t>(on_device_.counter) + 1;
  if (has_lists_) view.samples = OnDevice<uint32_t>(on_device_.samples);
  if (divides_) view.factors = OnDevice<float>(on_device_.factors);
  return view;
}

Status StepCall::Describe(const Described& what, const Entry& entry,
                          StepLookupTable* to) const {
  const Table& table = tables_[entry.t];
  char* const kept = DeviceIds(table) + entry.begin * table.id_width();
  to->ids = kept;
  if (!what.pools && table.where == IdsAre::kOnGpu) {
    to->ids = table.given;
    to->kept = kept;
    to->splits = table.splits;
    to->indices = table.indices;
    to->made = OnDevice<int32_t>(on_device_.offsets) + table.offsets_at;
  }
  const bool one_id_each = OneIdEach(table);
  if (!one_id_each && !table.pieces.empty()) {
    return Internal("a sample whose output is in a piece is not one id");
  }
  if (!one_id_each) {
    to->offsets = OnDevice<int32_t>(on_device_.offsets) + table.offsets_at;
  }
  to->id_begin = table.id_begin + entry.begin;
  to->num_ids = entry.num_ids;
  to->sample_begin = table.sample_begin + entry.begin;
  to->num_samples = entry.num_samples;
  to->samples_before = entry.begin;
  to->dim = static_cast<int32_t>(table.dim);
  to->combiner = static_cast<int32_t>(table.combiner);
  to->is_narrow = table.is_narrow;
  if (what.pools) {
    to->rows = table.rows->pieces();
    to->defaults = table.rows->default_rows();
    to->out = entry.out.data();
    to->out_type = entry.out.type();
  }
  to->are_handles = table.are_handles;
  if (what.finds && !table.are_handles) {
    to->known = table.known->view();
    to->first_default = table.first_default;
    to->num_defaults = table.num_defaults;
  }
  return Status::OK();
}

// Sorts the entries by kind and cuts their samples into blocks.
void StepCall::DescribePools(const std::vector<Entry>& entries, int32_t* tiles,
                             int32_t* order, Launches* launches) const {
  const size_t n = entries.size();
  std::vector<int> kinds(n);
  for (size_t k = 0; k < n; ++k) {
    const Table& table = tables_[entries[k].t];
    const MutableFloats out = entries[k].out;
    const bool fits = reinterpret_cast<uintptr_t>(out.data()) %
                          (4 * FloatBytes(out.type())) ==
                      0;
    kinds[k] = PoolKind(
        fits ? ClassOfDim(static_cast<int32_t>(table.dim)) : kClasses - 1,
        OneIdEach(table));
  }
  int at = 0;
  int32_t blocks = 0;
  for (int kind = 0; kind < kPoolKinds; ++kind) {
    launches->kind_begin.push_back(at);
    launches->block_begin.push_back(blocks);
    for (size_t k = 0; k < n; ++k) {
      if (kinds[k] != kind) continue;
      tiles[at] = blocks;
      order[at++] = static_cast<int32_t>(k);
      blocks += BlocksOf(entries[k].num_samples, kPoolTile);
    }
  }
  tiles[n] = blocks;
  launches->kind_begin.push_back(at);
  launches->block_begin.push_back(blocks);
}

Status StepCall::SendDescription(const Described& what, Launches* launches) {
  const std::vector<Entry> entries = EntriesOf(what);
  const size_t n = entries.size();
  launches->num_entries = static_cast<int>(n);
  StepLookupTable* const described = OnHost<StepLookupTable>(what.on_host);
  int32_t* const tiles = reinterpret_cast<int32_t*>(described + n);
  int32_t* const sample_tiles = tiles + 3 * (n + 1);
  int32_t blocks = 0;
  sample_tiles[0] = 0;
  for (size_t k = 0; k < n; ++k) {
    const int t = entries[k].t;
    const Table& table = tables_[t];
    StepLookupTable to;
    EV_RETURN_IF_ERROR(Describe(what, entries[k], &to));
    described[k] = to;
    tiles[k] = blocks;
    blocks += BlocksOf(entries[k].num_ids, kFindTile);
    const int64_t threads = std::max(table.num_ids, table.num_samples) + 1;
    sample_tiles[k + 1] =
        sample_tiles[k] + (table.where == IdsAre::kOnGpu && table.first == t
                               ? BlocksOf(threads, kFindTile)
                               : 0);
  }
  tiles[n] = launches->find_blocks = blocks;
  if (what.pools) {
    DescribePools(entries, tiles + (n + 1), tiles + 2 * (n + 1), launches);
  }
  if (is_small_) {
    *OnHost<uint32_t>(on_host_.counter) = 0;
    const size_t sent = on_host_.tables + DescriptionBytes(n) - on_host_.ids;
    EV_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(
        context_->device() + on_device_.ids, context_->host() + on_host_.ids,
        sent, cudaMemcpyHostToDevice, context_->stream()));
    return Status::OK();
  }
  size_t bytes = DescriptionBytes(n);
  const bool are_all =
      what.begin == 0 && what.end == static_cast<int>(tables_.size());
  if (what.finds && are_all) {
    bytes = table_bytes_;
    const size_t counter_bytes = (1 + tables_.size()) * sizeof(uint32_t);
    std::memset(OnHost<char>(what.on_host) + bytes, 0, counter_bytes);
    bytes += counter_bytes;
  }
  EV_CUDA_RETURN_IF_ERROR(
      cudaMemcpyAsync(context_->device() + on_device_.tables, described, bytes,
                      cudaMemcpyHostToDevice, context_->stream()));
  return Status::OK();
}

StepCall::KnownLocks StepCall::LockKnown(int begin, int end) const {
  std::vector<KnownKeys*> all;
  for (int t = begin; t < end; ++t) {
    if (!tables_[t].are_handles) all.push_back(tables_[t].known.get());
  }
  std::sort(all.begin(), all.end());
  KnownLocks locks;
  for (KnownKeys* known : all) locks.push_back(known->Lock());
  return locks;
}

Status StepCall::LaunchFind() {
  const cudaStream_t stream = context_->stream();
  const int n = static_cast<int>(tables_.size());
  std::vector<GpuRows*> rows;
  for (const Table& table : tables_) rows.push_back(table.rows);
  EV_RETURN_IF_ERROR(WriteNew(rows, stream));
  EV_RETURN_IF_ERROR(FollowKeys(rows, stream));
  if (has_lists_) {
    EV_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(
        context_->device() + on_device_.offsets,
        context_->host() + on_host_.offsets, num_offsets_ * sizeof(int32_t),
        cudaMemcpyHostToDevice, stream));
  }
  {
    const KnownLocks locks = LockKnown(0, n);
    Described described;
    described.end = n;
    described.finds = true;
    described.on_host = on_host_.tables;
    Launches launches;
    EV_RETURN_IF_ERROR(SendDescription(described, &launches));
    if (are_on_device_) {
      EV_RETURN_IF_ERROR(context_->Follow(*stream_));
      // Enqueued first, since the CPU waits for the result.
      EV_RETURN_IF_ERROR(FindSamples());
    }
    EV_RETURN_IF_ERROR(
        LaunchFindHandles(LookupView(n), launches.find_blocks, stream));
  }
  return BringCounter();
}

Status StepCall::BringCounter() {
  if (is_small_) return Status::OK();  // the kernel counts in host memory
  EV_CUDA_RETURN_IF_ERROR(
      cudaMemcpyAsync(context_->host() + on_host_.counter,
                      context_->device() + on_device_.counter, sizeof(uint32_t),
                      cudaMemcpyDeviceToHost, context_->stream()));
  return Status::OK();
}

Status StepCall::FindSamples() {
  const size_t n = tables_.size();
  const StepLookup view = LookupView(static_cast<int>(n));
  const int32_t* const on_host = reinterpret_cast<const int32_t*>(
      OnHost<StepLookupTable>(on_host_.tables) + n);
  EV_RETURN_IF_ERROR(LaunchFindSamples(view, view.find_tiles + 3 * (n + 1),
                                       on_host[4 * n + 3], context_->stream()));
  EV_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(
      context_->host() + on_host_.counter + sizeof(uint32_t),
      context_->device() + on_device_.counter + sizeof(uint32_t),
      n * sizeof(uint32_t), cudaMemcpyDeviceToHost, context_->stream()));
  return DeviceEvent::Record(context_->stream(), &samples_are_copied_);
}

Status StepCall::TakeOnce() {
  std::lock_guard<std::mutex> lock(mu_);
  if (is_taken_) return taken_;
  is_taken_ = true;
  const bool had_failed = has_failed_;  // an earlier failure is kept
  has_failed_ = true;
  taken_ = Take();
  has_failed_ = had_failed || !taken_.ok();
  return taken_;
}

Status StepCall::Take() {
  EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(device_));
  EV_RETURN_IF_ERROR(context_->Wait());
  return TakeUnknown();
}

Status StepCall::WaitForInput() {
  if (ids_are_read_ != nullptr) EV_RETURN_IF_ERROR(ids_are_read_->Wait());
  if (!are_on_device_) return Status::OK();
  EV_RETURN_IF_ERROR(samples_are_copied_->Wait());
  const uint32_t* const found = OnHost<uint32_t>(on_host_.counter) + 1;
  for (size_t t = 0; t < tables_.size(); ++t) {
    if (tables_[t].where != IdsAre::kOnGpu ||
        tables_[t].first != static_cast<int>(t)) {
      continue;
    }
    if ((found[t] & kNotInOrder) != 0) {
      return Status(StatusCode::kUnimplemented,
                    "samples in the GPU's memory are not in order");
    }
    tables_[t].one_id_each = (found[t] & kNotOneIdEach) == 0;
    if (!tables_[t].one_id_each) has_lists_ = true;
  }
  return Status::OK();
}

Status StepCall::End(StreamView work, const DeviceStream* outside) {
  EV_RETURN_IF_ERROR(DeviceEvent::Record(work, &end_));
  if (outside == nullptr) return Status::OK();
  return end_->Before(static_cast<cudaStream_t>(outside->native));
}

Status StepCall::Offsets(const Table& table, int32_t* offsets) const {
  const size_t count = table.num_samples + 1;
  const int64_t at = table.offsets_at;
  if (OneIdEach(table)) {
    std::iota(offsets, offsets + count, 0);
  } else if (table.where == IdsAre::kOnGpu) {
    return context_->BringDown(on_device_.offsets + at * sizeof(int32_t),
                               count * sizeof(int32_t), offsets);
  } else {
    std::copy_n(OnHost<int32_t>(on_host_.offsets) + at, count, offsets);
  }
  return Status::OK();
}

}  // namespace gpu
}  // namespace ev
