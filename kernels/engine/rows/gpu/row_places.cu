// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include <cuda_runtime.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "kernels/engine/base/gpu/cuda_error.h"
#include "kernels/engine/rows/gpu/row_at.cuh"
#include "kernels/engine/rows/gpu/row_places.h"

namespace ev {
namespace gpu {
namespace {

// RowRecord::uses: bit 31 is set while the handle has a row, bit 30 while its
// row is chosen to move or to stay. The other bits, 0 if it was never offered:
//   LFU        bits 24 to 29: time of the last offer, in periods; the others:
//              number of offers, halved for each period since then
//   LRU, FIFO  number of the call of the last offer
constexpr uint32_t kChosen = kHasRow >> 1;
constexpr uint32_t kBits = kChosen - 1;
constexpr int kCountBits = 24;
constexpr uint32_t kMaxCount = (1u << kCountBits) - 1;
constexpr uint32_t kPeriods = 64;
constexpr uint32_t kLfuMoves = 256;  // calls per period

constexpr int64_t kMaxSampled = 16384;  // ids of a table that are looked at
// Most rows of a table, and of all tables of a call, that move unless forced.
// They bound the time that moves add to a step.
constexpr int64_t kMovesOfTable = 1024, kMovesOfCall = 4096, kLeastMoves = 64;
constexpr int64_t kWindow = 4;
constexpr int kTables = 16;

struct MoveTable {
  PiecesView rows;
  const RowHandle* handles;
  int64_t first, stride;
  int64_t num_sampled;
  uint32_t max_moves;
  uint32_t now;
  int32_t strategy;  // CacheStrategy
  bool is_forced;
};
struct MoveTables {
  MoveTable of[kTables];
};
static_assert(sizeof(MoveTables) <= 4000, "arguments of a kernel");

__device__ RowRecord* RecordOf(const PlacesView& placed, uint32_t number) {
  RowRecord* const piece = placed.records[number >> kPlacesLog2];
  return piece == nullptr ? nullptr
                          : piece + (number & ((1u << kPlacesLog2) - 1));
}

__device__ void SetPlace(const PlacesView& placed, RowHandle handle,
                         uint32_t place) {
  placed.places[handle >> kPlacesLog2][handle & ((1u << kPlacesLog2) - 1)] =
      handle ^ place;
  RecordOf(placed, place)->owner = handle ^ place;
}

__host__ __device__ uint32_t CountOf(uint32_t bits, uint32_t now) {
  const uint32_t period = now / kLfuMoves % kPeriods;
  const uint32_t passed = (period - (bits >> kCountBits)) % kPeriods;
  return passed >= kCountBits ? 0 : (bits & kMaxCount) >> passed;
}

// How much a row deserves its place. 0: it was never offered, or long ago.
__host__ __device__ uint32_t WorthOf(int strategy, uint32_t uses,
                                     uint32_t now) {
  const uint32_t bits = uses & kBits;
  if (strategy == static_cast<int>(CacheStrategy::kLfu)) {
    return CountOf(bits, now);
  }
  return bits == 0 ? 0 : kBits - ((now - bits) & kBits);
}

__device__ uint32_t AfterOffer(int strategy, uint32_t uses, uint32_t now) {
  uint32_t bits = now & kBits;
  if (strategy == static_cast<int>(CacheStrategy::kLfu)) {
    bits = now / kLfuMoves % kPeriods << kCountBits |
           min(CountOf(uses & kBits, now) + 1, kMaxCount);
  }
  return (uses & ~kBits) | bits;
}

__device__ bool IsBetter(int strategy, uint32_t worth, uint32_t other) {
  if (strategy == static_cast<int>(CacheStrategy::kFifo)) return true;
  if (strategy == static_cast<int>(CacheStrategy::kLru)) return worth > other;
  return worth > 2 * other + 1;
}

// Records that the row was offered. Returns whether its row is to move to GPU
// memory if there is a row there that is worth less, and marks it as chosen.
__device__ bool TakeOffer(const MoveTable& table, RowHandle handle,
                          uint32_t* worth) {
  if (handle >= kFirstReservedHandle) return false;
  RowRecord* const record = RecordOf(table.rows.placed, handle);
  const uint32_t before = record == nullptr ? 0 : record->uses;
  if ((before & kHasRow) == 0) return false;
  // If another thread changes it, one of the two offers is not counted.
  atomicCAS(&record->uses, before,
            AfterOffer(table.strategy, before, table.now));
  *worth = table.is_forced ? kBits : WorthOf(table.strategy, before, table.now);
  const bool is_on_gpu =
      PlaceOf(table.rows.placed, handle) < table.rows.placed.num_on_gpu;
  // The rows of a forced offer that are in GPU memory are chosen to stay.
  if (*worth == 0 || (is_on_gpu && !table.is_forced)) return false;
  const uint32_t old = atomicOr(&record->uses, kChosen);
  return (old & kChosen) == 0 && !is_on_gpu;
}

// Returns the handle of the row in GPU memory, among kWindow places from
// 'place' on, that is worth least; kNoRow if there is none.
__device__ RowHandle WorstRow(const MoveTable& table, uint32_t place,
                              uint32_t* worth) {
  const PlacesView& placed = table.rows.placed;
  RowHandle worst = ev::kNoRow;
  for (uint32_t w = 0; w < kWindow; ++w) {
    const uint32_t at = (place + w) % placed.num_on_gpu;
    const RowRecord* const visited = RecordOf(placed, at);
    if (visited == nullptr) continue;
    const RowHandle handle = visited->owner ^ at;
    const RowRecord* const record = RecordOf(placed, handle);
    const uint32_t uses = record->uses;
    if ((uses & kHasRow) == 0 || (uses & kChosen) != 0) continue;
    const uint32_t its = WorthOf(table.strategy, uses, table.now);
    if (worst != ev::kNoRow && its >= *worth) continue;
    worst = handle;
    *worth = its;
  }
  return worst;
}

// A thread per offered id.
__global__ void __launch_bounds__(kThreads) OfferRowsKernel(MoveTables tables) {
  const MoveTable& table = tables.of[blockIdx.y];
  PlaceState* const state = table.rows.placed.state;
  const int64_t k = FirstIndex();
  if (k >= table.num_sampled) return;
  const RowHandle handle = table.handles[table.first + k * table.stride];
  uint32_t worth = 0;
  if (!TakeOffer(table, handle, &worth)) return;
  const uint32_t at = atomicAdd(&state->num_chosen[table.now % 2], 1u);
  if (at < table.max_moves) {
    state->chosen[at] = handle;
    state->worth[at] = worth;
  } else {
    atomicAnd(&RecordOf(table.rows.placed, handle)->uses, ~kChosen);
  }
}

// A thread per chosen row.
__global__ void __launch_bounds__(kThreads)
    ChooseVictimsKernel(MoveTables tables) {
  const MoveTable& table = tables.of[blockIdx.y];
  const PlacesView& placed = table.rows.placed;
  PlaceState* const state = placed.state;
  const uint32_t at = static_cast<uint32_t>(FirstIndex());
  if (at >= min(state->num_chosen[table.now % 2], table.max_moves)) return;
  uint32_t worth = 0;
  RowHandle victim = WorstRow(table, state->hand + at * kWindow, &worth);
  if (victim != ev::kNoRow && !table.is_forced &&
      !IsBetter(table.strategy, state->worth[at], worth)) {
    victim = ev::kNoRow;
  }
  state->victim[at] = victim;
  if (victim == ev::kNoRow) {
    atomicAnd(&RecordOf(placed, state->chosen[at])->uses, ~kChosen);
  }
}

template <typename T>
__device__ void SwapFloats(T* a, T* b, int64_t n) {
  for (int64_t e = threadIdx.x % 32; e < n; e += 32) {
    const T of_a = a[e], of_b = b[e];
    a[e] = of_b;
    b[e] = of_a;
  }
}

// A warp per chosen row.
__global__ void __launch_bounds__(kThreads) SwapRowsKernel(MoveTables tables) {
  const MoveTable& table = tables.of[blockIdx.y];
  const PlacesView& placed = table.rows.placed;
  PlaceState* const state = placed.state;
  const uint32_t count = min(state->num_chosen[table.now % 2], table.max_moves);
  if (table.is_forced) {
    // Those that were chosen to stay.
    for (int64_t k = FirstIndex(); k < table.num_sampled; k += IndexStep()) {
      const RowHandle handle = table.handles[k];
      if (handle >= kFirstReservedHandle ||
          PlaceOf(placed, handle) >= placed.num_on_gpu) {
        continue;
      }
      atomicAnd(&RecordOf(placed, handle)->uses, ~kChosen);
    }
  }
  if (FirstIndex() == 0) {
    state->hand = (state->hand + count * kWindow) % placed.num_on_gpu;
    state->num_chosen[(table.now + 1) % 2] = 0;
  }
  const uint32_t at = static_cast<uint32_t>(FirstIndex() / 32);
  if (at >= count || state->victim[at] == ev::kNoRow) return;
  const RowHandle chosen = state->chosen[at], victim = state->victim[at];
  const uint32_t host_place = PlaceOf(placed, chosen);
  const uint32_t gpu_place = PlaceOf(placed, victim);
  float* const a = AtPlace(table.rows, host_place);
  float* const b = AtPlace(table.rows, gpu_place);
  const int64_t floats = table.rows.stride;
  if (floats % 4 == 0) {
    SwapFloats(reinterpret_cast<float4*>(a), reinterpret_cast<float4*>(b),
               floats / 4);
  } else {
    SwapFloats(a, b, floats);
  }
  __syncwarp();
  if (threadIdx.x % 32 != 0) return;
  SetPlace(placed, chosen, gpu_place);
  SetPlace(placed, victim, host_place);
  atomicAnd(&RecordOf(placed, chosen)->uses, ~kChosen);
  atomicAdd(&state->moves, 1ull);
}

__global__ void __launch_bounds__(kThreads)
    ForgetUsesKernel(PlacesView placed, const RowHandle* handles,
                     int64_t count) {
  const int64_t i = FirstIndex();
  if (i < count) RecordOf(placed, handles[i])->uses = 0;
}

// A warp per forgotten handle. The row at its place moves to the place that
// becomes free: the first one, on the way from place to place, whose own handle
// keeps its row.
__global__ void __launch_bounds__(kThreads)
    FreePlacesKernel(PiecesView rows, const RowHandle* handles, int64_t count,
                     uint32_t* targets) {
  const int64_t i = FirstIndex() / 32;
  if (i >= count) return;
  const PlacesView& placed = rows.placed;
  const RowHandle handle = handles[i];
  const RowHandle owner = RecordOf(placed, handle)->owner ^ handle;
  uint32_t target = handle;
  if ((RecordOf(placed, owner)->uses & kHasRow) != 0) {
    do {
      target = PlaceOf(placed, target);
    } while ((RecordOf(placed, target)->uses & kHasRow) == 0);
    const float* const from = AtPlace(rows, handle);
    float* const to = AtPlace(rows, target);
    for (int64_t e = threadIdx.x % 32; e < rows.stride; e += 32) {
      to[e] = from[e];
    }
  }
  if (threadIdx.x % 32 == 0) targets[i] = target;
}

// Moves the owners of places that their own handles take back. 'owner' of these
// places is read here and written by TakeBackKernel.
__global__ void __launch_bounds__(kThreads)
    MoveOwnersKernel(PlacesView placed, const RowHandle* handles, int64_t count,
                     const uint32_t* targets) {
  const int64_t i = FirstIndex();
  if (i >= count || targets[i] == handles[i]) return;
  SetPlace(placed, RecordOf(placed, handles[i])->owner ^ handles[i],
           targets[i]);
}

__global__ void __launch_bounds__(kThreads)
    TakeBackKernel(PlacesView placed, const RowHandle* handles, int64_t count) {
  const int64_t i = FirstIndex();
  if (i < count) SetPlace(placed, handles[i], handles[i]);
}

}  // namespace

RowPlaces::RowPlaces(CacheStrategy strategy)
    : strategy_(strategy),
      places_(/*stride=*/1, kPlacesLog2, /*are_zeros=*/true, RowPieces::kNone,
              "places of rows"),
      records_(sizeof(RowRecord) / sizeof(float), kPlacesLog2,
               /*are_zeros=*/true, RowPieces::kNone, "uses of rows") {}

Status RowPlaces::Reserve(RowHandle handle) {
  {
    std::lock_guard<std::mutex> lock(mu_);
    if (state_.data() == nullptr) {
      DeviceBuffer state;
      EV_RETURN_IF_ERROR(
          state.Allocate(sizeof(PlaceState), "the state of moves"));
      EV_CUDA_RETURN_IF_ERROR(cudaMemset(state.data(), 0, sizeof(PlaceState)));
      EV_CUDA_RETURN_IF_ERROR(cudaStreamSynchronize(nullptr));
      state_ = std::move(state);
    }
  }
  EV_RETURN_IF_ERROR(places_.Reserve(handle));
  EV_RETURN_IF_ERROR(records_.Reserve(handle));
  const int64_t end =
      static_cast<int64_t>(handle >> kPlacesLog2 << kPlacesLog2) +
      (int64_t{1} << kPlacesLog2);
  int64_t before = end_;
  while (before < end && !end_.compare_exchange_weak(before, end)) {
  }
  return Status::OK();
}

PlacesView RowPlaces::view(int64_t num_on_gpu) const {
  PlacesView view;
  view.places = reinterpret_cast<uint32_t* const*>(places_.view().pieces);
  view.records = reinterpret_cast<RowRecord* const*>(records_.view().pieces);
  {
    std::lock_guard<std::mutex> lock(mu_);
    view.state = state_.as<PlaceState>();
  }
  view.num_on_gpu = static_cast<uint32_t>(
      std::min<int64_t>(num_on_gpu, kFirstReservedHandle));
  return view;
}

int64_t RowPlaces::bytes() const {
  return places_.bytes() + records_.bytes() + sizeof(PlaceState);
}

Status RowPlaces::Find(RowHandle handle, uint32_t* place) const {
  const uint32_t* const piece =
      reinterpret_cast<const uint32_t*>(places_.address(handle >> kPlacesLog2));
  uint32_t word = 0;
  EV_CUDA_RETURN_IF_ERROR(
      cudaMemcpy(&word, piece + (handle & ((1u << kPlacesLog2) - 1)),
                 sizeof(word), cudaMemcpyDeviceToHost));
  *place = word ^ handle;
  return Status::OK();
}

Status RowPlaces::ReadWorth(RowHandle first, Span<uint32_t> worth) const {
  constexpr size_t kPiece = size_t{1} << kPlacesLog2;
  std::vector<RowRecord> records;
  for (size_t begin = 0; begin < worth.size(); begin += records.size()) {
    const RowHandle handle = first + static_cast<RowHandle>(begin);
    const size_t at = handle % kPiece;
    records.resize(std::min(worth.size() - begin, kPiece - at));
    if (!Has(handle)) {  // none of them has a row
      std::fill_n(worth.data() + begin, records.size(), 0);
      continue;
    }
    const RowRecord* const piece = reinterpret_cast<const RowRecord*>(
        records_.address(handle >> kPlacesLog2));
    EV_CUDA_RETURN_IF_ERROR(cudaMemcpy(records.data(), piece + at,
                                       records.size() * sizeof(RowRecord),
                                       cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < records.size(); ++i) {
      worth[begin + i] =
          WorthOf(static_cast<int>(strategy_), records[i].uses, calls_.load());
    }
  }
  return Status::OK();
}

Status RowPlaces::ReadCounts(PlaceCounts* counts) const {
  *counts = PlaceCounts{};
  std::lock_guard<std::mutex> lock(mu_);
  if (state_.data() == nullptr) return Status::OK();
  EV_CUDA_RETURN_IF_ERROR(
      cudaMemcpy(counts, static_cast<PlaceCounts*>(state_.as<PlaceState>()),
                 sizeof(PlaceCounts), cudaMemcpyDeviceToHost));
  return Status::OK();
}

Status RowPlaces::LaunchForget(const PiecesView& rows, const RowHandle* handles,
                               int64_t count, uint32_t* targets,
                               StreamView stream) {
  if (count == 0) return Status::OK();
  const cudaStream_t s = stream.get();
  const int blocks = BlocksFor(count);
  ForgetUsesKernel<<<blocks, kThreads, 0, s>>>(rows.placed, handles, count);
  FreePlacesKernel<<<BlocksFor(32 * count), kThreads, 0, s>>>(rows, handles,
                                                              count, targets);
  MoveOwnersKernel<<<blocks, kThreads, 0, s>>>(rows.placed, handles, count,
                                               targets);
  TakeBackKernel<<<blocks, kThreads, 0, s>>>(rows.placed, handles, count);
  EV_CUDA_RETURN_IF_LAUNCH_FAILED("a kernel that frees places");
  return Status::OK();
}

void RowPlaces::Clear() {
  places_.Clear();
  records_.Clear();
  end_ = 0;
}

int64_t RowPlaces::MostMoves(int64_t num_on_gpu) {
  // Two rows have no place of their windows in common.
  return std::min<int64_t>(kMaxMoves,
                           std::max<int64_t>(1, num_on_gpu / kWindow));
}

Status RowPlaces::LaunchMoves(Span<const Offer> offers, StreamView stream) {
  const int64_t total = offers.size();
  for (int64_t begin = 0; begin < total; begin += kTables) {
    const int n = static_cast<int>(std::min<int64_t>(kTables, total - begin));
    MoveTables tables = {};
    int64_t most = 1, most_sampled = 1;
    for (int k = 0; k < n; ++k) {
      const Offer& offer = offers[begin + k];
      RowPlaces* const places = offer.places;
      MoveTable* const to = &tables.of[k];
      to->rows = offer.rows;
      to->handles = offer.handles;
      to->now = ++places->calls_;
      to->strategy = static_cast<int32_t>(places->strategy_);
      to->is_forced = offer.is_forced;
      to->num_sampled = offer.is_forced ? offer.num_ids
                                        : std::min(offer.num_ids, kMaxSampled);
      to->stride = offer.num_ids / std::max<int64_t>(1, to->num_sampled);
      // Other ids in each call.
      if (to->stride > 1) to->first = to->now * int64_t{40503} % to->stride;
      const int64_t moves =
          std::min(kMovesOfTable, std::max(kLeastMoves, kMovesOfCall / total));
      const int64_t most_moves = MostMoves(offer.rows.placed.num_on_gpu);
      to->max_moves = static_cast<uint32_t>(
          offer.is_forced ? most_moves : std::min(moves, most_moves));
      most = std::max<int64_t>(most, to->max_moves);
      most_sampled = std::max(most_sampled, to->num_sampled);
    }
    const cudaStream_t s = stream.get();
    OfferRowsKernel<<<dim3(BlocksFor(most_sampled), n), kThreads, 0, s>>>(
        tables);
    ChooseVictimsKernel<<<dim3(BlocksFor(most), n), kThreads, 0, s>>>(tables);
    SwapRowsKernel<<<dim3(BlocksFor(32 * most), n), kThreads, 0, s>>>(tables);
  }
  EV_CUDA_RETURN_IF_LAUNCH_FAILED("a kernel that moves rows");
  return Status::OK();
}

}  // namespace gpu
}  // namespace ev
