// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/rows/gpu_step/step_pool.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "kernels/engine/base/gpu/cuda_error.h"
#include "kernels/engine/gpu_step/place_sort.h"
#include "kernels/engine/rows/gpu_step/step_fetch.h"
#include "kernels/engine/rows/gpu_step/step_new_rows.h"

namespace ev {
namespace gpu {

Status StepPool::LocateRows(int begin, int end, const StepLaunches& launches) {
  if (!layout_->has_places) return Status::OK();
  const StepLayout::Memory& device = layout_->on_device;
  const StepLookup lookup = description_->View(launches);
  StepFetch fetch;
  uint32_t *keys = nullptr, *positions = nullptr;
  PlaceSort sort(work_->OnDevice<char>(device.sort), layout_->most_wave_ids);
  if (layout_->has_host_rows) {
    int64_t num_places = 0;
    for (int t = begin; t < end; ++t) {
      const RowPlaces* const places = layout_->tables[t].rows->places().get();
      if (places == nullptr) continue;
      num_places = std::max(num_places, places->num_places());
    }
    const StepLayout::Table& last = layout_->tables[end - 1];
    fetch.order = PlaceOrder::Of(launches.num_entries, num_places);
    fetch.first_id = layout_->tables[begin].id_begin;
    fetch.num_ids = last.id_begin + last.num_ids - fetch.first_id;
    fetch.staged = work_->OnDevice<float>(device.staged);
    fetch.num_staged = layout_->num_staged;
    fetch.stride = layout_->staged_stride;
    keys = sort.keys();
    positions = sort.values();
  }
  const cudaStream_t stream = work_->stream();
  EV_RETURN_IF_ERROR(LaunchLocate(lookup, launches.find_blocks, fetch, keys,
                                  positions, stream));
  if (!layout_->has_host_rows) return Status::OK();
  const uint32_t *sorted_keys = nullptr, *sorted_positions = nullptr;
  EV_RETURN_IF_ERROR(sort.Launch(0, fetch.num_ids, fetch.order.bits, stream,
                                 &sorted_keys, &sorted_positions));
  return LaunchFetch(lookup, fetch, sorted_keys, sorted_positions, stream);
}

Status StepPool::Launch(int begin, int end, const StepLaunches& launches) {
  writes_outputs_ = true;
  EV_RETURN_IF_ERROR(LocateRows(begin, end, launches));
  const std::vector<int>& kinds = launches.kind_begin;
  const std::vector<int>& blocks = launches.block_begin;
  for (int kind = 0; kind < kPoolKinds; ++kind) {
    EV_RETURN_IF_ERROR(LaunchPoolHandles(
        description_->View(launches), kind, kinds[kind], kinds[kind + 1],
        blocks[kind], blocks[kind + 1] - blocks[kind], work_->stream()));
  }
  return Status::OK();
}

Status StepPool::LaunchWave(const StepLayout::Wave& wave,
                            const StepLaunches& launches) {
  EV_RETURN_IF_ERROR(FollowRows(layout_->RowsOf(wave.begin, wave.end),
                                work_->stream(), work_->followed()));
  // Earlier work of the caller's stream may use the outputs.
  if (wave.begin == 0 && work_->outside() != nullptr) {
    EV_RETURN_IF_ERROR(work_->context()->Follow(*work_->outside()));
  }
  EV_RETURN_IF_ERROR(Launch(wave.begin, wave.end, launches));
  if (work_->outside() == nullptr) {
    EV_RETURN_IF_ERROR(BringOutputs(wave.begin, wave.end));
  }
  is_launched_ = wave.end == static_cast<int>(layout_->tables.size());
  return Status::OK();
}

Status StepPool::LaunchAll() {
  StepDescription::Part part;
  part.end = static_cast<int>(layout_->tables.size());
  part.pools = true;
  // The description of the lookup may still be in flight.
  part.on_host = layout_->on_host.pool_tables;
  const std::vector<GpuRows*> rows = layout_->RowsOf(0, part.end);
  EV_RETURN_IF_ERROR(WriteNew(rows, work_->stream(), work_));
  EV_RETURN_IF_ERROR(FollowRows(rows, work_->stream(), work_->followed()));
  StepLaunches launches;
  EV_RETURN_IF_ERROR(description_->Send(part, &launches));
  EV_RETURN_IF_ERROR(work_->context()->Follow(*work_->outside()));
  return Launch(0, part.end, launches);
}

Status StepPool::Run() {
  for (size_t t = 0; t < layout_->tables.size(); ++t) {
    EV_RETURN_IF_ERROR(layout_->tables[t].rows->CheckUsable());
    if (is_launched_) continue;
    EV_RETURN_IF_ERROR(
        layout_->CheckOutput(work_->device(), static_cast<int>(t)));
  }
  work_->Begin();
  if (!is_launched_) EV_RETURN_IF_ERROR(LaunchAll());
  EV_RETURN_IF_ERROR(work_->End(work_->stream(), work_->outside()));
  work_->Succeed();
  return Status::OK();
}

// Outputs in pageable memory are staged in pinned memory, in the same layout as
// on the GPU, so that adjacent outputs are copied together.
Status StepPool::BringOutputs(int begin, int end) {
  char* const outputs = work_->OnDevice<char>(layout_->on_device.outputs);
  for (int t = begin; t < end;) {
    const StepLayout::Table& first = layout_->tables[t];
    const char* const from = first.OutIn(outputs).data();
    size_t bytes = first.out_bytes();
    void* to = first.host_out;
    ++t;
    if (from == to) continue;
    if (!first.is_host_out_pinned) {
      to = work_->OnHost<char>(layout_->on_host.outputs + first.out_at);
      for (; t < end && !layout_->tables[t].is_host_out_pinned; ++t) {
        const StepLayout::Table& last = layout_->tables[t];
        bytes = last.out_at + last.out_bytes() - first.out_at;
      }
    }
    EV_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(
        to, from, bytes, cudaMemcpyDeviceToHost, work_->stream()));
  }
  return Status::OK();
}

Status StepPool::TakeOutput(int t) {
  const StepLayout::Table& table = layout_->tables[t];
  if (table.host_out == nullptr || work_->end() == nullptr) {
    return Internal("a step has no output in host memory");
  }
  EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(work_->device()));
  EV_RETURN_IF_ERROR(work_->end()->Wait());
  are_outputs_taken_.store(true, std::memory_order_relaxed);
  if (!table.is_host_out_pinned) {
    std::memcpy(table.host_out,
                work_->OnHost<char>(layout_->on_host.outputs + table.out_at),
                table.out_bytes());
  }
  return Status::OK();
}

void StepPool::Finish() {
  const bool has_end = work_->end() != nullptr;
  // If Run was not called or failed, no stream waits for the outputs.
  if (writes_outputs_ && !has_end) work_->Begin();
  if (work_->outside() == nullptr && has_end && !are_outputs_taken_ &&
      !work_->end()->Wait().ok()) {
    work_->Begin();
  }
}

}  // namespace gpu
}  // namespace ev
