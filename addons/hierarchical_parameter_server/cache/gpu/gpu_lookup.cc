// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/hierarchical_parameter_server/cache/gpu/gpu_lookup.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "addons/hierarchical_parameter_server/cache/cache_size.h"
#include "kernels/engine/base/gpu/cuda_error.h"
#include "kernels/engine/base/gpu/device_event.h"
#include "kernels/engine/base/gpu/pinned_memory.h"

namespace hps {

using ev::gpu::WorkContext;

namespace {

constexpr size_t kPartsUnderWay = 2;
// Bytes of rows that one task copies.
constexpr int64_t kTaskBytes = 128 << 10;

template <typename T>
T* At(char* memory, size_t offset) {
  return reinterpret_cast<T*>(memory + offset);
}

size_t BitBytes(int64_t count) { return (count + 31) / 32 * sizeof(uint32_t); }

}  // namespace

GpuLookup::Part::Part(const CacheBatch& batch, int64_t begin, int64_t count,
                      const RowFormat& format, bool direct)
    : begin(begin), count(count) {
  const size_t key_bytes = count * sizeof(int64_t);
  host_keys = host.Add(key_bytes);
  host_bits = host.Add(BitBytes(count));
  keys = device.Add(key_bytes);
  slots = device.Add(key_bytes);
  bits = device.Add(BitBytes(count));
  const size_t row_bytes = count * format.width() * sizeof(float);
  if (!batch.rows_on_device || format.is_packed()) rows = device.Add(row_bytes);
  if (!batch.rows_on_device && !direct) host_rows = host.Add(row_bytes);
}

GpuLookup::Staged::Staged(int64_t count, int width)
    : count(count),
      host_rows(host.Add(count * width * sizeof(float))),
      host_positions(host.Add(count * sizeof(int64_t))),
      rows(device.Add(count * width * sizeof(float))),
      positions(device.Add(count * sizeof(int64_t))),
      store(count, &host, &device) {}

GpuLookup::~GpuLookup() {
  if (staging_ == nullptr && busy_.empty()) return;
  EV_CUDA_LOG_IF_ERROR(cudaSetDevice(table_->device()));
  // A context that was only staged has no work in flight. The others are waited
  // for, since they write into the caller's memory.
  for (auto& context : busy_) {
    if (context->Wait().ok()) WorkContext::Release(std::move(context));
  }
  if (staging_ != nullptr && staging_->Wait().ok()) {
    WorkContext::Release(std::move(staging_));
  }
}

ev::Status GpuLookup::Check() const {
  const bool on_device = batch_.ids_on_device || batch_.rows_on_device;
  ev::Status status;
  if (on_device && batch_.stream == nullptr) {
    status = ev::InvalidArgument("ids or rows on a device need its stream");
  }
  if (status.ok() && batch_.ids_on_device) {
    status = ev::gpu::CheckIsOn(table_->device(), batch_.ids, "the id tensor");
  }
  if (status.ok() && batch_.rows_on_device) {
    status = ev::gpu::CheckIsOn(table_->device(), batch_.rows, "the output");
    if (status.ok() && reinterpret_cast<uintptr_t>(batch_.rows) % 16 != 0) {
      status = ev::InvalidArgument("the output is not aligned to 16 bytes");
    }
  }
  return status.ok()
             ? status
             : ev::Status(status.code(), "table " + table_->options().tag +
                                             ": " + status.message());
}

ev::Status GpuLookup::Begin() {
  if (batch_.count == 0) return ev::Status::OK();
  EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(table_->device()));
  EV_RETURN_IF_ERROR(Check());
  seen_ = table_->changes();
  const RowFormat& format = table_->options().format;
  const bool direct = !batch_.rows_on_device && !format.is_packed() &&
                      ev::gpu::IsPinned(batch_.rows);
  const int64_t at_once =
      batch_.rows_on_device ? batch_.count : CacheRowsAtOnce(format.width());
  std::deque<Part> parts;
  for (int64_t begin = 0; begin < batch_.count; begin += at_once) {
    if (parts.size() == kPartsUnderWay) {
      EV_RETURN_IF_ERROR(Receive(&parts.front(), direct));
      parts.pop_front();
    }
    parts.emplace_back(batch_, begin, std::min(at_once, batch_.count - begin),
                       format, direct);
    EV_RETURN_IF_ERROR(Send(&parts.back(), direct));
  }
  for (Part& part : parts) EV_RETURN_IF_ERROR(Receive(&part, direct));
  const int64_t misses = static_cast<int64_t>(positions_.size());
  table_->Count(batch_.count - misses, misses);
  return ev::Status::OK();
}

ev::Status GpuLookup::Send(Part* part, bool direct) {
  EV_RETURN_IF_ERROR(WorkContext::Acquire(
      part->host.bytes(), part->device.bytes(), &part->context));
  WorkContext* const context = part->context.get();
  const cudaStream_t stream = context->stream();
  if (batch_.stream != nullptr) {
    EV_RETURN_IF_ERROR(context->Follow(*batch_.stream));
  }
  const int64_t count = part->count;
  const size_t key_bytes = count * sizeof(int64_t);
  int64_t* const host_keys = At<int64_t>(context->host(), part->host_keys);
  const int64_t* keys = At<int64_t>(context->device(), part->keys);
  if (batch_.ids_on_device) {
    if (batch_.long_ids) {
      keys = static_cast<const int64_t*>(batch_.ids) + part->begin;
    } else {
      EV_RETURN_IF_ERROR(
          WidenIds(static_cast<const int32_t*>(batch_.ids) + part->begin, count,
                   At<int64_t>(context->device(), part->keys), stream));
    }
  } else {
    if (batch_.long_ids) {
      std::memcpy(host_keys,
                  static_cast<const int64_t*>(batch_.ids) + part->begin,
                  key_bytes);
    } else {
      const int32_t* const ids =
          static_cast<const int32_t*>(batch_.ids) + part->begin;
      std::copy(ids, ids + count, host_keys);
    }
    EV_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(context->device() + part->keys,
                                            host_keys, key_bytes,
                                            cudaMemcpyHostToDevice, stream));
  }
  const RowFormat& format = table_->options().format;
  const int width = format.width();
  const bool unpacks = batch_.rows_on_device && format.is_packed();
  float* const out = batch_.rows_on_device && !unpacks
                         ? batch_.rows + part->begin * width
                         : At<float>(context->device(), part->rows);
  EV_RETURN_IF_ERROR(table_->Find(
      keys, count, out, At<int64_t>(context->device(), part->slots),
      At<uint32_t>(context->device(), part->bits), context, &part->has_rows));
  if (!part->has_rows) return ev::Status::OK();
  if (unpacks) {
    // Also writes rows of misses, which Fill overwrites.
    EV_RETURN_IF_ERROR(UnpackRowsTo(format, out, nullptr, count,
                                    batch_.rows + part->begin * format.dim,
                                    stream));
  }
  EV_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(
      context->host() + part->host_bits, context->device() + part->bits,
      BitBytes(count), cudaMemcpyDeviceToHost, stream));
  if (!batch_.rows_on_device) {
    char* const to =
        direct ? reinterpret_cast<char*>(batch_.rows + part->begin * width)
               : context->host() + part->host_rows;
    EV_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(to, context->device() + part->rows,
                                            count * width * sizeof(float),
                                            cudaMemcpyDeviceToHost, stream));
  }
  return ev::Status::OK();
}

ev::Status GpuLookup::Receive(Part* part, bool direct) {
  WorkContext* const context = part->context.get();
  EV_RETURN_IF_ERROR(context->Wait());
  const int64_t count = part->count;
  uint32_t* const bits = At<uint32_t>(context->host(), part->host_bits);
  if (!part->has_rows) std::memset(bits, 0xff, BitBytes(count));
  const bool misses = std::any_of(bits, bits + (count + 31) / 32,
                                  [](uint32_t word) { return word != 0; });
  if (misses && batch_.ids_on_device) {
    const void* const keys =
        batch_.long_ids
            ? static_cast<const void*>(static_cast<const int64_t*>(batch_.ids) +
                                       part->begin)
            : context->device() + part->keys;
    EV_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(
        context->host() + part->host_keys, keys, count * sizeof(int64_t),
        cudaMemcpyDeviceToHost, context->stream()));
    EV_RETURN_IF_ERROR(context->Wait());
  }
  if (misses) Miss(*part, bits);
  if (part->has_rows && !batch_.rows_on_device && !direct) {
    const RowFormat& format = table_->options().format;
    ev::Serial serial;
    UnpackRows(format, count, At<float>(context->host(), part->host_rows),
               batch_.rows + part->begin * format.dim, &serial);
  }
  WorkContext::Release(std::move(part->context));
  return ev::Status::OK();
}

void GpuLookup::Miss(const Part& part, const uint32_t* bits) {
  const int64_t* const keys = At<int64_t>(part.context->host(), part.host_keys);
  for (int64_t word = 0; word * 32 < part.count; ++word) {
    for (uint32_t left = bits[word]; left != 0; left &= left - 1) {
      const int64_t i = word * 32 + __builtin_ctz(left);
      if (i >= part.count) break;
      positions_.push_back(part.begin + i);
      keys_.push_back(keys[i]);
    }
  }
}

ev::Status GpuLookup::Stage(int64_t count, float** rows) {
  const int64_t left = static_cast<int64_t>(positions_.size()) - filled_;
  if (staging_ != nullptr || count < 1 || count > max_fill() || count > left) {
    return ev::Internal("table " + table_->options().tag + ": Stage of " +
                        std::to_string(count) + " rows: expected 1 to " +
                        std::to_string(std::min(left, max_fill())) +
                        ", after the Fill of the previous Stage");
  }
  EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(table_->device()));
  if (busy_.size() == kPartsUnderWay) {
    EV_RETURN_IF_ERROR(busy_.front()->Wait());
    WorkContext::Release(std::move(busy_.front()));
    busy_.pop_front();
  }
  staged_.reset(new Staged(count, table_->options().format.width()));
  EV_RETURN_IF_ERROR(WorkContext::Acquire(staged_->host.bytes(),
                                          staged_->device.bytes(), &staging_));
  *rows = At<float>(staging_->host(), staged_->host_rows);
  return ev::Status::OK();
}

ev::Status GpuLookup::Fill(int64_t count, ev::Span<const int64_t> unknown,
                           ev::Parallel* parallel) {
  if (staging_ == nullptr || count != staged_->count) {
    return ev::Internal("table " + table_->options().tag + ": Fill of " +
                        std::to_string(count) +
                        " rows without a Stage of as many");
  }
  EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(table_->device()));
  const RowFormat& format = table_->options().format;
  const int width = format.width();
  const size_t row_bytes = count * width * sizeof(float);
  const Staged& at = *staged_;
  WorkContext* const context = staging_.get();
  const float* const rows = At<float>(context->host(), at.host_rows);
  float* const device_rows = At<float>(context->device(), at.rows);
  const int64_t* const positions = positions_.data() + filled_;
  const ev::Span<const int64_t> keys(keys_.data() + filled_, count);
  filled_ += count;
  busy_.push_back(std::move(staging_));
  EV_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(
      device_rows, rows, row_bytes, cudaMemcpyHostToDevice, context->stream()));
  if (batch_.rows_on_device) {
    const size_t bytes = count * sizeof(int64_t);
    int64_t* const places = At<int64_t>(context->device(), at.positions);
    std::memcpy(context->host() + at.host_positions, positions, bytes);
    EV_CUDA_RETURN_IF_ERROR(
        cudaMemcpyAsync(places, context->host() + at.host_positions, bytes,
                        cudaMemcpyHostToDevice, context->stream()));
    EV_RETURN_IF_ERROR(format.is_packed()
                           ? UnpackRowsTo(format, device_rows, places, count,
                                          batch_.rows, context->stream())
                           : ScatterRows(device_rows, places, count, width,
                                         batch_.rows, context->stream()));
  }
  EV_RETURN_IF_ERROR(
      table_->Store(keys, unknown, seen_, device_rows, at.store, context));
  if (batch_.rows_on_device) return ev::Status::OK();
  // Overlaps with the copy to the device.
  const int64_t rows_of_task =
      std::max<int64_t>(1, kTaskBytes / (format.dim * sizeof(float)));
  parallel->For((count + rows_of_task - 1) / rows_of_task, [&](int64_t task) {
    const int64_t end = std::min(count, (task + 1) * rows_of_task);
    for (int64_t i = task * rows_of_task; i < end; ++i) {
      UnpackRow(format, rows + i * width,
                batch_.rows + positions[i] * format.dim);
    }
  });
  return ev::Status::OK();
}

ev::Status GpuLookup::Finish() {
  if (busy_.empty()) return ev::Status::OK();
  EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(table_->device()));
  while (!busy_.empty()) {
    if (batch_.rows_on_device) {
      std::shared_ptr<ev::gpu::DeviceEvent> written;
      EV_RETURN_IF_ERROR(
          ev::gpu::DeviceEvent::Record(busy_.front()->stream(), &written));
      EV_RETURN_IF_ERROR(
          written->Before(static_cast<cudaStream_t>(batch_.stream->native)));
    }
    WorkContext::ReleaseBusy(std::move(busy_.front()));
    busy_.pop_front();
  }
  return ev::Status::OK();
}

}  // namespace hps
