// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// StepCall: copies ids to the GPU, and back for callers that need them.
//
// A lookup of many ids is limited by the copy to the GPU, and the int64 ids of
// most models fit into 32 bits. They are therefore copied as int32. When a
// table gets an id that does not fit, its ids of this step are copied again as
// int64, and all its later steps copy int64.

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "kernels/engine/base/gpu/cuda_error.h"
#include "kernels/engine/rows/gpu_step/step_call.h"

namespace ev {
namespace gpu {

// Lays out the block of ids: first the ids that are put, contiguous for each
// wave, then all others. Within each range int64 ids come first, so that all
// are aligned without gaps.
void StepCall::PlaceIds() {
  const auto place = [this](int begin, int end, bool put) {
    for (bool narrow : {false, true}) {
      for (int t = begin; t < end; ++t) {
        Table* const table = &tables_[t];
        if (table->is_narrow != narrow ||
            (table->where == IdsAre::kPut) != put) {
          continue;
        }
        table->ids_at = id_bytes_;
        id_bytes_ += table->id_bytes();
      }
    }
  };
  const auto align = [this] {
    id_bytes_ =
        (id_bytes_ + sizeof(int64_t) - 1) / sizeof(int64_t) * sizeof(int64_t);
  };
  for (auto& wave : waves_) {
    wave->put_at = id_bytes_;
    place(wave->begin, wave->end, /*put=*/true);
    wave->put_bytes = id_bytes_ - wave->put_at;
    wave->upload.reset(new StagedUpload(wave->put_bytes));
    align();
  }
  place(0, static_cast<int>(tables_.size()), /*put=*/false);
  align();
}

// Returns the GPU memory for a wave's ids. Null for a small step, whose ids are
// copied later (SendDescription).
char* StepCall::UploadTo(const Wave& wave) const {
  return is_small_ ? nullptr
                   : context_->device() + on_device_.ids + wave.put_at;
}

Status StepCall::Put(int t, int64_t begin, Span<const int64_t> ids) {
  if (ids.empty()) return Status::OK();
  EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(device_));
  const Table& table = tables_[t];
  Wave* const wave = waves_[table.wave].get();
  const size_t at = table.ids_at - wave->put_at;
  char* const on_host = context_->host() + on_host_.ids + wave->put_at;
  char* const on_device = UploadTo(*wave);
  if (!table.narrows) {
    return wave->upload->Put(at + begin * sizeof(int64_t), ids.data(),
                             ids.size() * sizeof(int64_t), wave->put_bytes,
                             on_host, on_device, upload_stream());
  }
  bool fit = false;
  EV_RETURN_IF_ERROR(wave->upload->PutNarrowed(
      at + begin * sizeof(int32_t), ids.data(), ids.size(), wave->put_bytes,
      on_host, on_device, upload_stream(), &fit));
  // Read by Start of this table, which is called after all its Puts.
  if (!fit) misfits_[t].store(true, std::memory_order_relaxed);
  return Status::OK();
}

Status StepCall::Put(int t, int64_t begin, Span<const int32_t> ids) {
  if (ids.empty()) return Status::OK();
  EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(device_));
  Wave* const wave = waves_[tables_[t].wave].get();
  return wave->upload->Put(
      tables_[t].ids_at - wave->put_at + begin * sizeof(int32_t), ids.data(),
      ids.size() * sizeof(int32_t), wave->put_bytes,
      context_->host() + on_host_.ids + wave->put_at, UploadTo(*wave),
      upload_stream());
}

Status StepCall::PutWide(Table* table) {
  EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(device_));
  table->rows->hints().has_wide_ids = true;
  const int64_t* const ids = static_cast<const int64_t*>(table->given);
  std::unique_ptr<WideIds> wide(new WideIds);
  wide->on_host.assign(ids, ids + table->num_ids);
  const size_t bytes = table->num_ids * sizeof(int64_t);
  EV_RETURN_IF_ERROR(wide->on_device.Allocate(bytes, "ids of 64 bits"));
  // The source of the copy, 'wide', lives as long as the step.
  EV_CUDA_RETURN_IF_ERROR(
      cudaMemcpyAsync(wide->on_device.data(), wide->on_host.data(), bytes,
                      cudaMemcpyHostToDevice, context_->stream()));
  table->wide = std::move(wide);
  table->is_narrow = table->narrows = false;
  return Status::OK();
}

const char* StepCall::HostIds(const Table& table) const {
  return table.wide != nullptr
             ? reinterpret_cast<const char*>(table.wide->on_host.data())
             : context_->host() + on_host_.ids + table.ids_at;
}

char* StepCall::DeviceIds(const Table& table) const {
  return table.wide != nullptr
             ? table.wide->on_device.as<char>()
             : context_->device() + on_device_.ids + table.ids_at;
}

// Called before all other work, because the copy limits a lookup of many ids.
Status StepCall::SendPinned() {
  for (const Table& table : tables_) {
    if (table.where != IdsAre::kPinned) continue;
    EV_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(
        context_->device() + on_device_.ids + table.ids_at, table.given,
        table.id_bytes(), cudaMemcpyHostToDevice, context_->stream()));
  }
  const bool all_owned =
      std::all_of(tables_.begin(), tables_.end(), [](const Table& table) {
        return table.where != IdsAre::kPinned || table.ids_owner != nullptr;
      });
  return all_owned ? Status::OK()
                   : DeviceEvent::Record(context_->stream(), &ids_are_read_);
}

Status StepCall::BringIds(int t, GpuStepIds* to) {
  EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(device_));
  const Table& table = tables_[t];
  const char* ids = HostIds(table);
  std::vector<char> brought;
  if (table.where != IdsAre::kPut) {
    brought.resize(table.id_bytes());
    EV_RETURN_IF_ERROR(context_->BringDown(on_device_.ids + table.ids_at,
                                           brought.size(), brought.data()));
    ids = brought.data();
  }
  if (table.is_narrow) {
    std::copy_n(reinterpret_cast<const int32_t*>(ids), table.num_ids, to->ids);
  } else {
    std::memcpy(to->ids, ids, table.id_bytes());
  }
  EV_RETURN_IF_ERROR(Offsets(table, to->offsets));
  to->occurrences = HostOccurrences(table);
  return context_->BringDown(
      on_device_.handles + table.id_begin * sizeof(RowHandle),
      table.num_ids * sizeof(RowHandle), to->handles);
}

}  // namespace gpu
}  // namespace ev
