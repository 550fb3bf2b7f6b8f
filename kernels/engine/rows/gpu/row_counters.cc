// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/rows/gpu/row_counters.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <vector>

#include "kernels/engine/base/gpu/cuda_error.h"

namespace ev {
namespace gpu {
namespace {

static_assert(sizeof(RowMeta) == 16, "what kernels take for one");
constexpr int64_t kFloatsEach = sizeof(RowMeta) / sizeof(float);
constexpr int64_t kRowsAtOnce = 4096;
constexpr size_t kBytesAtOnce = kRowsAtOnce * sizeof(RowMeta);
static_assert((1 << kCounterRowsLog2) % kRowsAtOnce == 0, "of a piece");

bool IsZero(const RowMeta& meta) {
  return (meta.version_plus1 | meta.frequency | meta.call) == 0;
}

}  // namespace

RowCounters::RowCounters()
    : pieces_(kFloatsEach, kCounterRowsLog2, /*are_zeros=*/true,
              RowPieces::kNone, "row counters"),
      host_rows_(new RowMeta[kRowsAtOnce]) {}

void RowCounters::Clear() {
  pieces_.Clear();
  has_any_.store(false);
}

Status RowCounters::Take(
    const std::function<void(RowHandle, const RowMeta&)>& take) {
  std::lock_guard<std::mutex> lock(mu_);
  if (!has_any()) return Status::OK();
  const int64_t rows = pieces_.rows_per_piece();
  const std::vector<float*> pieces = pieces_.pieces();
  for (size_t p = 0; p < pieces.size(); ++p) {
    if (pieces[p] == nullptr) continue;
    for (int64_t i = 0; i < rows; i += kRowsAtOnce) {
      EV_RETURN_IF_ERROR(TakeSome(
          static_cast<RowHandle>(p * rows + i),
          reinterpret_cast<RowMeta*>(pieces[p] + i * kFloatsEach), take));
    }
  }
  // Makes the zeros visible to all streams.
  EV_CUDA_RETURN_IF_ERROR(cudaStreamSynchronize(nullptr));
  has_any_.store(false);
  return Status::OK();
}

Status RowCounters::TakeSome(
    RowHandle first, RowMeta* device_rows,
    const std::function<void(RowHandle, const RowMeta&)>& take) {
  EV_CUDA_RETURN_IF_ERROR(cudaMemcpy(host_rows_.get(), device_rows,
                                     kBytesAtOnce, cudaMemcpyDeviceToHost));
  if (std::all_of(host_rows_.get(), host_rows_.get() + kRowsAtOnce, IsZero)) {
    return Status::OK();
  }
  // Zero the device's copy first: if this fails, no pending counter is counted
  // twice.
  EV_CUDA_RETURN_IF_ERROR(cudaMemset(device_rows, 0, kBytesAtOnce));
  for (int64_t i = 0; i < kRowsAtOnce; ++i) {
    if (!IsZero(host_rows_[i]))
      take(first + static_cast<RowHandle>(i), host_rows_[i]);
  }
  return Status::OK();
}

}  // namespace gpu
}  // namespace ev
