// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// StepCall: launches lookup and pooling together, unless ids are in GPU memory,
// whose samples must be checked first.
//
// The tables of a step with many ids are split into waves, so that the GPU is
// not idle during the copy of ids. The ids of a wave are looked up, and its
// rows pooled, while the ids of the next wave are copied. wave_queue.h decides
// which thread launches a wave.

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "kernels/engine/base/gpu/cuda_error.h"
#include "kernels/engine/base/gpu/pinned_memory.h"
#include "kernels/engine/base/gpu/side_streams.h"
#include "kernels/engine/rows/gpu_step/step_call.h"

namespace ev {
namespace gpu {
namespace {

// Minimum number of ids per wave. Copying 2 M ids takes 150 us; with smaller
// waves the additional launches cost more GPU time than the overlap saves.
int64_t MinIdsOfWave() {
  static const int64_t ids = [] {
    const char* const value = std::getenv("TF_EV_GPU_WAVE_IDS");
    const int64_t given =
        value == nullptr ? 0 : std::strtoll(value, nullptr, 10);
    return given > 0 ? given : int64_t{2} << 20;
  }();
  return ids;
}

}  // namespace

Status StepCall::CutIntoWaves() {
  pools_early_ = true;
  bool are_put = true;
  for (size_t t = 0; t < tables_.size() && pools_early_; ++t) {
    const Table& table = tables_[t];
    are_put = are_put && table.where == IdsAre::kPut;
    // Pool returns the error if an output is in another GPU's memory.
    pools_early_ =
        table.where != IdsAre::kOnGpu && CheckOutput(static_cast<int>(t)).ok();
  }
  const bool in_waves =
      pools_early_ && are_put && num_ids_ >= 2 * MinIdsOfWave();
  int64_t ids = 0;
  for (size_t t = 0; t < tables_.size(); ++t) {
    if (t == 0 || (in_waves && ids >= MinIdsOfWave())) {
      waves_.push_back(std::make_unique<Wave>());
      waves_.back()->begin = static_cast<int>(t);
      ids = 0;
    }
    tables_[t].wave = static_cast<int>(waves_.size()) - 1;
    waves_.back()->end = static_cast<int>(t) + 1;
    ids += tables_[t].num_ids;
  }
  std::vector<int> sizes;
  for (const auto& wave : waves_) sizes.push_back(wave->end - wave->begin);
  queue_.reset(new WaveQueue(sizes));
  if (waves_.size() < 2) return Status::OK();
  // Every wave writes the sample of each id, because a later wave may have
  // samples with several ids.
  has_lists_ = true;
  return SideStreams::Get()->Acquire(device_, &uploads_);
}

StreamView StepCall::upload_stream() const {
  return uploads_ != nullptr ? StreamView(uploads_->get())
                             : StreamView(context_->stream());
}

Status StepCall::Launch(const Wave& wave) {
  has_failed_ = true;
  EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(device_));
  if (uploads_ != nullptr)
    EV_RETURN_IF_ERROR(uploads_->Join(context_->stream()));
  if (pools_early_) EV_RETURN_IF_ERROR(LaunchWave(wave));
  const bool is_last = wave.end == static_cast<int>(tables_.size());
  if (is_last && pools_early_) {
    is_pooled_ = true;
    EV_RETURN_IF_ERROR(BringCounter());
  } else if (is_last) {
    EV_RETURN_IF_ERROR(LaunchFind());
  }
  has_failed_ = false;
  return Status::OK();
}

Status StepCall::LaunchWave(const Wave& wave) {
  const cudaStream_t stream = context_->stream();
  const bool is_only = waves_.size() == 1;
  if (wave.begin == 0 && !is_only) {
    EV_CUDA_RETURN_IF_ERROR(
        cudaMemsetAsync(context_->device() + on_device_.counter, 0,
                        (1 + tables_.size()) * sizeof(uint32_t), stream));
  }
  std::vector<GpuRows*> rows;
  for (int t = wave.begin; t < wave.end; ++t) rows.push_back(tables_[t].rows);
  EV_RETURN_IF_ERROR(WriteNew(rows, stream));
  EV_RETURN_IF_ERROR(FollowKeys(rows, stream));
  if (wave.num_offsets > 0 && has_lists_ && !is_small_) {
    const size_t at = wave.offsets_at * sizeof(int32_t);
    EV_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(
        context_->device() + on_device_.offsets + at,
        context_->host() + on_host_.offsets + at,
        wave.num_offsets * sizeof(int32_t), cudaMemcpyHostToDevice, stream));
  }
  Launches launches;
  {
    const KnownLocks locks = LockKnown(wave.begin, wave.end);
    Described described;
    described.begin = wave.begin;
    described.end = wave.end;
    described.finds = described.pools = true;
    described.on_host =
        is_only ? on_host_.tables : on_host_.waves + wave.tables_at;
    EV_RETURN_IF_ERROR(SendDescription(described, &launches));
    EV_RETURN_IF_ERROR(LaunchFindHandles(LookupView(launches.num_entries),
                                         launches.find_blocks, stream));
  }
  for (GpuRows* of : rows) {
    EV_RETURN_IF_ERROR(FollowAll(of->events().in_flight(), stream, &followed_));
  }
  // Earlier work of the caller's stream may use the outputs.
  if (wave.begin == 0 && stream_ != nullptr) {
    EV_RETURN_IF_ERROR(context_->Follow(*stream_));
  }
  writes_outputs_ = true;
  EV_RETURN_IF_ERROR(LocateRows(wave.begin, wave.end, launches));
  EV_RETURN_IF_ERROR(LaunchPools(launches));
  return stream_ == nullptr ? BringOutputs(wave.begin, wave.end) : Status::OK();
}

}  // namespace gpu
}  // namespace ev
