// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Rows go from the tables to the pooled outputs; on the way each key is told
// where its occurrences are. A sample's rows are added in the order of its ids.
//
// Samples of one id: a lane looks up one sample each, then groups of lanes copy
// rows, four in flight each. Others: a group of lanes pools a sample; its lanes
// look up one id each and pass the addresses around.

#include "kernels/engine/base/gpu/cuda_error.h"
#include "kernels/engine/combine/combiner.h"
#include "kernels/engine/embedding/gpu/pool.h"
#include "kernels/engine/embedding/gpu/step_plan.cuh"

namespace ev {
namespace gpu {
namespace {

constexpr int kTile = 256;  // samples of a block
constexpr int kRows = 4;    // of a group, in flight

// What a lane knows of one id.
struct Found {
  const float* row;
  float weight;
};
__device__ __forceinline__ Found Lookup(const StepPlan& plan,
                                        const StepTable& table, uint32_t i,
                                        int64_t sample, bool training) {
  const uint2 head = __ldcs(plan.heads + i);
  const int4 raw = *reinterpret_cast<const int4*>(plan.records + head.x);
  HeadRecord record;
  *reinterpret_cast<int4*>(&record) = raw;
  Found found;
  found.row = record.row >= 0 ? table.rows + record.row * table.stride
                              : DefaultRow(table, __ldg(plan.ids + i));
  found.weight = plan.weights != nullptr ? __ldg(plan.weights + i) : 1.0f;
  if (training) {
    if (plan.splits != nullptr) {
      plan.samples[i] = static_cast<uint32_t>(sample);
    }
    if (record.start != kNoStart) plan.order[record.start + head.y] = i;
  }
  return found;
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

__device__ __forceinline__ float Square(Combiner combiner, float w) {
  return combiner == Combiner::kSqrtN ? w * w : w;
}
__device__ __forceinline__ float DivisorOf(Combiner combiner, float sum) {
  return combiner == Combiner::kSqrtN ? sqrtf(sum) : sum;
}

template <int W, int G>
__global__ void __launch_bounds__(kStepBlock, 4)
    CopyKernel(StepPlan plan, int begin, int end, int first_block,
               bool training, float* __restrict__ pooled) {
  const int block = first_block + blockIdx.x;
  const int k = TableOfBlock(plan.pool_tiles, begin, end, block);
  const StepTable& table = plan.tables[__ldg(plan.pool_order + k)];
  const int lane = threadIdx.x % 32, group = lane / G, sub = lane % G;
  constexpr int kGroups = 32 / G;
  const int64_t first =
      static_cast<int64_t>(block - __ldg(plan.pool_tiles + k)) * kTile +
      threadIdx.x / 32 * 32;
  const int64_t left = table.num_samples - first;
  if (left <= 0) return;
  const Combiner combiner = static_cast<Combiner>(table.combiner);
  Found found = {nullptr, 1.0f};
  float divisor = 1.0f;
  if (lane < left) {
    found = Lookup(plan, table,
                   static_cast<uint32_t>(table.id_begin + first + lane),
                   first + lane, training);
    if (combiner != Combiner::kSum) {
      divisor = DivisorOf(combiner, Square(combiner, found.weight));
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
      row[u] = reinterpret_cast<const float*>(__shfl_sync(
          0xFFFFFFFFu, reinterpret_cast<unsigned long long>(found.row),
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
          const float w = __shfl_sync(0xFFFFFFFFu, found.weight, from);
          const float d = __shfl_sync(0xFFFFFFFFu, divisor, from);
#pragma unroll
          for (int x = 0; x < W; ++x) {
            const float scaled = v[u].x[x] * w;
            v[u].x[x] = combiner == Combiner::kSum ? scaled : scaled / d;
          }
        }
        if (row[u] != nullptr && c < dim) {
          Store<W>(out + static_cast<int64_t>(from) * dim + c, v[u]);
        }
      }
    }
  }
}

template <int W, int G>
__global__ void __launch_bounds__(kStepBlock, 4)
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
  const int64_t tile =
      static_cast<int64_t>(block - __ldg(plan.pool_tiles + k)) * kTile;
  const int64_t last = min(table.num_samples, tile + kTile);
  for (int64_t s = tile + threadIdx.x / G; s < last; s += kGroups) {
    const int64_t* split = plan.splits + table.sample_begin + t + s;
    const uint32_t from = static_cast<uint32_t>(table.id_begin + __ldg(split));
    const uint32_t to =
        static_cast<uint32_t>(table.id_begin + __ldg(split + 1));
    for (int base = 0; base < dim; base += G * W) {
      const int c = base + sub * W;
      Pack<W> sum = {};
      float divisor = 0.0f;
      for (uint32_t j = from; j < to; j += G) {
        Found found = {nullptr, 0.0f};
        if (j + sub < to) {
          found = Lookup(plan, table, j + sub, s, training && base == 0);
        }
        const int here = min(static_cast<uint32_t>(G), to - j);
        for (int r = 0; r < here; r += kRows) {
          Pack<W> v[kRows];
#pragma unroll
          for (int u = 0; u < kRows; ++u) {
            const float* row = reinterpret_cast<const float*>(__shfl_sync(
                mask, reinterpret_cast<unsigned long long>(found.row), r + u,
                G));
            if (r + u < here && c < dim) v[u] = LoadPack<W>(row + c);
          }
#pragma unroll
          for (int u = 0; u < kRows; ++u) {
            const float w = __shfl_sync(mask, found.weight, r + u, G);
            if (r + u < here) {
              divisor += Square(combiner, w);
#pragma unroll
              for (int x = 0; x < W; ++x) {
                sum.x[x] = sum.x[x] + v[u].x[x] * w;
              }
            }
          }
        }
      }
      if (combiner != Combiner::kSum) {
        const float d = from == to ? 1.0f : DivisorOf(combiner, divisor);
#pragma unroll
        for (int x = 0; x < W; ++x) sum.x[x] = sum.x[x] / d;
        if (training && c == 0) {
          plan.factors[table.sample_begin + s] = 1.0f / d;
        }
      }
      if (c < dim) {
        Store<W>(pooled + table.pooled_begin + s * dim + c, sum);
      }
    }
  }
}

// Sorting a long key's occurrences, which are distinct numbers below the
// table's number of ids: few by a warp and more by a block, in shared memory;
// most by a block that marks them in a bitmap and reads it back, window by
// window.
constexpr int kSortBlock = 512;
constexpr uint32_t kBlockSort = 4096;
constexpr uint32_t kWindowWords = 16384;
constexpr int kSortBytes = kWindowWords * 4;
static_assert(kSortBlock / 32 * kWarpSort <= kWindowWords, "shared memory");

// Writes what the sums need of occurrence i.
__device__ __forceinline__ void Emit(const StepPlan& plan,
                                     const StepTable& table, uint32_t at,
                                     uint32_t i) {
  plan.sorted[at] = SampleOf(plan.splits, plan.samples, table, i);
  if (plan.weights != nullptr) {
    plan.sorted_weights[at] = __ldg(plan.weights + i);
  }
}

__device__ void SortByBitmap(const StepPlan& plan, const StepTable& table,
                             const LongKey& key, uint32_t* words) {
  constexpr int kEach = 4;  // words of a thread
  __shared__ uint32_t warp_sums[kSortBlock / 32];
  const uint32_t id_begin = static_cast<uint32_t>(table.id_begin);
  const uint32_t num_ids = static_cast<uint32_t>(table.num_ids);
  const int lane = threadIdx.x & 31, warp = threadIdx.x / 32;
  uint32_t done = 0;
  for (uint32_t window = 0; window < num_ids; window += kWindowWords * 32) {
    const uint32_t in_window = min(num_ids - window, kWindowWords * 32);
    const uint32_t num_words = (in_window + 31) / 32;
    for (uint32_t w = threadIdx.x; w < kWindowWords; w += kSortBlock) {
      words[w] = 0;
    }
    __syncthreads();
    for (uint32_t k = threadIdx.x; k < key.count; k += kSortBlock) {
      const uint32_t bit = plan.order[key.start + k] - id_begin - window;
      if (bit < in_window) atomicOr(words + bit / 32, 1u << (bit % 32));
    }
    __syncthreads();
    for (uint32_t base = 0; base < num_words; base += kSortBlock * kEach) {
      const uint32_t w = base + threadIdx.x * kEach;
      uint32_t bits[kEach];
      uint32_t mine = 0;
      *reinterpret_cast<uint4*>(bits) =
          *reinterpret_cast<const uint4*>(words + w);
#pragma unroll
      for (int e = 0; e < kEach; ++e) mine += __popc(bits[e]);
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
#pragma unroll
      for (int e = 0; e < kEach; ++e) {
        while (bits[e] != 0) {
          Emit(plan, table, at++,
               id_begin + window + (w + e) * 32 + __ffs(bits[e]) - 1);
          bits[e] &= bits[e] - 1;
        }
      }
      done += total;
      __syncthreads();
    }
  }
}

// By kThreads threads, of which this is number 'thread'; v: room for a power of
// two.
template <int kThreads>
__device__ void SortInShared(const StepPlan& plan, const StepTable& table,
                             const LongKey& key, int thread, uint32_t* v) {
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
    Emit(plan, table, key.start + k, v[k]);
  }
  sync();
}

__global__ void __launch_bounds__(kSortBlock) SortLongKernel(StepPlan plan) {
  extern __shared__ __align__(16) uint32_t shared[];
  const uint32_t num_huge = plan.counts->huge;
  for (uint32_t k = blockIdx.x; k < num_huge; k += gridDim.x) {
    const LongKey key = plan.longs[plan.huge[k]];
    const StepTable& table = plan.tables[key.table];
    if (key.count <= kBlockSort) {
      SortInShared<kSortBlock>(plan, table, key, threadIdx.x, shared);
    } else {
      SortByBitmap(plan, table, key, shared);
    }
  }
  __syncthreads();
  constexpr int kWarps = kSortBlock / 32;
  // From the other end: the first blocks have more of the huge keys.
  const uint32_t warp =
      (gridDim.x - 1 - blockIdx.x) * kWarps + threadIdx.x / 32;
  for (int c = 0; c < kClasses; ++c) {
    const uint32_t n =
        static_cast<uint32_t>(plan.counts->of[c].longs_and_chunks);
    const LongKey* longs = plan.longs + plan.long_base[c];
    for (uint32_t k = warp; k < n; k += gridDim.x * kWarps) {
      const LongKey key = longs[k];
      if (key.count > kWarpSort) continue;
      SortInShared<32>(plan, plan.tables[key.table], key, threadIdx.x % 32,
                       shared + threadIdx.x / 32 * kWarpSort);
    }
  }
}

}  // namespace

int PoolTile() { return kTile; }

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

Status LaunchSortLong(const StepPlan& plan, int num_processors,
                      StreamView stream) {
  EV_CUDA_RETURN_IF_ERROR(cudaFuncSetAttribute(
      SortLongKernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSortBytes));
  SortLongKernel<<<2 * num_processors, kSortBlock, kSortBytes, stream.get()>>>(
      plan);
  EV_CUDA_RETURN_IF_LAUNCH_FAILED("SortLongKernel");
  return Status::OK();
}

}  // namespace gpu
}  // namespace ev
