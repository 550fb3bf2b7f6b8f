// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "kernels/engine/base/gpu/block_parts.h"
#include "kernels/engine/base/gpu/cuda_error.h"
#include "kernels/engine/base/gpu/side_streams.h"
#include "kernels/engine/gpu_step/group.h"
#include "kernels/engine/gpu_step/sort_long.h"
#include "kernels/engine/rows/gpu_step/step_groups.h"

namespace ev {
namespace gpu {
namespace {

int64_t TilesOf(int64_t n, int64_t tile) { return (n + tile - 1) / tile; }

}  // namespace

Status StepGroups::Make(int device, std::vector<int> numbers,
                        std::vector<StepTable> tables,
                        std::unique_ptr<StepGroups>* groups) {
  std::unique_ptr<StepGroups> made(new StepGroups(device));
  made->numbers_ = std::move(numbers);
  made->tables_ = std::move(tables);
  EV_RETURN_IF_ERROR(made->Create());
  *groups = std::move(made);
  return Status::OK();
}

Status StepGroups::Create() {
  const size_t n = tables_.size();
  int64_t num_ids = 0, num_tiles = 0, num_bins = 0;
  tiles_.resize(2 * (n + 1));
  for (size_t k = 0; k < n; ++k) {
    StepTable& table = tables_[k];
    table.bin_begin = static_cast<uint32_t>(num_bins);
    table.num_bins = static_cast<uint32_t>(
        std::min(TilesOf(table.num_ids, kBinIds), kMaxBins));
    tiles_[k] = static_cast<int32_t>(num_tiles);
    tiles_[n + 1 + k] = static_cast<int32_t>(num_bins);
    num_tiles += TilesOf(table.num_ids, kScatterTile);
    num_bins += table.num_bins;
    num_ids += table.num_ids;
    plan_.class_ids[table.dim_class] += table.num_ids;
    has_host_rows_[table.dim_class] |= table.has_host_rows;
    max_dim_ = std::max(max_dim_, table.dim);
    may_have_huge_ |= table.num_ids > kWarpSort;
  }
  tiles_[n] = static_cast<int32_t>(num_tiles);
  tiles_[2 * n + 1] = static_cast<int32_t>(num_bins);
  num_tiles_ = static_cast<int>(num_tiles);
  num_bins_ = static_cast<int>(num_bins);
  int64_t first_id = 0, first_long = 0;
  for (int c = 0; c < kClasses; ++c) {
    plan_.id_base[c] = first_id;
    plan_.long_base[c] = first_long;
    first_id += plan_.class_ids[c];
    first_long += plan_.class_ids[c] / (kSmallCount + 1) + 1;
  }
  size_t sort_bytes = 0;
  if (std::find(has_host_rows_, has_host_rows_ + kClasses, true) !=
      has_host_rows_ + kClasses) {
    EV_RETURN_IF_ERROR(PlaceSort::Bytes(num_ids, &sort_bytes));
  }
  Parts description;
  // The grouping's tables and tiles are adjacent, so that one copy suffices.
  grouped_at_ = description.AddBytes(n * sizeof(StepTable));
  tiles_at_ = description.AddBytes(tiles_.size() * sizeof(int32_t));
  updated_at_ = description.AddBytes(n * sizeof(StepTable));
  char* base = nullptr;
  for (int pass = 0; pass < 2; ++pass) {
    Carver carve(base);
    carve.Take<char>(description.bytes());
    plan_.pairs = carve.Take<uint2>(num_ids);
    plan_.order = carve.Take<uint32_t>(num_ids);
    plan_.sorted = carve.Take<uint32_t>(num_ids);
    plan_.small = carve.Take<SmallKey>(num_ids);
    plan_.longs = carve.Take<LongKey>(first_long);
    plan_.huge = carve.Take<uint32_t>(num_ids / kWarpSort + 1);
    plan_.bin_ends = carve.Take<uint32_t>(num_bins);
    plan_.heavy = carve.Take<uint32_t>(num_ids / kHeavyBin + 1);
    char* const sort = carve.Take<char>(sort_bytes);
    if (sort_bytes > 0) sort_.reset(new PlaceSort(sort, num_ids));
    // Zeroed together with bin_counts.
    plan_.counts = carve.Take<StepCounts>(1);
    const size_t from = carve.bytes();
    plan_.bin_counts = carve.Take<uint32_t>(num_bins);
    zero_bytes_ = carve.bytes() - from +
                  (reinterpret_cast<char*>(plan_.bin_counts) -
                   reinterpret_cast<char*>(plan_.counts));
    if (pass == 0) {
      EV_RETURN_IF_ERROR(
          WorkContext::Acquire(description.bytes(), carve.bytes(), &context_));
      base = context_->device();
    }
  }
  plan_.num_tables = static_cast<int>(n);
  plan_.tables = reinterpret_cast<const StepTable*>(base + grouped_at_);
  plan_.scatter_tiles = reinterpret_cast<const int32_t*>(base + tiles_at_);
  plan_.bins = plan_.scatter_tiles + (n + 1);
  EV_RETURN_IF_ERROR(SideStreams::Get()->Acquire(device_, &side_));
  EV_CUDA_RETURN_IF_ERROR(cudaDeviceGetAttribute(
      &num_processors_, cudaDevAttrMultiProcessorCount, device_));
  return Status::OK();
}

StepGroups::~StepGroups() {
  if (side_ == nullptr) return;
  EV_CUDA_LOG_IF_ERROR(cudaSetDevice(device_));
  // After a failure the context is destroyed, which waits for its work.
  if (context_ != nullptr && !has_failed_ &&
      side_->Join(context_->stream()).ok()) {
    WorkContext::ReleaseBusy(std::move(context_));
  }
  SideStreams::Get()->Release(device_, std::move(side_));
}

std::unique_ptr<WorkContext> StepGroups::TakeContext() {
  return std::move(context_);
}

bool StepGroups::AreOf(const std::vector<int>& numbers,
                       const std::vector<StepTable>& tables) const {
  if (numbers != numbers_) return false;
  for (size_t k = 0; k < tables.size(); ++k) {
    if (tables[k].dim_class != tables_[k].dim_class) return false;
  }
  return true;
}

Status StepGroups::SendTables(size_t at, size_t end) {
  std::memcpy(context_->host() + at, tables_.data(),
              tables_.size() * sizeof(StepTable));
  EV_CUDA_RETURN_IF_ERROR(
      cudaMemcpyAsync(context_->device() + at, context_->host() + at, end - at,
                      cudaMemcpyHostToDevice, context_->stream()));
  return Status::OK();
}

Status StepGroups::Launch(const Source& source) {
  has_failed_ = true;
  const cudaStream_t stream = context_->stream();
  const size_t bytes = tiles_.size() * sizeof(int32_t);
  std::memcpy(context_->host() + tiles_at_, tiles_.data(), bytes);
  EV_RETURN_IF_ERROR(SendTables(grouped_at_, tiles_at_ + bytes));
  EV_CUDA_RETURN_IF_ERROR(
      cudaMemsetAsync(plan_.counts, 0, zero_bytes_, stream));
  plan_.rows = source.handles;
  plan_.samples = source.samples;
  plan_.factors = source.factors;
  EV_RETURN_IF_ERROR(
      LaunchGroup(plan_, num_tiles_, num_bins_, num_processors_, stream));
  EV_RETURN_IF_ERROR(side_->Fork(stream));
  EV_RETURN_IF_ERROR(LaunchSortLong(plan_, num_processors_, side_->get()));
  has_failed_ = false;
  return Status::OK();
}

Status StepGroups::Describe(const std::vector<StepTable>& tables) {
  for (size_t k = 0; k < tables.size(); ++k) {
    StepTable described = tables[k];
    described.bin_begin = tables_[k].bin_begin;
    described.num_bins = tables_[k].num_bins;
    tables_[k] = described;
  }
  EV_RETURN_IF_ERROR(
      SendTables(updated_at_, updated_at_ + tables.size() * sizeof(StepTable)));
  plan_.tables =
      reinterpret_cast<const StepTable*>(context_->device() + updated_at_);
  return Status::OK();
}

Status StepGroups::OrderByPlace(int64_t num_places) {
  const PlaceOrder order = PlaceOrder::Of(plan_.num_tables, num_places);
  for (int c = 0; c < kClasses; ++c) {
    if (!has_host_rows_[c]) continue;
    EV_RETURN_IF_ERROR(
        LaunchOrderSmall(c, order, sort_.get(), context_->stream(), &plan_));
  }
  return Status::OK();
}

Status StepGroups::End(WorkContext* other) {
  EV_RETURN_IF_ERROR(side_->Join(context_->stream()));
  return other->Follow(DeviceStream{context_->stream()});
}

}  // namespace gpu
}  // namespace ev
