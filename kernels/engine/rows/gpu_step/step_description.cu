// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstring>

#include "kernels/engine/base/gpu/cuda_error.h"
#include "kernels/engine/gpu_step/step_plan.cuh"
#include "kernels/engine/rows/gpu_step/step_description.h"

namespace ev {
namespace gpu {
namespace {

int BlocksOf(int64_t n, int64_t tile) {
  return static_cast<int>((n + tile - 1) / tile);
}

}  // namespace

std::vector<StepDescription::Entry> StepDescription::EntriesOf(
    const Part& part) const {
  std::vector<Entry> entries;
  char* const outputs = work_->OnDevice<char>(layout_->on_device.outputs);
  for (int t = part.begin; t < part.end; ++t) {
    const StepLayout::Table& table = layout_->tables[t];
    Entry entry;
    entry.t = t;
    if (!part.pools || table.pieces.empty()) {
      entry.num_ids = table.num_ids;
      entry.num_samples = table.num_samples;
      if (part.pools) entry.out = table.OutIn(outputs);
      entries.push_back(entry);
      continue;
    }
    for (const GpuStepPiece& piece : table.pieces) {
      if (piece.count == 0) continue;
      entry.begin = piece.begin;
      entry.num_ids = entry.num_samples = piece.count;
      entry.out = piece.out;
      entries.push_back(entry);
    }
  }
  return entries;
}

StepLookup StepDescription::View(const StepLaunches& launches) const {
  const StepLayout::Memory& host = layout_->on_host;
  const StepLayout::Memory& device = layout_->on_device;
  const size_t n = launches.num_entries;
  StepLookup view;
  view.tables = work_->OnDevice<StepLookupTable>(device.tables);
  view.num_tables = launches.num_entries;
  const int32_t* const tiles =
      reinterpret_cast<const int32_t*>(view.tables + n);
  view.find_tiles = tiles;
  view.pool_tiles = tiles + (n + 1);
  view.pool_order = tiles + 2 * (n + 1);
  view.handles = work_->OnDevice<RowHandle>(device.handles);
  if (layout_->has_places) {
    view.rows = work_->OnDevice<const float*>(device.rows);
  }
  view.unknown = work_->OnHost<uint32_t>(host.unknown);
  if (!layout_->all_put()) {
    view.unknown_keys = work_->OnHost<int64_t>(host.unknown_keys);
  }
  view.num_unknown = layout_->is_small
                         ? work_->OnHost<uint32_t>(host.counter)
                         : work_->OnDevice<uint32_t>(device.counter);
  view.found = work_->OnDevice<uint32_t>(device.counter) + 1;
  if (ids_->has_lists()) {
    view.samples = work_->OnDevice<uint32_t>(device.samples);
  }
  if (layout_->divides) view.factors = work_->OnDevice<float>(device.factors);
  return view;
}

Status StepDescription::Describe(const Part& part, const Entry& entry,
                                 StepLookupTable* to) const {
  const StepLayout::Table& table = layout_->tables[entry.t];
  const bool is_narrow = ids_->is_narrow(entry.t);
  const bool one_id_each = ids_->one_id_each(entry.t);
  if (!one_id_each && !table.pieces.empty()) {
    return Internal("a sample whose output is in a piece is not one id");
  }
  char* const kept =
      ids_->OnDevice(entry.t) +
      entry.begin * (is_narrow ? sizeof(int32_t) : sizeof(int64_t));
  int32_t* const offsets =
      work_->OnDevice<int32_t>(layout_->on_device.offsets) + table.offsets_at;
  to->ids = kept;
  if (!part.pools && table.where == StepLayout::IdsAre::kOnGpu) {
    to->ids = table.ids;
    to->kept = kept;
    to->splits = table.splits;
    to->indices = table.indices;
    to->made = offsets;
  }
  if (!one_id_each) to->offsets = offsets;
  to->id_begin = table.id_begin + entry.begin;
  to->num_ids = entry.num_ids;
  to->sample_begin = table.sample_begin + entry.begin;
  to->num_samples = entry.num_samples;
  to->samples_before = entry.begin;
  to->dim = static_cast<int32_t>(table.dim);
  to->combiner = static_cast<int32_t>(table.combiner);
  to->is_narrow = is_narrow;
  if (part.pools) {
    to->rows = table.rows->pieces();
    to->row_type = table.row_type;
    to->value_floats = static_cast<int32_t>(table.rows->shape().offset(1));
    to->defaults = table.rows->default_rows();
    to->out = entry.out.data();
    to->out_type = entry.out.type();
  }
  to->are_handles = table.are_handles;
  if (part.finds && !table.are_handles) {
    to->known = table.known->view();
    to->first_default = table.first_default;
    to->num_defaults = table.num_defaults;
  }
  return Status::OK();
}

// Sorts the entries by kind and cuts their samples into blocks.
void StepDescription::DescribePools(const std::vector<Entry>& entries,
                                    int32_t* tiles, int32_t* order,
                                    StepLaunches* launches) const {
  const size_t n = entries.size();
  std::vector<int> kinds(n);
  for (size_t k = 0; k < n; ++k) {
    const int t = entries[k].t;
    const MutableFloats out = entries[k].out;
    const bool fits = reinterpret_cast<uintptr_t>(out.data()) %
                          (4 * FloatBytes(out.type())) ==
                      0;
    kinds[k] =
        PoolKind(fits ? ClassOfDim(static_cast<int32_t>(layout_->tables[t].dim))
                      : kAnyClass,
                 ids_->one_id_each(t),
                 layout_->tables[t].row_type != FloatType::kFloat32);
  }
  int at = 0;
  int32_t blocks = 0;
  for (int kind = 0; kind < kPoolKinds; ++kind) {
    launches->kind_begin.push_back(at);
    launches->block_begin.push_back(blocks);
    for (size_t k = 0; k < n; ++k) {
      if (kinds[k] != kind) continue;
      tiles[at] = blocks;
      order[at++] = static_cast<int32_t>(k);
      blocks += BlocksOf(entries[k].num_samples, kPoolTile);
    }
  }
  tiles[n] = blocks;
  launches->kind_begin.push_back(at);
  launches->block_begin.push_back(blocks);
}

Status StepDescription::Send(const Part& part, StepLaunches* launches) const {
  const std::vector<Entry> entries = EntriesOf(part);
  const size_t n = entries.size();
  launches->num_entries = static_cast<int>(n);
  StepLookupTable* const described =
      work_->OnHost<StepLookupTable>(part.on_host);
  int32_t* const tiles = reinterpret_cast<int32_t*>(described + n);
  int32_t* const sample_tiles = tiles + 3 * (n + 1);
  int32_t blocks = 0;
  sample_tiles[0] = 0;
  for (size_t k = 0; k < n; ++k) {
    const int t = entries[k].t;
    const StepLayout::Table& table = layout_->tables[t];
    StepLookupTable to;
    EV_RETURN_IF_ERROR(Describe(part, entries[k], &to));
    described[k] = to;
    tiles[k] = blocks;
    blocks += BlocksOf(entries[k].num_ids, kFindTile);
    const int64_t threads = std::max(table.num_ids, table.num_samples) + 1;
    sample_tiles[k + 1] =
        sample_tiles[k] +
        (table.where == StepLayout::IdsAre::kOnGpu && table.first == t
             ? BlocksOf(threads, kFindTile)
             : 0);
  }
  tiles[n] = launches->find_blocks = blocks;
  launches->sample_blocks = sample_tiles[n];
  if (part.pools) {
    DescribePools(entries, tiles + (n + 1), tiles + 2 * (n + 1), launches);
  }
  const StepLayout::Memory& host = layout_->on_host;
  size_t bytes = StepLayout::DescriptionBytes(n);
  if (layout_->is_small) {
    *work_->OnHost<uint32_t>(host.counter) = 0;
    EV_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(
        work_->OnDevice<char>(layout_->on_device.ids),
        work_->OnHost<char>(host.ids), host.tables + bytes - host.ids,
        cudaMemcpyHostToDevice, work_->stream()));
    return Status::OK();
  }
  const bool are_all =
      part.begin == 0 && part.end == static_cast<int>(layout_->tables.size());
  if (part.finds && are_all) {
    bytes = layout_->table_bytes;
    const size_t counter_bytes =
        (1 + layout_->tables.size()) * sizeof(uint32_t);
    std::memset(work_->OnHost<char>(part.on_host) + bytes, 0, counter_bytes);
    bytes += counter_bytes;
  }
  EV_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(
      work_->OnDevice<char>(layout_->on_device.tables), described, bytes,
      cudaMemcpyHostToDevice, work_->stream()));
  return Status::OK();
}

}  // namespace gpu
}  // namespace ev
