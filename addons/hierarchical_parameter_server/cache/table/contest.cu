// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Places the few keys that compete for a bucket with other new keys of the same
// call. Here buckets choose among keys (see evict.cu), so a bucket is changed
// under its lock. A tile of eight lanes works on one key and holds one lock at
// a time.

#include <cooperative_groups.h>

#include "addons/hierarchical_parameter_server/cache/table/evict.cuh"
#include "kernels/engine/base/gpu/cuda_error.h"

namespace ev {
namespace gpu {
namespace {

namespace cg = cooperative_groups;

constexpr uint64_t kBestRank = ~0ULL;

// Order in which a bucket gives up keys: the lowest goes first. New keys of the
// call rank above all old ones; among them the one with the lowest hash goes
// first.
struct Rank {
  uint64_t score;
  uint64_t hash;
  int slot;  // in the bucket
  __device__ __forceinline__ bool Below(const Rank& other) const {
    return score != other.score ? score < other.score : hash < other.hash;
  }
};

template <typename Tile>
__device__ __forceinline__ Rank LowestInTile(const Tile& tile, Rank rank) {
#pragma unroll
  for (int delta = kTile / 2; delta > 0; delta /= 2) {
    Rank other;
    other.score = tile.shfl_xor(rank.score, delta);
    other.hash = tile.shfl_xor(rank.hash, delta);
    other.slot = tile.shfl_xor(rank.slot, delta);
    if (other.Below(rank)) rank = other;
  }
  return rank;
}

enum class Proposal { kNext, kDone };

// A lane's part of the state of the key that the tile is placing.
struct Seeker {
  int64_t key;
  uint64_t hash;
  int32_t index;  // -1: a displaced key
  Chain chain;
  uint32_t probes;
};

// Result of placing one list entry.
struct Placed {
  int64_t slot = -1;  // of the entry's own key, if own is true
  bool own = false;   // the result of the entry's own key is final
  bool is_new = false;
  bool took_free = false;
  bool exhausted = false;  // the key in the Seeker found no bucket
  int64_t evicted_key = 0;
  int64_t evicted_slot = -1;
  uint64_t evicted_score = 0;
};

__device__ __forceinline__ void MarkStale(const Scratch& scratch,
                                          const int64_t* bucket) {
  SetMark(scratch, scratch.stale, bucket);
  scratch.state->num_stale = 1;
}

// Proposes the seeker's key to its bucket. REQUIRES: the tile holds the
// bucket's lock.
template <Phase kPhase, Eviction kEviction, typename Tile>
__device__ __forceinline__ Proposal Propose(const Tile& tile,
                                            const TableView& view,
                                            uint64_t call,
                                            const Scratch& scratch,
                                            Seeker* seeker, Placed* placed) {
  const int sub = tile.thread_rank();
  const int64_t first = seeker->chain.first_slot();
  int64_t* const bucket = view.keys + first;
  int64_t* const scores = reinterpret_cast<int64_t*>(view.scores) + first;
  const longlong2 v = LoadTwoSlots<Slots::kLive>(bucket + 2 * sub);
  const longlong2 s = LoadTwoSlots<Slots::kLive>(scores + 2 * sub);
  const int64_t key = seeker->key;
  const unsigned mx = tile.ballot(v.x == key), my = tile.ballot(v.y == key);
  if ((mx | my) != 0) {  // the key, inserted for another occurrence
    if (seeker->index >= 0) {
      placed->own = true;
      placed->slot =
          first + (mx != 0 ? 2 * (__ffs(mx) - 1) : 2 * (__ffs(my) - 1) + 1);
    } else if (sub == 0) {
      // Two occurrences have set is_new: Finish decides between them.
      MarkStale(scratch, bucket);
    }
    return Proposal::kDone;
  }
  const int64_t empty = EmptyMark(seeker->chain.parity);
  const int64_t erased = ErasedMark(seeker->chain.parity);
  const unsigned fx = tile.ballot(v.x == empty || v.x == erased);
  const unsigned fy = tile.ballot(v.y == empty || v.y == erased);

  int victim_slot;
  bool displaced = false;
  int64_t displaced_key = 0;
  if ((fx | fy) != 0) {
    victim_slot = fx != 0 ? 2 * (__ffs(fx) - 1) : 2 * (__ffs(fy) - 1) + 1;
    placed->took_free = true;
  } else {
    using P = Policy<kEviction>;
    const bool new_x = P::IsNew(s.x, call), new_y = P::IsNew(s.y, call);
    Rank x = {new_x ? kBestRank : P::Order(s.x), MixKey(v.x), 2 * sub};
    Rank y = {new_y ? kBestRank : P::Order(s.y), MixKey(v.y), 2 * sub + 1};
    if (kPhase == Phase::kFill) {  // old keys must stay
      if (!new_x) x = {kBestRank, kBestRank, x.slot};
      if (!new_y) y = {kBestRank, kBestRank, y.slot};
    }
    const Rank victim = LowestInTile(tile, y.Below(x) ? y : x);
    victim_slot = victim.slot;
    displaced_key =
        tile.shfl(victim_slot % 2 == 0 ? v.x : v.y, victim_slot / 2);
    if (victim.score == kBestRank) {  // only new keys, or no key may go
      if (victim.hash >= seeker->hash) return Proposal::kNext;
      displaced = true;
      if (sub == 0) MarkStale(scratch, bucket);
    } else {
      placed->evicted_key = displaced_key;
      placed->evicted_slot = first + victim_slot;
      placed->evicted_score = victim.score;
      if (sub == 0 && P::MayBeUsed(victim.score, call)) {
        MarkStale(scratch, bucket);
      }
    }
  }
  if (sub == 0) {
    StoreSlot(bucket + victim_slot, key);
    StoreSlot(scores + victim_slot,
              static_cast<int64_t>(Policy<kEviction>::NewScore(call)));
  }
  if (seeker->index >= 0) {
    placed->own = true;
    placed->slot = first + victim_slot;
    placed->is_new = true;
  }
  if (!displaced) return Proposal::kDone;

  // Continue with the displaced key, from this bucket in its own chain.
  const uint32_t pair = seeker->chain.pair;
  seeker->key = displaced_key;
  seeker->hash = MixKey(displaced_key);
  seeker->index = -1;
  seeker->chain = Chain(seeker->hash, view);
  seeker->probes = 0;
  while (seeker->chain.pair != pair) {
    seeker->chain.Next();
    ++seeker->probes;
  }
  return Proposal::kNext;
}

__device__ __forceinline__ unsigned TryLock(unsigned* lock) {
  unsigned was;
  asm volatile("atom.acquire.gpu.global.cas.b32 %0, [%1], 0, 1;"
               : "=r"(was)
               : "l"(lock)
               : "memory");
  return was;
}

__device__ __forceinline__ void Unlock(unsigned* lock) {
  asm volatile("st.release.gpu.global.u32 [%0], 0;" ::"l"(lock) : "memory");
}

__device__ __forceinline__ void Prefetch(const void* p) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(p));
}

template <Phase kPhase, Eviction kEviction, typename Tile>
__device__ __forceinline__ void Place(const Tile& tile, const TableView& view,
                                      uint64_t call, const Scratch& scratch,
                                      Seeker* seeker, Placed* placed) {
  bool done = false;
  while (!done) {
    unsigned* const lock =
        scratch.locks +
        LineOf(view.keys + seeker->chain.first_slot()) % kNumLocks;
    // Fetches the lines while the lock is being taken.
    Prefetch(view.keys + seeker->chain.first_slot() + 2 * tile.thread_rank());
    Prefetch(view.scores + seeker->chain.first_slot() + 2 * tile.thread_rank());
    unsigned busy = 0;
    if (tile.thread_rank() == 0) busy = TryLock(lock);
    busy = tile.shfl(busy, 0);
    if (busy != 0) continue;
    const Proposal result =
        Propose<kPhase, kEviction>(tile, view, call, scratch, seeker, placed);
    // All lanes have read; the lane that unlocks is the one that wrote.
    tile.sync();
    if (tile.thread_rank() == 0) Unlock(lock);
    if (result == Proposal::kDone) {
      done = true;
    } else if (++seeker->probes == view.probe_limit) {
      placed->exhausted = true;
      done = true;
    } else {
      seeker->chain.Next();
    }
  }
}

template <Phase kPhase, Eviction kEviction>
__global__ void __launch_bounds__(kBlock)
    ContestKernel(const TableView* __restrict__ views, InsertOutputs outputs,
                  Scratch scratch, int64_t* size_counters) {
  WaitForPreviousKernel();
  const auto tile = cg::tiled_partition<kTile>(cg::this_thread_block());
  CallState* const state = scratch.state;
  const uint64_t call = state->call;
  const int count = kPhase == Phase::kFill ? state->num_contest_fill
                                           : state->num_contest_evict;
  const Pending* const list =
      kPhase == Phase::kFill ? scratch.contest_fill : scratch.contest_evict;
  const int tiles = gridDim.x * (kBlock / kTile);
  for (int item = blockIdx.x * (kBlock / kTile) + threadIdx.x / kTile;
       item < count; item += tiles) {
    const Pending pending = list[item];
    const TableView view = views[pending.table];
    Seeker seeker;
    seeker.key = pending.key;
    seeker.hash = MixKey(pending.key);
    seeker.index = pending.index;
    seeker.chain = Chain(seeker.hash, view);
    seeker.probes = pending.probes;
    for (uint32_t j = 0; j < pending.probes; ++j) seeker.chain.Next();
    Placed placed;
    Place<kPhase, kEviction>(tile, view, call, scratch, &seeker, &placed);
    if (tile.thread_rank() != 0) continue;
    if (placed.own) {
      outputs.slots[pending.index] = placed.slot;
      if (kEviction == Eviction::kLru && placed.is_new &&
          outputs.is_new != nullptr) {
        outputs.is_new[pending.index] = 1;
      }
    }
    if (placed.took_free) {
      atomicAdd(StripeOf(size_counters, pending.table, item), 1ULL);
    }
    if (kPhase == Phase::kEvict) {
      if (placed.evicted_slot >= 0 && outputs.evicted.count != nullptr) {
        // One atomic for all tiles of the warp that are here together.
        const auto together = cg::coalesced_threads();
        unsigned long long base = 0;
        if (together.thread_rank() == 0) {
          base = atomicAdd(
              reinterpret_cast<unsigned long long*>(outputs.evicted.count),
              static_cast<unsigned long long>(together.size()));
        }
        const int64_t at = static_cast<int64_t>(together.shfl(base, 0)) +
                           together.thread_rank();
        ReportEvicted<kEviction>(outputs.evicted, at, placed.evicted_key,
                                 placed.evicted_slot, placed.evicted_score,
                                 pending.table);
      }
    } else if (placed.exhausted) {
      scratch.contest_evict[atomicAdd(&state->num_contest_evict, 1)] =
          Pending{seeker.key, pending.table, seeker.index, 0, 0};
    }
  }
}

}  // namespace

template <Phase kPhase>
Status LaunchContest(const Batch& batch, Eviction eviction,
                     const InsertOutputs& outputs, const Scratch& scratch,
                     int64_t* size_counters, const DeviceInfo& device,
                     cudaStream_t stream) {
  const unsigned all = BlocksFor(batch.num_keys * kTile);
  const unsigned resident = static_cast<unsigned>(device.num_processors) * 4;
  const auto kernel = eviction == Eviction::kLru
                          ? ContestKernel<kPhase, Eviction::kLru>
                          : ContestKernel<kPhase, Eviction::kLfu>;
  EV_CUDA_RETURN_IF_ERROR(LaunchChained(
      kernel, all < resident ? all : resident, device.overlaps_kernels, stream,
      batch.views, outputs, scratch, size_counters));
  return Status::OK();
}

template Status LaunchContest<Phase::kFill>(const Batch&, Eviction,
                                            const InsertOutputs&,
                                            const Scratch&, int64_t*,
                                            const DeviceInfo&, cudaStream_t);
template Status LaunchContest<Phase::kEvict>(const Batch&, Eviction,
                                             const InsertOutputs&,
                                             const Scratch&, int64_t*,
                                             const DeviceInfo&, cudaStream_t);

}  // namespace gpu
}  // namespace ev
