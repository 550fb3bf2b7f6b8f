// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Kernels that sum gradients and update rows. Value and slots of a row are read
// once and written once; the sum stays in registers.
//
// A warp takes 32 keys. Each lane fetches one key, its row's address and the
// addresses of its first gradients, so that this chain of dependent reads is
// paid once for 32 rows. Then groups of lanes each process a row, with several
// rows in flight.

#ifndef KERNELS_ENGINE_GPU_STEP_UPDATE_CUH_
#define KERNELS_ENGINE_GPU_STEP_UPDATE_CUH_

#include <algorithm>
#include <type_traits>

#include "kernels/engine/base/gpu/cuda_error.h"
#include "kernels/engine/base/gpu/warp.cuh"
#include "kernels/engine/base/random_rounding.h"
#include "kernels/engine/base/row_shape.h"
#include "kernels/engine/combine/combiner.h"
#include "kernels/engine/combine/ordered_sum.cuh"
#include "kernels/engine/gpu_step/narrow_pack.cuh"
#include "kernels/engine/gpu_step/step_plan.cuh"
#include "kernels/engine/gpu_step/update.h"
#include "kernels/engine/optimizer/row_squares.cuh"
#include "kernels/engine/optimizer/rule.h"

namespace ev {
namespace gpu {
namespace update_internal {

// Chosen as large as possible without register spills, which cost more than
// more blocks gain.
constexpr int kUpdateBlocks = 3;  // per multiprocessor
constexpr int kSingleRows = 2;    // rows in flight per group

// Returns the mask of the lanes of a group of G, of which this is lane 'sub'.
template <int G>
__device__ __forceinline__ unsigned GroupOf(int sub) {
  return (G == 32 ? kAllLanes : (1u << G % 32) - 1) << (threadIdx.x % 32 - sub);
}

// Returns the type of the values of a kernel's table: float32 unless kNarrow.
template <bool kNarrow>
__device__ __forceinline__ FloatType RowType(const StepTable& table) {
  return kNarrow ? table.value_type : FloatType::kFloat32;
}

// Columns [c, c + W) of a row. A narrow value stays as LoadRaw has loaded it
// until the rule is applied.
template <int W, int NS>
struct RowPiece {
  Pack<W> value;
  Pack<W> slots[NS > 0 ? NS : 1];
  uint64_t hash;  // of the key
};

// Returns the hash of the row's key, if values are rounded by it.
__device__ __forceinline__ uint64_t LoadHash(float* row, const StepTable& table,
                                             FloatType type) {
  return type != FloatType::kFloat32 && table.rounds_randomly
             ? *HashOf(row, table.stride)
             : 0;
}

// Stores columns [c, c + W) of a value. Returns whether rounding has made one
// of them infinite.
template <int W>
__device__ __forceinline__ bool StoreValue(float* row, const StepTable& table,
                                           FloatType type, int c,
                                           const Pack<W>& value,
                                           uint64_t hash) {
  if (type == FloatType::kFloat32) {
    StorePack<W>(row + c, value);
    return false;
  }
  NarrowPack<W> narrow;
  const bool overflows =
      RoundColumns<W>(type, value, table.rounds_randomly,
                      SaltOfMixed(table.update_salt, hash), c, &narrow);
  *reinterpret_cast<NarrowPack<W>*>(reinterpret_cast<uint16_t*>(row) + c) =
      narrow;
  return overflows;
}

// Counts a row in which a lane of the group has seen an overflow. All its lanes
// call it.
template <int G>
__device__ __forceinline__ void CountOverflow(const StepTable& table,
                                              FloatType type, int sub,
                                              bool overflows) {
  if (type == FloatType::kFloat32) return;
  if (__any_sync(GroupOf<G>(sub), overflows) && sub == 0) {
    atomicAdd(table.overflows, 1ull);
  }
}

template <typename Rule, int W, int NS>
__device__ __forceinline__ void ApplyRule(const StepPlan& plan, FloatType type,
                                          const Rule& rule, const Pack<W>& grad,
                                          RowPiece<W, NS>* row) {
  row->value = Widened<W>(row->value, type);
#pragma unroll
  for (int x = 0; x < W; ++x) {
    float* value = &row->value.x[x];
    const float g = grad.x[x] * plan.grad_factor;
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

// Returns the floats from a row to slot k.
__device__ __forceinline__ int SlotAt(const StepTable& table, FloatType type,
                                      int k) {
  return type == FloatType::kFloat32 ? (k + 1) * table.dim
                                     : table.slots_at + k * table.dim;
}

template <int W, int NS>
__device__ __forceinline__ RowPiece<W, NS> LoadRow(float* row,
                                                   const StepTable& table,
                                                   FloatType type, int c) {
  RowPiece<W, NS> piece;
  piece.value = LoadRaw<W>(row, type, c);
  piece.hash = LoadHash(row, table, type);
#pragma unroll
  for (int k = 0; k < NS; ++k) {
    piece.slots[k] = LoadPack<W>(row + SlotAt(table, type, k) + c);
  }
  return piece;
}

// Returns what StoreValue does.
template <int W, int NS>
__device__ __forceinline__ bool StoreRow(float* row, const StepTable& table,
                                         FloatType type, int c,
                                         const RowPiece<W, NS>& piece) {
  const bool overflows =
      StoreValue<W>(row, table, type, c, piece.value, piece.hash);
#pragma unroll
  for (int k = 0; k < NS; ++k) {
    StorePack<W>(row + SlotAt(table, type, k) + c, piece.slots[k]);
  }
  return overflows;
}

template <int W>
__device__ __forceinline__ Pack<W> Scaled(const Pack<W>& grad, float factor) {
  Pack<W> scaled;
#pragma unroll
  for (int x = 0; x < W; ++x) scaled.x[x] = grad.x[x] * factor;
  return scaled;
}

// Adds the squares of a row's gradient to the accumulator of a per-row rule,
// and returns the row's rate. accumulator: what all lanes have read. lanes:
// those that update the row, and call this.
template <typename Rule>
__device__ __forceinline__ float AccumulateRow(const Rule& rule,
                                               const StepTable& table,
                                               float accumulator, float squares,
                                               unsigned lanes, int sub,
                                               float* row) {
  const float sum = rule.Accumulate(accumulator, squares, table.dim);
  __syncwarp(lanes);  // all lanes have read the old one
  if (sub == 0) row[table.slots_at] = sum;
  return rule.Rate(sum);
}

// Loads columns [c, c + W) of a sample's gradient.
template <int W>
__device__ __forceinline__ Pack<W> LoadGrad(const StepTable& table,
                                            const float* grads, uint32_t sample,
                                            int c) {
  const int64_t at =
      table.pooled_begin + static_cast<int64_t>(sample) * table.dim + c;
  return Widened<W>(LoadRaw<W>(grads, table.grad_type, at), table.grad_type);
}

// Returns the start of a sum. -0 keeps the first addend's bits, even those of
// -0; +0 does not.
template <int W>
__device__ __forceinline__ Pack<W> NoSum() {
  Pack<W> sum;
#pragma unroll
  for (int x = 0; x < W; ++x) sum.x[x] = -0.0f;
  return sum;
}

template <int W>
__device__ __forceinline__ void AddScaled(const Pack<W>& v, float scale,
                                          Pack<W>* sum) {
#pragma unroll
  for (int x = 0; x < W; ++x) sum->x[x] = sum->x[x] + v.x[x] * scale;
}

// Returns the sum of the gradients of samples list[0, n), added in that order
// with kAhead loads in flight.
template <int W, int kAhead>
__device__ __forceinline__ Pack<W> SumList(const StepPlan& plan,
                                           const StepTable& table,
                                           const float* grads,
                                           const uint32_t* list, uint32_t n,
                                           int c) {
  Pack<W> sum = NoSum<W>();
  const FloatType type = table.grad_type;
  const int64_t first = table.pooled_begin + c;
  const int64_t dim = table.dim;
  const bool factors = Divides(static_cast<Combiner>(table.combiner));
  for (uint32_t k = 0; k < n; k += kAhead) {
    uint32_t sample[kAhead];
    Pack<W> v[kAhead];
#pragma unroll
    for (int u = 0; u < kAhead; ++u) {
      if (k + u < n) sample[u] = list[k + u];
    }
#pragma unroll
    for (int u = 0; u < kAhead; ++u) {
      if (k + u < n) v[u] = LoadRaw<W>(grads, type, first + sample[u] * dim);
    }
#pragma unroll
    for (int u = 0; u < kAhead; ++u) {
      if (k + u >= n) continue;
      const float scale =
          factors ? plan.factors[table.sample_begin + sample[u]] : 1.0f;
      AddScaled<W>(Widened<W>(v[u], type), scale, &sum);
    }
  }
  return sum;
}

// Returns how many samples a small key stores in a and b; 0: they are in
// 'sorted'.
__device__ __forceinline__ int InlineSamples(uint32_t count) {
  return count <= 2 ? count : 0;
}

// Updates a row by a per-row rule; the parameters are those of UpdateRow.
template <typename Rule, int W, int G, bool kNarrow, typename SumOf>
__device__ __forceinline__ void UpdatePerRow(const StepPlan& plan,
                                             const StepTable& table,
                                             const Rule& rule, int sub,
                                             float* row, const SumOf& sum_of) {
  const unsigned lanes = GroupOf<G>(sub);
  const FloatType row_type = RowType<kNarrow>(table);
  const int dim = table.dim, first = sub * W;
  // Read first, so that these reads overlap with those of gradients.
  const float accumulator = row[table.slots_at];
  const uint64_t hash = LoadHash(row, table, row_type);
  Pack<W> value = {}, grad = {};
  if (first < dim) value = LoadRaw<W>(row, row_type, first);
  GroupSquares<W, G> squares(lanes);
  for (int c = first; c - first < dim; c += G * W) {
    grad = Pack<W>();
    if (c < dim) grad = Scaled<W>(sum_of(c), plan.grad_factor);
    squares.Add(grad.x);
  }
  const float rate =
      AccumulateRow(rule, table, accumulator, squares.Sum(), lanes, sub, row);
  bool overflows = false;
  for (int c = first; c < dim; c += G * W) {
    if (dim > G * W) grad = Scaled<W>(sum_of(c), plan.grad_factor);
    if (c != first) value = LoadRaw<W>(row, row_type, c);
    value = Widened<W>(value, row_type);
#pragma unroll
    for (int x = 0; x < W; ++x) rule(grad.x[x], rate, &value.x[x]);
    overflows |= StoreValue<W>(row, table, row_type, c, value, hash);
  }
  CountOverflow<G>(table, row_type, sub, overflows);
}

// Updates a row, by the G lanes of a group, in pieces of W columns.
// sum_of(c) returns the summed gradient of columns [c, c + W).
template <typename Rule, int W, int G, bool kNarrow, typename SumOf>
__device__ __forceinline__ void UpdateRow(const StepPlan& plan,
                                          const StepTable& table,
                                          const Rule& rule, int sub, float* row,
                                          const SumOf& sum_of) {
  if constexpr (IsPerRow<Rule>::value) {
    UpdatePerRow<Rule, W, G, kNarrow>(plan, table, rule, sub, row, sum_of);
  } else {
    constexpr int NS = Rule::kNumSlots;
    const FloatType row_type = RowType<kNarrow>(table);
    bool overflows = false;
    for (int c = sub * W; c < table.dim; c += G * W) {
      RowPiece<W, NS> piece = LoadRow<W, NS>(row, table, row_type, c);
      ApplyRule<Rule, W, NS>(plan, row_type, rule, sum_of(c), &piece);
      overflows |= StoreRow<W, NS>(row, table, row_type, c, piece);
    }
    CountOverflow<G>(table, row_type, sub, overflows);
  }
}

// Updates the row of one small key, by a group of lanes. Rarely called, and not
// inlined so that its caller needs fewer registers.
template <typename Rule, int W, int G, bool kNarrow>
__device__ __noinline__ void UpdateOne(const StepPlan& plan, const float* grads,
                                       const SmallKey& key, int sub,
                                       const Rule& rule) {
  const uint32_t t = key.table_and_count >> 8;
  const uint32_t count = key.table_and_count & 0xFF;
  const StepTable& table = plan.tables[t];
  const bool factors = Divides(static_cast<Combiner>(table.combiner));
  const auto sum_of = [&](int c) {
    if (InlineSamples(count) == 0) {
      return SumList<W, 2>(plan, table, grads, plan.sorted + key.a, count, c);
    }
    Pack<W> sum = NoSum<W>();
    float scale = factors ? plan.factors[table.sample_begin + key.a] : 1.0f;
    AddScaled<W>(LoadGrad<W>(table, grads, key.a, c), scale, &sum);
    if (count == 2) {
      scale = factors ? plan.factors[table.sample_begin + key.b] : 1.0f;
      AddScaled<W>(LoadGrad<W>(table, grads, key.b, c), scale, &sum);
    }
    return sum;
  };
  UpdateRow<Rule, W, G, kNarrow>(plan, table, rule, sub, RowOf(table, key.row),
                                 sum_of);
}

// Updates the rows of small keys. A warp's keys are nearly always of one table,
// and mostly occur once; then each group has kSingleRows rows in flight.
template <typename Rule, int W, int G, bool kNarrow>
__global__ void __launch_bounds__(kStepBlock, kUpdateBlocks)
    UpdateKernel(const __grid_constant__ StepPlan plan,
                 const float* __restrict__ grads, int dim_class, Rule rule) {
  constexpr int NS = Rule::kNumSlots;
  constexpr int kGroups = 32 / G;  // of a warp
  const int lane = threadIdx.x % 32;
  const int group = lane / G, sub = lane % G;
  const uint32_t n = plan.counts->of[dim_class].small;
  const int64_t base =
      static_cast<int64_t>(blockIdx.x) * kStepBlock + threadIdx.x / 32 * 32;
  if (base >= n) return;
  const int left = static_cast<int>(min(n - base, int64_t{32}));
  // One key per lane.
  SmallKey key = {};
  if (lane < left) {
    const uint32_t* const order = plan.small_order[dim_class];
    const int64_t k = order != nullptr ? order[base + lane] : base + lane;
    const uint4 raw = __ldcs(reinterpret_cast<const uint4*>(
        plan.small + plan.id_base[dim_class] + k));
    key = *reinterpret_cast<const SmallKey*>(&raw);
  }
  const uint32_t t = __shfl_sync(kAllLanes, key.table_and_count >> 8, 0);
  if (!__all_sync(kAllLanes, lane >= left || key.table_and_count >> 8 == t)) {
    for (int r = 0; r * kGroups < left; ++r) {
      const int from = r * kGroups + group;
      SmallKey one;
      one.row = __shfl_sync(kAllLanes, key.row, from);
      one.table_and_count = __shfl_sync(kAllLanes, key.table_and_count, from);
      one.a = __shfl_sync(kAllLanes, key.a, from);
      one.b = __shfl_sync(kAllLanes, key.b, from);
      if (from < left)
        UpdateOne<Rule, W, G, kNarrow>(plan, grads, one, sub, rule);
    }
    return;
  }

  const StepTable& table = plan.tables[t];
  const int dim = table.dim;
  const FloatType type = table.grad_type, row_type = RowType<kNarrow>(table);
  float scale_a = 1.0f, scale_b = 1.0f;
  const uint32_t my_count = key.table_and_count & 0xFF;
  if (Divides(static_cast<Combiner>(table.combiner))) {
    const float* factors = plan.factors + table.sample_begin;
    const int samples = InlineSamples(my_count);
    if (samples > 0) scale_a = factors[key.a];
    if (samples > 1) scale_b = factors[key.b];
  }
  if constexpr (!IsPerRow<Rule>::value) {
    if (__all_sync(kAllLanes, my_count <= 1)) {
      constexpr int kRows = kSingleRows < G ? kSingleRows : G;
      for (int r = 0; r * kGroups < left; r += kRows) {
        bool overflows[kRows] = {};
        for (int c = sub * W; c - sub * W < dim; c += G * W) {
          float* rows[kRows];
          RowPiece<W, NS> piece[kRows];
          Pack<W> grad[kRows];
#pragma unroll
          for (int u = 0; u < kRows; ++u) {
            const int from = (r + u) * kGroups + group;
            rows[u] = RowOf(table, __shfl_sync(kAllLanes, key.row, from));
            const uint32_t sample = __shfl_sync(kAllLanes, key.a, from);
            if (from >= left || c >= dim) continue;
            piece[u] = LoadRow<W, NS>(rows[u], table, row_type, c);
            grad[u] = LoadRaw<W>(
                grads, type,
                table.pooled_begin + static_cast<int64_t>(sample) * dim + c);
          }
#pragma unroll
          for (int u = 0; u < kRows; ++u) {
            const int from = (r + u) * kGroups + group;
            const float scale = __shfl_sync(kAllLanes, scale_a, from);
            if (from >= left || c >= dim) continue;
            Pack<W> sum = NoSum<W>();
            AddScaled<W>(Widened<W>(grad[u], type), scale, &sum);
            ApplyRule<Rule, W, NS>(plan, row_type, rule, sum, &piece[u]);
            overflows[u] |=
                StoreRow<W, NS>(rows[u], table, row_type, c, piece[u]);
          }
        }
#pragma unroll
        for (int u = 0; u < kRows; ++u) {
          CountOverflow<G>(table, row_type, sub, overflows[u]);
        }
      }
      return;
    }
  }
  for (int r = 0; r * kGroups < left; ++r) {
    const int from = r * kGroups + group;
    float* const row = RowOf(table, __shfl_sync(kAllLanes, key.row, from));
    const uint32_t a = __shfl_sync(kAllLanes, key.a, from);
    const uint32_t b = __shfl_sync(kAllLanes, key.b, from);
    const float x = __shfl_sync(kAllLanes, scale_a, from);
    const float y = __shfl_sync(kAllLanes, scale_b, from);
    const uint32_t count = __shfl_sync(kAllLanes, my_count, from);
    if (count == 0) continue;
    const int samples = InlineSamples(count);
    const auto sum_of = [&](int c) {
      if (samples == 0) {
        return SumList<W, 4>(plan, table, grads, plan.sorted + a, count, c);
      }
      Pack<W> sum = NoSum<W>();
      const Pack<W> v = LoadGrad<W>(table, grads, a, c);
      Pack<W> w = {};
      if (samples > 1) w = LoadGrad<W>(table, grads, b, c);
      AddScaled<W>(v, x, &sum);
      if (samples > 1) AddScaled<W>(w, y, &sum);
      return sum;
    };
    UpdateRow<Rule, W, G, kNarrow>(plan, table, rule, sub, row, sum_of);
  }
}

// Updates the rows of keys of more than kSmallCount and at most kWarpSort
// occurrences; a group of lanes per key.
template <typename Rule, int W, int G, bool kNarrow>
__global__ void __launch_bounds__(kStepBlock, 3)
    LongKernel(const __grid_constant__ StepPlan plan,
               const float* __restrict__ grads, int dim_class, Rule rule) {
  constexpr int kGroups = kStepBlock / G;
  const uint32_t n = plan.counts->of[dim_class].longs;
  const LongKey* longs = plan.longs + plan.long_base[dim_class];
  const int sub = threadIdx.x % G;
  for (int64_t k = static_cast<int64_t>(blockIdx.x) * kGroups + threadIdx.x / G;
       k < n; k += static_cast<int64_t>(gridDim.x) * kGroups) {
    const LongKey key = longs[k];
    if (key.count > kWarpSort) continue;
    const StepTable& table = plan.tables[key.table];
    float* const row = RowOf(table, key.row);
    const auto sum_of = [&](int c) {
      return SumList<W, 6>(plan, table, grads, plan.sorted + key.start,
                           key.count, c);
    };
    if constexpr (IsPerRow<Rule>::value) {
      UpdatePerRow<Rule, W, G, kNarrow>(plan, table, rule, sub, row, sum_of);
    } else {
      // The sum first: the row would take registers that its loads need.
      constexpr int NS = Rule::kNumSlots;
      const FloatType row_type = RowType<kNarrow>(table);
      bool overflows = false;
      for (int c = sub * W; c < table.dim; c += G * W) {
        const Pack<W> sum = sum_of(c);
        RowPiece<W, NS> piece = LoadRow<W, NS>(row, table, row_type, c);
        ApplyRule<Rule, W, NS>(plan, row_type, rule, sum, &piece);
        overflows |= StoreRow<W, NS>(row, table, row_type, c, piece);
      }
      CountOverflow<G>(table, row_type, sub, overflows);
    }
  }
}

// Returns the sum of columns [cut * kSumColumns, ...) of a key's gradient:
// column 'lane' of the cut in the lanes below sum->columns of the warp that
// adds, 0 in its other lanes.
__device__ __forceinline__ float SumCut(const StepPlan& plan,
                                        const StepTable& table,
                                        const float* grads, const LongKey& key,
                                        int64_t cut, int lane, Sum* sum,
                                        SumStages* stages) {
  sum->dim = table.dim;
  sum->first = cut * kSumColumns;
  sum->Fit();
  sum->begin = static_cast<int32_t>(key.start);
  sum->count = key.count;
  sum->from.samples = reinterpret_cast<const int32_t*>(plan.sorted);
  sum->from.grads = reinterpret_cast<const float*>(
      reinterpret_cast<const char*>(grads) +
      table.pooled_begin * FloatBytes(table.grad_type));
  sum->from.grad_type = table.grad_type;
  if (Divides(static_cast<Combiner>(table.combiner))) {
    sum->from.factors = plan.factors + table.sample_begin;
  }
  const bool is_aligned =
      table.dim % 4 == 0 && reinterpret_cast<uintptr_t>(sum->from.grads) %
                                    (4 * FloatBytes(table.grad_type)) ==
                                0;
  const float grad = is_aligned ? SumByBlock<float4>(*sum, stages)
                                : SumByBlock<float>(*sum, stages);
  return lane >= 0 && lane < sum->columns ? grad : 0.0f;
}

// Updates the rows of keys of more than kWarpSort occurrences; a block per key
// and kSumColumns columns. Overflows of a row count once for each of these.
template <typename Rule>
__global__ void __launch_bounds__(kSumThreads, 2)
    HugeKernel(const __grid_constant__ StepPlan plan,
               const float* __restrict__ grads, int num_cuts, Rule rule) {
  constexpr int NS = Rule::kNumSlots;
  __shared__ SumStages stages;
  const int lane = static_cast<int>(threadIdx.x) - kSumLoaders;
  const int64_t n = static_cast<int64_t>(plan.counts->huge) * num_cuts;
  for (int64_t i = blockIdx.x; i < n; i += gridDim.x) {
    const LongKey key = plan.longs[plan.huge[i / num_cuts]];
    const StepTable& table = plan.tables[key.table];
    if (i % num_cuts * kSumColumns >= table.dim) continue;
    Sum sum;
    const float grad =
        SumCut(plan, table, grads, key, i % num_cuts, lane, &sum, &stages);
    bool overflows = false;
    if (lane >= 0 && lane < sum.columns) {
      float* const row = RowOf(table, key.row);
      const int c = static_cast<int>(sum.first) + lane;
      RowPiece<1, NS> piece = LoadRow<1, NS>(row, table, table.value_type, c);
      Pack<1> total;
      total.x[0] = grad;
      ApplyRule<Rule, 1, NS>(plan, table.value_type, rule, total, &piece);
      overflows = StoreRow<1, NS>(row, table, table.value_type, c, piece);
    }
    if (lane >= 0) CountOverflow<32>(table, table.value_type, lane, overflows);
    __syncthreads();  // the stages are used again
  }
}

// The same for a per-row rule; a block per key. It sums each gradient twice,
// since the rate of a row depends on all of it.
template <typename Rule>
__global__ void __launch_bounds__(kSumThreads, 2)
    HugePerRowKernel(const __grid_constant__ StepPlan plan,
                     const float* __restrict__ grads, Rule rule) {
  __shared__ SumStages stages;
  const int lane = static_cast<int>(threadIdx.x) - kSumLoaders;
  for (int64_t i = blockIdx.x; i < plan.counts->huge; i += gridDim.x) {
    const LongKey key = plan.longs[plan.huge[i]];
    const StepTable& table = plan.tables[key.table];
    const int num_cuts = (table.dim + kSumColumns - 1) / kSumColumns;
    float* const row = RowOf(table, key.row);
    GroupSquares<1, 32> squares(kAllLanes);
    const float accumulator = row[table.slots_at];
    const uint64_t hash = LoadHash(row, table, table.value_type);
    float grad = 0.0f, rate = 0.0f;
    bool overflows = false;
    for (int pass = 0; pass < 2; ++pass) {
      for (int cut = 0; cut < num_cuts; ++cut) {
        // With one cut the sum of the first pass is still there.
        if (pass == 0 || num_cuts > 1) {
          Sum sum;
          grad = plan.grad_factor *
                 SumCut(plan, table, grads, key, cut, lane, &sum, &stages);
          __syncthreads();  // the stages are used again
        }
        const int c = cut * kSumColumns + lane;
        if (lane < 0) continue;
        if (pass == 0) {
          const float g = c < table.dim ? grad : 0.0f;
          squares.Add(&g);
        } else if (c < table.dim) {
          Pack<1> value = LoadRaw<1>(row, table.value_type, c);
          value = Widened<1>(value, table.value_type);
          rule(grad, rate, &value.x[0]);
          overflows |=
              StoreValue<1>(row, table, table.value_type, c, value, hash);
        }
      }
      if (pass == 0 && lane >= 0) {
        rate = AccumulateRow(rule, table, accumulator, squares.Sum(), kAllLanes,
                             lane, row);
      }
    }
    if (lane >= 0) CountOverflow<32>(table, table.value_type, lane, overflows);
  }
}

template <typename Rule, int kClass>
Status LaunchClass(const StepPlan& plan, const float* grads, const Rule& rule,
                   int num_processors, cudaStream_t stream,
                   cudaStream_t hot_stream) {
  constexpr int W = ClassShape<kClass>::kWidth, G = ClassShape<kClass>::kLanes;
  constexpr bool kNarrow = kClass >= kAnyClass;
  // One block per kStepBlock ids, though there may be fewer keys: an empty
  // block costs less than the uneven last round of a persistent grid.
  const int64_t blocks = (plan.class_ids[kClass] + kStepBlock - 1) / kStepBlock;
  if (blocks == 0) return Status::OK();
  UpdateKernel<Rule, W, G, kNarrow>
      <<<static_cast<unsigned>(blocks), kStepBlock, 0, stream>>>(plan, grads,
                                                                 kClass, rule);
  EV_CUDA_RETURN_IF_LAUNCH_FAILED("UpdateKernel");
  // At most one block per key.
  const int64_t most = plan.class_ids[kClass] / (kSmallCount + 1) + 1;
  const unsigned long_blocks =
      static_cast<unsigned>(std::min<int64_t>(3 * num_processors, most));
  LongKernel<Rule, W, G, kNarrow>
      <<<long_blocks, kStepBlock, 0, hot_stream>>>(plan, grads, kClass, rule);
  EV_CUDA_RETURN_IF_LAUNCH_FAILED("LongKernel");
  return Status::OK();
}

}  // namespace update_internal

template <typename Rule>
Status LaunchHuge(const StepPlan& plan, int max_dim, const float* grads,
                  const Rule& rule, int num_processors, StreamView stream) {
  const int num_cuts = (max_dim + kSumColumns - 1) / kSumColumns;
  if constexpr (IsPerRow<Rule>::value) {
    update_internal::HugePerRowKernel<Rule>
        <<<2 * num_processors, kSumThreads, 0, stream.get()>>>(plan, grads,
                                                               rule);
  } else {
    update_internal::HugeKernel<Rule>
        <<<2 * num_processors, kSumThreads, 0, stream.get()>>>(plan, grads,
                                                               num_cuts, rule);
  }
  EV_CUDA_RETURN_IF_LAUNCH_FAILED("HugeKernel");
  return Status::OK();
}

template <typename Rule>
Status LaunchUpdate(const StepPlan& plan, int dim_class, const float* grads,
                    const Rule& rule, int num_processors, StreamView stream,
                    StreamView hot_stream) {
  using Launch = Status (*)(const StepPlan&, const float*, const Rule&, int,
                            cudaStream_t, cudaStream_t);
  namespace internal = update_internal;
  constexpr Launch kLaunches[kClasses] = {
      internal::LaunchClass<Rule, 0>, internal::LaunchClass<Rule, 1>,
      internal::LaunchClass<Rule, 2>, internal::LaunchClass<Rule, 3>,
      internal::LaunchClass<Rule, 4>, internal::LaunchClass<Rule, 5>,
      internal::LaunchClass<Rule, 6>, internal::LaunchClass<Rule, 7>};
  return kLaunches[dim_class](plan, grads, rule, num_processors, stream.get(),
                              hot_stream.get());
}

}  // namespace gpu
}  // namespace ev

#define EV_INSTANTIATE_UPDATE(Rule)                                      \
  template Status LaunchUpdate<Rule>(const StepPlan&, int, const float*, \
                                     const Rule&, int, StreamView,       \
                                     StreamView);                        \
  template Status LaunchHuge<Rule>(const StepPlan&, int, const float*,   \
                                   const Rule&, int, StreamView);

#endif  // KERNELS_ENGINE_GPU_STEP_UPDATE_CUH_
