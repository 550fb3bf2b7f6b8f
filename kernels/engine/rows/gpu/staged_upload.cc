// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/rows/gpu/staged_upload.h"

#include <cuda_runtime_api.h>
#include <emmintrin.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "kernels/engine/base/gpu/cuda_error.h"

namespace ev {
namespace gpu {
namespace {

// What is sent at a time: 75 us of the link.
constexpr size_t kPartBytes = 4 << 20;

size_t NumParts(size_t bytes) {
  return std::max<size_t>(1, (bytes + kPartBytes - 1) / kPartBytes);
}

// Past the caches, which the device does not read: a third less traffic than
// memcpy's, that reads what it is about to overwrite.
void CopyPastCaches(const char* from, size_t bytes, char* to) {
  constexpr size_t kLine = 64, kWidth = sizeof(__m128i);
  const size_t head = std::min(
      bytes, (kLine - reinterpret_cast<uintptr_t>(to) % kLine) % kLine);
  std::memcpy(to, from, head);
  size_t i = head;
  for (; i + kLine <= bytes; i += kLine) {
    __m128i line[kLine / kWidth];
    for (size_t k = 0; k < kLine / kWidth; ++k) {
      line[k] = _mm_loadu_si128(
          reinterpret_cast<const __m128i*>(from + i + k * kWidth));
    }
    for (size_t k = 0; k < kLine / kWidth; ++k) {
      _mm_stream_si128(reinterpret_cast<__m128i*>(to + i + k * kWidth),
                       line[k]);
    }
  }
  std::memcpy(to + i, from + i, bytes - i);
  _mm_sfence();
}

}  // namespace

StagedUpload::StagedUpload(size_t most_bytes) : staged_(NumParts(most_bytes)) {
  for (auto& bytes : staged_) bytes = 0;
}

Status StagedUpload::Put(size_t at, const void* from, size_t bytes,
                         size_t total, char* host, char* device,
                         WorkLane* lane) {
  CopyPastCaches(static_cast<const char*>(from), bytes, host + at);
  // Parts of one length, but the last.
  const size_t length = (total + NumParts(total) - 1) / NumParts(total);
  for (const size_t end = at + bytes; at < end;) {
    const size_t part = at / length;
    const size_t part_end = std::min(total, (part + 1) * length);
    const size_t here = std::min(end, part_end) - at;
    const size_t part_bytes = part_end - part * length;
    if (staged_[part].fetch_add(here, std::memory_order_acq_rel) + here ==
        part_bytes) {
      EV_CUDA_RETURN_IF_ERROR(
          cudaMemcpyAsync(device + part * length, host + part * length,
                          part_bytes, cudaMemcpyHostToDevice, lane->stream()));
    }
    at += here;
  }
  return Status::OK();
}

}  // namespace gpu
}  // namespace ev
