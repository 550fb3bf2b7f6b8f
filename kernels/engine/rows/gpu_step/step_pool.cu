// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// StepCall: pools the rows, and takes outputs to host memory.

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <vector>

#include "kernels/engine/base/gpu/cuda_error.h"
#include "kernels/engine/gpu_step/place_sort.h"
#include "kernels/engine/rows/gpu_step/step_call.h"
#include "kernels/engine/rows/gpu_step/step_fetch.h"

namespace ev {
namespace gpu {

Status StepCall::LocateRows(int begin, int end, const Launches& launches) {
  if (!has_places_) return Status::OK();
  const StepLookup lookup = LookupView(launches.num_entries);
  StepFetch fetch;
  uint32_t *keys = nullptr, *positions = nullptr;
  PlaceSort sort(OnDevice<char>(on_device_.sort), most_wave_ids_);
  if (has_host_rows_) {
    int64_t num_places = 0;
    for (int t = begin; t < end; ++t) {
      const RowPlaces* const places = tables_[t].rows->places().get();
      if (places == nullptr) continue;
      num_places = std::max(num_places, places->num_places());
    }
    fetch.order = PlaceOrder::Of(launches.num_entries, num_places);
    fetch.first_id = tables_[begin].id_begin;
    fetch.num_ids =
        tables_[end - 1].id_begin + tables_[end - 1].num_ids - fetch.first_id;
    fetch.staged = OnDevice<float>(on_device_.staged);
    fetch.num_staged = num_staged_;
    fetch.stride = staged_stride_;
    keys = sort.keys();
    positions = sort.values();
  }
  const cudaStream_t stream = context_->stream();
  EV_RETURN_IF_ERROR(LaunchLocate(lookup, launches.find_blocks, fetch, keys,
                                  positions, stream));
  if (!has_host_rows_) return Status::OK();
  const uint32_t *sorted_keys = nullptr, *sorted_positions = nullptr;
  EV_RETURN_IF_ERROR(sort.Launch(0, fetch.num_ids, fetch.order.bits, stream,
                                 &sorted_keys, &sorted_positions));
  return LaunchFetch(lookup, fetch, sorted_keys, sorted_positions, stream);
}

Status StepCall::LaunchPools(const Launches& launches) {
  const std::vector<int>& kinds = launches.kind_begin;
  const std::vector<int>& blocks = launches.block_begin;
  for (int kind = 0; kind < kPoolKinds; ++kind) {
    EV_RETURN_IF_ERROR(LaunchPoolHandles(
        LookupView(launches.num_entries), kind, kinds[kind], kinds[kind + 1],
        blocks[kind], blocks[kind + 1] - blocks[kind], context_->stream()));
  }
  return Status::OK();
}

// Pools tables of which some have ids in GPU memory.
Status StepCall::PoolAll() {
  std::vector<GpuRows*> rows;
  for (const Table& table : tables_) rows.push_back(table.rows);
  EV_RETURN_IF_ERROR(FollowRows(rows, context_->stream(), &followed_));
  Described described;
  described.end = static_cast<int>(tables_.size());
  described.pools = true;
  described.on_host =
      on_host_.pool_tables;  // on_host_.tables may still be in flight
  Launches launches;
  EV_RETURN_IF_ERROR(SendDescription(described, &launches));
  EV_RETURN_IF_ERROR(context_->Follow(*stream_));
  writes_outputs_ = true;
  EV_RETURN_IF_ERROR(LocateRows(0, described.end, launches));
  return LaunchPools(launches);
}

Status StepCall::Pool() {
  EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(device_));
  EV_RETURN_IF_ERROR(WaitForInput());
  for (size_t t = 0; t < tables_.size(); ++t) {
    EV_RETURN_IF_ERROR(tables_[t].rows->CheckUsable());
    if (!is_pooled_) EV_RETURN_IF_ERROR(CheckOutput(static_cast<int>(t)));
  }
  has_failed_ = true;
  if (!is_pooled_) EV_RETURN_IF_ERROR(PoolAll());
  EV_RETURN_IF_ERROR(End(context_->stream(), stream_.get()));
  if (have_occurrences_) {  // needed by updates only, so after the outputs
    EV_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(
        context_->device() + on_device_.occurrences,
        context_->host() + on_host_.occurrences, num_ids_ * sizeof(int32_t),
        cudaMemcpyHostToDevice, context_->stream()));
  }
  for (const Table& table : tables_) table.rows->events().Add(end_, followed_);
  for (Table& table : tables_) table.use.reset();
  MoveAfterLookups();
  has_failed_ = false;
  const bool expects_update = ExpectsUpdate();
  std::lock_guard<std::mutex> lock(mu_);
  groups_early_ = expects_update;
  return Status::OK();
}

// Outputs in pageable memory are staged in pinned memory, in the same layout as
// on the GPU, so that adjacent outputs are copied together.
Status StepCall::BringOutputs(int begin, int end) {
  for (int t = begin; t < end;) {
    const Table& first = tables_[t];
    size_t bytes = first.out_bytes();
    void* to = first.host_out;
    ++t;
    if (first.out.data() == to) continue;
    if (!first.is_host_out_pinned) {
      to = context_->host() + on_host_.outputs + first.out_at;
      for (; t < end && !tables_[t].is_host_out_pinned; ++t) {
        bytes = tables_[t].out_at + tables_[t].out_bytes() - first.out_at;
      }
    }
    EV_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(to, first.out.data(), bytes,
                                            cudaMemcpyDeviceToHost,
                                            context_->stream()));
  }
  return Status::OK();
}

Status StepCall::TakeOutput(int t) {
  const Table& table = tables_[t];
  if (table.host_out == nullptr || end_ == nullptr) {
    return Internal("a step has no output in host memory");
  }
  EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(device_));
  EV_RETURN_IF_ERROR(end_->Wait());
  are_outputs_taken_.store(true, std::memory_order_relaxed);
  if (!table.is_host_out_pinned) {
    std::memcpy(table.host_out,
                context_->host() + on_host_.outputs + table.out_at,
                table.out_bytes());
  }
  return Status::OK();
}

}  // namespace gpu
}  // namespace ev
