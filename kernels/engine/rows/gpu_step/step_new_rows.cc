// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/rows/gpu_step/step_new_rows.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <list>
#include <memory>

#include "kernels/engine/base/gpu/block_parts.h"
#include "kernels/engine/base/gpu/cuda_error.h"
#include "kernels/engine/base/tasks.h"
#include "kernels/engine/rows/gpu/known_keys.h"
#include "kernels/engine/rows/gpu/row_kernels.h"

namespace ev {
namespace gpu {
namespace {

// Sends all queues in one copy, then launches two kernels per table. *context:
// the memory that is sent.
Status WriteQueues(const std::vector<GpuRows*>& all,
                   std::list<NewRows::Writing>* writings, StreamView stream,
                   StepWork* work, WorkContext** context,
                   InFlightEvents* followed) {
  size_t num_rows = 0, num_keys = 0;
  for (const NewRows::Writing& writing : *writings) {
    num_rows += writing.queue().rows.size();
    num_keys += writing.queue().keys.size();
  }
  Parts both;
  const size_t defaults_at = both.AddBytes(num_rows * sizeof(int64_t));
  const size_t keys_at = both.AddBytes(num_keys * sizeof(int64_t));
  const size_t rows_at = both.AddBytes(num_rows * sizeof(RowHandle));
  const size_t handles_at = both.AddBytes(num_keys * sizeof(RowHandle));
  EV_RETURN_IF_ERROR(work->AcquireMore(both.bytes(), both.bytes(), context));
  char* const on_host = (*context)->host();
  char* const on_device = (*context)->device();
  int64_t* defaults = reinterpret_cast<int64_t*>(on_host + defaults_at);
  int64_t* keys = reinterpret_cast<int64_t*>(on_host + keys_at);
  RowHandle* rows = reinterpret_cast<RowHandle*>(on_host + rows_at);
  RowHandle* handles = reinterpret_cast<RowHandle*>(on_host + handles_at);
  for (const NewRows::Writing& writing : *writings) {
    for (const NewRows::Row& row : writing.queue().rows) {
      *rows++ = row.handle;
      *defaults++ = row.default_row;
    }
    for (const NewRows::Key& key : writing.queue().keys) {
      *keys++ = key.key;
      *handles++ = key.handle;
    }
  }
  EV_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(
      on_device, on_host, both.bytes(), cudaMemcpyHostToDevice, stream.get()));
  size_t row = 0, key = 0;
  auto writing = writings->begin();
  for (GpuRows* table : all) {
    const NewRows::Queue& queue = writing->queue();
    EV_RETURN_IF_ERROR(
        FollowAll(table->events().in_flight(), stream, followed));
    RowBatch batch;
    batch.rows = table->pieces();
    batch.handles =
        reinterpret_cast<const RowHandle*>(on_device + rows_at) + row;
    batch.num_rows = queue.rows.size();
    batch.dim = table->shape().offset(1);
    if (batch.num_rows != 0) {
      EV_RETURN_IF_ERROR(LaunchNewRows(
          batch,
          reinterpret_cast<const int64_t*>(on_device + defaults_at) + row,
          table->default_rows(), table->new_slots(), stream));
      writing->WroteRows(queue.rows.size());
    }
    EV_RETURN_IF_ERROR(table->LaunchHashes(
        reinterpret_cast<const int64_t*>(on_device + keys_at) + key,
        reinterpret_cast<const RowHandle*>(on_device + handles_at) + key,
        queue.keys.size(), stream));
    EV_RETURN_IF_ERROR(table->known()->Put(
        reinterpret_cast<const int64_t*>(on_device + keys_at) + key,
        reinterpret_cast<const RowHandle*>(on_device + handles_at) + key,
        queue.keys.size(), stream));
    writing->WroteKeys(queue.keys.size());
    row += queue.rows.size();
    key += queue.keys.size();
    ++writing;
  }
  return Status::OK();
}

}  // namespace

// Tables of one model were in the same earlier step and share its event, so
// each event is waited for once.
Status FollowAll(const InFlightEvents& events, StreamView stream,
                 InFlightEvents* followed) {
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

Status WriteNew(std::vector<GpuRows*> all, StreamView stream, StepWork* work) {
  all.erase(
      std::remove_if(all.begin(), all.end(),
                     [](GpuRows* rows) { return !rows->new_rows().has_any(); }),
      all.end());
  if (all.empty()) return Status::OK();
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  std::list<NewRows::Writing> queues;
  std::shared_ptr<DeviceEvent> written;
  InFlightEvents followed;
  const Status status = CatchBadAlloc([&] {
    for (GpuRows* rows : all) queues.emplace_back(&rows->new_rows());
    WorkContext* context = nullptr;
    EV_RETURN_IF_ERROR(
        WriteQueues(all, &queues, stream, work, &context, &followed));
    EV_RETURN_IF_ERROR(DeviceEvent::Record(stream, &written));
    // The context's memory is in use until 'written', even if the step fails
    // later.
    return written->Before(context->stream());
  });
  if (status.ok()) {
    for (GpuRows* rows : all) rows->events().AddKeys(written, followed);
  } else if (std::any_of(queues.begin(), queues.end(),
                         [](const NewRows::Writing& queue) {
                           return queue.wrote_any();
                         })) {
    // Other streams do not wait for what was enqueued.
    EV_CUDA_LOG_IF_ERROR(cudaStreamSynchronize(stream.get()));
  }
  return status;
}

Status FollowKeys(const std::vector<GpuRows*>& all, StreamView stream) {
  InFlightEvents followed;
  for (GpuRows* rows : all) {
    const std::shared_ptr<DeviceEvent> keys = rows->events().last_keys();
    if (keys == nullptr) continue;
    EV_RETURN_IF_ERROR(FollowAll({keys}, stream, &followed));
  }
  return Status::OK();
}

Status FollowRows(const std::vector<GpuRows*>& all, StreamView stream,
                  InFlightEvents* followed) {
  for (GpuRows* rows : all) {
    EV_RETURN_IF_ERROR(FollowAll(rows->events().in_flight(), stream, followed));
  }
  return Status::OK();
}

}  // namespace gpu
}  // namespace ev
