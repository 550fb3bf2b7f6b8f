// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// StepCall: the tables of a call of many ids in waves, so that the GPU is not
// idle while ids go up: the ids of a wave are found, and its rows pooled, while
// those of the next are on their way. That needs what a call of one wave is
// told later: where outputs go, and that the GPU knows all keys. If it turns
// out that it does not, all ids are found again, when they are there.
// Which thread launches a wave: wave_queue.h.

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "kernels/engine/base/gpu/cuda_error.h"
#include "kernels/engine/base/gpu/pinned_memory.h"
#include "kernels/engine/rows/gpu/side_streams.h"
#include "kernels/engine/rows/gpu/step_call.h"

namespace ev {
namespace gpu {
namespace {

// Ids of a wave, at least. Fewer cost the GPU more launches than their link
// time, 150 us for 2 M ids, hides.
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
  bool can_pool_early = num_ids_ >= 2 * MinIdsOfWave();
  for (const Table& table : tables_) {
    if (!can_pool_early) break;
    const int t = static_cast<int>(&table - tables_.data());
    can_pool_early = table.where == IdsAre::kHere &&
                     (table.out != nullptr || !table.pieces.empty()) &&
                     table.num_defaults != 0 && CheckOutput(t, table.out).ok();
  }
  int64_t ids = 0;
  for (size_t t = 0; t < tables_.size(); ++t) {
    if (t == 0 || (can_pool_early && ids >= MinIdsOfWave())) {
      waves_.emplace_back(new Wave);
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
  // Of each id, even where samples of this wave are of one id each: those of a
  // later wave may not be.
  has_lists_ = true;
  return SideStreams::Get()->Acquire(device_, &uploads_);
}

StreamView StepCall::upload_stream() const {
  return uploads_ != nullptr ? StreamView(uploads_->get())
                             : StreamView(lane_->stream());
}

Status StepCall::Launch(const Wave& wave) {
  has_failed_ = true;
  EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(device_));
  const bool is_last = wave.end == static_cast<int>(tables_.size());
  if (waves_.size() == 1) {
    EV_RETURN_IF_ERROR(LaunchFind());
  } else {
    EV_RETURN_IF_ERROR(uploads_->Join(lane_->stream()));
    if (!finds_again_) EV_RETURN_IF_ERROR(LaunchWave(wave));
    if (is_last && finds_again_) EV_RETURN_IF_ERROR(LaunchFind());
    if (is_last && !finds_again_) {
      knows_all_ = is_pooled_ = true;
      EV_RETURN_IF_ERROR(BringCounter());
    }
  }
  has_failed_ = false;
  if (is_last) is_launched_.store(true, std::memory_order_release);
  return Status::OK();
}

Status StepCall::LaunchWave(const Wave& wave) {
  const cudaStream_t stream = lane_->stream();
  if (wave.begin == 0) {
    EV_CUDA_RETURN_IF_ERROR(
        cudaMemsetAsync(lane_->device() + there_.counter, 0,
                        (1 + tables_.size()) * sizeof(uint32_t), stream));
  }
  std::vector<GpuRows*> rows;
  for (int t = wave.begin; t < wave.end; ++t) rows.push_back(tables_[t].rows);
  EV_RETURN_IF_ERROR(WriteNew(rows, stream));
  EV_RETURN_IF_ERROR(FollowKeys(rows, stream));
  if (wave.num_offsets > 0) {
    const size_t at = wave.offsets_at * sizeof(int32_t);
    EV_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(
        lane_->device() + there_.offsets + at,
        lane_->host() + here_.offsets + at, wave.num_offsets * sizeof(int32_t),
        cudaMemcpyHostToDevice, stream));
  }
  Launches launches;
  {
    const KnownLocks locks = LockKnown(wave.begin, wave.end);
    if (!CanKnowAll(wave.begin, wave.end)) {
      finds_again_ = true;
      return Status::OK();
    }
    std::vector<float*> outputs;
    for (const Table& table : tables_) outputs.push_back(table.out);
    Described described;
    described.begin = wave.begin;
    described.end = wave.end;
    described.finds = described.pools = described.knows_all = true;
    described.here = here_.waves + wave.tables_at;
    EV_RETURN_IF_ERROR(SendDescription(described, outputs, &launches));
    EV_RETURN_IF_ERROR(LaunchFindNames(LookupView(launches.num_entries),
                                       launches.find_blocks, stream));
  }
  for (GpuRows* of : rows) {
    EV_RETURN_IF_ERROR(FollowAll(of->begun(), stream, &followed_));
  }
  // The outputs are the caller's from there on.
  if (wave.begin == 0) EV_RETURN_IF_ERROR(lane_->Follow(given_));
  return LaunchPools(launches);
}

}  // namespace gpu
}  // namespace ev
