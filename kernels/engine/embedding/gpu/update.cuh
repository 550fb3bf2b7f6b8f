// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Summing gradients and updating rows: the kernels. Value and slots of a row
// are read once and written once, the sum never leaves the registers.
//
// A warp takes 32 keys; each lane fetches one key's record, row address and
// first gradient's address, so that this chain of dependent reads is paid once
// for 32 rows. Then groups of lanes work on a row each, several rows in flight.

#ifndef KERNELS_ENGINE_EMBEDDING_GPU_UPDATE_CUH_
#define KERNELS_ENGINE_EMBEDDING_GPU_UPDATE_CUH_

#include <type_traits>

#include "kernels/engine/base/gpu/cuda_error.h"
#include "kernels/engine/combine/combiner.h"
#include "kernels/engine/embedding/gpu/step_plan.cuh"
#include "kernels/engine/embedding/gpu/update.h"

namespace ev {
namespace gpu {
namespace update_internal {

constexpr unsigned kAll = 0xFFFFFFFFu;

template <int W, int NS>
struct RowPiece {
  Pack<W> value;
  Pack<W> slots[NS > 0 ? NS : 1];
};

template <typename Rule, int W, int NS>
__device__ __forceinline__ void ApplyRule(const Rule& rule, const Pack<W>& grad,
                                          RowPiece<W, NS>* row) {
#pragma unroll
  for (int x = 0; x < W; ++x) {
    float* value = &row->value.x[x];
    const float g = grad.x[x];
    if constexpr (NS == 0) {
      rule(g, value);
    } else if constexpr (NS == 1) {
      rule(g, value, &row->slots[0].x[x]);
    } else if constexpr (NS == 2) {
      rule(g, value, &row->slots[0].x[x], &row->slots[1].x[x]);
    } else {
      rule(g, value, &row->slots[0].x[x], &row->slots[1].x[x],
           &row->slots[2].x[x]);
    }
  }
}

// defaults: the row's default value when it is fresh, else null.
template <int W, int NS>
__device__ __forceinline__ RowPiece<W, NS> LoadRow(const float* row,
                                                   const float* defaults,
                                                   const StepTable& table,
                                                   int c) {
  RowPiece<W, NS> piece;
  if (defaults == nullptr) {
    piece.value = LoadPack<W>(row + c);
#pragma unroll
    for (int k = 0; k < NS; ++k) {
      piece.slots[k] = LoadPack<W>(row + (k + 1) * table.slot_stride + c);
    }
  } else {
    piece.value = LoadPack<W>(defaults + c);
#pragma unroll
    for (int k = 0; k < NS; ++k) {
#pragma unroll
      for (int x = 0; x < W; ++x) piece.slots[k].x[x] = table.slot_init[k];
    }
  }
  return piece;
}

template <int W, int NS>
__device__ __forceinline__ void StoreRow(float* row, const StepTable& table,
                                         int c, const RowPiece<W, NS>& piece) {
  StorePack<W>(row + c, piece.value);
#pragma unroll
  for (int k = 0; k < NS; ++k) {
    StorePack<W>(row + (k + 1) * table.slot_stride + c, piece.slots[k]);
  }
}

// The gradient that occurrence i brings: its sample's, and what it is times.
struct Source {
  uint32_t sample;
  float scale;
};
__device__ __forceinline__ Source SourceOf(const StepPlan& plan,
                                           const StepTable& table, uint32_t i) {
  Source source;
  source.sample = SampleOf(plan.splits, plan.samples, table, i);
  source.scale = plan.weights != nullptr ? __ldg(plan.weights + i) : 1.0f;
  if (table.combiner != static_cast<int>(Combiner::kSum)) {
    source.scale *= plan.factors[table.sample_begin + source.sample];
  }
  return source;
}
__device__ __forceinline__ const float* GradOf(const StepTable& table,
                                               const float* grads,
                                               uint32_t sample) {
  return grads + table.pooled_begin + static_cast<int64_t>(sample) * table.dim;
}

template <int W>
__device__ __forceinline__ void AddScaled(const Pack<W>& v, float scale,
                                          Pack<W>* sum) {
#pragma unroll
  for (int x = 0; x < W; ++x) sum->x[x] = sum->x[x] + v.x[x] * scale;
}

// The sum over the samples list[0, n), one after the other, kAhead gradients in
// flight. weights: of the occurrences, or null.
template <int W, int kAhead>
__device__ __forceinline__ Pack<W> SumList(
    const StepPlan& plan, const StepTable& table, const float* grads,
    const uint32_t* list, const float* weights, uint32_t n, int c) {
  Pack<W> sum = {};
  const float* first = grads + table.pooled_begin + c;
  const int64_t dim = table.dim;
  const bool factors = table.combiner != static_cast<int>(Combiner::kSum);
  for (uint32_t k = 0; k < n; k += kAhead) {
    uint32_t sample[kAhead];
    Pack<W> v[kAhead];
#pragma unroll
    for (int u = 0; u < kAhead; ++u) {
      if (k + u < n) sample[u] = list[k + u];
    }
#pragma unroll
    for (int u = 0; u < kAhead; ++u) {
      if (k + u < n) v[u] = LoadPack<W>(first + sample[u] * dim);
    }
#pragma unroll
    for (int u = 0; u < kAhead; ++u) {
      if (k + u >= n) continue;
      float scale = weights != nullptr ? weights[k + u] : 1.0f;
      if (factors) scale *= plan.factors[table.sample_begin + sample[u]];
      AddScaled<W>(v[u], scale, &sum);
    }
  }
  return sum;
}

// Where a key's row is. row is null when the key has none.
struct RowAddress {
  float* row;
  const float* defaults;
};
__device__ __forceinline__ RowAddress AddressOf(const StepPlan& plan,
                                                const StepTable& table,
                                                uint32_t head, int64_t row) {
  RowAddress address = {nullptr, nullptr};
  if (row < 0) return address;
  address.row = table.rows + (row & ~kFreshRow) * table.stride;
  if (row & kFreshRow) {
    address.defaults = DefaultRow(table, __ldg(plan.ids + head));
  }
  return address;
}

// Keys of few occurrences.
template <typename Rule, int W, int G>
__device__ __forceinline__ void UpdateSmall(const StepPlan& plan,
                                            const float* grads, int dim_class,
                                            int64_t block, int64_t num_blocks,
                                            const Rule& rule) {
  constexpr int NS = Rule::kNumSlots;
  constexpr int kGroups = 32 / G;  // of a warp
  constexpr int kWarps = kStepBlock / 32;
  constexpr int kRows = 2;  // of a group, in flight
  __shared__ uint32_t raw[kWarps][kGroups][kSmallCount];
  __shared__ uint32_t list[kWarps][kGroups][kRows][kSmallCount];
  __shared__ float list_weights[kWarps][kGroups][kRows][kSmallCount];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int group = lane / G, sub = lane % G;
  const unsigned group_mask = (G == 32 ? kAll : ((1u << G) - 1) << (group * G));
  const uint32_t n =
      static_cast<uint32_t>(plan.counts->of[dim_class].small_and_order);
  const uint2* small = plan.small + plan.id_base[dim_class];

  for (int64_t base = (block * kWarps + warp) * 32; base < n;
       base += num_blocks * kWarps * 32) {
    // One key per lane.
    RowAddress address = {nullptr, nullptr};
    Source source = {0, 0.0f};
    uint32_t start = 0, count = 0;
    int t = 0;
    if (base + lane < n) {
      const uint2 entry = __ldcs(small + base + lane);
      const HeadRecord record = plan.records[entry.x];
      t = entry.y;
      const StepTable& table = plan.tables[t];
      address = AddressOf(plan, table, entry.x, record.row);
      start = record.start;
      count = record.count;
      if (count == 1) source = SourceOf(plan, table, entry.x);
    }
    const uint32_t left = static_cast<uint32_t>(n - base);
    for (int r = 0; r < G; r += kRows) {
      if (r * kGroups >= left) break;  // the same for all lanes
      RowAddress a[kRows];
      Source s[kRows];
      uint32_t counts[kRows];
      const StepTable* tables[kRows];
      int dim = 0;
#pragma unroll
      for (int u = 0; u < kRows; ++u) {
        const int from = (r + u) * kGroups + group;
        a[u].row = reinterpret_cast<float*>(__shfl_sync(
            kAll, reinterpret_cast<unsigned long long>(address.row), from));
        a[u].defaults = reinterpret_cast<const float*>(__shfl_sync(
            kAll, reinterpret_cast<unsigned long long>(address.defaults),
            from));
        s[u].sample = __shfl_sync(kAll, source.sample, from);
        s[u].scale = __shfl_sync(kAll, source.scale, from);
        counts[u] = __shfl_sync(kAll, count, from);
        const uint32_t first = __shfl_sync(kAll, start, from);
        tables[u] = plan.tables + __shfl_sync(kAll, t, from);
        if (a[u].row == nullptr) continue;
        dim = max(dim, tables[u]->dim);
        if (counts[u] > 1) {
          for (uint32_t k = sub; k < counts[u]; k += G) {
            raw[warp][group][k] = plan.order[first + k];
          }
          __syncwarp(group_mask);
          for (uint32_t k = sub; k < counts[u]; k += G) {
            const uint32_t mine = raw[warp][group][k];
            uint32_t rank = 0;
            for (uint32_t l = 0; l < counts[u]; ++l) {
              rank += raw[warp][group][l] < mine ? 1 : 0;
            }
            list[warp][group][u][rank] =
                SampleOf(plan.splits, plan.samples, *tables[u], mine);
            if (plan.weights != nullptr) {
              list_weights[warp][group][u][rank] = __ldg(plan.weights + mine);
            }
          }
          __syncwarp(group_mask);
        }
      }
      for (int c = sub * W; c < dim; c += G * W) {
        RowPiece<W, NS> piece[kRows];
        Pack<W> grad[kRows];
#pragma unroll
        for (int u = 0; u < kRows; ++u) {
          if (a[u].row == nullptr || c >= tables[u]->dim) continue;
          piece[u] = LoadRow<W, NS>(a[u].row, a[u].defaults, *tables[u], c);
          grad[u] = Pack<W>{};
          if (counts[u] == 1) {
            grad[u] = LoadPack<W>(GradOf(*tables[u], grads, s[u].sample) + c);
          }
        }
#pragma unroll
        for (int u = 0; u < kRows; ++u) {
          if (a[u].row == nullptr || c >= tables[u]->dim) continue;
          if (counts[u] == 1) {
            Pack<W> sum = {};
            AddScaled<W>(grad[u], s[u].scale, &sum);
            grad[u] = sum;
          } else {
            grad[u] = SumList<W, 4>(
                plan, *tables[u], grads, list[warp][group][u],
                plan.weights != nullptr ? list_weights[warp][group][u]
                                        : nullptr,
                counts[u], c);
          }
          ApplyRule<Rule, W, NS>(rule, grad[u], &piece[u]);
          StoreRow<W, NS>(a[u].row, *tables[u], c, piece[u]);
        }
      }
      __syncwarp();
    }
  }
}

// Chunks of keys of many occurrences: the sum goes to the row when it is all,
// else to partials.
template <typename Rule, int W, int G>
__device__ __forceinline__ void SumChunks(const StepPlan& plan,
                                          const float* grads, int dim_class,
                                          int64_t block, int64_t num_blocks,
                                          const Rule& rule) {
  constexpr int NS = Rule::kNumSlots;
  constexpr int kGroups = kStepBlock / G;
  const uint32_t n =
      static_cast<uint32_t>(plan.counts->of[dim_class].longs_and_chunks >> 32);
  const LongKey* longs = plan.longs + plan.long_base[dim_class];
  const Chunk* chunks = plan.chunks + plan.long_base[dim_class];
  const int sub = threadIdx.x % G;
  for (int64_t k = block * kGroups + threadIdx.x / G; k < n;
       k += num_blocks * kGroups) {
    const Chunk chunk = chunks[k];
    const LongKey key = longs[chunk.key];
    const StepTable& table = plan.tables[key.table];
    const RowAddress a =
        AddressOf(plan, table, key.head, plan.records[key.head].row);
    if (a.row == nullptr) continue;
    const uint32_t first = chunk.number * kChunk;
    const uint32_t size = min(kChunk, key.count - first);
    float* partial = plan.partials + plan.partial_base[dim_class] +
                     static_cast<int64_t>(key.partial + chunk.number) *
                         plan.partial_dim[dim_class];
    for (int c = sub * W; c < table.dim; c += G * W) {
      const Pack<W> sum = SumList<W, 8>(
          plan, table, grads, plan.sorted + key.start + first,
          plan.weights != nullptr ? plan.sorted_weights + key.start + first
                                  : nullptr,
          size, c);
      if (key.count <= kChunk) {
        RowPiece<W, NS> piece = LoadRow<W, NS>(a.row, a.defaults, table, c);
        ApplyRule<Rule, W, NS>(rule, sum, &piece);
        StoreRow<W, NS>(a.row, table, c, piece);
      } else {
        StorePack<W>(partial + c, sum);
      }
    }
  }
}

template <typename Rule, int W, int G>
__global__ void __launch_bounds__(kStepBlock, 2)
    UpdateKernel(StepPlan plan, const float* __restrict__ grads, int dim_class,
                 Rule rule) {
  UpdateSmall<Rule, W, G>(plan, grads, dim_class, blockIdx.x, gridDim.x, rule);
}

template <typename Rule, int W, int G>
__global__ void __launch_bounds__(kStepBlock, 3)
    ChunkKernel(StepPlan plan, const float* __restrict__ grads, int dim_class,
                Rule rule) {
  SumChunks<Rule, W, G>(plan, grads, dim_class, blockIdx.x, gridDim.x, rule);
}

// Keys of several chunks: kFinishLanes sums of every kFinishLanes-th chunk,
// then those in pairs.
template <typename Rule, int W, int G>
__global__ void __launch_bounds__(kStepBlock)
    FinishKernel(StepPlan plan, int dim_class, Rule rule) {
  constexpr int NS = Rule::kNumSlots;
  constexpr int kGroups = kStepBlock / G;
  const uint32_t n =
      static_cast<uint32_t>(plan.counts->of[dim_class].longs_and_chunks);
  const LongKey* longs = plan.longs + plan.long_base[dim_class];
  const int64_t pitch = plan.partial_dim[dim_class];
  const int sub = threadIdx.x % G;
  for (int64_t k = blockIdx.x * kGroups + threadIdx.x / G; k < n;
       k += static_cast<int64_t>(gridDim.x) * kGroups) {
    const LongKey key = longs[k];
    if (key.count <= kChunk) continue;
    const StepTable& table = plan.tables[key.table];
    const RowAddress a =
        AddressOf(plan, table, key.head, plan.records[key.head].row);
    if (a.row == nullptr) continue;
    const uint32_t num_chunks = (key.count + kChunk - 1) / kChunk;
    const float* partial = plan.partials + plan.partial_base[dim_class] +
                           static_cast<int64_t>(key.partial) * pitch;
    for (int c = sub * W; c < table.dim; c += G * W) {
      Pack<W> sum[kFinishLanes];
#pragma unroll
      for (int u = 0; u < kFinishLanes; ++u) sum[u] = Pack<W>{};
      for (uint32_t m = 0; m < num_chunks; m += kFinishLanes) {
        Pack<W> v[kFinishLanes];
#pragma unroll
        for (int u = 0; u < kFinishLanes; ++u) {
          if (m + u < num_chunks) {
            v[u] = LoadPack<W>(partial + (m + u) * pitch + c);
          }
        }
#pragma unroll
        for (int u = 0; u < kFinishLanes; ++u) {
          if (m + u < num_chunks) AddScaled<W>(v[u], 1.0f, &sum[u]);
        }
      }
#pragma unroll
      for (int d = 1; d < kFinishLanes; d *= 2) {
#pragma unroll
        for (int u = 0; u < kFinishLanes; u += 2 * d) {
          AddScaled<W>(sum[u + d], 1.0f, &sum[u]);
        }
      }
      RowPiece<W, NS> piece = LoadRow<W, NS>(a.row, a.defaults, table, c);
      ApplyRule<Rule, W, NS>(rule, sum[0], &piece);
      StoreRow<W, NS>(a.row, table, c, piece);
    }
  }
}

template <typename Rule, int kClass>
Status LaunchClass(const StepPlan& plan, const float* grads, const Rule& rule,
                   int num_processors, cudaStream_t stream,
                   cudaStream_t hot_stream) {
  constexpr int W = ClassShape<kClass>::kWidth, G = ClassShape<kClass>::kLanes;
  // A block too many costs less than a persistent grid's last round.
  const int64_t blocks = (plan.class_ids[kClass] + kStepBlock - 1) / kStepBlock;
  if (blocks == 0) return Status::OK();
  UpdateKernel<Rule, W, G>
      <<<static_cast<unsigned>(blocks), kStepBlock, 0, stream>>>(plan, grads,
                                                                 kClass, rule);
  EV_CUDA_RETURN_IF_LAUNCH_FAILED("UpdateKernel");
  ChunkKernel<Rule, W, G><<<3 * num_processors, kStepBlock, 0, hot_stream>>>(
      plan, grads, kClass, rule);
  EV_CUDA_RETURN_IF_LAUNCH_FAILED("ChunkKernel");
  FinishKernel<Rule, W, G>
      <<<2 * num_processors, kStepBlock, 0, hot_stream>>>(plan, kClass, rule);
  EV_CUDA_RETURN_IF_LAUNCH_FAILED("FinishKernel");
  return Status::OK();
}

}  // namespace update_internal

template <typename Rule>
Status LaunchUpdate(const StepPlan& plan, int dim_class, const float* grads,
                    const Rule& rule, int num_processors, StreamView stream,
                    StreamView hot_stream) {
  namespace internal = update_internal;
  cudaStream_t s = stream.get(), h = hot_stream.get();
  switch (dim_class) {
    case 0:
      return internal::LaunchClass<Rule, 0>(plan, grads, rule, num_processors,
                                            s, h);
    case 1:
      return internal::LaunchClass<Rule, 1>(plan, grads, rule, num_processors,
                                            s, h);
    case 2:
      return internal::LaunchClass<Rule, 2>(plan, grads, rule, num_processors,
                                            s, h);
    case 3:
      return internal::LaunchClass<Rule, 3>(plan, grads, rule, num_processors,
                                            s, h);
    default:
      return internal::LaunchClass<Rule, 4>(plan, grads, rule, num_processors,
                                            s, h);
  }
}

}  // namespace gpu
}  // namespace ev

#define EV_INSTANTIATE_UPDATE(Rule)                                      \
  template Status LaunchUpdate<Rule>(const StepPlan&, int, const float*, \
                                     const Rule&, int, StreamView,       \
                                     StreamView);

#endif  // KERNELS_ENGINE_EMBEDDING_GPU_UPDATE_CUH_
