// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/base/gpu/cuda_error.h"
#include "kernels/engine/base/gpu/warp.cuh"
#include "kernels/engine/gpu_step/sort_long.h"
#include "kernels/engine/gpu_step/step_plan.cuh"

namespace ev {
namespace gpu {
namespace {

// Sorts the samples of long keys in shared memory. The method depends on their
// number:
//   up to kWarpSort    bitonic sort by a warp
//   up to kBlockSort   bitonic sort by a block
//   more               counting sort by a block
//
// A counting sort marks each sample in a bitmap, or counts it in a word if
// samples can repeat. Then it reads the marks in order. It does so for one
// window of the range of samples after the other.
constexpr int kSortBlock = 512;
constexpr int kSortBlocks = 3;  // per multiprocessor
constexpr uint32_t kBlockSort = 4096;
constexpr uint32_t kWindowWords = 16384;
constexpr int kSortBytes = kWindowWords * 4;
static_assert(kSortBlock / 32 * kWarpSort <= kWindowWords, "shared memory");

// Sorts a key's samples by marking or counting. kPerWord: samples per word; 32
// if no sample occurs twice, else 1.
template <uint32_t kPerWord>
__device__ __forceinline__ void SortByCounting(const StepPlan& plan,
                                               const StepTable& table,
                                               const LongKey& key,
                                               uint32_t* words) {
  constexpr int kEach = 4;   // words per thread
  constexpr int kAhead = 8;  // loads in flight
  __shared__ uint32_t warp_sums[kSortBlock / 32];
  const uint32_t range = static_cast<uint32_t>(table.num_samples);
  const int lane = threadIdx.x & 31, warp = threadIdx.x / 32;
  uint32_t done = 0;
  constexpr uint32_t kWindow = kWindowWords * kPerWord;
  for (uint32_t window = 0; window < range && done < key.count;
       window += kWindow) {
    const uint32_t in_window = min(range - window, kWindow);
    const uint32_t num_words = (in_window + kPerWord - 1) / kPerWord;
    for (uint32_t w = threadIdx.x; w < kWindowWords; w += kSortBlock) {
      words[w] = 0;
    }
    __syncthreads();
    for (uint32_t k = threadIdx.x; k < key.count; k += kAhead * kSortBlock) {
      uint32_t samples[kAhead];
#pragma unroll
      for (int u = 0; u < kAhead; ++u) {
        const uint32_t at = k + u * kSortBlock;
        samples[u] =
            at < key.count ? plan.order[key.start + at] - window : in_window;
      }
#pragma unroll
      for (int u = 0; u < kAhead; ++u) {
        if (samples[u] >= in_window) continue;
        if (kPerWord == 1) {
          atomicAdd(words + samples[u], 1u);
        } else {
          atomicOr(words + samples[u] / 32, 1u << (samples[u] % 32));
        }
      }
    }
    __syncthreads();
    for (uint32_t base = 0; base < num_words; base += kSortBlock * kEach) {
      const uint32_t w = base + threadIdx.x * kEach;
      uint32_t mine[kEach];
      uint32_t count = 0;
      *reinterpret_cast<uint4*>(mine) =
          *reinterpret_cast<const uint4*>(words + w);
#pragma unroll
      for (int e = 0; e < kEach; ++e) {
        count += kPerWord == 1 ? mine[e] : __popc(mine[e]);
      }
      const uint32_t sum = WarpSum(count, lane);
      if (lane == 31) warp_sums[warp] = sum;
      __syncthreads();
      uint32_t total = 0, earlier = 0;
#pragma unroll
      for (int v = 0; v < kSortBlock / 32; ++v) {
        if (v == warp) earlier = total;
        total += warp_sums[v];
      }
      uint32_t at = key.start + done + earlier + sum - count;
#pragma unroll
      for (int e = 0; e < kEach; ++e) {
        const uint32_t sample = window + (w + e) * kPerWord;
        if (kPerWord == 1) {
          for (; mine[e] != 0; --mine[e]) plan.sorted[at++] = sample;
        } else {
          for (; mine[e] != 0; mine[e] &= mine[e] - 1) {
            plan.sorted[at++] = sample + __ffs(mine[e]) - 1;
          }
        }
      }
      done += total;
      __syncthreads();
    }
  }
}

// Sorts a key's samples. Called by kThreads threads, of which this one is
// number 'thread'. v: shared memory for count elements, rounded up to a power
// of two.
template <int kThreads>
__device__ void SortInShared(const StepPlan& plan, const LongKey& key,
                             int thread, uint32_t* v) {
  const uint32_t count = key.count;
  const auto sync = [] {
    if constexpr (kThreads == 32) {
      __syncwarp();
    } else {
      __syncthreads();
    }
  };
  uint32_t n = 32;
  while (n < count) n *= 2;
  for (uint32_t k = thread; k < n; k += kThreads) {
    v[k] = k < count ? plan.order[key.start + k] : 0xFFFFFFFFu;
  }
  sync();
  for (uint32_t k = 2; k <= n; k *= 2) {
    for (uint32_t j = k / 2; j > 0; j /= 2) {
      for (uint32_t p = thread; p < n / 2; p += kThreads) {
        const uint32_t a = 2 * p - (p & (j - 1)), b = a + j;
        const uint32_t x = v[a], y = v[b];
        if ((x > y) == ((a & k) == 0)) {
          v[a] = y;
          v[b] = x;
        }
      }
      sync();
    }
  }
  for (uint32_t k = thread; k < count; k += kThreads) {
    plan.sorted[key.start + k] = v[k];
  }
  sync();
}

__global__ void __launch_bounds__(kSortBlock, kSortBlocks)
    SortLongKernel(StepPlan plan) {
  extern __shared__ __align__(16) uint32_t shared[];
  const uint32_t num_huge = plan.counts->huge;
  for (uint32_t k = blockIdx.x; k < num_huge; k += gridDim.x) {
    const LongKey key = plan.longs[plan.huge[k]];
    const StepTable& table = plan.tables[key.table];
    if (key.count <= kBlockSort) {
      SortInShared<kSortBlock>(plan, key, threadIdx.x, shared);
    } else if (plan.samples == nullptr) {
      SortByCounting<32>(plan, table, key, shared);
    } else {
      SortByCounting<1>(plan, table, key, shared);
    }
  }
  __syncthreads();
  constexpr int kWarps = kSortBlock / 32;
  // Counts blocks from the last one: the first blocks have more of the huge
  // keys.
  const uint32_t warp =
      (gridDim.x - 1 - blockIdx.x) * kWarps + threadIdx.x / 32;
  for (int c = 0; c < kClasses; ++c) {
    const uint32_t n = plan.counts->of[c].longs;
    const LongKey* longs = plan.longs + plan.long_base[c];
    for (uint32_t k = warp; k < n; k += gridDim.x * kWarps) {
      const LongKey key = longs[k];
      if (key.count > kWarpSort) continue;
      SortInShared<32>(plan, key, threadIdx.x % 32,
                       shared + threadIdx.x / 32 * kWarpSort);
    }
  }
}

}  // namespace

Status LaunchSortLong(const StepPlan& plan, int num_processors,
                      StreamView stream) {
  EV_CUDA_RETURN_IF_ERROR(cudaFuncSetAttribute(
      SortLongKernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSortBytes));
  SortLongKernel<<<kSortBlocks * num_processors, kSortBlock, kSortBytes,
                   stream.get()>>>(plan);
  EV_CUDA_RETURN_IF_LAUNCH_FAILED("SortLongKernel");
  return Status::OK();
}

}  // namespace gpu
}  // namespace ev
