// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/ids/gpu/distinct_group.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <utility>

#include "kernels/engine/base/gpu/block_parts.h"
#include "kernels/engine/base/gpu/cuda_error.h"
#include "kernels/engine/base/gpu/pinned_memory.h"

namespace ev {
namespace gpu {
namespace {

// Checks that a batch in device memory is in the memory of this device.
Status CheckIsOnDevice(int device, const DistinctRequest& request) {
  const IdsOnDevice& device_ids = request.device_ids;
  for (const void* array : {static_cast<const void*>(device_ids.ids64),
                            static_cast<const void*>(device_ids.ids32),
                            static_cast<const void*>(device_ids.row_splits),
                            static_cast<const void*>(device_ids.coo_indices)}) {
    if (array == nullptr) continue;
    const Status status =
        CheckIsOn(device, array, "a tensor of ids or samples");
    if (status.ok()) continue;
    return Status(status.code(),
                  status.message() + ", table '" + request.name + "'");
  }
  return Status::OK();
}

}  // namespace

DistinctGroup::DistinctGroup(int device, size_t num_tables)
    : device_(device),
      tables_(num_tables),
      batches_(num_tables),
      left_(num_tables) {}

DistinctGroup::~DistinctGroup() {
  if (context_ == nullptr) return;
  EV_CUDA_LOG_IF_ERROR(cudaSetDevice(device_));
  // A context whose state is unknown is not reused; its destructor waits.
  if (!has_failed_ && context_->Wait().ok())
    WorkContext::Release(std::move(context_));
}

Status DistinctGroup::Make(int device, Span<const DistinctRequest> requests,
                           std::shared_ptr<DistinctGroup>* group) {
  for (const DistinctRequest& request : requests) {
    if (request.on_device) EV_RETURN_IF_ERROR(CheckIsOnDevice(device, request));
  }
  std::shared_ptr<DistinctGroup> made(
      new DistinctGroup(device, requests.size()));
  size_t host_bytes = 0, device_bytes = 0;
  made->LayOut(requests, nullptr, nullptr, &host_bytes, &device_bytes);
  EV_RETURN_IF_ERROR(
      WorkContext::Acquire(host_bytes, device_bytes, &made->context_));
  made->LayOut(requests, made->context_->host(), made->context_->device(),
               &host_bytes, &device_bytes);
  EV_RETURN_IF_ERROR(made->Prepare(requests));
  *group = std::move(made);
  return Status::OK();
}

void DistinctGroup::LayOut(Span<const DistinctRequest> requests, char* host,
                           char* device, size_t* host_bytes,
                           size_t* device_bytes) {
  Carver on_host(host), on_device(device);
  // Ranges that one call copies have the same layout in both memories.
  const auto begin = [&](Stretch* stretch) {
    *stretch = {on_host.next(), on_device.next(), on_device.bytes()};
  };
  const auto end = [&](Stretch* stretch) {
    stretch->bytes = on_device.bytes() - stretch->bytes;
  };
  begin(&cleared_);
  for (size_t t = 0; t < requests.size(); ++t) {
    DistinctBatch* const batch = &batches_[t];
    batch->entries = on_device.Take<unsigned long long>(
        NumDistinctEntries(requests[t].num_ids));
    batch->done = on_device.Take<uint32_t>(kDistinctDone);
  }
  end(&cleared_);
  // Without gaps, as StagedUpload requires.
  begin(&offsets_);
  size_t num_offsets = 0;
  for (const DistinctRequest& request : requests) {
    if (!request.on_device) num_offsets += request.num_samples + 1;
  }
  int32_t* host_offsets = on_host.Take<int32_t>(num_offsets);
  int32_t* device_offsets = on_device.Take<int32_t>(num_offsets);
  offsets_.bytes = num_offsets * sizeof(int32_t);
  begin(&inverses_);
  for (size_t t = 0; t < requests.size(); ++t) {
    if (!requests[t].brings_inverse) continue;
    tables_[t].on_host.inverse = on_host.Take<int32_t>(requests[t].num_ids);
    batches_[t].inverse = on_device.Take<int32_t>(requests[t].num_ids);
  }
  end(&inverses_);
  owned_.clear();
  begin(&owners_);
  for (size_t t = 0; t < requests.size(); ++t) {
    const DistinctRequest& request = requests[t];
    if (request.owners.empty()) continue;
    tables_[t].on_host.owners = on_host.Take<int32_t>(request.owners.size());
    owned_.emplace_back();
    owned_.back().owners = on_device.Take<int32_t>(request.owners.size());
  }
  end(&owners_);
  auto owned = owned_.begin();
  for (size_t t = 0; t < requests.size(); ++t) {
    const DistinctRequest& request = requests[t];
    const size_t n = request.num_ids;
    const size_t tiles = NumDistinctTiles(request.num_ids);
    Table* const table = &tables_[t];
    DistinctBatch* const batch = &batches_[t];
    table->on_host.ids = on_host.Take<char>(n * sizeof(int64_t));
    table->on_host.keys = reinterpret_cast<int64_t*>(table->on_host.ids);
    batch->sent.counts = on_host.Take<DistinctCounts>(1);
    if (request.on_device) {
      batch->offsets = on_device.Take<int32_t>(request.num_samples + 1);
    } else {
      table->ids = on_device.Take<char>(n * sizeof(int64_t));
      batch->ids = table->ids;
      if (host != nullptr) {
        table->on_host.offsets = host_offsets;
        batch->offsets = device_offsets;
        host_offsets += request.num_samples + 1;
        device_offsets += request.num_samples + 1;
      }
    }
    if (!request.brings_inverse) batch->inverse = on_device.Take<int32_t>(n);
    batch->heads = on_device.Take<uint32_t>(n);
    batch->tiles = on_device.Take<uint32_t>(tiles);
    batch->counted = on_device.Take<uint32_t>(2);
    batch->keys = on_device.Take<int64_t>(n);
    batch->counts = on_device.Take<int32_t>(n);
    if (request.owners.empty()) {
      batch->sent.keys = table->on_host.keys;
      continue;
    }
    table->on_host.owner_starts = on_host.Take<int32_t>(request.num_owners + 1);
    table->places = on_device.Take<int32_t>(n);
    owned->tiles = on_device.Take<uint32_t>(request.num_owners * tiles);
    owned->keys = batch->keys;
    owned->num_keys = batch->counted;
    owned->most_keys = request.num_ids;
    owned->num_residues = request.owners.size();
    owned->num_owners = request.num_owners;
    if (host != nullptr) {
      owned->total = batch->counted + 1;
      owned->done = batch->done + (kDistinctDone - 1);
    }
    owned->places = table->places;
    owned->starts = table->on_host.owner_starts;
    owned->sorted = table->on_host.keys;
    ++owned;
  }
  *host_bytes = on_host.bytes();
  *device_bytes = on_device.bytes();
}

Status DistinctGroup::SendUp(const Stretch& stretch) {
  if (stretch.bytes == 0) return Status::OK();
  EV_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(stretch.on_device, stretch.on_host,
                                          stretch.bytes, cudaMemcpyHostToDevice,
                                          context_->stream()));
  return Status::OK();
}

Status DistinctGroup::Prepare(Span<const DistinctRequest> requests) {
  offsets_upload_.reset(new StagedUpload(offsets_.bytes));
  for (size_t t = 0; t < requests.size(); ++t) {
    const DistinctRequest& request = requests[t];
    Table* const table = &tables_[t];
    DistinctBatch* const batch = &batches_[t];
    table->num_ids = request.num_ids;
    table->num_samples = request.num_samples;
    table->on_device = request.on_device;
    table->is_sorted = !request.owners.empty();
    table->brings_inverse = request.brings_inverse;
    std::copy(request.owners.begin(), request.owners.end(),
              table->on_host.owners);
    batch->num_ids = static_cast<uint32_t>(request.num_ids);
    batch->num_samples = request.num_samples;
    if (!request.on_device) continue;
    const IdsOnDevice& device_ids = request.device_ids;
    batch->is_narrow = device_ids.ids32 != nullptr;
    batch->ids = batch->is_narrow ? static_cast<const void*>(device_ids.ids32)
                                  : static_cast<const void*>(device_ids.ids64);
    batch->splits = device_ids.row_splits;
    batch->indices = device_ids.coo_indices;
    const auto is_same = [&](const DeviceStream& stream) {
      return stream.native == device_ids.stream.native;
    };
    if (std::none_of(streams_.begin(), streams_.end(), is_same)) {
      streams_.push_back(device_ids.stream);
    }
  }
  EV_CUDA_RETURN_IF_ERROR(cudaMemsetAsync(cleared_.on_device, 0xFF,
                                          cleared_.bytes, context_->stream()));
  return SendUp(owners_);
}

Status DistinctGroup::Start(size_t t, bool is_narrow,
                            Span<const int32_t> offsets) {
  EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(device_));
  const Table& table = tables_[t];
  if (!table.on_device) {
    batches_[t].is_narrow = is_narrow;
    EV_RETURN_IF_ERROR(offsets_upload_->Put(
        reinterpret_cast<char*>(table.on_host.offsets) - offsets_.on_host,
        offsets.data(), offsets.size() * sizeof(int32_t), offsets_.bytes,
        offsets_.on_host, offsets_.on_device, context_->stream()));
  }
  if (left_.fetch_sub(1, std::memory_order_acq_rel) != 1) return Status::OK();
  launched_ = Launch();
  is_launched_.store(true, std::memory_order_release);
  return launched_;
}

Status DistinctGroup::Launch() {
  for (const DeviceStream& stream : streams_) {
    EV_RETURN_IF_ERROR(context_->Follow(stream));
  }
  EV_RETURN_IF_ERROR(LaunchDistinct(batches_, context_->stream()));
  EV_RETURN_IF_ERROR(LaunchSortByOwner(owned_, context_->stream()));
  if (inverses_.bytes == 0) return Status::OK();
  EV_CUDA_RETURN_IF_ERROR(
      cudaMemcpyAsync(inverses_.on_host, inverses_.on_device, inverses_.bytes,
                      cudaMemcpyDeviceToHost, context_->stream()));
  return Status::OK();
}

bool DistinctGroup::IsDone() const {
  // After an error it returns true: Wait returns the error.
  return is_launched_.load(std::memory_order_acquire) &&
         cudaStreamQuery(context_->stream()) != cudaErrorNotReady;
}

Status DistinctGroup::Wait() {
  std::lock_guard<std::mutex> lock(mu_);
  if (is_waited_for_) return waited_;
  if (!is_launched_.load(std::memory_order_acquire)) {
    return Internal(
        "a table is waited for before all that are deduplicated together with "
        "it were started");
  }
  is_waited_for_ = true;
  waited_ = WaitForAll();
  if (!waited_.ok()) Fail();
  return waited_;
}

Status DistinctGroup::WaitForAll() {
  EV_RETURN_IF_ERROR(launched_);
  EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(device_));
  return context_->Wait();
}

}  // namespace gpu
}  // namespace ev
