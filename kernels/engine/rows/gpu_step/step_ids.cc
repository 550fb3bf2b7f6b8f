// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/rows/gpu_step/step_ids.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "kernels/engine/base/gpu/cuda_error.h"
#include "kernels/engine/base/gpu/side_streams.h"
#include "kernels/engine/ids/occurrences.h"
#include "kernels/engine/rows/gpu_step/step_lookup.h"

namespace ev {
namespace gpu {

using IdsAre = StepLayout::IdsAre;

// With several waves, every wave writes the sample of each id, because a later
// wave may have samples with several ids.
StepIds::StepIds(const StepLayout* layout, StepWork* work)
    : layout_(layout),
      work_(work),
      inputs_(layout->tables.size()),
      has_lists_(layout->waves.size() > 1) {
  for (const StepLayout::Wave& wave : layout->waves) {
    puts_.emplace_back(new StagedUpload(wave.put_bytes));
  }
}

StepIds::~StepIds() = default;

void StepIds::ReleaseStream() {
  if (uploads_ != nullptr) {
    SideStreams::Get()->Release(work_->device(), std::move(uploads_));
  }
}

// Pinned ids are sent before all other work, because the copy limits a lookup
// of many ids.
Status StepIds::Create() {
  if (layout_->waves.size() > 1) {
    EV_RETURN_IF_ERROR(SideStreams::Get()->Acquire(work_->device(), &uploads_));
  }
  bool all_owned = true;
  for (const StepLayout::Table& table : layout_->tables) {
    if (table.where != IdsAre::kPinned) continue;
    EV_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(
        work_->OnDevice<char>(layout_->on_device.ids + table.ids_at), table.ids,
        table.id_bytes(), cudaMemcpyHostToDevice, work_->stream()));
    all_owned &= table.ids_owner != nullptr;
  }
  return all_owned ? Status::OK()
                   : DeviceEvent::Record(work_->stream(), &ids_are_read_);
}

StepIds::Upload StepIds::UploadOf(int t) const {
  const StepLayout::Table& table = layout_->tables[t];
  const StepLayout::Wave& wave = layout_->waves[table.wave];
  Upload upload;
  upload.put = puts_[table.wave].get();
  upload.at = table.ids_at - wave.put_at;
  upload.bytes = wave.put_bytes;
  upload.host = work_->OnHost<char>(layout_->on_host.ids + wave.put_at);
  upload.device =
      layout_->is_small
          ? nullptr
          : work_->OnDevice<char>(layout_->on_device.ids + wave.put_at);
  upload.stream =
      StreamView(uploads_ != nullptr ? uploads_->get() : work_->stream());
  return upload;
}

Status StepIds::Put(int t, int64_t begin, Span<const int64_t> ids) {
  if (ids.empty()) return Status::OK();
  EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(work_->device()));
  const Upload to = UploadOf(t);
  if (!layout_->tables[t].narrows) {
    return to.put->Put(to.at + begin * sizeof(int64_t), ids.data(),
                       ids.size() * sizeof(int64_t), to.bytes, to.host,
                       to.device, to.stream);
  }
  bool fit = false;
  EV_RETURN_IF_ERROR(to.put->PutNarrowed(to.at + begin * sizeof(int32_t),
                                         ids.data(), ids.size(), to.bytes,
                                         to.host, to.device, to.stream, &fit));
  // Read by Start of this table, which is called after all its Puts.
  if (!fit) inputs_[t].misfits.store(true, std::memory_order_relaxed);
  return Status::OK();
}

Status StepIds::Put(int t, int64_t begin, Span<const int32_t> ids) {
  if (ids.empty()) return Status::OK();
  EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(work_->device()));
  const Upload to = UploadOf(t);
  return to.put->Put(to.at + begin * sizeof(int32_t), ids.data(),
                     ids.size() * sizeof(int32_t), to.bytes, to.host, to.device,
                     to.stream);
}

Status StepIds::PutWide(int t) {
  const StepLayout::Table& table = layout_->tables[t];
  EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(work_->device()));
  table.rows->hints().has_wide_ids = true;
  const int64_t* const ids = static_cast<const int64_t*>(table.ids);
  std::unique_ptr<WideIds> wide(new WideIds);
  wide->on_host.assign(ids, ids + table.num_ids);
  const size_t bytes = table.num_ids * sizeof(int64_t);
  EV_RETURN_IF_ERROR(wide->on_device.Allocate(bytes, "ids of 64 bits"));
  // The source of the copy, 'wide', lives as long as the step.
  EV_CUDA_RETURN_IF_ERROR(
      cudaMemcpyAsync(wide->on_device.data(), wide->on_host.data(), bytes,
                      cudaMemcpyHostToDevice, work_->stream()));
  inputs_[t].wide = std::move(wide);
  return Status::OK();
}

Status StepIds::Start(int t, Span<const int32_t> offsets) {
  const StepLayout::Table& table = layout_->tables[t];
  if (inputs_[t].misfits.load(std::memory_order_relaxed)) {
    EV_RETURN_IF_ERROR(PutWide(t));
  }
  if (!offsets.empty()) {
    if (table.occurrences != nullptr) {
      return Internal("a sample with ids that stand for several is not one id");
    }
    inputs_[t].one_id_each = false;
    has_lists_.store(true, std::memory_order_relaxed);
    std::copy(
        offsets.begin(), offsets.end(),
        work_->OnHost<int32_t>(layout_->on_host.offsets) + table.offsets_at);
  }
  if (table.occurrences != nullptr) {
    std::transform(
        table.occurrences, table.occurrences + table.num_ids,
        work_->OnHost<int32_t>(layout_->on_host.occurrences) + table.id_begin,
        ToOccurrences);
  }
  return Status::OK();
}

Status StepIds::Join() {
  return uploads_ == nullptr ? Status::OK() : uploads_->Join(work_->stream());
}

Status StepIds::SendOffsets(const StepLayout::Wave& wave) {
  if (wave.num_offsets == 0 || !has_lists_ || layout_->is_small) {
    return Status::OK();
  }
  const size_t at = wave.offsets_at * sizeof(int32_t);
  EV_CUDA_RETURN_IF_ERROR(
      cudaMemcpyAsync(work_->OnDevice<char>(layout_->on_device.offsets + at),
                      work_->OnHost<char>(layout_->on_host.offsets + at),
                      wave.num_offsets * sizeof(int32_t),
                      cudaMemcpyHostToDevice, work_->stream()));
  return Status::OK();
}

Status StepIds::SendOccurrences() {
  if (!layout_->have_occurrences) return Status::OK();
  EV_CUDA_RETURN_IF_ERROR(
      cudaMemcpyAsync(work_->OnDevice<char>(layout_->on_device.occurrences),
                      work_->OnHost<char>(layout_->on_host.occurrences),
                      layout_->num_ids * sizeof(int32_t),
                      cudaMemcpyHostToDevice, work_->stream()));
  return Status::OK();
}

Status StepIds::BringChecks() {
  EV_CUDA_RETURN_IF_ERROR(
      cudaMemcpyAsync(work_->OnHost<uint32_t>(layout_->on_host.counter) + 1,
                      work_->OnDevice<uint32_t>(layout_->on_device.counter) + 1,
                      layout_->tables.size() * sizeof(uint32_t),
                      cudaMemcpyDeviceToHost, work_->stream()));
  return DeviceEvent::Record(work_->stream(), &samples_are_checked_);
}

Status StepIds::Wait() {
  if (ids_are_read_ != nullptr) EV_RETURN_IF_ERROR(ids_are_read_->Wait());
  if (!layout_->are_on_device) return Status::OK();
  EV_RETURN_IF_ERROR(samples_are_checked_->Wait());
  const uint32_t* const found =
      work_->OnHost<uint32_t>(layout_->on_host.counter) + 1;
  for (size_t t = 0; t < inputs_.size(); ++t) {
    const StepLayout::Table& table = layout_->tables[t];
    if (table.where != IdsAre::kOnGpu || table.first != static_cast<int>(t)) {
      continue;
    }
    if ((found[t] & kNotInOrder) != 0) {
      return Status(StatusCode::kUnimplemented,
                    "samples in the GPU's memory are not in order");
    }
    inputs_[t].one_id_each = (found[t] & kNotOneIdEach) == 0;
    if (!inputs_[t].one_id_each) has_lists_ = true;
  }
  return Status::OK();
}

const char* StepIds::OnHost(int t) const {
  const std::unique_ptr<WideIds>& wide = inputs_[t].wide;
  return wide != nullptr ? reinterpret_cast<const char*>(wide->on_host.data())
                         : work_->OnHost<char>(layout_->on_host.ids +
                                               layout_->tables[t].ids_at);
}

char* StepIds::OnDevice(int t) const {
  const std::unique_ptr<WideIds>& wide = inputs_[t].wide;
  return wide != nullptr ? wide->on_device.as<char>()
                         : work_->OnDevice<char>(layout_->on_device.ids +
                                                 layout_->tables[t].ids_at);
}

const int32_t* StepIds::HostOccurrences(int t) const {
  const StepLayout::Table& table = layout_->tables[t];
  return table.occurrences != nullptr
             ? work_->OnHost<int32_t>(layout_->on_host.occurrences) +
                   table.id_begin
             : nullptr;
}

const int32_t* StepIds::DeviceOccurrences(int t) const {
  const StepLayout::Table& table = layout_->tables[t];
  return table.occurrences != nullptr
             ? work_->OnDevice<int32_t>(layout_->on_device.occurrences) +
                   table.id_begin
             : nullptr;
}

Status StepIds::Bring(int t, GpuStepIds* to) const {
  const StepLayout::Table& table = layout_->tables[t];
  const char* ids = OnHost(t);
  std::vector<char> brought;
  if (table.where != IdsAre::kPut) {
    brought.resize(table.id_bytes());
    EV_RETURN_IF_ERROR(work_->context()->BringDown(
        layout_->on_device.ids + table.ids_at, brought.size(), brought.data()));
    ids = brought.data();
  }
  if (is_narrow(t)) {
    std::copy_n(reinterpret_cast<const int32_t*>(ids), table.num_ids, to->ids);
  } else {
    std::memcpy(to->ids, ids, table.num_ids * sizeof(int64_t));
  }
  to->occurrences = HostOccurrences(t);
  return BringOffsets(t, to->offsets);
}

Status StepIds::BringOffsets(int t, int32_t* offsets) const {
  const StepLayout::Table& table = layout_->tables[t];
  const size_t count = table.num_samples + 1;
  if (one_id_each(t)) {
    std::iota(offsets, offsets + count, 0);
    return Status::OK();
  }
  const size_t at = table.offsets_at * sizeof(int32_t);
  if (table.where == IdsAre::kOnGpu) {
    return work_->context()->BringDown(layout_->on_device.offsets + at,
                                       count * sizeof(int32_t), offsets);
  }
  std::copy_n(work_->OnHost<int32_t>(layout_->on_host.offsets + at), count,
              offsets);
  return Status::OK();
}

}  // namespace gpu
}  // namespace ev
