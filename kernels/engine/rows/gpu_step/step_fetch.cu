// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// A group of lanes for each sorted id. The group of a row's first id reads the
// row for all ids of the row, which follow each other. A row of very many ids
// is read once for each kMaxRun of them, so that no group has much more work
// than others.

#include "kernels/engine/base/gpu/cuda_error.h"
#include "kernels/engine/base/gpu/warp.cuh"
#include "kernels/engine/gpu_step/step_plan.cuh"
#include "kernels/engine/rows/gpu/row_at.cuh"
#include "kernels/engine/rows/gpu_step/step_fetch.h"

namespace ev {
namespace gpu {
namespace {

constexpr int kGroup = 16;  // lanes
constexpr int64_t kMaxRun = 256;
static_assert(kFindTile == kThreads, "a thread for each id");

// Adds the ids of a warp whose rows are in host memory, and those of other
// rows.
__device__ __forceinline__ void CountReads(PlaceState* state, unsigned on_host,
                                           unsigned on_gpu) {
  if (threadIdx.x % 32 != 0) return;
  using Count = unsigned long long;  // NOLINT: what atomicAdd takes
  if (on_host != 0) atomicAdd(&state->misses, Count(__popc(on_host)));
  if (on_gpu != 0) atomicAdd(&state->hits, Count(__popc(on_gpu)));
}

__global__ void __launch_bounds__(kThreads)
    LocateRowsKernel(StepLookup lookup, StepFetch fetch, uint32_t* keys,
                     uint32_t* positions) {
  const int t =
      TableOfBlock(lookup.find_tiles, 0, lookup.num_tables, blockIdx.x);
  const StepLookupTable& table = lookup.tables[t];
  const PlacesView& placed = table.rows.placed;
  const int64_t local =
      static_cast<int64_t>(blockIdx.x - __ldg(lookup.find_tiles + t)) *
          kThreads +
      threadIdx.x;
  bool is_row = false, is_on_host = false;
  if (local < table.num_ids) {
    const int64_t i = table.id_begin + local;
    const RowHandle handle = lookup.handles[i];
    is_row = handle < kFirstReservedHandle;
    uint32_t key = kAllLanes;
    if (is_row) {
      const uint32_t place = PlaceOf(placed, handle);
      lookup.rows[i] = AtPlace(table.rows, place);
      is_on_host = placed.places != nullptr && place >= placed.num_on_gpu;
      if (is_on_host) key = fetch.order.KeyOf(t, place);
    } else {
      lookup.rows[i] =
          table.defaults + static_cast<int64_t>(handle - kFirstReservedHandle) *
                               table.value_floats;
    }
    if (keys != nullptr) {
      keys[i - fetch.first_id] = key;
      positions[i - fetch.first_id] = static_cast<uint32_t>(i - fetch.first_id);
    }
  }
  if (placed.places == nullptr) return;
  CountReads(placed.state, __ballot_sync(kAllLanes, is_on_host),
             __ballot_sync(kAllLanes, is_row && !is_on_host));
}

// Copies 'count' Ts to to(0), ..., to(copies - 1), by a group of lanes.
template <typename T, typename To>
__device__ __forceinline__ void CopyRow(const float* row, int count, int sub,
                                        int copies, const To& to) {
  const T* const from = reinterpret_cast<const T*>(row);
  for (int e = sub; e < count; e += 2 * kGroup) {
    const bool has_next = e + kGroup < count;
    const T a = from[e];
    const T b = has_next ? from[e + kGroup] : a;
    for (int j = 0; j < copies; ++j) {
      T* const out = reinterpret_cast<T*>(to(j));
      out[e] = a;
      if (has_next) out[e + kGroup] = b;
    }
  }
}

__global__ void __launch_bounds__(kThreads)
    FetchRowsKernel(StepLookup lookup, StepFetch fetch, const uint32_t* keys,
                    const uint32_t* positions) {
  const int64_t p = FirstIndex() / kGroup;
  const int sub = threadIdx.x % kGroup;
  if (p >= fetch.num_ids) return;
  const uint32_t key = keys[p];
  if ((key & fetch.order.late_bit()) != 0) return;  // not in host memory
  const StepLookupTable& table = lookup.tables[key >> fetch.order.window_bits];
  // Narrow outputs and rows are converted by the pooling.
  const bool is_staged = table.offsets != nullptr ||
                         table.out_type != FloatType::kFloat32 ||
                         table.row_type != FloatType::kFloat32;
  const auto count = [&] {
    if (sub == 0) atomicAdd(&table.rows.placed.state->fetched, 1ull);
  };
  if (is_staged && p >= fetch.num_staged) return count();
  const RowHandle* const handles = lookup.handles + fetch.first_id;
  const RowHandle handle = handles[positions[p]];
  const auto is_same = [&](int64_t q) {
    return keys[q] == key && handles[positions[q]] == handle;
  };
  if (p % kMaxRun != 0 && is_same(p - 1)) return;
  const int64_t end = min(fetch.num_ids, (p / kMaxRun + 1) * kMaxRun);
  const int first_lane = threadIdx.x % 32 / kGroup * kGroup;
  const unsigned group = ((1u << kGroup) - 1) << first_lane;
  int num_same = 0;  // ids of the row, from p on
  for (unsigned others = 0; others == 0;) {
    const int64_t q = p + num_same + sub;
    others = __ballot_sync(group, q >= end || !is_same(q)) >> first_lane;
    num_same += others == 0 ? kGroup : __ffs(others) - 1;
  }
  const float** const rows = lookup.rows + fetch.first_id;
  const float* const row = rows[positions[p]];
  __syncwarp(group);  // all lanes have read the row's address
  count();
  float* const staged = is_staged ? fetch.staged + p * fetch.stride : nullptr;
  for (int j = sub; j < num_same; j += kGroup) rows[positions[p + j]] = staged;
  const int64_t before = fetch.first_id - table.id_begin;
  const auto to = [&](int j) {
    return is_staged ? staged
                     : static_cast<float*>(table.out) +
                           (before + positions[p + j]) * table.dim;
  };
  const int copies = is_staged ? 1 : num_same;
  if (table.dim % 4 == 0 &&
      reinterpret_cast<uintptr_t>(table.out) % sizeof(float4) == 0) {
    CopyRow<float4>(row, table.value_floats / 4, sub, copies, to);
  } else {
    CopyRow<float>(row, table.value_floats, sub, copies, to);
  }
}

}  // namespace

Status LaunchLocate(const StepLookup& lookup, int blocks,
                    const StepFetch& fetch, uint32_t* keys, uint32_t* positions,
                    StreamView stream) {
  if (blocks == 0) return Status::OK();
  LocateRowsKernel<<<blocks, kThreads, 0, stream.get()>>>(lookup, fetch, keys,
                                                          positions);
  EV_CUDA_RETURN_IF_LAUNCH_FAILED("LocateRowsKernel");
  return Status::OK();
}

Status LaunchFetch(const StepLookup& lookup, const StepFetch& fetch,
                   const uint32_t* keys, const uint32_t* positions,
                   StreamView stream) {
  constexpr int kGroups = kThreads / kGroup;
  const int blocks = static_cast<int>((fetch.num_ids + kGroups - 1) / kGroups);
  FetchRowsKernel<<<blocks, kThreads, 0, stream.get()>>>(lookup, fetch, keys,
                                                         positions);
  EV_CUDA_RETURN_IF_LAUNCH_FAILED("FetchRowsKernel");
  return Status::OK();
}

}  // namespace gpu
}  // namespace ev
