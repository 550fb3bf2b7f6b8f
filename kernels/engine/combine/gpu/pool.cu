// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// A group of lanes pools four samples at once, so that short samples, too, have
// four rows in flight per group. A sample's rows are added in the order of its
// ids. The group also tells each key where its occurrences are: it is the one
// that knows the sample.

#include "kernels/engine/base/gpu/cuda_error.h"
#include "kernels/engine/combine/combiner.h"
#include "kernels/engine/combine/gpu/pool.h"
#include "kernels/engine/ids/gpu/step_plan.cuh"

namespace ev {
namespace gpu {
namespace {

constexpr int kAtOnce = 4;  // samples of a group

template <int W, int G>
__global__ void __launch_bounds__(kStepBlock)
    PoolKernel(StepPlan plan, int begin, int end, int first_block,
               bool training, float* __restrict__ pooled) {
  const int block = first_block + blockIdx.x;
  const int k = TableOfBlock(plan.pool_tiles, begin, end, block);
  const int t = __ldg(plan.pool_order + k);
  const StepTable& table = plan.tables[t];
  const int lane = threadIdx.x % G;
  constexpr int kGroups = kStepBlock / G;
  const int64_t first =
      static_cast<int64_t>(block - __ldg(plan.pool_tiles + k)) *
          (kGroups * kAtOnce) +
      threadIdx.x / G * kAtOnce;
  if (first >= table.num_samples) return;
  const int64_t id_begin = table.id_begin;
  const Combiner combiner = static_cast<Combiner>(table.combiner);
  const float* rows = table.rows;
  const int64_t stride = table.stride;
  const int dim = table.dim;

  uint32_t from[kAtOnce], size[kAtOnce];
  uint32_t longest = 0;
#pragma unroll
  for (int p = 0; p < kAtOnce; ++p) {
    const int64_t s = first + p;
    from[p] = size[p] = 0;
    if (s < table.num_samples) {
      if (plan.splits != nullptr) {
        const int64_t* split = plan.splits + table.sample_begin + t + s;
        const int64_t a = __ldg(split);
        from[p] = static_cast<uint32_t>(id_begin + a);
        size[p] = static_cast<uint32_t>(__ldg(split + 1) - a);
      } else {
        from[p] = static_cast<uint32_t>(id_begin + s);
        size[p] = 1;
      }
    }
    longest = max(longest, size[p]);
  }

  for (int c = lane * W; c < dim; c += G * W) {
    const bool tells = training && c == 0;  // one lane, once
    Pack<W> sum[kAtOnce];
    float divisor[kAtOnce];
#pragma unroll
    for (int p = 0; p < kAtOnce; ++p) {
      sum[p] = Pack<W>{};
      divisor[p] = 0.0f;
    }
    for (uint32_t j = 0; j < longest; ++j) {
      uint2 head[kAtOnce];
      HeadRecord record[kAtOnce];
      Pack<W> v[kAtOnce];
#pragma unroll
      for (int p = 0; p < kAtOnce; ++p) {
        if (j < size[p]) head[p] = plan.heads[from[p] + j];
      }
#pragma unroll
      for (int p = 0; p < kAtOnce; ++p) {
        if (j < size[p]) record[p] = plan.records[head[p].x];
      }
#pragma unroll
      for (int p = 0; p < kAtOnce; ++p) {
        if (j < size[p]) {
          const float* row =
              record[p].row >= 0
                  ? rows + record[p].row * stride
                  : DefaultRow(table, __ldg(plan.ids + from[p] + j));
          v[p] = LoadPack<W>(row + c);
        }
      }
#pragma unroll
      for (int p = 0; p < kAtOnce; ++p) {
        if (j >= size[p]) continue;
        const uint32_t i = from[p] + j;
        float w = 1.0f;
        if (plan.weights != nullptr) w = __ldg(plan.weights + i);
        if (combiner == Combiner::kMean) divisor[p] += w;
        if (combiner == Combiner::kSqrtN) divisor[p] += w * w;
#pragma unroll
        for (int x = 0; x < W; ++x) {
          sum[p].x[x] = sum[p].x[x] + v[p].x[x] * w;
        }
        if (tells) {
          if (plan.splits != nullptr) {
            plan.samples[i] = static_cast<uint32_t>(first + p);
          }
          if (record[p].start != kNoStart) {
            plan.order[record[p].start + head[p].y] = i;
          }
        }
      }
    }
#pragma unroll
    for (int p = 0; p < kAtOnce; ++p) {
      const int64_t s = first + p;
      if (s >= table.num_samples) continue;
      if (combiner != Combiner::kSum) {
        float d = combiner == Combiner::kMean ? divisor[p] : sqrtf(divisor[p]);
        if (size[p] == 0) d = 1.0f;
#pragma unroll
        for (int x = 0; x < W; ++x) sum[p].x[x] = sum[p].x[x] / d;
        if (tells) plan.factors[table.sample_begin + s] = 1.0f / d;
      }
      float* out = pooled + table.pooled_begin + s * dim + c;
      if (W == 4) {
        __stcs(reinterpret_cast<float4*>(out),
               make_float4(sum[p].x[0], sum[p].x[1 % W], sum[p].x[2 % W],
                           sum[p].x[3 % W]));
      } else {
        __stcs(out, sum[p].x[0]);
      }
    }
  }
}

// Sorting a long key's occurrences, which are distinct numbers below the
// table's number of ids: up to kWarpSort by a warp in shared memory, more by a
// block that marks them in a bitmap and reads it back, window by window.
constexpr int kSortBlock = 512;
constexpr int kWarpSort = 1024;
constexpr int kWindowWords = kSortBlock / 32 * kWarpSort;  // the same memory
constexpr int kSortBytes = kWindowWords * 4;

__device__ void SortByBitmap(const LongKey& key, uint32_t id_begin,
                             uint32_t num_ids, const uint32_t* order,
                             uint32_t* sorted, uint32_t* words) {
  __shared__ uint32_t warp_sums[kSortBlock / 32];
  const int lane = threadIdx.x & 31, warp = threadIdx.x / 32;
  uint32_t done = 0;
  for (uint32_t window = 0; window < num_ids; window += kWindowWords * 32) {
    const uint32_t in_window = min(num_ids - window, kWindowWords * 32);
    const int num_words = (in_window + 31) / 32;
    for (int w = threadIdx.x; w < num_words; w += kSortBlock) words[w] = 0;
    __syncthreads();
    for (uint32_t k = threadIdx.x; k < key.count; k += kSortBlock) {
      const uint32_t bit = order[key.start + k] - id_begin - window;
      if (bit < in_window) atomicOr(words + bit / 32, 1u << (bit % 32));
    }
    __syncthreads();
    for (int base = 0; base < num_words; base += kSortBlock) {
      const int w = base + threadIdx.x;
      uint32_t bits = w < num_words ? words[w] : 0;
      const uint32_t mine = __popc(bits);
      uint32_t sum = mine;
#pragma unroll
      for (int d = 1; d < 32; d *= 2) {
        const uint32_t other = __shfl_up_sync(0xFFFFFFFFu, sum, d);
        if (lane >= d) sum += other;
      }
      if (lane == 31) warp_sums[warp] = sum;
      __syncthreads();
      uint32_t total = 0, earlier = 0;
#pragma unroll
      for (int v = 0; v < kSortBlock / 32; ++v) {
        if (v == warp) earlier = total;
        total += warp_sums[v];
      }
      uint32_t at = key.start + done + earlier + sum - mine;
      while (bits != 0) {
        sorted[at++] = id_begin + window + w * 32 + __ffs(bits) - 1;
        bits &= bits - 1;
      }
      done += total;
      __syncthreads();
    }
  }
}

__device__ void SortInWarp(const LongKey& key, const uint32_t* order,
                           uint32_t* sorted, uint32_t* v) {
  const int lane = threadIdx.x & 31;
  int n = 32;
  while (n < static_cast<int>(key.count)) n *= 2;
  for (int k = lane; k < n; k += 32) {
    v[k] = k < static_cast<int>(key.count) ? order[key.start + k] : 0xFFFFFFFFu;
  }
  __syncwarp();
  for (int k = 2; k <= n; k *= 2) {
    for (int j = k / 2; j > 0; j /= 2) {
      for (int p = lane; p < n / 2; p += 32) {
        const int a = 2 * p - (p & (j - 1)), b = a + j;
        const uint32_t x = v[a], y = v[b];
        if ((x > y) == ((a & k) == 0)) {
          v[a] = y;
          v[b] = x;
        }
      }
      __syncwarp();
    }
  }
  for (int k = lane; k < static_cast<int>(key.count); k += 32) {
    sorted[key.start + k] = v[k];
  }
  __syncwarp();
}

__global__ void __launch_bounds__(kSortBlock) SortLongKernel(StepPlan plan) {
  extern __shared__ uint32_t shared[];
  for (int c = 0; c < kClasses; ++c) {
    const uint32_t n =
        static_cast<uint32_t>(plan.counts->of[c].longs_and_chunks);
    const LongKey* longs = plan.longs + plan.long_base[c];
    for (uint32_t k = blockIdx.x; k < n; k += gridDim.x) {
      const LongKey key = longs[k];
      if (key.count <= kWarpSort) continue;  // for the whole block
      const StepTable& table = plan.tables[key.table];
      SortByBitmap(key, static_cast<uint32_t>(table.id_begin),
                   static_cast<uint32_t>(table.num_ids), plan.order,
                   plan.sorted, shared);
    }
    __syncthreads();
    const int warp = threadIdx.x / 32;
    constexpr int kWarps = kSortBlock / 32;
    for (uint32_t k = blockIdx.x * kWarps + warp; k < n;
         k += gridDim.x * kWarps) {
      const LongKey key = longs[k];
      if (key.count > kWarpSort) continue;
      SortInWarp(key, plan.order, plan.sorted, shared + warp * kWarpSort);
    }
    __syncthreads();
  }
}

template <int kClass>
constexpr int TileOf() {
  return kStepBlock / ClassShape<kClass>::kLanes * kAtOnce;
}

}  // namespace

int PoolTile(int dim_class) {
  constexpr int kTiles[kClasses] = {TileOf<0>(), TileOf<1>(), TileOf<2>(),
                                    TileOf<3>(), TileOf<4>()};
  return kTiles[dim_class];
}

Status LaunchPool(const StepPlan& plan, int dim_class, int begin, int end,
                  int first_block, int num_blocks, bool training, float* pooled,
                  StreamView stream) {
#define EV_POOL_CLASS(C)                                                    \
  case C:                                                                   \
    PoolKernel<ClassShape<C>::kWidth, ClassShape<C>::kLanes>                \
        <<<num_blocks, kStepBlock, 0, stream.get()>>>(                      \
            plan, begin, end, first_block, training, pooled);               \
    break;
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

Status LaunchSortLong(const StepPlan& plan, int num_processors,
                      StreamView stream) {
  EV_CUDA_RETURN_IF_ERROR(cudaFuncSetAttribute(
      SortLongKernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
      kSortBytes));
  SortLongKernel<<<2 * num_processors, kSortBlock, kSortBytes, stream.get()>>>(
      plan);
  EV_CUDA_RETURN_IF_LAUNCH_FAILED("SortLongKernel");
  return Status::OK();
}

}  // namespace gpu
}  // namespace ev
