// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/rows/gpu/gpu_distinct.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>
#include <utility>

#include "kernels/engine/base/gpu/cuda_error.h"
#include "kernels/engine/base/gpu/pinned_memory.h"
#include "kernels/engine/rows/gpu/distinct.h"
#include "kernels/engine/rows/gpu/lane_work.h"
#include "kernels/engine/rows/gpu/samples_there.h"
#include "kernels/engine/rows/gpu/sort_by_owner.h"

namespace ev {
namespace gpu {

namespace {

// Byte offsets of the arrays that Fetch copies to the host.
struct FetchedLayout {
  size_t keys, counts, names, bytes;
};

FetchedLayout LayoutOf(int64_t num_unique) {
  Parts parts;
  FetchedLayout layout;
  layout.keys = parts.AddBytes(num_unique * sizeof(int64_t));
  layout.counts = parts.AddBytes(num_unique * sizeof(int32_t));
  layout.names = parts.AddBytes(num_unique * sizeof(RowHandle));
  layout.bytes = parts.bytes();
  return layout;
}

}  // namespace

int64_t NumRows(Span<const RowHandle> names) {
  return std::count_if(names.begin(), names.end(), [](RowHandle name) {
    return name < kFirstReservedHandle;
  });
}

GpuDistinct::GpuDistinct(int device, int64_t num_ids, int64_t num_samples,
                         const IdsOnDevice* there,
                         std::shared_ptr<KnownKeys> known, bool brings_inverse)
    : device_(device),
      num_ids_(num_ids),
      num_samples_(num_samples),
      brings_inverse_(brings_inverse),
      are_there_(there != nullptr),
      given_(there == nullptr ? IdsOnDevice() : *there),
      num_residues_(given_.owners.size()),
      known_(std::move(known)),
      ids_(there == nullptr ? num_ids * sizeof(int64_t) : 0) {
  const size_t n = num_ids;
  Parts here, on_device;
  here_ = there_ = Layout();
  // Keys come down where the ids were, which have gone up by then.
  here_.ids = here_.keys = here.AddBytes(n * sizeof(int64_t));
  here_.names = here.AddBytes(n * sizeof(RowHandle));
  here_.offsets =
      here.AddBytes(are_there_ ? 0 : (num_samples + 1) * sizeof(int32_t));
  here_.counted = here.AddBytes(sizeof(DistinctCounts));
  here_.inverse = here.AddBytes(brings_inverse ? n * sizeof(int32_t) : 0);
  // The rule, and then where each owner's keys begin.
  here_.owners = here.AddBytes(
      num_residues_ == 0
          ? 0
          : std::max<int64_t>(num_residues_, given_.num_owners + 1) *
                sizeof(int32_t));
  here_.bytes = here.bytes();
  there_.ids = on_device.AddBytes(are_there_ ? 0 : n * sizeof(int64_t));
  there_.entries = on_device.AddBytes(NumDistinctEntries(num_ids) *
                                      sizeof(unsigned long long));
  there_.done = on_device.AddBytes(kDistinctDone * sizeof(uint32_t));
  there_.heads = on_device.AddBytes(n * sizeof(uint32_t));
  there_.tiles =
      on_device.AddBytes(NumDistinctTiles(num_ids) * sizeof(uint32_t));
  there_.unknown_tiles =
      on_device.AddBytes(NumDistinctTiles(num_ids) * sizeof(uint32_t));
  there_.inverse = on_device.AddBytes(n * sizeof(int32_t));
  there_.keys = on_device.AddBytes(n * sizeof(int64_t));
  there_.counts = on_device.AddBytes(n * sizeof(int32_t));
  there_.names = on_device.AddBytes(n * sizeof(RowHandle));
  there_.offsets = on_device.AddBytes((num_samples + 1) * sizeof(int32_t));
  there_.counted = on_device.AddBytes(3 * sizeof(uint32_t));
  there_.owners = on_device.AddBytes(num_residues_ * sizeof(int32_t));
  there_.owner_tiles = on_device.AddBytes(
      given_.num_owners * NumDistinctTiles(num_ids) * sizeof(uint32_t));
  there_.places =
      on_device.AddBytes(num_residues_ == 0 ? 0 : n * sizeof(int32_t));
  there_.bytes = on_device.bytes();
}

Status GpuDistinct::Make(int device, int64_t num_ids, int64_t num_samples,
                         std::shared_ptr<KnownKeys> known, bool brings_inverse,
                         std::unique_ptr<DeviceDistinct>* distinct) {
  std::unique_ptr<GpuDistinct> made(
      new GpuDistinct(device, num_ids, num_samples, /*there=*/nullptr,
                      std::move(known), brings_inverse));
  EV_RETURN_IF_ERROR(
      WorkLane::Acquire(made->here_.bytes, made->there_.bytes, &made->lane_));
  *distinct = std::move(made);
  return Status::OK();
}

Status GpuDistinct::MakeOfIdsThere(int device, const IdsOnDevice& ids,
                                   std::shared_ptr<KnownKeys> known,
                                   std::unique_ptr<DeviceDistinct>* distinct) {
  for (const void* array : {static_cast<const void*>(ids.ids64),
                            static_cast<const void*>(ids.ids32),
                            static_cast<const void*>(ids.row_splits),
                            static_cast<const void*>(ids.coo_indices)}) {
    if (array == nullptr) continue;
    EV_RETURN_IF_ERROR(CheckIsOn(device, array, "a tensor of ids or samples"));
  }
  std::unique_ptr<GpuDistinct> made(
      new GpuDistinct(device, ids.num_ids, ids.num_samples, &ids,
                      std::move(known), /*brings_inverse=*/false));
  EV_RETURN_IF_ERROR(
      WorkLane::Acquire(made->here_.bytes, made->there_.bytes, &made->lane_));
  std::copy(ids.owners.begin(), ids.owners.end(),
            made->OnHost<int32_t>(made->here_.owners));
  *distinct = std::move(made);
  return Status::OK();
}

GpuDistinct::~GpuDistinct() {
  if (fetched_ != nullptr) WorkLane::Release(std::move(fetched_));
  if (lane_ == nullptr) return;
  EV_CUDA_LOG_IF_ERROR(cudaSetDevice(device_));
  if (!has_failed_ && lane_->Wait().ok()) WorkLane::Release(std::move(lane_));
}

Status GpuDistinct::PutBytes(int64_t begin, const void* ids, size_t count,
                             size_t width) {
  if (count == 0) return Status::OK();
  EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(device_));
  return ids_.Put(begin * width, ids, count * width, num_ids_ * width,
                  lane_->host() + here_.ids, lane_->device() + there_.ids,
                  lane_->stream());
}

Status GpuDistinct::Put(int64_t begin, Span<const int64_t> ids) {
  return PutBytes(begin, ids.data(), ids.size(), sizeof(int64_t));
}

Status GpuDistinct::Put(int64_t begin, Span<const int32_t> ids) {
  is_narrow_.store(true, std::memory_order_relaxed);
  return PutBytes(begin, ids.data(), ids.size(), sizeof(int32_t));
}

Status GpuDistinct::SendOffsets(Span<const int32_t> offsets) {
  const size_t bytes = offsets.size() * sizeof(int32_t);
  std::memcpy(lane_->host() + here_.offsets, offsets.data(), bytes);
  EV_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(
      lane_->device() + there_.offsets, lane_->host() + here_.offsets, bytes,
      cudaMemcpyHostToDevice, lane_->stream()));
  return Status::OK();
}

Status GpuDistinct::Start(Span<const int32_t> offsets) {
  EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(device_));
  DistinctBatch batch;
  if (are_there_) {
    EV_RETURN_IF_ERROR(lane_->Follow(given_.stream));
    batch.is_narrow = given_.ids32 != nullptr;
    batch.ids = batch.is_narrow ? static_cast<const void*>(given_.ids32)
                                : static_cast<const void*>(given_.ids64);
    batch.splits = given_.row_splits;
    batch.indices = given_.coo_indices;
    batch.num_samples = num_samples_;
    batch.offsets = OnDevice<int32_t>(there_.offsets);
  } else {
    EV_RETURN_IF_ERROR(SendOffsets(offsets));
    batch.ids = lane_->device() + there_.ids;
    batch.is_narrow = is_narrow_.load(std::memory_order_relaxed);
  }
  batch.hash = KeyedHash::OfProcess();
  batch.num_ids = num_ids_;
  batch.entries = OnDevice<unsigned long long>(there_.entries);
  batch.heads = OnDevice<uint32_t>(there_.heads);
  batch.tiles = OnDevice<uint32_t>(there_.tiles);
  batch.done = OnDevice<uint32_t>(there_.done);
  batch.unknown_tiles = OnDevice<uint32_t>(there_.unknown_tiles);
  batch.counted = OnDevice<uint32_t>(there_.counted);
  batch.inverse = OnDevice<int32_t>(there_.inverse);
  batch.keys = OnDevice<int64_t>(there_.keys);
  batch.counts = OnDevice<int32_t>(there_.counts);
  batch.names = OnDevice<RowHandle>(there_.names);
  if (num_residues_ == 0) batch.sent.keys = OnHost<int64_t>(here_.keys);
  batch.sent.counts = OnHost<DistinctCounts>(here_.counted);
  EV_RETURN_IF_ERROR(known_->Launch([&](const KnownKeysView& known) {
    batch.known = known;
    return LaunchDistinct(batch, lane_->stream());
  }));
  if (num_residues_ != 0) return SortByOwner();
  if (!brings_inverse_) return Status::OK();
  EV_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(
      OnHost<int32_t>(here_.inverse), OnDevice<int32_t>(there_.inverse),
      num_ids_ * sizeof(int32_t), cudaMemcpyDeviceToHost, lane_->stream()));
  return Status::OK();
}

Status GpuDistinct::SortByOwner() {
  EV_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(
      OnDevice<int32_t>(there_.owners), OnHost<int32_t>(here_.owners),
      num_residues_ * sizeof(int32_t), cudaMemcpyHostToDevice,
      lane_->stream()));
  OwnedKeys owned;
  owned.keys = OnDevice<int64_t>(there_.keys);
  owned.num_keys = OnDevice<uint32_t>(there_.counted);
  owned.most_keys = num_ids_;
  owned.owners = OnDevice<int32_t>(there_.owners);
  owned.num_residues = num_residues_;
  owned.num_owners = given_.num_owners;
  owned.tiles = OnDevice<uint32_t>(there_.owner_tiles);
  owned.total = OnDevice<uint32_t>(there_.counted) + 2;
  owned.done = OnDevice<uint32_t>(there_.done) + (kDistinctDone - 1);
  owned.places = OnDevice<int32_t>(there_.places);
  // After the copy has read the rule.
  owned.starts = OnHost<int32_t>(here_.owners);
  owned.sorted = OnHost<int64_t>(here_.keys);
  return LaunchSortByOwner(owned, lane_->stream());
}

bool GpuDistinct::IsDone() const {
  // The call that waits gets the error.
  return cudaStreamQuery(lane_->stream()) != cudaErrorNotReady;
}

Status GpuDistinct::Wait() {
  EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(device_));
  has_failed_ = true;
  EV_RETURN_IF_ERROR(lane_->Wait());
  known_.reset();
  const DistinctCounts counted = *OnHost<DistinctCounts>(here_.counted);
  num_unique_ = counted.num_unique;
  num_unknown_ = counted.num_unknown;
  if (num_unique_ < 1 || num_unique_ > num_ids_ || num_unknown_ > num_unique_) {
    return Internal("the GPU found " + std::to_string(num_unique_) +
                    " distinct keys, " + std::to_string(num_unknown_) +
                    " of them unknown, among " + std::to_string(num_ids_) +
                    " ids");
  }
  has_failed_ = false;
  if (!are_there_) return Status::OK();
  if ((counted.samples & kNotInOrder) != 0) {
    return Status(StatusCode::kUnimplemented,
                  "samples in the GPU's memory are not in order");
  }
  one_id_each_ = (counted.samples & kNotOneIdEach) == 0;
  if (num_residues_ != 0 && num_unknown_ != num_unique_) {
    return Internal("the GPU sorted " + std::to_string(num_unique_) +
                    " keys by owner, and knows some of them");
  }
  return Status::OK();
}

const int64_t* GpuDistinct::unknown_keys() const {
  return OnHost<int64_t>(here_.keys);
}

NamedKeys GpuDistinct::UnknownKeys() const {
  NamedKeys named;
  named.keys = OnDevice<int64_t>(there_.keys);
  named.numbers = OnDevice<uint32_t>(there_.heads);
  named.num_named = num_unknown_;
  return named;
}

Status GpuDistinct::NameOnly(Span<const RowHandle> names) {
  KnownKeys nothing(device_);
  return NameThem(names, /*num_rows=*/0, &nothing);
}

Status GpuDistinct::Name(Span<const RowHandle> names, KnownKeys* known) {
  return NameThem(names, NumRows(names), known);
}

Status GpuDistinct::NameThem(Span<const RowHandle> names, int64_t num_rows,
                             KnownKeys* known) {
  EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(device_));
  NamedKeys named = UnknownKeys();
  RowHandle* const here = OnHost<RowHandle>(here_.names);
  std::copy(names.begin(), names.end(), here);
  named.names = here;
  named.num_rows = num_rows;
  named.all_names = OnDevice<RowHandle>(there_.names);
  is_named_ = true;
  return known->Name(named, lane_->stream());
}

Status GpuDistinct::Follow(WorkLane* lane) const {
  if (!is_named_) return Status::OK();
  return lane->Follow(DeviceStream{lane_->stream()});
}

Status GpuDistinct::Rename(const RowHandle* names, int64_t num_rows,
                           KnownKeys* known, RowHandle* all_names,
                           StreamView stream) const {
  EV_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(
      all_names, OnDevice<RowHandle>(there_.names),
      num_unique_ * sizeof(RowHandle), cudaMemcpyDeviceToDevice, stream.get()));
  NamedKeys named = UnknownKeys();
  named.names = names;
  named.num_rows = num_rows;
  named.all_names = all_names;
  return known->Name(named, stream);
}

Status GpuDistinct::Fetch() const {
  if (is_fetched_.load(std::memory_order_acquire)) return Status::OK();
  std::lock_guard<std::mutex> lock(fetch_mu_);
  if (is_fetched_.load(std::memory_order_relaxed)) return Status::OK();
  EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(device_));
  const FetchedLayout layout = LayoutOf(num_unique_);
  std::unique_ptr<WorkLane> lane;
  EV_RETURN_IF_ERROR(WorkLane::Acquire(layout.bytes, 0, &lane));
  EV_RETURN_IF_ERROR(Follow(lane.get()));
  const auto fetch = [&](size_t to, size_t from, size_t width) {
    EV_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(
        lane->host() + to, lane_->device() + from, num_unique_ * width,
        cudaMemcpyDeviceToHost, lane->stream()));
    return Status::OK();
  };
  EV_RETURN_IF_ERROR(fetch(layout.keys, there_.keys, sizeof(int64_t)));
  EV_RETURN_IF_ERROR(fetch(layout.counts, there_.counts, sizeof(int32_t)));
  EV_RETURN_IF_ERROR(fetch(layout.names, there_.names, sizeof(RowHandle)));
  EV_RETURN_IF_ERROR(lane->Wait());
  fetched_ = std::move(lane);
  is_fetched_.store(true, std::memory_order_release);
  return Status::OK();
}

int64_t* GpuDistinct::keys() const {
  return reinterpret_cast<int64_t*>(fetched_->host() +
                                    LayoutOf(num_unique_).keys);
}
int32_t* GpuDistinct::counts() const {
  return reinterpret_cast<int32_t*>(fetched_->host() +
                                    LayoutOf(num_unique_).counts);
}
RowHandle* GpuDistinct::names() const {
  return reinterpret_cast<RowHandle*>(fetched_->host() +
                                      LayoutOf(num_unique_).names);
}

const RowHandle* GpuDistinct::device_names() const {
  return OnDevice<RowHandle>(there_.names);
}

GroupedBatch GpuDistinct::batch() const {
  GroupedBatch batch;
  batch.inverse = OnDevice<int32_t>(there_.inverse);
  batch.counts = OnDevice<int32_t>(there_.counts);
  batch.offsets = OnDevice<int32_t>(there_.offsets);
  batch.num_ids = num_ids_;
  batch.num_unique = num_unique_;
  batch.num_samples = num_samples_;
  return batch;
}

Status GpuDistinct::Inverse(int32_t* inverse, int32_t* counts) const {
  if (brings_inverse_) {
    const int32_t* const brought = OnHost<int32_t>(here_.inverse);
    if (inverse != nullptr) std::copy_n(brought, num_ids_, inverse);
    if (counts == nullptr) return Status::OK();
    std::fill_n(counts, num_unique_, 0);
    for (int64_t i = 0; i < num_ids_; ++i) ++counts[brought[i]];
    return Status::OK();
  }
  EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(device_));
  const size_t inverse_bytes =
      inverse == nullptr ? 0 : num_ids_ * sizeof(int32_t);
  const size_t count_bytes =
      counts == nullptr ? 0 : num_unique_ * sizeof(int32_t);
  Parts here;
  const size_t inverse_at = here.AddBytes(inverse_bytes);
  const size_t counts_at = here.AddBytes(count_bytes);
  std::unique_ptr<WorkLane> lane;
  EV_RETURN_IF_ERROR(WorkLane::Acquire(here.bytes(), 0, &lane));
  const auto fetch = [&](size_t to, size_t from, size_t bytes) {
    if (bytes == 0) return Status::OK();
    EV_CUDA_RETURN_IF_ERROR(
        cudaMemcpyAsync(lane->host() + to, lane_->device() + from, bytes,
                        cudaMemcpyDeviceToHost, lane->stream()));
    return Status::OK();
  };
  EV_RETURN_IF_ERROR(fetch(inverse_at, there_.inverse, inverse_bytes));
  EV_RETURN_IF_ERROR(fetch(counts_at, there_.counts, count_bytes));
  EV_RETURN_IF_ERROR(lane->Wait());
  if (inverse_bytes != 0) {
    std::memcpy(inverse, lane->host() + inverse_at, inverse_bytes);
  }
  if (count_bytes != 0) {
    std::memcpy(counts, lane->host() + counts_at, count_bytes);
  }
  WorkLane::Release(std::move(lane));
  return Status::OK();
}

Status GpuDistinct::Samples(int32_t* offsets) const {
  if (!are_there_) return DeviceDistinct::Samples(offsets);
  const int64_t count = num_samples_ + 1;
  if (one_id_each_) {
    std::iota(offsets, offsets + count, 0);
    return Status::OK();
  }
  return lane_->BringDown(there_.offsets, count * sizeof(int32_t), offsets);
}

const int32_t* GpuDistinct::owner_starts() const {
  return num_residues_ == 0 ? nullptr : OnHost<int32_t>(here_.owners);
}

Status GpuDistinct::Places(int32_t* places) const {
  if (num_residues_ == 0) return DeviceDistinct::Places(places);
  return lane_->BringDown(there_.places, num_unique_ * sizeof(int32_t), places);
}

const int32_t* GpuDistinct::device_places() const {
  return OnDevice<int32_t>(there_.places);
}

Status GpuDistinct::Occurrences(int32_t* samples) const {
  EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(device_));
  const GroupedBatch grouped = batch();
  size_t scratch_bytes = 0;
  EV_RETURN_IF_ERROR(GroupScratchBytes(grouped, &scratch_bytes));
  const size_t sample_bytes = num_ids_ * sizeof(int32_t);
  Parts there;
  const size_t samples_at = there.AddBytes(sample_bytes);
  const size_t scratch_at = there.AddBytes(scratch_bytes);
  std::unique_ptr<WorkLane> lane;
  EV_RETURN_IF_ERROR(WorkLane::Acquire(sample_bytes, there.bytes(), &lane));
  int32_t* const made = reinterpret_cast<int32_t*>(lane->device() + samples_at);
  EV_RETURN_IF_ERROR(LaunchGroup(grouped, lane->device() + scratch_at,
                                 scratch_bytes, /*ends=*/nullptr, made,
                                 lane->stream()));
  EV_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(lane->host(), made, sample_bytes,
                                          cudaMemcpyDeviceToHost,
                                          lane->stream()));
  EV_RETURN_IF_ERROR(lane->Wait());
  std::memcpy(samples, lane->host(), sample_bytes);
  WorkLane::Release(std::move(lane));
  return Status::OK();
}

}  // namespace gpu
}  // namespace ev
