// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// StepCall: writes the queued new rows and keys of a step's tables on its
// stream, without waiting.

#include <cuda_runtime_api.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "kernels/engine/base/gpu/block_parts.h"
#include "kernels/engine/base/gpu/cuda_error.h"
#include "kernels/engine/rows/gpu/row_kernels.h"
#include "kernels/engine/rows/gpu_step/step_call.h"

namespace ev {
namespace gpu {

Status StepCall::WriteNew(std::vector<GpuRows*> all, StreamView stream) {
  all.erase(
      std::remove_if(all.begin(), all.end(),
                     [](GpuRows* rows) { return !rows->new_rows().has_any(); }),
      all.end());
  if (all.empty()) return Status::OK();
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  std::vector<NewRows::Queue> queues(all.size());
  std::vector<std::unique_lock<std::mutex>> locks;
  for (size_t k = 0; k < all.size(); ++k) {
    locks.push_back(all[k]->new_rows().Take(&queues[k]));
  }
  std::shared_ptr<DeviceEvent> written;
  BegunEvents followed;
  Status status = WriteQueues(all, queues, stream, &followed);
  if (status.ok()) status = DeviceEvent::Record(stream, &written);
  // The lane's memory is in use until 'written', even if the step fails later.
  if (status.ok()) status = written->Before(lanes_.back()->stream());
  for (size_t k = 0; k < all.size(); ++k) {
    if (status.ok()) {
      all[k]->events().AddKeys(written, followed);
      all[k]->new_rows().Done();
    } else {
      all[k]->new_rows().GiveBack(queues[k]);
    }
  }
  return status;
}

// Sends all queues in one copy, then launches two kernels per table.
Status StepCall::WriteQueues(const std::vector<GpuRows*>& all,
                             const std::vector<NewRows::Queue>& queues,
                             StreamView stream, BegunEvents* followed) {
  size_t num_rows = 0, num_keys = 0;
  for (const NewRows::Queue& queue : queues) {
    num_rows += queue.rows.size();
    num_keys += queue.keys.size();
  }
  Parts both;
  const size_t defaults_at = both.AddBytes(num_rows * sizeof(int64_t));
  const size_t keys_at = both.AddBytes(num_keys * sizeof(int64_t));
  const size_t rows_at = both.AddBytes(num_rows * sizeof(RowHandle));
  const size_t handles_at = both.AddBytes(num_keys * sizeof(RowHandle));
  std::unique_ptr<WorkLane> lane;
  EV_RETURN_IF_ERROR(WorkLane::Acquire(both.bytes(), both.bytes(), &lane));
  char* const here = lane->host();
  char* const there = lane->device();
  lanes_.push_back(std::move(lane));
  int64_t* defaults = reinterpret_cast<int64_t*>(here + defaults_at);
  int64_t* keys = reinterpret_cast<int64_t*>(here + keys_at);
  RowHandle* rows = reinterpret_cast<RowHandle*>(here + rows_at);
  RowHandle* handles = reinterpret_cast<RowHandle*>(here + handles_at);
  for (const NewRows::Queue& queue : queues) {
    for (const NewRows::Row& row : queue.rows) {
      *rows++ = row.handle;
      *defaults++ = row.default_row;
    }
    for (const NewRows::Key& key : queue.keys) {
      *keys++ = key.key;
      *handles++ = key.handle;
    }
  }
  EV_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(
      there, here, both.bytes(), cudaMemcpyHostToDevice, stream.get()));
  size_t row = 0, key = 0;
  for (size_t k = 0; k < all.size(); ++k) {
    EV_RETURN_IF_ERROR(FollowAll(all[k]->events().begun(), stream, followed));
    RowBatch batch;
    batch.rows = all[k]->pieces();
    batch.handles = reinterpret_cast<const RowHandle*>(there + rows_at) + row;
    batch.num_rows = queues[k].rows.size();
    batch.dim = all[k]->dim();
    if (batch.num_rows != 0) {
      EV_RETURN_IF_ERROR(LaunchNewRows(
          batch, reinterpret_cast<const int64_t*>(there + defaults_at) + row,
          all[k]->default_rows(), all[k]->initial_values(), all[k]->num_slots(),
          stream));
    }
    EV_RETURN_IF_ERROR(all[k]->known()->Put(
        reinterpret_cast<const int64_t*>(there + keys_at) + key,
        reinterpret_cast<const RowHandle*>(there + handles_at) + key,
        queues[k].keys.size(), stream));
    row += queues[k].rows.size();
    key += queues[k].keys.size();
  }
  return Status::OK();
}

// Tables of one model were in the same earlier step and share its event, so
// each event is waited for once.
Status StepCall::FollowAll(const BegunEvents& events, StreamView stream,
                           BegunEvents* followed) {
  for (const std::shared_ptr<DeviceEvent>& event : events) {
    if (std::find(followed->begin(), followed->end(), event) !=
        followed->end()) {
      continue;
    }
    EV_RETURN_IF_ERROR(event->Before(stream));
    followed->push_back(event);
  }
  return Status::OK();
}

Status StepCall::FollowKeys(const std::vector<GpuRows*>& all,
                            StreamView stream) {
  BegunEvents followed;
  for (GpuRows* rows : all) {
    const std::shared_ptr<DeviceEvent> keys = rows->events().last_keys();
    if (keys == nullptr) continue;
    EV_RETURN_IF_ERROR(FollowAll({keys}, stream, &followed));
  }
  return Status::OK();
}

Status StepCall::FollowRows(const std::vector<GpuRows*>& all, StreamView stream,
                            BegunEvents* followed) {
  EV_RETURN_IF_ERROR(WriteNew(all, stream));
  for (GpuRows* rows : all) {
    EV_RETURN_IF_ERROR(FollowAll(rows->events().begun(), stream, followed));
  }
  return Status::OK();
}

}  // namespace gpu
}  // namespace ev
