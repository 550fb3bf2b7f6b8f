// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>
#include <utility>

#include "kernels/engine/base/gpu/cuda_error.h"
#include "kernels/engine/base/gpu/pinned_memory.h"
#include "kernels/engine/gpu_step/step_plan.cuh"
#include "kernels/engine/rows/gpu/lane_work.h"
#include "kernels/engine/rows/gpu/step_call.h"

namespace ev {
namespace gpu {
namespace {

int BlocksOf(int64_t n, int64_t tile) {
  return static_cast<int>((n + tile - 1) / tile);
}

int64_t NumNamesOfRows(Span<const RowHandle> names) {
  return std::count_if(names.begin(), names.end(), [](RowHandle name) {
    return name < kFirstReservedHandle;
  });
}

}  // namespace

Status StepCall::Make(int device, Span<const GpuStepTable> tables,
                      const DeviceStream& stream,
                      std::shared_ptr<GpuStep>* step) {
  std::shared_ptr<StepCall> made(new StepCall(device));
  made->given_ = stream;
  EV_RETURN_IF_ERROR(made->Create(tables));
  *step = std::move(made);
  return Status::OK();
}

Status StepCall::Create(Span<const GpuStepTable> tables) {
  for (const GpuStepTable& given : tables) {
    Table table;
    table.rows = static_cast<GpuRows*>(given.table);
    table.known = table.rows->known();
    table.dim = table.rows->dim();
    table.num_ids = given.num_ids;
    table.num_samples = given.num_samples;
    table.combiner = given.combiner;
    table.is_narrow = given.is_narrow;
    table.num_defaults = given.num_defaults;
    table.given = given.ids;
    table.splits = given.splits;
    table.indices = given.indices;
    if (!given.on_device && IsPinned(given.ids)) {
      table.where = IdsAre::kPinned;
      table.ids_owner = given.ids_owner;
      are_pinned_ = true;
    } else if (!given.on_device && !given.is_narrow) {
      table.narrows = table.is_narrow = !table.rows->has_wide_ids();
    }
    if (given.on_device) {
      table.where = IdsAre::kThere;
      are_there_ = true;
      for (const void* array :
           {given.ids, static_cast<const void*>(given.splits),
            static_cast<const void*>(given.indices)}) {
        if (array == nullptr) continue;
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
    find_blocks_ += BlocksOf(given.num_ids, kFindTile);
    divides_ |= Divides(given.combiner);
    tables_.push_back(std::move(table));
  }
  // Those that are put first, as one array. Wide ids before narrow ones: they
  // are aligned then, without gaps.
  for (bool put : {true, false}) {
    for (bool narrow : {false, true}) {
      for (Table& table : tables_) {
        if (table.is_narrow != narrow || (table.where == IdsAre::kHere) != put)
          continue;
        table.ids_at = id_bytes_;
        id_bytes_ += table.id_bytes();
      }
    }
    if (put) put_bytes_ = id_bytes_;
    id_bytes_ =
        (id_bytes_ + sizeof(int64_t) - 1) / sizeof(int64_t) * sizeof(int64_t);
  }
  const size_t n = tables_.size();
  const size_t counter_bytes = (1 + n) * sizeof(uint32_t);
  table_bytes_ = n * sizeof(StepLookupTable) + 4 * (n + 1) * sizeof(int32_t);
  // Zeros for the counter behind it.
  const size_t sent_bytes = table_bytes_ + counter_bytes;
  Parts here, there;
  here_ = there_ = Layout();
  here_.ids = here.AddBytes(id_bytes_);
  here_.unknown = here.AddBytes(num_ids_ * sizeof(uint32_t));
  here_.unknown_keys =
      here.AddBytes(all_put() ? 0 : num_ids_ * sizeof(int64_t));
  here_.offsets = here.AddBytes(num_offsets_ * sizeof(int32_t));
  here_.tables = here.AddBytes(sent_bytes);
  here_.pool_tables = here.AddBytes(table_bytes_);
  here_.counter = here.AddBytes(counter_bytes);
  here_.bytes = here.bytes();
  there_.ids = there.AddBytes(id_bytes_);
  there_.names = there.AddBytes(num_ids_ * sizeof(RowHandle));
  there_.samples = there.AddBytes(num_ids_ * sizeof(uint32_t));
  there_.factors = there.AddBytes(divides_ ? num_samples_ * sizeof(float) : 0);
  there_.offsets = there.AddBytes(num_offsets_ * sizeof(int32_t));
  there_.tables = there.AddBytes(sent_bytes);
  there_.counter = there_.tables + table_bytes_;
  there_.bytes = there.bytes();
  upload_.reset(new StagedUpload(put_bytes_));
  misfits_ = std::vector<std::atomic<bool>>(n);
  EV_RETURN_IF_ERROR(WorkLane::Acquire(here_.bytes, there_.bytes, &lane_));
  return are_pinned_ ? SendPinned() : Status::OK();
}

StepCall::~StepCall() {
  EV_CUDA_LOG_IF_ERROR(cudaSetDevice(device_));
  if (lane_ != nullptr) {
    // The caller's ids may still be read.
    if (!all_put() && !is_taken_) has_failed_ |= !lane_->Wait().ok();
    lanes_.push_back(std::move(lane_));
  }
  for (std::unique_ptr<WorkLane>& lane : lanes_) {
    // A lane of which nothing is known is destroyed, which waits.
    if (has_failed_ ||
        (end_ != nullptr && !end_->Before(lane->stream()).ok())) {
      continue;
    }
    WorkLane::ReleaseBusy(std::move(lane));
  }
}

std::unique_ptr<DeviceDistinct> StepCall::Distinct(int t) {
  return MakeStepDistinct(shared_from_this(), t);
}

Status StepCall::Start(int t, Span<const int32_t> offsets) {
  Table* const table = &tables_[t];
  if (misfits_[t].load(std::memory_order_relaxed)) {
    EV_RETURN_IF_ERROR(PutWide(table));
  }
  if (!offsets.empty()) {
    table->one_id_each = false;
    has_lists_.store(true, std::memory_order_relaxed);
    std::copy(offsets.begin(), offsets.end(),
              OnHost<int32_t>(here_.offsets) + table->offsets_at);
  }
  const int n = static_cast<int>(tables_.size());
  if (num_started_.fetch_add(1, std::memory_order_acq_rel) + 1 < n) {
    return Status::OK();
  }
  has_failed_ = true;
  EV_RETURN_IF_ERROR(LaunchFind());
  has_failed_ = false;
  is_launched_.store(true, std::memory_order_release);
  return Status::OK();
}

StepLookup StepCall::LookupView() const {
  const size_t n = tables_.size();
  StepLookup view;
  view.tables = OnDevice<StepLookupTable>(there_.tables);
  view.num_tables = static_cast<int>(n);
  const int32_t* const tiles =
      reinterpret_cast<const int32_t*>(view.tables + n);
  view.find_tiles = tiles;
  view.pool_tiles = tiles + (n + 1);
  view.pool_order = tiles + 2 * (n + 1);
  view.names = OnDevice<RowHandle>(there_.names);
  view.unknown = OnHost<uint32_t>(here_.unknown);
  if (!all_put()) view.unknown_keys = OnHost<int64_t>(here_.unknown_keys);
  view.num_unknown = OnDevice<uint32_t>(there_.counter);
  view.found = view.num_unknown + 1;
  if (has_lists_) view.samples = OnDevice<uint32_t>(there_.samples);
  if (divides_) view.factors = OnDevice<float>(there_.factors);
  return view;
}

// The tables as the kernels see them. Before the pooling the rows are not
// known. pools: also fills, for each kind, where it begins in pool_order and in
// blocks.
Status StepCall::SendDescription(bool pools, Span<float* const> outputs,
                                 std::vector<int>* kind_begin,
                                 std::vector<int>* block_begin) {
  const size_t n = tables_.size();
  // The first may still be on its way when the second is made.
  StepLookupTable* const described =
      OnHost<StepLookupTable>(pools ? here_.pool_tables : here_.tables);
  int32_t* const tiles = reinterpret_cast<int32_t*>(described + n);
  std::vector<int> kinds(n);
  int32_t blocks = 0;
  for (size_t t = 0; t < n; ++t) {
    const Table& table = tables_[t];
    StepLookupTable to;
    char* const kept = DeviceIds(table);
    to.ids = kept;
    if (!pools && table.where == IdsAre::kThere) {
      to.ids = table.given;
      to.kept = kept;
      to.splits = table.splits;
      to.indices = table.indices;
      to.made = OnDevice<int32_t>(there_.offsets) + table.offsets_at;
    }
    const bool one_id_each = OneIdEach(table);
    if (!one_id_each) {
      to.offsets = OnDevice<int32_t>(there_.offsets) + table.offsets_at;
    }
    to.id_begin = table.id_begin;
    to.num_ids = table.num_ids;
    to.sample_begin = table.sample_begin;
    to.num_samples = table.num_samples;
    to.dim = static_cast<int32_t>(table.dim);
    to.combiner = static_cast<int32_t>(table.combiner);
    to.is_narrow = table.is_narrow;
    if (pools) {
      to.rows = table.rows->pieces();
      to.defaults = table.rows->default_rows();
      to.out = outputs[t];
      const bool fits =
          reinterpret_cast<uintptr_t>(to.out) % sizeof(float4) == 0;
      kinds[t] =
          PoolKind(fits ? ClassOfDim(to.dim) : kClasses - 1, one_id_each);
    } else {
      to.known = table.known->view();
      to.num_defaults = knows_all_ ? table.num_defaults : 0;
    }
    described[t] = to;
    tiles[t] = blocks;
    blocks += BlocksOf(table.num_ids, kFindTile);
  }
  tiles[n] = blocks;
  int32_t* const sample_tiles = tiles + 3 * (n + 1);
  sample_tiles[0] = 0;
  for (size_t t = 0; t < n; ++t) {
    const Table& table = tables_[t];
    const int64_t threads = std::max(table.num_ids, table.num_samples) + 1;
    sample_tiles[t + 1] =
        sample_tiles[t] +
        (table.where == IdsAre::kThere && table.first == static_cast<int>(t)
             ? BlocksOf(threads, kFindTile)
             : 0);
  }
  if (pools) {
    int32_t* const pool_tiles = tiles + (n + 1);
    int32_t* const order = tiles + 2 * (n + 1);
    int at = 0;
    blocks = 0;
    for (int kind = 0; kind < kPoolKinds; ++kind) {
      kind_begin->push_back(at);
      block_begin->push_back(blocks);
      for (size_t t = 0; t < n; ++t) {
        if (kinds[t] != kind) continue;
        pool_tiles[at] = blocks;
        order[at++] = static_cast<int32_t>(t);
        blocks += BlocksOf(tables_[t].num_samples, kPoolTile);
      }
    }
    pool_tiles[n] = blocks;
    kind_begin->push_back(at);
    block_begin->push_back(blocks);
  }
  size_t bytes = table_bytes_;
  if (!pools) {
    const size_t counter_bytes = (1 + n) * sizeof(uint32_t);
    std::memset(OnHost<char>(here_.tables) + bytes, 0, counter_bytes);
    bytes += counter_bytes;
  }
  EV_CUDA_RETURN_IF_ERROR(
      cudaMemcpyAsync(lane_->device() + there_.tables, described, bytes,
                      cudaMemcpyHostToDevice, lane_->stream()));
  return Status::OK();
}

bool StepCall::CanKnowAll() const {
  for (const Table& table : tables_) {
    if (table.num_defaults == 0 || !table.known->KnowsAllLocked() ||
        (table.where == IdsAre::kPinned && table.ids_owner == nullptr)) {
      return false;
    }
  }
  return true;
}

Status StepCall::LaunchFind() {
  EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(device_));
  const cudaStream_t stream = lane_->stream();
  std::vector<GpuRows*> rows;
  for (const Table& table : tables_) rows.push_back(table.rows);
  EV_RETURN_IF_ERROR(WriteNew(rows, stream));
  std::vector<std::shared_ptr<DeviceEvent>> followed;
  for (GpuRows* of : rows) {
    EV_RETURN_IF_ERROR(FollowOnce(of->last_keys(), stream, &followed));
  }
  if (has_lists_) {
    EV_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(
        lane_->device() + there_.offsets, lane_->host() + here_.offsets,
        num_offsets_ * sizeof(int32_t), cudaMemcpyHostToDevice, stream));
  }
  {
    // Held so that what is enqueued comes before memory is given back. In one
    // order for all steps.
    std::vector<KnownKeys*> all;
    for (const Table& table : tables_) all.push_back(table.known.get());
    std::sort(all.begin(), all.end());
    std::vector<std::unique_lock<std::mutex>> locks;
    for (KnownKeys* known : all) locks.push_back(known->Lock());
    knows_all_ = CanKnowAll();
    EV_RETURN_IF_ERROR(SendDescription(false, {}, nullptr, nullptr));
    if (are_there_) EV_RETURN_IF_ERROR(lane_->Follow(given_));
    EV_RETURN_IF_ERROR(LaunchFindNames(LookupView(), find_blocks_, stream));
  }
  if (are_there_) EV_RETURN_IF_ERROR(FindSamples());
  EV_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(
      lane_->host() + here_.counter, lane_->device() + there_.counter,
      (are_there_ ? 1 + tables_.size() : 1) * sizeof(uint32_t),
      cudaMemcpyDeviceToHost, stream));
  return Status::OK();
}

Status StepCall::FindSamples() {
  const size_t n = tables_.size();
  const StepLookup view = LookupView();
  const int32_t* const on_host = reinterpret_cast<const int32_t*>(
      OnHost<StepLookupTable>(here_.tables) + n);
  return LaunchFindSamples(view, view.find_tiles + 3 * (n + 1),
                           on_host[4 * n + 3], lane_->stream());
}

bool StepCall::IsDone() const {
  if (!is_launched_.load(std::memory_order_acquire)) return false;
  // The call that waits gets the error.
  return (knows_all_ && !are_there_) ||
         cudaStreamQuery(lane_->stream()) != cudaErrorNotReady;
}

Status StepCall::Wait(int t) {
  if (knows_all_) return are_there_ ? TakeOnce() : Status::OK();
  EV_RETURN_IF_ERROR(TakeOnce());
  return FindKeysOfUnknown(&tables_[t]);
}

int64_t StepCall::num_unknown() {
  if (knows_all_) {
    std::lock_guard<std::mutex> lock(mu_);
    return is_taken_ ? static_cast<int64_t>(unknown_.size()) : 0;
  }
  return TakeOnce().ok() ? static_cast<int64_t>(unknown_.size()) : 0;
}

Status StepCall::TakeOnce() {
  std::lock_guard<std::mutex> lock(mu_);
  if (is_taken_) return taken_;
  is_taken_ = true;
  has_failed_ = true;
  taken_ = Take();
  has_failed_ = !taken_.ok() && taken_.code() != StatusCode::kUnimplemented;
  return taken_;
}

Status StepCall::Take() {
  EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(device_));
  EV_RETURN_IF_ERROR(lane_->Wait());
  if (are_there_) EV_RETURN_IF_ERROR(TakeSamples());
  return TakeUnknown();
}

Status StepCall::TakeSamples() {
  const uint32_t* const found = OnHost<uint32_t>(here_.counter) + 1;
  for (size_t t = 0; t < tables_.size(); ++t) {
    if (tables_[t].where != IdsAre::kThere ||
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

void StepCall::SetUnknownHandles(int t, Span<const RowHandle> handles) {
  tables_[t].names.assign(handles.begin(), handles.end());
}

Status StepCall::SetNames(const std::vector<NewNames>& all, StreamView stream) {
  int64_t num_ids = 0, num_keys = 0;
  for (const NewNames& one : all) {
    num_ids += one.table->unknown.size();
    if (!knows_all_) num_keys += one.table->keys.size();
  }
  if (num_ids == 0) return Status::OK();
  Parts both;
  const size_t ids_at = both.AddBytes(num_ids * sizeof(uint32_t));
  const size_t given_at = both.AddBytes(num_ids * sizeof(RowHandle));
  const size_t keys_at = both.AddBytes(num_keys * sizeof(int64_t));
  const size_t names_at = both.AddBytes(num_keys * sizeof(RowHandle));
  const size_t numbers_at = both.AddBytes(num_keys * sizeof(uint32_t));
  const size_t sent = both.bytes();
  const size_t scratch_at = both.AddBytes(num_keys * sizeof(RowHandle));
  std::unique_ptr<WorkLane> lane;
  EV_RETURN_IF_ERROR(WorkLane::Acquire(sent, both.bytes(), &lane));
  char* const here = lane->host();
  char* const there = lane->device();
  lanes_.push_back(std::move(lane));
  uint32_t* const ids = reinterpret_cast<uint32_t*>(here + ids_at);
  RowHandle* const given = reinterpret_cast<RowHandle*>(here + given_at);
  int64_t* const keys = reinterpret_cast<int64_t*>(here + keys_at);
  RowHandle* const names = reinterpret_cast<RowHandle*>(here + names_at);
  uint32_t* const numbers = reinterpret_cast<uint32_t*>(here + numbers_at);
  int64_t id = 0, key = 0;
  for (const NewNames& one : all) {
    const Table& table = *one.table;
    for (size_t k = 0; k < table.unknown.size(); ++k, ++id) {
      ids[id] = table.unknown[k];
      given[id] = one.names[table.key_of[k]];
    }
    if (knows_all_) continue;
    for (size_t k = 0; k < table.keys.size(); ++k, ++key) {
      keys[key] = table.keys[k];
      names[key] = one.names[k];
      numbers[key] = static_cast<uint32_t>(k);
    }
  }
  EV_CUDA_RETURN_IF_ERROR(
      cudaMemcpyAsync(there, here, sent, cudaMemcpyHostToDevice, stream.get()));
  EV_RETURN_IF_ERROR(
      LaunchSetNames(reinterpret_cast<const uint32_t*>(there + ids_at),
                     reinterpret_cast<const RowHandle*>(there + given_at),
                     num_ids, OnDevice<RowHandle>(there_.names), stream));
  key = 0;
  for (const NewNames& one : all) {
    if (knows_all_) break;
    NamedKeys named;
    named.num_named = one.table->keys.size();
    named.num_rows = NumNamesOfRows(one.names);
    named.keys = reinterpret_cast<const int64_t*>(there + keys_at) + key;
    named.names = reinterpret_cast<const RowHandle*>(there + names_at) + key;
    named.numbers = reinterpret_cast<const uint32_t*>(there + numbers_at) + key;
    named.all_names = reinterpret_cast<RowHandle*>(there + scratch_at) + key;
    key += named.num_named;
    if (named.num_rows == 0) continue;
    EV_RETURN_IF_ERROR(one.table->known->Name(named, stream));
  }
  return Status::OK();
}

Status StepCall::End(StreamView work, const DeviceStream& outside) {
  EV_RETURN_IF_ERROR(DeviceEvent::Record(work, &end_));
  return end_->Before(static_cast<cudaStream_t>(outside.native));
}

Status StepCall::Pool(Span<float* const> outputs, const DeviceStream& stream) {
  EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(device_));
  for (size_t t = 0; t < tables_.size(); ++t) {
    EV_RETURN_IF_ERROR(tables_[t].rows->CheckUsable());
    EV_RETURN_IF_ERROR(CheckIsOn(device_, outputs[t], "the output"));
  }
  has_failed_ = true;
  std::vector<GpuRows*> rows;
  for (const Table& table : tables_) rows.push_back(table.rows);
  EV_RETURN_IF_ERROR(FollowRows(rows, lane_->stream()));
  std::vector<NewNames> names;
  for (const Table& table : tables_) {
    if (table.keys.empty()) continue;
    names.push_back({&table, table.names});
  }
  EV_RETURN_IF_ERROR(SetNames(names, lane_->stream()));
  std::vector<int> kind_begin, block_begin;
  EV_RETURN_IF_ERROR(SendDescription(true, outputs, &kind_begin, &block_begin));
  EV_RETURN_IF_ERROR(lane_->Follow(stream));
  for (int kind = 0; kind < kPoolKinds; ++kind) {
    EV_RETURN_IF_ERROR(LaunchPoolNames(
        LookupView(), kind, kind_begin[kind], kind_begin[kind + 1],
        block_begin[kind], block_begin[kind + 1] - block_begin[kind],
        lane_->stream()));
  }
  EV_RETURN_IF_ERROR(End(lane_->stream(), stream));
  for (const Table& table : tables_) table.rows->BeginAfter(end_);
  has_failed_ = false;
  return Status::OK();
}

Status StepCall::Offsets(int t, int32_t* offsets) const {
  const Table& table = tables_[t];
  const size_t count = table.num_samples + 1;
  const int64_t at = table.offsets_at;
  if (OneIdEach(table)) {
    std::iota(offsets, offsets + count, 0);
  } else if (table.where == IdsAre::kThere) {
    return lane_->BringDown(there_.offsets + at * sizeof(int32_t),
                            count * sizeof(int32_t), offsets);
  } else {
    std::copy_n(OnHost<int32_t>(here_.offsets) + at, count, offsets);
  }
  return Status::OK();
}

Status StepCall::BringNames(int t, RowHandle* names) const {
  const Table& table = tables_[t];
  return lane_->BringDown(there_.names + table.id_begin * sizeof(RowHandle),
                          table.num_ids * sizeof(RowHandle), names);
}

}  // namespace gpu
}  // namespace ev
