// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include <cuda_runtime_api.h>

#include <utility>
#include <vector>

#include "kernels/engine/base/gpu/cuda_error.h"
#include "kernels/engine/optimizer/rule_list.h"
#include "kernels/engine/rows/gpu_step/step_call.h"
#include "kernels/engine/rows/gpu_step/step_moves.h"

namespace ev {
namespace gpu {
namespace {

const bool kRegistered = RegisterGpuStepFactory(&StepCall::Make);

std::vector<int> WaveSizes(const StepLayout& layout) {
  std::vector<int> sizes;
  for (const StepLayout::Wave& wave : layout.waves) {
    sizes.push_back(wave.end - wave.begin);
  }
  return sizes;
}

}  // namespace

StepCall::StepCall(int device, const DeviceStream* stream, StepLayout layout,
                   Uses uses)
    : layout_(std::move(layout)),
      work_(device, stream),
      ids_(&layout_, &work_),
      description_(&layout_, &work_, &ids_),
      find_(&layout_, &work_, &ids_, &description_),
      pool_(&layout_, &work_, &description_),
      update_(&layout_, &work_, &ids_, &find_),
      queue_(WaveSizes(layout_)),
      uses_(std::move(uses)) {}

Status StepCall::Make(int device, Span<const GpuStepTable> tables,
                      const DeviceStream* stream,
                      std::shared_ptr<GpuStep>* step) {
  (void)kRegistered;
  Uses uses;
  for (const GpuStepTable& given : tables) {
    const GpuRows* const rows = static_cast<GpuRows*>(given.table);
    if (rows->places() != nullptr) uses.emplace_back(rows->places());
  }
  StepLayout layout;
  EV_RETURN_IF_ERROR(
      StepLayout::Make(device, tables, stream != nullptr, &layout));
  std::shared_ptr<StepCall> made(
      new StepCall(device, stream, std::move(layout), std::move(uses)));
  EV_RETURN_IF_ERROR(made->work_.Acquire(made->layout_.on_host.bytes,
                                         made->layout_.on_device.bytes));
  EV_RETURN_IF_ERROR(made->ids_.Create());
  *step = std::move(made);
  return Status::OK();
}

StepCall::~StepCall() {
  EV_CUDA_LOG_IF_ERROR(cudaSetDevice(work_.device()));
  pool_.Finish();
  if (work_.context() != nullptr) {
    // The GPU may still read the caller's ids. Ids in GPU memory need no wait
    // if the end was recorded, because the caller's stream waits for it.
    const bool may_be_read =
        layout_.are_pinned || (layout_.are_on_device && work_.end() == nullptr);
    if (may_be_read && !find_.is_taken() && !work_.context()->Wait().ok()) {
      work_.Begin();
    }
    update_.Finish();
    // Copies of ids of waves that were not launched may be in flight.
    if (!ids_.Join().ok()) work_.Begin();
  }
  ids_.ReleaseStream();
  work_.Release();
}

Status StepCall::Start(int t, Span<const int32_t> offsets) {
  EV_RETURN_IF_ERROR(ids_.Start(t, offsets));
  return queue_.Arrive(layout_.tables[t].wave,
                       [this](size_t w) { return Launch(layout_.waves[w]); });
}

Status StepCall::Launch(const StepLayout::Wave& wave) {
  work_.Begin();
  EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(work_.device()));
  EV_RETURN_IF_ERROR(ids_.Join());
  StepLaunches launches;
  EV_RETURN_IF_ERROR(find_.Launch(wave, layout_.pools_early, &launches));
  if (layout_.pools_early) {
    EV_RETURN_IF_ERROR(pool_.LaunchWave(wave, launches));
  }
  if (wave.end == static_cast<int>(layout_.tables.size())) {
    EV_RETURN_IF_ERROR(find_.BringCounter());
  }
  work_.Succeed();
  return Status::OK();
}

Status StepCall::Pool() {
  EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(work_.device()));
  EV_RETURN_IF_ERROR(ids_.Wait());
  EV_RETURN_IF_ERROR(pool_.Run());
  work_.Begin();
  // Needed by updates only, so they are sent after the outputs.
  EV_RETURN_IF_ERROR(ids_.SendOccurrences());
  for (const StepLayout::Table& table : layout_.tables) {
    table.rows->events().Add(work_.end(), *work_.followed());
  }
  uses_.clear();
  MoveAfterLookups(layout_, &work_);
  work_.Succeed();
  const bool expects_update = update_.ExpectsUpdate();
  std::lock_guard<std::mutex> lock(mu_);
  if (expects_update) update_.AllowGroups();
  return Status::OK();
}

std::function<void()> StepCall::TakeRest() {
  std::lock_guard<std::mutex> lock(mu_);
  if (!update_.groups_early()) return nullptr;
  const std::shared_ptr<StepCall> self = shared_from_this();
  // Runs on a pool thread; must not throw.
  return [self] {
    std::lock_guard<std::mutex> lock(self->mu_);
    self->update_.GroupEarly();
  };
}

Status StepCall::Settle(int t, GpuStepUnknown* unknown) {
  if (!find_.unknown(t).is_settled) {
    std::lock_guard<std::mutex> lock(mu_);
    EV_RETURN_IF_ERROR(find_.TakeUnknown());
  }
  return find_.Settle(t, unknown);
}

Status StepCall::BringIds(int t, GpuStepIds* to) {
  EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(work_.device()));
  EV_RETURN_IF_ERROR(ids_.Bring(t, to));
  return find_.BringHandles(t, to->handles);
}

bool StepCall::CanUpdate(const std::string& rule,
                         Span<const int> slot_columns) const {
  for (size_t k = 0; k < slot_columns.size(); ++k) {
    if (slot_columns[k] != static_cast<int>(k)) return false;
  }
  return IsRule(rule);
}

Status StepCall::Update(const std::string& rule, Span<const float> hyper,
                        Span<const GpuStepUpdate> updates,
                        const DeviceStream* stream,
                        std::unique_ptr<GpuMetaUpdates>* meta_updates) {
  meta_updates->reset();
  StepUpdate::Call call;
  EV_RETURN_IF_ERROR(update_.Prepare(updates, stream, &call));
  std::lock_guard<std::mutex> lock(mu_);
  EV_RETURN_IF_ERROR(update_.Run(rule, hyper, stream, &call));
  *meta_updates = std::move(call.listed);
  return Status::OK();
}

}  // namespace gpu
}  // namespace ev
