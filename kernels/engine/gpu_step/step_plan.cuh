// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// What the kernels of one sparse step share: the tables, where the rows of a
// batch are, and lists of its distinct keys to work from.
//
// An occurrence is the number of an id in the batch. A key is known by its
// table and its row there.

#ifndef KERNELS_ENGINE_GPU_STEP_STEP_PLAN_CUH_
#define KERNELS_ENGINE_GPU_STEP_STEP_PLAN_CUH_

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/engine/combine/combiner.h"

namespace ev {
namespace gpu {

constexpr int kStepBlock = 256;

// Tables are worked on by groups of lanes fit for the row: classes 0 to 3 have
// 4, 8, 16 and 32 lanes of four floats, class 4 32 lanes of one float, for dims
// that 4 does not divide.
constexpr int kClasses = 5;

// Keys of up to kSmallCount occurrences are summed where they are updated;
// those of more are sorted first. Up to kWarpSort a warp sorts, and a group of
// lanes sums; a block does both for the others.
constexpr uint32_t kSmallCount = 16;
constexpr uint32_t kWarpSort = 256;

// Occurrences are grouped by key in bins of rows.
constexpr int kScatterBlock = 1024;
constexpr int kScatterTile = 4 * kScatterBlock;  // ids of a block
constexpr int64_t kBinIds = 1024;                // of a bin, on average
constexpr int64_t kMaxBins = 2048;               // of a table
constexpr uint32_t kHeavyBin = 4096;             // more ids: worked on first

struct StepTable {
  int64_t id_begin;  // occurrences [id_begin, id_begin + num_ids)
  int64_t num_ids;
  int64_t sample_begin;
  int64_t num_samples;
  int64_t pooled_begin;  // in floats
  // Row s: pieces[s >> rows_log2] + (s modulo 2^rows_log2) * stride: value,
  // then slots.
  float* const* pieces;
  int64_t stride;
  int32_t slot_stride;  // floats from value to slot, from slot to slot
  int32_t dim;
  int32_t combiner;  // ev::Combiner
  int32_t dim_class;
  int32_t rows_log2;
  uint32_t bin_begin;
  uint32_t num_bins;
  // The kernels here do not read them: what the table is called, whether its
  // rows are wanted elsewhere, and how many occurrences each of its ids stands
  // for there [num_ids], or null: 1.
  int32_t number;
  int32_t notes_rows;
  const int32_t* occurrences;
  // Nor these: where the rows' tallies are (rows/gpu/row_tally.h), or null, and
  // what goes there besides a count.
  float* const* tallies;
  uint64_t tally_version_plus1;
  uint32_t tally_call;
};

// Number of a row of an occurrence whose gradient no row takes.
constexpr uint32_t kNoRow = 0xFFFFFFFFu;

// A key of up to kSmallCount occurrences.
struct alignas(16) SmallKey {
  uint32_t row;
  uint32_t table_and_count;  // table << 8 | count
  // One occurrence: its sample and its weight (float). Two, without weights:
  // their samples. Else: where in sorted they begin.
  uint32_t a, b;
};

struct LongKey {  // more than kSmallCount occurrences
  uint32_t row;
  uint32_t table;
  uint32_t start;
  uint32_t count;
};

struct ClassCounts {
  unsigned longs;
  unsigned small;
};

struct StepCounts {
  ClassCounts of[kClasses];
  unsigned huge;
  unsigned heavy;
  unsigned pairs;
  unsigned noted;  // rows of tables with notes_rows
};

struct StepPlan {
  const StepTable* tables;  // [num_tables]
  int num_tables;
  // [num_tables + 1] first block, or bin, of each table.
  const int32_t* scatter_tiles;
  const int32_t* bins;

  const int64_t* ids;     // [n]
  const int64_t* splits;  // per table num_samples + 1; null: an id a sample
  const float* weights;   // [n] or null

  uint32_t* rows;     // [n] of the ids, or kNoRow
  uint32_t* samples;  // [n] of the table; unless splits is null
  float* factors;     // [samples] what a sample's gradient is times
  // [n] bin after bin: row, and what tells and orders a key's occurrences: the
  // occurrence, or, without weights, its sample; a key's occurrences in one
  // sample are then alike.
  uint2* pairs;
  uint32_t* bin_counts;  // [bins]
  uint32_t* bin_ends;    // [bins] in pairs; of what is there while it is filled
  uint32_t* heavy;       // bins of more than kHeavyBin
  // In the bin's part of these: what pairs has key by key, in any order;
  // samples in order, and weights, if any, times the samples' factors.
  uint32_t* order;   // [n]
  uint32_t* sorted;  // [n]
  float* sorted_weights;
  SmallKey* small;  // [n]
  LongKey* longs;
  uint32_t* huge;  // in longs: more than kWarpSort occurrences
  StepCounts* counts;
  // Where each class's part begins.
  int64_t id_base[kClasses];
  int64_t class_ids[kClasses];  // number of ids
  int64_t long_base[kClasses];
};

// The last t in [low, high) with begin[t] <= block.
__device__ __forceinline__ int TableOfBlock(const int32_t* begin, int low,
                                            int high, int block) {
  --high;
  while (low < high) {
    const int middle = (low + high + 1) / 2;
    if (__ldg(begin + middle) <= block) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

__device__ __forceinline__ float* RowOf(const StepTable& table, uint32_t row) {
  const uint32_t within = row & ((1u << table.rows_log2) - 1);
  return table.pieces[row >> table.rows_log2] + within * table.stride;
}

// The sample of occurrence i, within its table.
__device__ __forceinline__ uint32_t SampleOf(const int64_t* splits,
                                             const uint32_t* samples,
                                             const StepTable& table,
                                             uint32_t i) {
  return splits != nullptr ? samples[i]
                           : i - static_cast<uint32_t>(table.id_begin);
}

// The sample of an occurrence that pairs and order know by this number.
__device__ __forceinline__ uint32_t SampleOfNumber(const StepPlan& plan,
                                                   const StepTable& table,
                                                   uint32_t number) {
  return plan.weights == nullptr
             ? number
             : SampleOf(plan.splits, plan.samples, table, number);
}

// An occurrence's weight times its sample's factor. REQUIRES weights.
__device__ __forceinline__ float ScaleOf(const StepPlan& plan,
                                         const StepTable& table,
                                         uint32_t occurrence, uint32_t sample) {
  const float weight = __ldg(plan.weights + occurrence);
  return Divides(static_cast<Combiner>(table.combiner))
             ? weight * plan.factors[table.sample_begin + sample]
             : weight;
}

// W floats that are loaded and stored together.
template <int W>
struct alignas(4 * W) Pack {
  float x[W];
};
template <int W>
__device__ __forceinline__ Pack<W> LoadPack(const float* p) {
  return *reinterpret_cast<const Pack<W>*>(p);
}
template <int W>
__device__ __forceinline__ void StorePack(float* p, const Pack<W>& v) {
  *reinterpret_cast<Pack<W>*>(p) = v;
}

template <int kClass>
struct ClassShape {
  static constexpr int kWidth = kClass == 4 ? 1 : 4;
  static constexpr int kLanes = kClass == 4 ? 32 : 4 << kClass;
};
inline int ClassOfDim(int dim) {
  if (dim % 4 != 0) return 4;
  return dim <= 16 ? 0 : dim <= 32 ? 1 : dim <= 64 ? 2 : 3;
}

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_GPU_STEP_STEP_PLAN_CUH_
