// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// StepPlan: the data that the kernels of one update of many tables share. It
// holds the tables, the row of each id of the batch, and lists of the distinct
// keys.
//
// An occurrence is identified by its id's position in the batch, a key by its
// table and its row.

#ifndef KERNELS_ENGINE_GPU_STEP_STEP_PLAN_CUH_
#define KERNELS_ENGINE_GPU_STEP_STEP_PLAN_CUH_

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/engine/base/float_type.h"
#include "kernels/engine/combine/combiner.h"

namespace ev {
namespace gpu {

constexpr int kStepBlock = 256;

// A group of lanes processes one row. Tables are divided into classes by the
// group's size. Classes 0 to 3 use 4, 8, 16 and 32 lanes of four floats each.
// Class 4, for dims that are not a multiple of 4, uses 32 lanes of one number.
// Classes 5 to 7 are for updates of narrow values, with 4, 16 and 32 lanes of
// four numbers; classes 0 to 3 then have float32 values. For each dim they have
// as many lanes as float32, or half: then the sums of per-row rules have the
// same order (row_squares.cuh).
constexpr int kAnyClass = 4, kClasses = 8;

// How a key's occurrences are sorted and summed depends on their number:
//   up to kSmallCount   sorted while grouping, summed by the update
//   up to kWarpSort     sorted by a warp, summed by a group of lanes
//   more                sorted and summed by a block
constexpr uint32_t kSmallCount = 16;
constexpr uint32_t kWarpSort = 256;

// Occurrences are first scattered to bins by their row, then grouped by key
// within each bin.
constexpr int kScatterBlock = 1024;
constexpr int kScatterTile = 4 * kScatterBlock;  // ids per block
constexpr int64_t kBinIds = 1024;                // ids per bin, on average
constexpr int64_t kMaxBins = 2048;               // bins per table
constexpr uint32_t kHeavyBin = 4096;  // bins with more ids are grouped first

struct StepTable {
  int64_t id_begin;  // occurrences [id_begin, id_begin + num_ids)
  int64_t num_ids;
  int64_t sample_begin;
  int64_t num_samples;
  int64_t pooled_begin;  // first gradient, in numbers of grad_type
  // The row at place p begins at pieces[p >> rows_log2] + (p mod 2^rows_log2) *
  // stride: its value, then its slots. The place of row r is r, or, unless
  // places is null, the exclusive or of r and places[r >> places_log2][r mod
  // 2^places_log2] (rows/gpu/row_places.h).
  float* const* pieces;
  uint32_t* const* places;
  int64_t stride;
  int32_t
      slots_at;  // floats from the row to slot 0; slots are dim floats apart
  int32_t dim;
  int32_t combiner;  // ev::Combiner
  int32_t dim_class;
  FloatType grad_type;
  int32_t rows_log2;
  int32_t places_log2;
  bool has_host_rows;  // some rows may be in host memory
  // The first place in host memory, and the counter of updated rows there; null
  // if all places are in GPU memory.
  uint32_t first_on_host;
  unsigned long long* updated_on_host;  // NOLINT: what atomicAdd takes
  uint32_t bin_begin;
  uint32_t num_bins;
  // Fields for the kernels of rows/gpu_step that copy or count updated rows
  // (rows/gpu_step/step_rows.h, step_counters.h); grouping and update do not
  // read them. number: the table's number in the step. lists_rows: whether its
  // updated rows are copied to host memory. occurrences [num_ids]: how many
  // occurrences each id stands for; null: 1 each.
  int32_t number;
  int32_t lists_rows;
  const int32_t* occurrences;
  // Address table of the pending counters' pieces (rows/gpu/row_counters.h), or
  // null, and the version and call number that the pending counters store with
  // a count.
  float* const* counters;
  uint64_t counted_version_plus1;
  uint32_t counted_call;
  // With a narrow type: whether values are rounded stochastically, the update's
  // salt (base/random_rounding.h), and the counter of rows with a value that
  // rounding has made infinite. A row ends with its key's hash.
  FloatType value_type;
  bool rounds_randomly;
  uint64_t update_salt;
  unsigned long long* overflows;  // NOLINT: what atomicAdd takes
};

// Row number of an occurrence whose key has no row; its gradient is ignored.
constexpr uint32_t kNoRow = 0xFFFFFFFFu;

// A key of up to kSmallCount occurrences.
struct alignas(16) SmallKey {
  uint32_t row;
  uint32_t table_and_count;  // table << 8 | count
  // One occurrence: a is its sample. Two: a and b are their samples.
  // More: a is the start of the key's list in 'sorted'.
  uint32_t a, b;
};

// A key of more than kSmallCount occurrences.
struct LongKey {
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
  unsigned listed;  // rows of tables with lists_rows that have been copied
};

struct StepPlan {
  const StepTable* tables;  // [num_tables]
  int num_tables;
  // [num_tables + 1] first block of the scatter kernels, and first bin, of each
  // table.
  const int32_t* scatter_tiles;
  const int32_t* bins;

  const uint32_t* rows;  // [n] row of each id, or kNoRow
  // [n] sample of each id in its table; null: one id per sample.
  const uint32_t* samples;
  const float* factors;  // [samples] multiplier of each sample's gradient
  // [n] pairs of row and sample, bin after bin. The sample identifies and
  // orders an occurrence of the row. Two occurrences of a key in one sample
  // have equal gradients.
  uint2* pairs;
  uint32_t* bin_counts;  // [bins] ids of each bin
  // [bins] end of each bin in pairs; while scattering, the end of the filled
  // part.
  uint32_t* bin_ends;
  uint32_t* heavy;  // bins of more than kHeavyBin ids
  // Each bin uses the same range of these arrays as of pairs: the samples, key
  // by key. In 'order' they are in any order within a key, in 'sorted'
  // ascending.
  uint32_t* order;   // [n]
  uint32_t* sorted;  // [n]
  SmallKey* small;   // [n]
  // The order in which the update visits the small keys of each class: numbers
  // in its part of 'small'; null: as they are.
  const uint32_t* small_order[kClasses];
  LongKey* longs;
  // Indices in longs of keys of more than kWarpSort occurrences.
  uint32_t* huge;
  StepCounts* counts;
  // First element of each class in small (id_base) and in longs (long_base).
  int64_t id_base[kClasses];
  int64_t class_ids[kClasses];  // number of ids of each class
  int64_t long_base[kClasses];
  // Multiplies summed gradients before the rule (GradFactor of rule_list.h).
  float grad_factor;
};

// Returns the last t in [low, high) with begin[t] <= block.
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

__device__ __forceinline__ uint32_t PlaceOf(const StepTable& table,
                                            uint32_t row) {
  if (table.places == nullptr) return row;
  return row ^ table.places[row >> table.places_log2]
                           [row & ((1u << table.places_log2) - 1)];
}

__device__ __forceinline__ float* RowOf(const StepTable& table, uint32_t row) {
  const uint32_t place = PlaceOf(table, row);
  const uint32_t within = place & ((1u << table.rows_log2) - 1);
  return table.pieces[place >> table.rows_log2] + within * table.stride;
}

// Returns the sample of occurrence i, numbered within its table.
__device__ __forceinline__ uint32_t SampleOf(const StepPlan& plan,
                                             const StepTable& table,
                                             uint32_t i) {
  return plan.samples != nullptr ? plan.samples[i]
                                 : i - static_cast<uint32_t>(table.id_begin);
}

// W floats, loaded and stored by one instruction.
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
  static constexpr int kWidth = kClass == kAnyClass ? 1 : 4;
  static constexpr int kLanes = kClass == kAnyClass  ? 32
                                : kClass < kAnyClass ? 4 << kClass
                                : kClass == 5        ? 4
                                                     : 8 << (kClass - 5);
};
inline int ClassOfDim(int dim) {
  if (dim % 4 != 0) return kAnyClass;
  return dim <= 16 ? 0 : dim <= 32 ? 1 : dim <= 64 ? 2 : 3;
}
inline int UpdateClassOf(int dim, FloatType type) {
  if (dim % 4 != 0 || type == FloatType::kFloat32) return ClassOfDim(dim);
  return dim <= 32 ? 5 : dim <= 64 ? 6 : 7;
}

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_GPU_STEP_STEP_PLAN_CUH_
