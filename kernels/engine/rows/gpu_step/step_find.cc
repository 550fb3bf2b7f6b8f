// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/rows/gpu_step/step_find.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <string>

#include "kernels/engine/base/gpu/cuda_error.h"
#include "kernels/engine/ids/occurrences.h"
#include "kernels/engine/ids/unique_pool.h"
#include "kernels/engine/rows/gpu_step/step_new_rows.h"

namespace ev {
namespace gpu {

StepFind::StepFind(const StepLayout* layout, StepWork* work, StepIds* ids,
                   const StepDescription* description)
    : layout_(layout),
      work_(work),
      ids_(ids),
      description_(description),
      unknown_(layout->tables.size()) {}

StepFind::KnownLocks StepFind::LockKnown(int begin, int end) const {
  std::vector<KnownKeys*> all;
  for (int t = begin; t < end; ++t) {
    const StepLayout::Table& table = layout_->tables[t];
    if (!table.are_handles) all.push_back(table.known.get());
  }
  std::sort(all.begin(), all.end());
  KnownLocks locks;
  for (KnownKeys* known : all) locks.push_back(known->Lock());
  return locks;
}

Status StepFind::Launch(const StepLayout::Wave& wave, bool pools,
                        StepLaunches* launches) {
  const cudaStream_t stream = work_->stream();
  const bool is_only = layout_->waves.size() == 1;
  if (wave.begin == 0 && !is_only) {
    EV_CUDA_RETURN_IF_ERROR(cudaMemsetAsync(
        work_->OnDevice<char>(layout_->on_device.counter), 0,
        (1 + layout_->tables.size()) * sizeof(uint32_t), stream));
  }
  const std::vector<GpuRows*> rows = layout_->RowsOf(wave.begin, wave.end);
  EV_RETURN_IF_ERROR(WriteNew(rows, stream, work_));
  EV_RETURN_IF_ERROR(FollowKeys(rows, stream));
  EV_RETURN_IF_ERROR(ids_->SendOffsets(wave));
  StepDescription::Part part;
  part.begin = wave.begin;
  part.end = wave.end;
  part.finds = true;
  part.pools = pools;
  part.on_host = is_only ? layout_->on_host.tables
                         : layout_->on_host.waves + wave.tables_at;
  const KnownLocks locks = LockKnown(wave.begin, wave.end);
  EV_RETURN_IF_ERROR(description_->Send(part, launches));
  if (layout_->are_on_device) {
    EV_RETURN_IF_ERROR(work_->context()->Follow(*work_->outside()));
    // Enqueued first, since the CPU waits for the result.
    EV_RETURN_IF_ERROR(CheckSamples(*launches));
  }
  return LaunchFindHandles(description_->View(*launches), launches->find_blocks,
                           stream);
}

Status StepFind::CheckSamples(const StepLaunches& launches) {
  const StepLookup view = description_->View(launches);
  EV_RETURN_IF_ERROR(
      LaunchFindSamples(view, view.find_tiles + 3 * (launches.num_entries + 1),
                        launches.sample_blocks, work_->stream()));
  return ids_->BringChecks();
}

Status StepFind::BringCounter() {
  // The kernel of a small step counts in host memory.
  if (layout_->is_small) return Status::OK();
  EV_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(
      work_->OnHost<char>(layout_->on_host.counter),
      work_->OnDevice<char>(layout_->on_device.counter), sizeof(uint32_t),
      cudaMemcpyDeviceToHost, work_->stream()));
  return Status::OK();
}

Status StepFind::BringHandles(int t, RowHandle* handles) const {
  const StepLayout::Table& table = layout_->tables[t];
  return work_->context()->BringDown(
      layout_->on_device.handles + table.id_begin * sizeof(RowHandle),
      table.num_ids * sizeof(RowHandle), handles);
}

Status StepFind::TakeUnknown() {
  if (is_taken_) return taken_;
  is_taken_ = true;
  work_->Begin();
  taken_ = Take();
  if (taken_.ok()) work_->Succeed();
  return taken_;
}

Status StepFind::Take() {
  EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(work_->device()));
  EV_RETURN_IF_ERROR(work_->context()->Wait());
  const StepLayout::Memory& host = layout_->on_host;
  const int64_t num_ids = layout_->num_ids;
  const int64_t count = *work_->OnHost<uint32_t>(host.counter);
  if (count > num_ids) {
    return Internal("the GPU found no row for " + std::to_string(count) +
                    " ids of " + std::to_string(num_ids));
  }
  const uint32_t* const sent = work_->OnHost<uint32_t>(host.unknown);
  if (count <= num_ids / 8) {
    PutInOrder(Span<const uint32_t>(sent, count),
               layout_->all_put() ? nullptr
                                  : work_->OnHost<int64_t>(host.unknown_keys));
  } else {
    if (!layout_->all_put()) {
      // Copies all ids too. Ids that were put are overwritten with equal ones.
      EV_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(
          work_->OnHost<char>(host.ids),
          work_->OnDevice<char>(layout_->on_device.ids), layout_->id_bytes,
          cudaMemcpyDeviceToHost, work_->stream()));
    }
    // Copies all handles: scanning them costs less than sorting the positions.
    RowHandle* const copied = work_->OnHost<RowHandle>(host.unknown);
    EV_CUDA_RETURN_IF_ERROR(
        cudaMemcpyAsync(copied, handles(), num_ids * sizeof(RowHandle),
                        cudaMemcpyDeviceToHost, work_->stream()));
    EV_RETURN_IF_ERROR(work_->context()->Wait());
    positions_.reserve(count);
    // The handle of an unknown id is the handle of a default row.
    for (int64_t i = 0; i < num_ids; ++i) {
      if (copied[i] >= kFirstReservedHandle) {
        positions_.push_back(static_cast<uint32_t>(i));
      }
    }
  }
  auto at = positions_.begin();
  for (size_t t = 0; t < unknown_.size(); ++t) {
    const StepLayout::Table& table = layout_->tables[t];
    const auto end =
        std::lower_bound(at, positions_.end(),
                         static_cast<uint64_t>(table.id_begin + table.num_ids));
    const size_t first = at - positions_.begin();
    unknown_[t].at = Span<const uint32_t>(positions_.data() + first, end - at);
    if (!ids_of_unknown_.empty()) {
      unknown_[t].ids = ids_of_unknown_.data() + first;
    }
    at = end;
  }
  return Status::OK();
}

// Sorts by a bitmap of all ids with the number of bits set before each word. A
// position's rank then takes two reads of small arrays, while sorting would
// take 0.1 us per position.
void StepFind::PutInOrder(Span<const uint32_t> positions, const int64_t* ids) {
  if (positions.empty()) return;
  const size_t num_words = (layout_->num_ids + 63) / 64;
  std::vector<uint64_t> words(num_words);
  for (uint32_t at : positions) words[at / 64] |= uint64_t{1} << at % 64;
  std::vector<uint32_t> before(num_words);
  positions_.reserve(positions.size());
  for (size_t w = 0; w < num_words; ++w) {
    before[w] = static_cast<uint32_t>(positions_.size());
    for (uint64_t left = words[w]; left != 0; left &= left - 1) {
      positions_.push_back(
          static_cast<uint32_t>(64 * w + __builtin_ctzll(left)));
    }
  }
  if (ids == nullptr) return;
  ids_of_unknown_.resize(positions.size());
  for (size_t k = 0; k < positions.size(); ++k) {
    const uint32_t at = positions[k];
    const uint64_t lower = (uint64_t{1} << at % 64) - 1;
    ids_of_unknown_[before[at / 64] +
                    __builtin_popcountll(words[at / 64] & lower)] = ids[k];
  }
}

Status StepFind::FindKeys(int t, Unknown* unknown) const {
  const size_t n = unknown->at.size();
  if (n == 0) return Status::OK();
  const int64_t id_begin = layout_->tables[t].id_begin;
  const char* const ids = ids_->OnHost(t);
  const bool is_narrow = ids_->is_narrow(t);
  std::vector<int64_t> keys(n);
  for (size_t k = 0; k < n; ++k) {
    if (unknown->ids != nullptr) {
      keys[k] = unknown->ids[k];
      continue;
    }
    const int64_t i = unknown->at[k] - id_begin;
    keys[k] = is_narrow ? reinterpret_cast<const int32_t*>(ids)[i]
                        : reinterpret_cast<const int64_t*>(ids)[i];
  }
  unknown->keys.resize(n);
  unknown->key_of.resize(n);
  unknown->counts.resize(n);
  int64_t num_keys = 0;
  EV_RETURN_IF_ERROR(UniquePool().Acquire()->Run(
      Span<const int64_t>(keys), unknown->keys.data(), unknown->key_of.data(),
      unknown->counts.data(), &num_keys));
  unknown->keys.resize(num_keys);
  unknown->counts.resize(num_keys);
  const int32_t* const of_ids = ids_->HostOccurrences(t);
  if (of_ids == nullptr) return Status::OK();
  std::fill(unknown->counts.begin(), unknown->counts.end(), 0);
  for (size_t k = 0; k < n; ++k) {
    AddOccurrences(of_ids[unknown->at[k] - id_begin],
                   &unknown->counts[unknown->key_of[k]]);
  }
  return Status::OK();
}

Status StepFind::Settle(int t, GpuStepUnknown* unknown) {
  Unknown* const of = &unknown_[t];
  if (!of->is_settled) {
    EV_RETURN_IF_ERROR(FindKeys(t, of));
    of->is_settled = true;
  }
  unknown->keys = of->keys;
  unknown->counts = of->counts.data();
  unknown->num_ids_of_step = static_cast<int64_t>(positions_.size());
  return Status::OK();
}

}  // namespace gpu
}  // namespace ev
