// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Rows are found and go from the tables to the pooled outputs. A sample's rows
// are added in the order of its ids.
//
// Equal ids are each found for themselves: L2 serves those, and nothing has to
// be known of other ids.
//
// Samples of one id: a warp finds 32 rows, a lane each, then groups of lanes
// copy rows, several in flight each. Others: found by a kernel of their own,
// since a sample's ids do not fill warps; then a group of lanes pools a sample;
// its lanes fetch one id's row each and pass the addresses around.

#include "kernels/engine/base/gpu/cuda_error.h"
#include "kernels/engine/combine/combiner.h"
#include "kernels/engine/gpu_resident/step/pool.h"
#include "kernels/engine/gpu_resident/table/bucket.h"
#include "kernels/engine/gpu_resident/table/warp_probe.cuh"
#include "kernels/engine/gpu_step/step_plan.cuh"

namespace ev {
namespace gpu {
namespace {

constexpr int kSamples = 256;  // of a block
// For groups of G lanes: their rows in flight, and blocks of a processor.
template <int G>
struct Pace {
  static constexpr int kCopyRows = G == 32 ? 8 : 4;
  static constexpr int kCopyBlocks = G == 32 ? 3 : 4;
  static constexpr int kPoolRows = G >= 16 ? 5 : 4;
  static constexpr int kPoolBlocks = G >= 16 ? 3 : 4;
};
constexpr uint32_t kStaged = 4096;  // rows that a block looks up ahead

// The row of this lane's id, found in the table; with training, remembers it,
// and ids that have none. REQUIRES: all lanes of the warp call it.
__device__ __forceinline__ uint32_t FindRow(const StepPlan& plan, int t,
                                            uint32_t i, bool mine,
                                            bool training) {
  const int64_t key = mine ? __ldg(plan.ids + i) : 0;
  const int64_t slot = FindInWarp<Slots::kFrozen>(plan.views[t], key, mine);
  const uint32_t row = slot < 0 ? kNoRow : static_cast<uint32_t>(slot);
  if (training) {
    if (mine) __stcs(plan.rows + i, row);
    const bool absent = mine && slot < 0;
    const unsigned mask = __ballot_sync(kAllLanes, absent);
    if (mask != 0) {
      const int lane = threadIdx.x & (kWarp - 1);
      unsigned at = 0;
      if (lane == 0) at = atomicAdd(&plan.counts->absent, __popc(mask));
      at = __shfl_sync(kAllLanes, at, 0);
      if (absent) {
        plan.absent[at + __popc(mask & ((1u << lane) - 1))] = make_uint2(i, t);
      }
    }
  }
  return row;
}

__device__ __forceinline__ const float* RowOrDefault(const StepPlan& plan,
                                                     const StepTable& table,
                                                     uint32_t i, uint32_t row) {
  return row != kNoRow ? RowOf(table, row)
                       : DefaultRow(table, __ldg(plan.ids + i));
}

template <int W>
__device__ __forceinline__ void Store(float* out, const Pack<W>& v) {
  if constexpr (W == 4) {
    __stcs(reinterpret_cast<float4*>(out),
           make_float4(v.x[0], v.x[1], v.x[2], v.x[3]));
  } else {
    __stcs(out, v.x[0]);
  }
}

template <int W, int G>
__global__ void __launch_bounds__(kStepBlock, Pace<G>::kCopyBlocks)
    CopyKernel(StepPlan plan, int begin, int end, int first_block,
               bool training, float* __restrict__ pooled) {
  const int block = first_block + blockIdx.x;
  const int k = TableOfBlock(plan.pool_tiles, begin, end, block);
  const int t = __ldg(plan.pool_order + k);
  const StepTable& table = plan.tables[t];
  const int lane = threadIdx.x % 32, group = lane / G, sub = lane % G;
  constexpr int kGroups = 32 / G;
  constexpr int kRows = Pace<G>::kCopyRows;
  const int64_t first =
      static_cast<int64_t>(block - __ldg(plan.pool_tiles + k)) * kSamples +
      threadIdx.x / 32 * 32;
  const int64_t left = table.num_samples - first;
  if (left <= 0) return;
  const Combiner combiner = static_cast<Combiner>(table.combiner);
  const uint32_t i = static_cast<uint32_t>(table.id_begin + first + lane);
  const uint32_t found = FindRow(plan, t, i, lane < left, training);
  const float* my_row = nullptr;
  float weight = 1.0f, divisor = 1.0f;
  if (lane < left) {
    my_row = RowOrDefault(plan, table, i, found);
    if (plan.weights != nullptr) weight = __ldg(plan.weights + i);
    if (Divides(combiner)) {
      divisor = DivisorOf(combiner, TermOf(combiner, weight));
      if (training) {
        plan.factors[table.sample_begin + first + lane] = 1.0f / divisor;
      }
    }
  }
  const bool plain = plan.weights == nullptr;
  const int dim = table.dim;
  float* out = pooled + table.pooled_begin + first * dim;
  for (int r = 0; r < G; r += kRows) {
    if (r * kGroups >= left) break;
    const float* row[kRows];
#pragma unroll
    for (int u = 0; u < kRows; ++u) {
      row[u] = reinterpret_cast<const float*>(
          __shfl_sync(0xFFFFFFFFu, reinterpret_cast<unsigned long long>(my_row),
                      (r + u) * kGroups + group));
    }
    for (int base = 0; base < dim; base += G * W) {
      const int c = base + sub * W;
      Pack<W> v[kRows];
#pragma unroll
      for (int u = 0; u < kRows; ++u) {
        if (row[u] != nullptr && c < dim) v[u] = LoadPack<W>(row[u] + c);
      }
#pragma unroll
      for (int u = 0; u < kRows; ++u) {
        const int from = (r + u) * kGroups + group;
        if (!plain) {
          const float w = __shfl_sync(0xFFFFFFFFu, weight, from);
          const float d = __shfl_sync(0xFFFFFFFFu, divisor, from);
#pragma unroll
          for (int x = 0; x < W; ++x) {
            const float scaled = v[u].x[x] * w;
            v[u].x[x] = Divides(combiner) ? scaled / d : scaled;
          }
        }
        if (row[u] != nullptr && c < dim) {
          Store<W>(out + static_cast<int64_t>(from) * dim + c, v[u]);
        }
      }
    }
  }
}

__global__ void __launch_bounds__(kStepBlock, 4)
    FindKernel(StepPlan plan, bool training) {
  const int t = TableOfBlock(plan.find_tiles, 0, plan.num_tables, blockIdx.x);
  const StepTable& table = plan.tables[t];
  const int64_t local =
      static_cast<int64_t>(blockIdx.x - __ldg(plan.find_tiles + t)) *
          kStepBlock +
      threadIdx.x;
  const uint32_t i = static_cast<uint32_t>(table.id_begin + local);
  const uint32_t row = FindRow(plan, t, i, local < table.num_ids, training);
  if (!training && local < table.num_ids) plan.rows[i] = row;
}

template <int W, int G>
__global__ void __launch_bounds__(kStepBlock, Pace<G>::kPoolBlocks)
    PoolKernel(StepPlan plan, int begin, int end, int first_block,
               bool training, float* __restrict__ pooled) {
  const int block = first_block + blockIdx.x;
  const int k = TableOfBlock(plan.pool_tiles, begin, end, block);
  const int t = __ldg(plan.pool_order + k);
  const StepTable& table = plan.tables[t];
  const int sub = threadIdx.x % G;
  const unsigned mask = G == 32 ? 0xFFFFFFFFu
                                : ((1u << (G % 32)) - 1)
                                      << (threadIdx.x % 32 / G * G);
  const Combiner combiner = static_cast<Combiner>(table.combiner);
  const int dim = table.dim;
  constexpr int kGroups = kStepBlock / G;
  constexpr int kRows = Pace<G>::kPoolRows;
  const int64_t tile =
      static_cast<int64_t>(block - __ldg(plan.pool_tiles + k)) * kSamples;
  const int num_samples =
      static_cast<int>(min(table.num_samples - tile, int64_t{kSamples}));
  // Where samples begin, and the rows, from which then only rows are waited
  // for. Fewer rows when the samples have many.
  __shared__ uint32_t starts[kSamples + 1];
  __shared__ uint32_t staged[kStaged];
  const int64_t* splits = plan.splits + table.sample_begin + t + tile;
  for (int s = threadIdx.x; s <= num_samples; s += kStepBlock) {
    starts[s] = static_cast<uint32_t>(table.id_begin + __ldg(splits + s));
  }
  __syncthreads();
  const uint32_t first = starts[0];
  const uint32_t num_staged = min(starts[num_samples] - first, kStaged);
  for (uint32_t k = threadIdx.x; k < num_staged; k += kStepBlock) {
    staged[k] = __ldcs(plan.rows + first + k);
  }
  __syncthreads();
  for (int s = threadIdx.x / G; s < num_samples; s += kGroups) {
    const uint32_t from = starts[s], to = starts[s + 1];
    for (int base = 0; base < dim; base += G * W) {
      const int c = base + sub * W;
      Pack<W> sum = {};
      float divisor = 0.0f;
      for (uint32_t j = from; j < to; j += G) {
        const float* my_row = nullptr;
        float weight = 1.0f;
        if (j + sub < to) {
          const uint32_t i = j + sub;
          const uint32_t row =
              i - first < num_staged ? staged[i - first] : __ldg(plan.rows + i);
          my_row = RowOrDefault(plan, table, i, row);
          if (plan.weights != nullptr) weight = __ldg(plan.weights + i);
          if (training && base == 0) {
            plan.samples[i] = static_cast<uint32_t>(tile + s);
          }
        }
        const int here = min(static_cast<uint32_t>(G), to - j);
        for (int r = 0; r < here; r += kRows) {
          Pack<W> v[kRows];
#pragma unroll
          for (int u = 0; u < kRows; ++u) {
            const float* row = reinterpret_cast<const float*>(__shfl_sync(
                mask, reinterpret_cast<unsigned long long>(my_row), r + u, G));
            if (r + u < here && c < dim) v[u] = LoadPack<W>(row + c);
          }
#pragma unroll
          for (int u = 0; u < kRows; ++u) {
            const float w = __shfl_sync(mask, weight, r + u, G);
            if (r + u < here) {
              divisor += TermOf(combiner, w);
#pragma unroll
              for (int x = 0; x < W; ++x) {
                sum.x[x] = sum.x[x] + v[u].x[x] * w;
              }
            }
          }
        }
      }
      if (Divides(combiner)) {
        const float d = from == to ? 1.0f : DivisorOf(combiner, divisor);
#pragma unroll
        for (int x = 0; x < W; ++x) sum.x[x] = sum.x[x] / d;
        if (training && c == 0) {
          plan.factors[table.sample_begin + tile + s] = 1.0f / d;
        }
      }
      if (c < dim) {
        Store<W>(pooled + table.pooled_begin + (tile + s) * dim + c, sum);
      }
    }
  }
}

}  // namespace

Status LaunchFindRows(const StepPlan& plan, int num_blocks, bool training,
                      StreamView stream) {
  FindKernel<<<num_blocks, kStepBlock, 0, stream.get()>>>(plan, training);
  EV_CUDA_RETURN_IF_LAUNCH_FAILED("FindKernel");
  return Status::OK();
}

int PoolTile() { return kSamples; }

Status LaunchPool(const StepPlan& plan, int dim_class, int begin, int end,
                  int first_block, int num_blocks, bool training, float* pooled,
                  StreamView stream) {
#define EV_POOL_CLASS(C)                                                \
  case C: {                                                             \
    constexpr int W = ClassShape<C>::kWidth, G = ClassShape<C>::kLanes; \
    const auto kernel =                                                 \
        plan.splits == nullptr ? CopyKernel<W, G> : PoolKernel<W, G>;   \
    kernel<<<num_blocks, kStepBlock, 0, stream.get()>>>(                \
        plan, begin, end, first_block, training, pooled);               \
    break;                                                              \
  }
  switch (dim_class) {
    EV_POOL_CLASS(0)
    EV_POOL_CLASS(1)
    EV_POOL_CLASS(2)
    EV_POOL_CLASS(3)
    EV_POOL_CLASS(4)
  }
#undef EV_POOL_CLASS
  EV_CUDA_RETURN_IF_LAUNCH_FAILED("PoolKernel");
  return Status::OK();
}

}  // namespace gpu
}  // namespace ev
