// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/base/gpu/work/staged_upload.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>

#include "kernels/engine/base/copy_past_caches.h"
#include "kernels/engine/base/gpu/cuda_error.h"

namespace ev {
namespace gpu {
namespace {

// Maximum bytes per copy: 75 us of the link.
constexpr size_t kPartBytes = 4 << 20;
// A short array is sent in up to kParts copies of at least this size: the link
// transfers the first while others are staged, and the last one is short.
constexpr size_t kShortPartBytes = 1 << 20;
constexpr size_t kParts = 6;

size_t NumParts(size_t bytes) {
  const auto parts_of = [bytes](size_t most) {
    return std::max<size_t>(1, (bytes + most - 1) / most);
  };
  return std::max(parts_of(kPartBytes),
                  std::min(kParts, parts_of(kShortPartBytes)));
}

}  // namespace

StagedUpload::StagedUpload(size_t most_bytes) : staged_(NumParts(most_bytes)) {
  for (auto& bytes : staged_) bytes = 0;
}

Status StagedUpload::Put(size_t at, const void* from, size_t bytes,
                         size_t total, char* host, char* device,
                         StreamView stream) {
  CopyPastCaches(from, bytes, host + at);
  return Send(at, bytes, total, host, device, stream);
}

Status StagedUpload::PutNarrowed(size_t at, const int64_t* ids, size_t count,
                                 size_t total, char* host, char* device,
                                 StreamView stream, bool* fit) {
  *fit = NarrowPastCaches(ids, count, reinterpret_cast<int32_t*>(host + at));
  return Send(at, count * sizeof(int32_t), total, host, device, stream);
}

Status StagedUpload::Send(size_t at, size_t bytes, size_t total, char* host,
                          char* device, StreamView stream) {
  if (device == nullptr) return Status::OK();
  // All parts have the same length, except the last.
  const size_t length = (total + NumParts(total) - 1) / NumParts(total);
  for (const size_t end = at + bytes; at < end;) {
    const size_t part = at / length;
    const size_t part_end = std::min(total, (part + 1) * length);
    const size_t count = std::min(end, part_end) - at;
    const size_t part_bytes = part_end - part * length;
    if (staged_[part].fetch_add(count, std::memory_order_acq_rel) + count ==
        part_bytes) {
      EV_CUDA_RETURN_IF_ERROR(
          cudaMemcpyAsync(device + part * length, host + part * length,
                          part_bytes, cudaMemcpyHostToDevice, stream.get()));
    }
    at += count;
  }
  return Status::OK();
}

}  // namespace gpu
}  // namespace ev
