// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Reads the buckets of 32 keys by one warp. Eight lanes read one bucket (16
// bytes each, one line together), four buckets at a time, eight times. All
// eight loads are in flight before the first result is used, so few warps
// suffice to hide the memory latency with 32 lines each. Bit masks return the
// results to the key's own lane, so the rest of an operation is one thread per
// key.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_CACHE_TABLE_WARP_PROBE_CUH_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_CACHE_TABLE_WARP_PROBE_CUH_

#include <cstdint>

#include "addons/hierarchical_parameter_server/cache/table/bucket.h"
#include "kernels/engine/base/gpu/warp.cuh"

namespace ev {
namespace gpu {

constexpr int kTile = 8;  // lanes that read one bucket, two slots each
static_assert(kTile * 2 == kBucketSlots, "a lane looks at two slots");

// How slots are read. Frozen: no key is written while the kernel runs, so the
// read-only path may be used. Live: other warps write, so read in L2, where
// they write, and keep the compiler from reusing an earlier load.
enum class Slots { kFrozen, kLive };

template <Slots slots>
__device__ __forceinline__ longlong2 LoadTwoSlots(const int64_t* p) {
  longlong2 v;
  if (slots == Slots::kFrozen) {
    asm("ld.global.nc.L1::no_allocate.v2.s64 {%0, %1}, [%2];"
        : "=l"(v.x), "=l"(v.y)
        : "l"(p));
  } else {
    asm volatile("ld.relaxed.gpu.global.v2.s64 {%0, %1}, [%2];"
                 : "=l"(v.x), "=l"(v.y)
                 : "l"(p)
                 : "memory");
  }
  return v;
}

// Contents of one bucket with respect to a lane's key. Bit j of a mask is slot
// 2j, bit 8 + j is slot 2j + 1; any fixed order would do.
struct Seen {
  uint32_t match;  // at most one bit
  uint32_t free;   // empty or erased; only with kFreeToo
  bool empty;      // some slot is empty: no key is beyond this bucket
};

__device__ __forceinline__ int SlotOfBit(int bit) {
  return bit < 8 ? 2 * bit : 2 * (bit - 8) + 1;
}

enum class Want { kMatch, kFreeToo };

// bucket: the first slot of the bucket for this lane's key. A lane whose flag
// is false reads nothing and gets an unspecified result. REQUIRES: all lanes of
// the warp call it.
template <Slots slots, Want want>
__device__ __forceinline__ Seen ProbeWarp(const int64_t* bucket, int64_t key,
                                          bool wanted) {
  const int lane = threadIdx.x & (kWarp - 1);
  const int tile_base = lane & ~(kTile - 1);
  const int sub = lane & (kTile - 1);
  const unsigned need = __ballot_sync(kAllLanes, wanted);
  const unsigned long long address =
      reinterpret_cast<unsigned long long>(bucket);

  longlong2 v[kTile];
#pragma unroll
  for (int r = 0; r < kTile; ++r) {
    const int source = tile_base | r;
    const unsigned long long from = __shfl_sync(kAllLanes, address, source);
    v[r] = make_longlong2(0, 0);
    if ((need >> source) & 1) {
      v[r] =
          LoadTwoSlots<slots>(reinterpret_cast<const int64_t*>(from) + 2 * sub);
    }
  }
  unsigned match_x = 0, match_y = 0, empty = 0, free_x = 0, free_y = 0;
#pragma unroll
  for (int r = 0; r < kTile; ++r) {
    // Uniform: rounds in which no tile has a key left cost nothing.
    if ((need & (0x01010101u << r)) == 0) continue;
    const int64_t k =
        __shfl_sync(kAllLanes, static_cast<long long>(key), tile_base | r);
    const uint32_t parity =
        (__shfl_sync(kAllLanes, static_cast<uint32_t>(address),
                     tile_base | r) >>
         7) &
        1;
    const int64_t empty_mark = EmptyMark(parity);
    const unsigned mx = __ballot_sync(kAllLanes, v[r].x == k);
    const unsigned my = __ballot_sync(kAllLanes, v[r].y == k);
    const bool ex = v[r].x == empty_mark, ey = v[r].y == empty_mark;
    const unsigned e = __ballot_sync(kAllLanes, ex || ey);
    const bool mine = sub == r;
    match_x = mine ? mx : match_x;
    match_y = mine ? my : match_y;
    empty = mine ? e : empty;
    if (want == Want::kFreeToo) {
      const int64_t erased_mark = ErasedMark(parity);
      const unsigned fx = __ballot_sync(kAllLanes, ex || v[r].x == erased_mark);
      const unsigned fy = __ballot_sync(kAllLanes, ey || v[r].y == erased_mark);
      free_x = mine ? fx : free_x;
      free_y = mine ? fy : free_y;
    }
  }
  Seen seen;
  seen.match =
      ((match_x >> tile_base) & 0xFF) | (((match_y >> tile_base) & 0xFF) << 8);
  seen.free =
      ((free_x >> tile_base) & 0xFF) | (((free_y >> tile_base) & 0xFF) << 8);
  seen.empty = ((empty >> tile_base) & 0xFF) != 0;
  return seen;
}

// Returns the slot of this lane's key in the table, or -1. A lane whose flag is
// false gets -1. REQUIRES: all lanes of the warp call it.
template <Slots slots>
__device__ __forceinline__ int64_t FindInWarp(const TableView& table,
                                              int64_t key, bool wanted) {
  Chain chain;
  if (wanted) chain = Chain(MixKey(key), table);
  int64_t slot = -1;
  uint32_t probes = 0;
  while (__any_sync(kAllLanes, wanted)) {
    const int64_t first = wanted ? chain.first_slot() : 0;
    const Seen seen =
        ProbeWarp<slots, Want::kMatch>(table.keys + first, key, wanted);
    if (!wanted) continue;
    if (seen.match != 0) {
      slot = first + SlotOfBit(__ffs(seen.match) - 1);
      wanted = false;
    } else {
      if (seen.empty || ++probes == table.probe_limit) wanted = false;
      chain.Next();
    }
  }
  return slot;
}

// Returns the table of key i of a batch. The keys of table t are at
// [offsets[t], offsets[t + 1]).
__device__ __forceinline__ int TableOfKey(const int64_t* offsets,
                                          int num_tables, int64_t i) {
  int low = 0, high = num_tables - 1;  // finds the last t with offsets[t] <= i
  while (low < high) {
    const int middle = (low + high + 1) / 2;
    if (__ldg(offsets + middle) <= i) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

// The tables and keys of one call. With one table its view is passed in the
// kernel's arguments, and offsets are not read.
struct Batch {
  const int64_t* keys;  // [num_keys]
  int64_t num_keys;
  const int64_t* offsets;  // [num_tables + 1], or null for one table
  const TableView* views;  // [num_tables], device memory
  int num_tables;
  TableView only;  // views[0]
};

template <bool kOneTable>
__device__ __forceinline__ int BatchTable(const Batch& batch, int64_t i) {
  return kOneTable ? 0 : TableOfKey(batch.offsets, batch.num_tables, i);
}
template <bool kOneTable>
__device__ __forceinline__ TableView BatchView(const Batch& batch, int t) {
  return kOneTable ? batch.only : batch.views[t];
}

// Counters that every block adds to are cut into stripes that are summed when
// read, because atomics on the same address are serialized.
constexpr int kStripes = 32;
constexpr int kStripeInts = 4;  // one 32-byte sector each

__device__ __forceinline__ unsigned long long* StripeOf(int64_t* counters,
                                                        int table,
                                                        unsigned stripe) {
  return reinterpret_cast<unsigned long long*>(counters) +
         (static_cast<int64_t>(table) * kStripes + (stripe % kStripes)) *
             kStripeInts;
}

// Adds 1 to the table's counter, or -1 if negative, for each lane with 'adds'
// set. REQUIRES: all lanes of the warp call it.
__device__ __forceinline__ void CountInWarp(int64_t* counters, int table,
                                            bool adds, unsigned stripe,
                                            bool negative = false) {
  unsigned left = __ballot_sync(kAllLanes, adds);
  const int lane = threadIdx.x & (kWarp - 1);
  while (left != 0) {
    const int leader = __ffs(left) - 1;
    const int leader_table = __shfl_sync(kAllLanes, table, leader);
    const unsigned same =
        __ballot_sync(kAllLanes, adds && table == leader_table) & left;
    if (lane == leader) {
      const long long count = negative ? -__popc(same) : __popc(same);
      atomicAdd(StripeOf(counters, table, stripe),
                static_cast<unsigned long long>(count));
    }
    left &= ~same;
  }
}

}  // namespace gpu
}  // namespace ev

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_CACHE_TABLE_WARP_PROBE_CUH_
