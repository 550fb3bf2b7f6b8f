// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Repeated ids are looked up each time: they hit in L2, and no deduplication is
// needed. The rows of a sample are added in the order of its ids, with the bits
// of PoolSamples in combine/pooling.h.
//
// Samples of one id: each lane computes the address of one sample's row; then
// groups of lanes copy rows, several in flight per group. Other samples: a
// group of lanes pools a sample; each lane computes the address of one id's row
// and passes it to the group.

#include <algorithm>

#include "kernels/engine/base/gpu/cuda_error.h"
#include "kernels/engine/base/gpu/warp.cuh"
#include "kernels/engine/combine/combiner.h"
#include "kernels/engine/gpu_step/narrow_pack.cuh"
#include "kernels/engine/gpu_step/step_plan.cuh"
#include "kernels/engine/ids/gpu/samples_on_device.cuh"
#include "kernels/engine/rows/gpu/known_keys.cuh"
#include "kernels/engine/rows/gpu/row_at.cuh"
#include "kernels/engine/rows/gpu_step/step_lookup.h"

namespace ev {
namespace gpu {
namespace {

constexpr int kBlock = 256;
static_assert(kFindTile == kBlock && kPoolTile == kBlock, "a thread for each");

// For groups of G lanes: rows in flight per group, and blocks per
// multiprocessor.
template <int G, bool kNarrow>
struct Pace {
  static constexpr int kCopyRows = G == 32 ? 8 : 4;
  static constexpr int kCopyBlocks = G == 32 ? 3 : 4;
  // Narrow rows take half of the registers.
  static constexpr int kPoolRows = kNarrow && G > 4 ? 8 : G >= 16 ? 5 : 4;
  static constexpr int kPoolBlocks = G >= 16 ? 3 : 4;
};
constexpr uint32_t kStaged =
    4096;  // handles that a block loads to shared memory

__global__ void __launch_bounds__(kBlock) FindHandlesKernel(StepLookup lookup) {
  const int t =
      TableOfBlock(lookup.find_tiles, 0, lookup.num_tables, blockIdx.x);
  const StepLookupTable& table = lookup.tables[t];
  const int64_t local =
      static_cast<int64_t>(blockIdx.x - __ldg(lookup.find_tiles + t)) * kBlock +
      threadIdx.x;
  const bool mine = local < table.num_ids;
  bool unknown = false;
  const int64_t i = table.id_begin + local;
  int64_t key = 0;
  if (mine) {
    key = table.is_narrow
              ? __ldcs(static_cast<const int32_t*>(table.ids) + local)
              : __ldcs(static_cast<const long long*>(table.ids) + local);
    RowHandle handle = table.are_handles ? static_cast<RowHandle>(key)
                                         : FindKnown(table.known, key);
    unknown = !table.are_handles && handle == ev::kNoRow;
    if (unknown && table.num_defaults != 0) {
      const int64_t rest = key % table.num_defaults;
      handle =
          kFirstReservedHandle +
          static_cast<RowHandle>(table.first_default +
                                 (rest < 0 ? rest + table.num_defaults : rest));
    }
    lookup.handles[i] = handle;
    if (table.kept != nullptr) {
      if (table.is_narrow) {
        static_cast<int32_t*>(table.kept)[local] = static_cast<int32_t>(key);
      } else {
        static_cast<long long*>(table.kept)[local] = key;
      }
    }
  }
  const unsigned mask = __ballot_sync(kAllLanes, unknown);
  if (mask == 0) return;
  const int lane = threadIdx.x % 32;
  uint32_t at = 0;
  if (lane == 0) at = atomicAdd(lookup.num_unknown, __popc(mask));
  at = __shfl_sync(kAllLanes, at, 0);
  if (unknown) {
    at += __popc(mask & ((1u << lane) - 1));
    lookup.unknown[at] = static_cast<uint32_t>(i);
    if (lookup.unknown_keys != nullptr) lookup.unknown_keys[at] = key;
  }
}

__global__ void __launch_bounds__(kBlock)
    FindSamplesKernel(StepLookup lookup, const int32_t* tiles) {
  const int t = TableOfBlock(tiles, 0, lookup.num_tables, blockIdx.x);
  const StepLookupTable& table = lookup.tables[t];
  const int64_t i =
      static_cast<int64_t>(blockIdx.x - __ldg(tiles + t)) * kBlock +
      threadIdx.x;
  const uint32_t bits = __reduce_or_sync(
      kAllLanes, FindSample(table.splits, table.indices, table.num_ids,
                            table.num_samples, i, table.made));
  if (bits != 0 && threadIdx.x % 32 == 0) atomicOr(lookup.found + t, bits);
}

__global__ void __launch_bounds__(kBlock)
    SetHandlesKernel(const uint32_t* positions, const RowHandle* given,
                     int64_t count, RowHandle* handles) {
  const int64_t k = static_cast<int64_t>(blockIdx.x) * kBlock + threadIdx.x;
  if (k < count) handles[positions[k]] = given[k];
}

// Returns the address of the row of the step's id i.
__device__ __forceinline__ const float* RowOfId(const StepLookup& lookup,
                                                const StepLookupTable& table,
                                                int64_t i, RowHandle handle) {
  if (lookup.rows != nullptr) return lookup.rows[i];
  if (handle >= kFirstReservedHandle) {
    return table.defaults +
           static_cast<int64_t>(handle - kFirstReservedHandle) *
               table.value_floats;
  }
  return AtPlace(table.rows, handle);
}

// Returns the type of the rows of a kernel for narrow values, or not; float32
// is known when the kernel is compiled.
template <bool kNarrow>
__device__ __forceinline__ FloatType RowType(const StepLookupTable& table) {
  return kNarrow ? table.row_type : FloatType::kFloat32;
}

// Stores W numbers of an output from number 'at' on. Uses streaming stores,
// because the output is read only after all of it is written.
template <int W>
__device__ __forceinline__ void Store(void* out, FloatType type, int64_t at,
                                      const Pack<W>& v) {
  if (type != FloatType::kFloat32) {
    StoreNarrow<W>(static_cast<unsigned short*>(out) + at, type, v);
  } else if constexpr (W == 4) {
    __stcs(reinterpret_cast<float4*>(static_cast<float*>(out) + at),
           make_float4(v.x[0], v.x[1], v.x[2], v.x[3]));
  } else {
    __stcs(static_cast<float*>(out) + at, v.x[0]);
  }
}

template <int W, int G, bool kNarrow>
__global__ void __launch_bounds__(kBlock, Pace<G, kNarrow>::kCopyBlocks)
    CopyRowsKernel(StepLookup lookup, int begin, int end, int first_block) {
  const int block = first_block + blockIdx.x;
  const int k = TableOfBlock(lookup.pool_tiles, begin, end, block);
  const StepLookupTable& table = lookup.tables[__ldg(lookup.pool_order + k)];
  const int lane = threadIdx.x % 32, group = lane / G, sub = lane % G;
  constexpr int kGroups = 32 / G;
  constexpr int kRows = Pace<G, kNarrow>::kCopyRows;
  const int64_t first =
      static_cast<int64_t>(block - __ldg(lookup.pool_tiles + k)) * kPoolTile +
      threadIdx.x / 32 * 32;
  const int64_t left = table.num_samples - first;
  if (left <= 0) return;
  const float* my_row = nullptr;
  if (lane < left) {
    const int64_t i = table.id_begin + first + lane;
    my_row = RowOfId(lookup, table, i, lookup.handles[i]);
    if (lookup.samples != nullptr) {
      lookup.samples[i] =
          static_cast<uint32_t>(table.samples_before + first + lane);
    }
    if (lookup.factors != nullptr) {
      lookup.factors[table.sample_begin + first + lane] = 1.0f;
    }
  }
  const int dim = table.dim;
  void* const out = table.out;
  const FloatType type = table.out_type;
  const FloatType row_type = RowType<kNarrow>(table);
  for (int r = 0; r < G; r += kRows) {
    if (r * kGroups >= left) break;
    const float* row[kRows];
#pragma unroll
    for (int u = 0; u < kRows; ++u) {
      row[u] = reinterpret_cast<const float*>(
          __shfl_sync(kAllLanes, reinterpret_cast<unsigned long long>(my_row),
                      (r + u) * kGroups + group));
    }
    for (int c = sub * W; c < dim; c += G * W) {
      Pack<W> v[kRows];
#pragma unroll
      for (int u = 0; u < kRows; ++u) {
        if (row[u] != nullptr) v[u] = LoadRaw<W>(row[u], row_type, c);
      }
#pragma unroll
      for (int u = 0; u < kRows; ++u) {
        const int from = (r + u) * kGroups + group;
        if (row[u] != nullptr) {
          Store<W>(out, type, (first + from) * dim + c,
                   Widened<W>(v[u], row_type));
        }
      }
    }
  }
}

template <int W, int G, bool kNarrow>
__global__ void __launch_bounds__(kBlock, Pace<G, kNarrow>::kPoolBlocks)
    PoolRowsKernel(StepLookup lookup, int begin, int end, int first_block) {
  const int block = first_block + blockIdx.x;
  const int k = TableOfBlock(lookup.pool_tiles, begin, end, block);
  const StepLookupTable& table = lookup.tables[__ldg(lookup.pool_order + k)];
  const int sub = threadIdx.x % G;
  const unsigned mask = G == 32 ? kAllLanes
                                : ((1u << (G % 32)) - 1)
                                      << (threadIdx.x % 32 / G * G);
  const Combiner combiner = static_cast<Combiner>(table.combiner);
  const int dim = table.dim;
  const FloatType row_type = RowType<kNarrow>(table);
  constexpr int kGroups = kBlock / G;
  constexpr int kRows = Pace<G, kNarrow>::kPoolRows;
  const int64_t tile =
      static_cast<int64_t>(block - __ldg(lookup.pool_tiles + k)) * kPoolTile;
  const int num_samples =
      static_cast<int>(min(table.num_samples - tile, kPoolTile));
  // The samples' offsets and the handles in shared memory, so that the loop
  // below waits only for rows. Not all handles fit if samples have many ids.
  __shared__ int32_t starts[kPoolTile + 1];
  __shared__ RowHandle staged[kStaged];
  for (int s = threadIdx.x; s <= num_samples; s += kBlock) {
    starts[s] = table.offsets[tile + s];
  }
  __syncthreads();
  const int32_t first = starts[0];
  const uint32_t num_staged =
      min(static_cast<uint32_t>(starts[num_samples] - first), kStaged);
  const RowHandle* const handles = lookup.handles + table.id_begin;
  for (uint32_t i = threadIdx.x; i < num_staged; i += kBlock) {
    staged[i] = handles[first + i];
  }
  __syncthreads();
  for (int s = threadIdx.x / G; s < num_samples; s += kGroups) {
    const int32_t from = starts[s], to = starts[s + 1];
    const float divisor =
        from == to || !Divides(combiner)
            ? 1.0f
            : DivisorOf(combiner, static_cast<float>(to - from));
    if (sub == 0 && lookup.factors != nullptr) {
      lookup.factors[table.sample_begin + tile + s] = 1.0f / divisor;
    }
    for (int base = 0; base < dim; base += G * W) {
      const int c = base + sub * W;
      Pack<W> sum;
#pragma unroll
      for (int x = 0; x < W; ++x) sum.x[x] = from == to ? 0.0f : -0.0f;
      for (int32_t j = from; j < to; j += G) {
        const float* my_row = nullptr;
        if (j + sub < to) {
          const int32_t i = j + sub;
          const uint32_t ahead = static_cast<uint32_t>(i - first);
          my_row = RowOfId(lookup, table, table.id_begin + i,
                           ahead < num_staged ? staged[ahead] : handles[i]);
          if (base == 0 && lookup.samples != nullptr) {
            lookup.samples[table.id_begin + i] =
                static_cast<uint32_t>(tile + s);
          }
        }
        const int num_rows = min(G, to - j);
        for (int r = 0; r < num_rows; r += kRows) {
          Pack<W> v[kRows];
#pragma unroll
          for (int u = 0; u < kRows; ++u) {
            const float* row = reinterpret_cast<const float*>(__shfl_sync(
                mask, reinterpret_cast<unsigned long long>(my_row), r + u, G));
            if (r + u < num_rows && c < dim) {
              v[u] = LoadRaw<W>(row, row_type, c);
            }
          }
#pragma unroll
          for (int u = 0; u < kRows; ++u) {
            if (r + u < num_rows) {
              const Pack<W> row = Widened<W>(v[u], row_type);
#pragma unroll
              for (int x = 0; x < W; ++x) sum.x[x] = sum.x[x] + row.x[x];
            }
          }
        }
      }
      if (divisor != 1.0f) {
#pragma unroll
        for (int x = 0; x < W; ++x) sum.x[x] = sum.x[x] / divisor;
      }
      if (c < dim) {
        Store<W>(table.out, table.out_type, (tile + s) * dim + c, sum);
      }
    }
  }
}

template <int kClass>
void Launch(const StepLookup& lookup, int kind, int begin, int end,
            int first_block, int blocks, cudaStream_t stream) {
  constexpr int W = ClassShape<kClass>::kWidth, G = ClassShape<kClass>::kLanes;
  using Kernel = void (*)(StepLookup, int, int, int);
  constexpr Kernel kKernels[] = {
      CopyRowsKernel<W, G, false>, PoolRowsKernel<W, G, false>,
      CopyRowsKernel<W, G, true>, PoolRowsKernel<W, G, true>};
  kKernels[kind % kPoolKindsEach]<<<blocks, kBlock, 0, stream>>>(
      lookup, begin, end, first_block);
}

}  // namespace

Status LaunchFindSamples(const StepLookup& lookup, const int32_t* sample_tiles,
                         int blocks, StreamView stream) {
  if (blocks == 0) return Status::OK();
  FindSamplesKernel<<<blocks, kBlock, 0, stream.get()>>>(lookup, sample_tiles);
  EV_CUDA_RETURN_IF_LAUNCH_FAILED("FindSamplesKernel");
  return Status::OK();
}

Status LaunchFindHandles(const StepLookup& lookup, int blocks,
                         StreamView stream) {
  if (blocks == 0) return Status::OK();
  FindHandlesKernel<<<blocks, kBlock, 0, stream.get()>>>(lookup);
  EV_CUDA_RETURN_IF_LAUNCH_FAILED("FindHandlesKernel");
  return Status::OK();
}

Status LaunchSetHandles(const uint32_t* positions, const RowHandle* given,
                        int64_t count, RowHandle* handles, StreamView stream) {
  if (count == 0) return Status::OK();
  const int blocks = static_cast<int>((count + kBlock - 1) / kBlock);
  SetHandlesKernel<<<blocks, kBlock, 0, stream.get()>>>(positions, given, count,
                                                        handles);
  EV_CUDA_RETURN_IF_LAUNCH_FAILED("SetHandlesKernel");
  return Status::OK();
}

Status LaunchPoolHandles(const StepLookup& lookup, int kind, int begin, int end,
                         int first_block, int blocks, StreamView stream) {
  if (blocks == 0) return Status::OK();
  const cudaStream_t s = stream.get();
  switch (kind / kPoolKindsEach) {
    case 0:
      Launch<0>(lookup, kind, begin, end, first_block, blocks, s);
      break;
    case 1:
      Launch<1>(lookup, kind, begin, end, first_block, blocks, s);
      break;
    case 2:
      Launch<2>(lookup, kind, begin, end, first_block, blocks, s);
      break;
    case 3:
      Launch<3>(lookup, kind, begin, end, first_block, blocks, s);
      break;
    default:
      Launch<4>(lookup, kind, begin, end, first_block, blocks, s);
  }
  EV_CUDA_RETURN_IF_LAUNCH_FAILED("a kernel that pools");
  return Status::OK();
}

}  // namespace gpu
}  // namespace ev
