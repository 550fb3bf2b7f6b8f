// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// GpuRows: rows beyond a budget of GPU memory, in pinned host memory.

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <utility>

#include "kernels/engine/base/gpu/cuda_error.h"
#include "kernels/engine/base/tasks.h"
#include "kernels/engine/rows/gpu/gpu_rows.h"

namespace ev {
namespace gpu {
namespace {

constexpr int64_t kMinGpuRows = 64;  // of a table with a budget
// Two arrays of them fit into a turn of a ring (turn_bytes).
constexpr int64_t kHandlesPerTurn = 128 << 10;

// Copies handles to the device in chunks, and calls work(on_device, n) for each
// chunk, which enqueues work on its handles. on_device has room for 2 n
// handles.
template <typename Work>
Status ForChunks(Span<const RowHandle> handles, TransferRing* ring,
                 const Work& work) {
  const int64_t total = handles.size();
  for (int64_t begin = 0; begin < total; begin += kHandlesPerTurn) {
    const int64_t n = std::min(kHandlesPerTurn, total - begin);
    TransferRing::Turn* turn = nullptr;
    EV_RETURN_IF_ERROR(ring->Next(&turn));
    std::memcpy(turn->host, handles.data() + begin, n * sizeof(RowHandle));
    EV_CUDA_RETURN_IF_ERROR(
        cudaMemcpyAsync(turn->device, turn->host, n * sizeof(RowHandle),
                        cudaMemcpyHostToDevice, ring->stream()));
    EV_RETURN_IF_ERROR(work(reinterpret_cast<RowHandle*>(turn->device), n));
    EV_RETURN_IF_ERROR(ring->End(turn));
  }
  return Status::OK();
}

}  // namespace

PiecesView GpuRows::pieces() const {
  PiecesView view = pieces_->view();
  if (places_ != nullptr) view.placed = places_->view(pieces_->num_on_gpu());
  return view;
}

std::unique_ptr<RowPieces> GpuRows::NewPieces(int64_t stride,
                                              int rows_log2) const {
  if (places_ == nullptr) {
    return std::unique_ptr<RowPieces>(new RowPieces(stride, rows_log2));
  }
  const int64_t row_bytes = stride * sizeof(float);
  const int64_t num_rows = std::max(kMinGpuRows, budget_ / row_bytes);
  if (rows_log2 < 0) {
    rows_log2 = 0;
    const int64_t most =
        std::min(num_rows / 16,
                 std::max<int64_t>(1, RowPieces::kPieceBytes / row_bytes));
    while (int64_t{2} << rows_log2 <= most) ++rows_log2;
  }
  const int64_t on_gpu = std::max<int64_t>(
      num_rows >> rows_log2,
      (kMinGpuRows + (int64_t{1} << rows_log2) - 1) >> rows_log2);
  return std::unique_ptr<RowPieces>(
      new RowPieces(stride, rows_log2, /*are_zeros=*/false, on_gpu));
}

Status GpuRows::FreePlaces(Span<const RowHandle> handles) {
  return WithDevice([&](TransferRing* ring) {
    return ForChunks(handles, ring, [&](RowHandle* on_device, int64_t n) {
      return places_->LaunchForget(pieces(), on_device, n, on_device + n,
                                   ring->stream());
    });
  });
}

Status GpuRows::Prefetch(Span<const RowHandle> handles) {
  if (!has_host_rows()) return Status::OK();
  EV_RETURN_IF_ERROR(broken_);
  EV_RETURN_IF_ERROR(Flush());
  const RowPlaces::Moving moving(places_);
  if (!moving.is_closed()) return Status::OK();
  EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(device_));
  const int64_t at_once = RowPlaces::MostMoves(pieces_->num_on_gpu());
  std::unique_ptr<TransferRing> ring;
  EV_RETURN_IF_ERROR(TransferRing::Acquire(turn_bytes(), &ring));
  EV_RETURN_IF_ERROR(events_.Follow(ring->stream()));
  // More would push each other out.
  const size_t most = std::min<int64_t>(handles.size(), pieces_->num_on_gpu());
  EV_RETURN_IF_ERROR(ForChunks(handles.subspan(0, most), ring.get(),
                               [&](const RowHandle* on_device, int64_t n) {
                                 RowPlaces::Offer offer;
                                 offer.places = places_.get();
                                 offer.rows = pieces();
                                 offer.handles = on_device;
                                 offer.num_ids = n;
                                 offer.is_forced = true;
                                 for (int64_t moved = 0; moved < n;
                                      moved += at_once) {
                                   EV_RETURN_IF_ERROR(RowPlaces::LaunchMoves(
                                       {&offer, 1}, ring->stream()));
                                 }
                                 return Status::OK();
                               }));
  EV_RETURN_IF_ERROR(ring->Wait());
  TransferRing::Release(std::move(ring));
  return Status::OK();
}

int GpuRows::TierOf(RowHandle handle) const {
  uint32_t place = handle;
  // The next call returns an error of the GPU itself.
  if (!CatchBadAlloc([&] {
         EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(device_));
         return places_->Find(handle, &place);
       }).ok()) {
    return 1;
  }
  return place < pieces_->num_on_gpu() ? 0 : 1;
}

Status GpuRows::ReadWorth(RowHandle first, Span<uint32_t> worth) {
  EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(device_));
  return places_->ReadWorth(first, worth);
}

TierStats GpuRows::tier_stats() const {
  TierStats stats;
  {
    std::lock_guard<std::mutex> lock(live_mu_);
    for (size_t p = 0; p < live_.size(); ++p) {
      (pieces_->IsOnHost(p) ? stats.stored_rows : stats.memory_rows) +=
          live_[p];
    }
  }
  const int64_t row_bytes = pieces_->stride() * sizeof(float);
  stats.stored_bytes = stats.stored_rows * row_bytes;
  PlaceCounts counts;
  EV_CUDA_LOG_IF_ERROR(cudaSetDevice(device_));
  // Zeros after an error of the GPU itself, which the next call returns.
  const Status status = places_->ReadCounts(&counts);
  (void)status;
  stats.hits = counts.hits;
  stats.misses = counts.misses;
  stats.moved_up = stats.moved_down = counts.moves;
  stats.written_bytes = stats.moved_down * row_bytes;
  stats.link_bytes =
      counts.fetched * shape_.offset(1) * sizeof(float) +
      2 * row_bytes * static_cast<int64_t>(counts.updated + counts.moves);
  return stats;
}

}  // namespace gpu
}  // namespace ev
