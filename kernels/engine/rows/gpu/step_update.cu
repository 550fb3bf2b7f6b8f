// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// StepCall::Update: occurrences are grouped by row while gradients are still
// being made, then rows are updated. The lists are those of
// gpu_step/step_plan.cuh.

#include <cuda_runtime_api.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "kernels/engine/base/gpu/cuda_error.h"
#include "kernels/engine/base/gpu/pinned_memory.h"
#include "kernels/engine/gpu_step/group.h"
#include "kernels/engine/gpu_step/side_stream.h"
#include "kernels/engine/gpu_step/sort_long.h"
#include "kernels/engine/gpu_step/step_plan.cuh"
#include "kernels/engine/gpu_step/update.h"
#include "kernels/engine/optimizer/rule_list.h"
#include "kernels/engine/rows/gpu/lane_work.h"
#include "kernels/engine/rows/gpu/step_call.h"

namespace ev {
namespace gpu {
namespace {

int64_t TilesOf(int64_t n, int64_t tile) { return (n + tile - 1) / tile; }

// Streams for work beside an update's own, used again. Never destroyed: the
// driver may be gone when a process ends.
class SideStreams {
 public:
  static SideStreams* Get() {
    static SideStreams* const streams = new SideStreams;
    return streams;
  }
  Status Acquire(int device, std::unique_ptr<SideStream>* stream) {
    {
      std::lock_guard<std::mutex> lock(mu_);
      for (size_t i = 0; i < idle_.size(); ++i) {
        if (idle_[i].first != device) continue;
        *stream = std::move(idle_[i].second);
        idle_.erase(idle_.begin() + i);
        return Status::OK();
      }
    }
    stream->reset(new SideStream);
    return (*stream)->Create();
  }
  void Release(int device, std::unique_ptr<SideStream> stream) {
    std::lock_guard<std::mutex> lock(mu_);
    idle_.emplace_back(device, std::move(stream));
  }

 private:
  std::mutex mu_;
  std::vector<std::pair<int, std::unique_ptr<SideStream>>> idle_;
};

// Arrays of a block, after a first pass that counts its bytes.
class Carver {
 public:
  explicit Carver(char* base) : base_(base) {}
  template <typename T>
  T* Take(int64_t n) {
    return reinterpret_cast<T*>(base_ + parts_.AddBytes(n * sizeof(T)));
  }
  size_t bytes() const { return parts_.bytes(); }

 private:
  char* const base_;
  Parts parts_;
};

}  // namespace

bool StepCall::CanUpdate(const std::string& rule,
                         Span<const int> slot_columns) const {
  for (size_t k = 0; k < slot_columns.size(); ++k) {
    if (slot_columns[k] != static_cast<int>(k)) return false;
  }
#define EV_RETURN_IF_NAMED(Rule) \
  if (rule == Rule::kName) return true;
  EV_STEP_RULES(EV_RETURN_IF_NAMED)
#undef EV_RETURN_IF_NAMED
  return false;
}

Status StepCall::Update(const std::string& rule, Span<const float> hyper,
                        Span<const GpuStepUpdate> updates,
                        const DeviceStream& stream) {
  EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(device_));
  const size_t n = updates.size();
  int64_t num_ids = 0, num_bins = 0, num_tiles = 0;
  int max_dim = 0;
  StepPlan plan = {};
  std::vector<StepTable> tables(n);
  std::vector<int32_t> tiles(2 * (n + 1));
  std::vector<NewNames> names;
  std::vector<std::vector<RowHandle>> rows_only(n);
  for (size_t k = 0; k < n; ++k) {
    const GpuStepUpdate& update = updates[k];
    const Table& of = tables_[update.number];
    GpuRows* const rows = static_cast<GpuRows*>(update.table);
    EV_RETURN_IF_ERROR(rows->CheckUsable());
    EV_RETURN_IF_ERROR(CheckIsOn(device_, update.grads, "the gradient"));
    StepTable& to = tables[k];
    to = StepTable{};
    to.id_begin = of.id_begin;
    to.num_ids = of.num_ids;
    to.sample_begin = of.sample_begin;
    to.num_samples = of.num_samples;
    // From address 0: the gradients are not one array.
    to.pooled_begin = static_cast<int64_t>(
        reinterpret_cast<uintptr_t>(update.grads) / sizeof(float));
    to.dim = static_cast<int32_t>(of.dim);
    to.slot_stride = to.dim;
    to.combiner = static_cast<int32_t>(of.combiner);
    const bool fits =
        reinterpret_cast<uintptr_t>(update.grads) % sizeof(float4) == 0;
    to.dim_class = fits ? ClassOfDim(to.dim) : kClasses - 1;
    to.bin_begin = static_cast<uint32_t>(num_bins);
    to.num_bins =
        static_cast<uint32_t>(std::min(TilesOf(of.num_ids, kBinIds), kMaxBins));
    tiles[k] = static_cast<int32_t>(num_tiles);
    tiles[n + 1 + k] = static_cast<int32_t>(num_bins);
    num_bins += to.num_bins;
    num_tiles += TilesOf(of.num_ids, kScatterTile);
    num_ids += of.num_ids;
    plan.class_ids[to.dim_class] += of.num_ids;
    max_dim = std::max(max_dim, to.dim);
    if (update.unknown_handles.empty()) continue;
    rows_only[k].assign(update.unknown_handles.begin(),
                        update.unknown_handles.end());
    for (RowHandle& handle : rows_only[k]) {
      if (handle >= kFirstReservedHandle) handle = ev::kNoRow;
    }
    names.push_back({&of, rows_only[k]});
  }
  tiles[n] = static_cast<int32_t>(num_tiles);
  tiles[2 * n + 1] = static_cast<int32_t>(num_bins);
  int64_t first_id = 0, first_long = 0;
  for (int c = 0; c < kClasses; ++c) {
    plan.id_base[c] = first_id;
    plan.long_base[c] = first_long;
    first_id += plan.class_ids[c];
    first_long += plan.class_ids[c] / (kSmallCount + 1) + 1;
  }
  Parts description;
  const size_t tables_at = description.AddBytes(n * sizeof(StepTable));
  const size_t tiles_at = description.AddBytes(tiles.size() * sizeof(int32_t));

  const char* described = nullptr;
  char* base = nullptr;
  size_t zeros = 0;
  std::unique_ptr<WorkLane> lane;
  for (int pass = 0; pass < 2; ++pass) {
    Carver carve(base);
    described = carve.Take<char>(description.bytes());
    plan.pairs = carve.Take<uint2>(num_ids);
    plan.order = carve.Take<uint32_t>(num_ids);
    plan.sorted = carve.Take<uint32_t>(num_ids);
    plan.small = carve.Take<SmallKey>(num_ids);
    plan.longs = carve.Take<LongKey>(first_long);
    plan.huge = carve.Take<uint32_t>(num_ids / kWarpSort + 1);
    plan.bin_ends = carve.Take<uint32_t>(num_bins);
    plan.heavy = carve.Take<uint32_t>(num_ids / kHeavyBin + 1);
    plan.counts = carve.Take<StepCounts>(1);  // one fill, with bin_counts
    const size_t from = carve.bytes();
    plan.bin_counts = carve.Take<uint32_t>(num_bins);
    zeros = carve.bytes() - from +
            (reinterpret_cast<char*>(plan.bin_counts) -
             reinterpret_cast<char*>(plan.counts));
    if (pass == 0) {
      EV_RETURN_IF_ERROR(
          WorkLane::Acquire(description.bytes(), carve.bytes(), &lane));
      base = lane->device();
    }
  }
  WorkLane* const work = lane.get();
  std::unique_ptr<SideStream> side;
  EV_RETURN_IF_ERROR(SideStreams::Get()->Acquire(device_, &side));
  int num_processors = 0;
  EV_CUDA_RETURN_IF_ERROR(cudaDeviceGetAttribute(
      &num_processors, cudaDevAttrMultiProcessorCount, device_));

  // From here on something may be under way.
  std::lock_guard<std::mutex> lock(mu_);
  lanes_.push_back(std::move(lane));
  has_failed_ = true;
  const cudaStream_t s = work->stream();
  std::vector<GpuRows*> all_rows;
  for (const GpuStepUpdate& update : updates) {
    all_rows.push_back(static_cast<GpuRows*>(update.table));
  }
  EV_RETURN_IF_ERROR(FollowRows(all_rows, s));
  for (size_t k = 0; k < n; ++k) {
    const PiecesView pieces = all_rows[k]->pieces();
    tables[k].pieces = pieces.pieces;
    tables[k].rows_log2 = pieces.rows_log2;
    tables[k].stride = pieces.stride;
  }
  // What the lookup found, and what an earlier update made of it.
  EV_RETURN_IF_ERROR(work->Follow(DeviceStream{lane_->stream()}));
  if (end_ != nullptr) EV_RETURN_IF_ERROR(end_->Before(s));
  EV_RETURN_IF_ERROR(SetNames(names, s));
  std::copy(tables.begin(), tables.end(),
            reinterpret_cast<StepTable*>(work->host() + tables_at));
  std::copy(tiles.begin(), tiles.end(),
            reinterpret_cast<int32_t*>(work->host() + tiles_at));
  EV_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(const_cast<char*>(described),
                                          work->host(), description.bytes(),
                                          cudaMemcpyHostToDevice, s));
  EV_CUDA_RETURN_IF_ERROR(cudaMemsetAsync(plan.counts, 0, zeros, s));
  plan.tables = reinterpret_cast<const StepTable*>(described + tables_at);
  plan.num_tables = static_cast<int>(n);
  plan.scatter_tiles = reinterpret_cast<const int32_t*>(described + tiles_at);
  plan.bins = plan.scatter_tiles + (n + 1);
  plan.rows = OnDevice<uint32_t>(there_.names);
  if (has_lists_) {
    plan.samples = OnDevice<uint32_t>(there_.samples);
    // Says that samples are there; the kernels below do not read it.
    plan.splits = reinterpret_cast<const int64_t*>(plan.samples);
  }
  if (divides_) plan.factors = OnDevice<float>(there_.factors);
  EV_RETURN_IF_ERROR(LaunchGroup(plan, static_cast<int>(num_tiles),
                                 static_cast<int>(num_bins), num_processors,
                                 s));
  EV_RETURN_IF_ERROR(side->Fork(s));
  EV_RETURN_IF_ERROR(LaunchSortLong(plan, num_processors, side->get()));
  // All before goes on beside what makes the gradients.
  EV_RETURN_IF_ERROR(work->Follow(stream));
  EV_RETURN_IF_ERROR(side->Fork(s));
  const float* const grads = nullptr;  // see pooled_begin
  Status status;
  EV_RETURN_IF_ERROR(VisitRule(rule, hyper, [&](const auto& r) {
    using Rule = typename std::decay<decltype(r)>::type;
    if constexpr (!HasStepKernels<Rule>::value) {
      status = Internal("a step has no kernels for rule " + rule);
    } else {
      for (int c = 0; c < kClasses && status.ok(); ++c) {
        if (plan.class_ids[c] == 0) continue;
        status = LaunchUpdate<Rule>(plan, c, grads, r, num_processors, s,
                                    side->get());
      }
      if (status.ok()) {
        status = LaunchHuge<Rule>(plan, max_dim, grads, r, num_processors,
                                  side->get());
      }
    }
  }));
  EV_RETURN_IF_ERROR(side->Join(s));
  EV_RETURN_IF_ERROR(status);
  EV_RETURN_IF_ERROR(End(s, stream));
  for (const GpuStepUpdate& update : updates) {
    static_cast<GpuRows*>(update.table)->BeginAfter(end_);
  }
  SideStreams::Get()->Release(device_, std::move(side));
  has_failed_ = false;
  return Status::OK();
}

}  // namespace gpu
}  // namespace ev
