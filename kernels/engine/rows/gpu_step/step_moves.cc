// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/rows/gpu_step/step_moves.h"

#include <cuda_runtime_api.h>

#include <list>
#include <memory>
#include <vector>

#include "kernels/engine/base/gpu/cuda_error.h"
#include "kernels/engine/base/tasks.h"
#include "kernels/engine/rows/gpu_step/step_new_rows.h"

namespace ev {
namespace gpu {
namespace {

// After that many lookups of a table without an update, none is expected.
constexpr int kLookupsAlone = 4;

Status LaunchMoves(const StepLayout& layout, const StepWork& work,
                   Span<const int> numbers, Span<GpuRows* const> rows,
                   StreamView stream, InFlightEvents* followed,
                   std::shared_ptr<DeviceEvent>* moved) {
  const RowHandle* const handles =
      work.OnDevice<RowHandle>(layout.on_device.handles);
  std::vector<RowPlaces::Offer> offers;
  std::vector<GpuRows*> offered;
  std::list<RowPlaces::Moving> moving;
  for (size_t k = 0; k < rows.size(); ++k) {
    if (!rows[k]->has_host_rows()) continue;
    const std::shared_ptr<RowPlaces>& places = rows[k]->places();
    const StepLayout::Table& table = layout.tables[numbers[k]];
    RowPlaces::Offer offer;
    offer.places = places.get();
    offer.rows = rows[k]->pieces();
    offer.handles = handles + table.id_begin;
    offer.num_ids = table.num_ids;
    moving.emplace_back(places);
    if (!moving.back().is_closed()) {
      moving.pop_back();
      continue;
    }
    EV_RETURN_IF_ERROR(
        FollowAll(rows[k]->events().in_flight(), stream, followed));
    offers.push_back(offer);
    offered.push_back(rows[k]);
  }
  if (offers.empty()) return Status::OK();
  Status status = RowPlaces::LaunchMoves(offers, stream);
  if (status.ok()) {
    status = CatchBadAlloc([&] { return DeviceEvent::Record(stream, moved); });
  }
  if (!status.ok()) {
    // Other streams do not wait for what was enqueued.
    EV_CUDA_LOG_IF_ERROR(cudaStreamSynchronize(stream.get()));
    return status;
  }
  for (GpuRows* of : offered) of->events().Add(*moved, *followed);
  return Status::OK();
}

}  // namespace

std::shared_ptr<DeviceEvent> MoveRows(
    const StepLayout& layout, const StepWork& work, Span<const int> numbers,
    Span<GpuRows* const> rows, StreamView stream, InFlightEvents* followed) {
  std::shared_ptr<DeviceEvent> moved;
  const Status status = CatchBadAlloc([&] {
    return LaunchMoves(layout, work, numbers, rows, stream, followed, &moved);
  });
  // The call has done its work and must not fail now. Without host memory the
  // rows stay where they are; the next call returns an error of the GPU itself.
  return status.ok() ? moved : nullptr;
}

void MoveAfterLookups(const StepLayout& layout, StepWork* work) {
  const Status status = CatchBadAlloc([&] {
    std::vector<int> numbers;
    std::vector<GpuRows*> rows;
    for (size_t t = 0; t < layout.tables.size(); ++t) {
      GpuRows* const of = layout.tables[t].rows;
      if (of->places() == nullptr || ++of->hints().lookups < kLookupsAlone) {
        continue;
      }
      numbers.push_back(static_cast<int>(t));
      rows.push_back(of);
    }
    MoveRows(layout, *work, numbers, rows, work->stream(), work->followed());
    return Status::OK();
  });
  (void)status;  // as in MoveRows
}

}  // namespace gpu
}  // namespace ev
