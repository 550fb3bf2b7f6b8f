// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Finding or inserting keys in tables that evict when they are full. Five
// launches, whatever the batch:
//
//   Begin     numbers the call, empties its lists.
//   Classify  one find; marks present keys as used; lists absent ones, apart
//             those with a free slot in their chain and those without.
//   Fill      the first list: keys move into free slots. Nothing old is evicted.
//   Evict     the second list, and what Fill could not place.
//   Finish    the evicted keys, packed; and, when a key lost the slot that it had
//             been given in this call, its right answer.
//
// Fill and Evict are deferred acceptance (Gale and Shapley): a key proposes to the
// buckets of its chain in order; a bucket keeps the best of what it holds and of
// what came, and sends the worst away, which proposes further if it is new and is
// evicted if it is not. Who stays does not depend on the order of the proposals,
// so neither does it depend on the order in which warps run. A bucket changes
// under its lock; a warp's tile holds one lock at a time, so nothing deadlocks.

#include <cooperative_groups.h>

#include "kernels/engine/base/gpu/cuda_error.h"
#include "kernels/engine/table/gpu/launch.cuh"

namespace ev {
namespace gpu {
namespace {

namespace cg = cooperative_groups;

constexpr uint64_t kBestRank = ~0ULL;

// What the scores of the two policies mean to the kernels.
template <Eviction kEviction>
struct Policy;

template <>
struct Policy<Eviction::kLru> {
  static __device__ __forceinline__ void Use(uint64_t* score, uint64_t call) {
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(score),
                 "l"(call << kLruCallShift)
                 : "memory");
  }
  static __device__ __forceinline__ uint64_t NewScore(uint64_t call) {
    return (call << kLruCallShift) | kLruNew;
  }
  static __device__ __forceinline__ bool IsNew(uint64_t score, uint64_t call) {
    return (score & ~kLruClaimed) == NewScore(call);
  }
  // Whether this call's Classify may have given this key's slot out.
  static __device__ __forceinline__ bool MayBeUsed(uint64_t score,
                                                   uint64_t call) {
    return (score >> kLruCallShift) == call;
  }
  static __device__ __forceinline__ uint64_t Shown(uint64_t score) {
    return score >> kLruCallShift;
  }
};

template <>
struct Policy<Eviction::kLfu> {
  static __device__ __forceinline__ void Use(uint64_t* score, uint64_t) {
    atomicAdd(reinterpret_cast<unsigned long long*>(score), 1ULL);
  }
  // Zero until Finish counts the occurrences: that is how a new key is known.
  static __device__ __forceinline__ uint64_t NewScore(uint64_t) { return 0; }
  static __device__ __forceinline__ bool IsNew(uint64_t score, uint64_t) {
    return score == 0;
  }
  static __device__ __forceinline__ bool MayBeUsed(uint64_t, uint64_t) {
    return true;
  }
  static __device__ __forceinline__ uint64_t Shown(uint64_t score) {
    return score;
  }
};

__global__ void BeginKernel(CallState* state, int64_t* evicted_count) {
  ++state->call;
  state->num_fill = 0;
  state->num_evict = 0;
  state->must_verify = 0;
  if (evicted_count != nullptr) *evicted_count = 0;
}

// Room in a list for the lanes of a block that have something to add: one atomic
// per block. REQUIRES: all threads of the block call it.
__device__ __forceinline__ int AppendInBlock(bool adds, int* length) {
  __shared__ int warp_base[kBlock / kWarp];
  __shared__ int block_base;
  const int lane = threadIdx.x & (kWarp - 1);
  const int warp = threadIdx.x / kWarp;
  const unsigned mask = __ballot_sync(kAllLanes, adds);
  if (lane == 0) warp_base[warp] = __popc(mask);
  __syncthreads();
  if (threadIdx.x == 0) {
    int total = 0;
    for (int w = 0; w < kBlock / kWarp; ++w) {
      const int count = warp_base[w];
      warp_base[w] = total;
      total += count;
    }
    block_base = total == 0 ? 0 : atomicAdd(length, total);
  }
  __syncthreads();
  const int place = block_base + warp_base[warp] +
                    __popc(mask & ((1u << lane) - 1));
  __syncthreads();  // the arrays may be used again
  return place;
}

template <bool kOneTable, Eviction kEviction>
__global__ void __launch_bounds__(kBlock)
    ClassifyKernel(Batch batch, InsertOutputs outputs, Scratch scratch) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kBlock + threadIdx.x;
  const bool mine = i < batch.num_keys;
  const int64_t key = mine ? __ldcs(batch.keys + i) : 0;
  int t = 0;
  TableView view = batch.only;
  if (!kOneTable && mine) {
    t = BatchTable<kOneTable>(batch, i);
    view = batch.views[t];
  }
  bool any_free = false;
  const int64_t slot =
      FindInWarp<Slots::kFrozen>(view, key, mine, &any_free);
  const bool missed = mine && slot < 0;
  if (mine) {
    __stcs(outputs.slots + i, slot);
    if (outputs.is_new != nullptr) outputs.is_new[i] = 0;
    if (kEviction == Eviction::kLfu) scratch.missed[i] = missed ? 1 : 0;
    if (!missed) {
      Policy<kEviction>::Use(view.scores + slot, scratch.state->call);
    }
  }
  const Pending pending = {key, t, static_cast<int32_t>(i)};
  const int fill_at =
      AppendInBlock(missed && any_free, &scratch.state->num_fill);
  if (missed && any_free) scratch.fill[fill_at] = pending;
  const int evict_at =
      AppendInBlock(missed && !any_free, &scratch.state->num_evict);
  if (missed && !any_free) scratch.evict[evict_at] = pending;
}

// Orders what a bucket may send away: the lowest goes first. Of the new keys of a
// call, which rank above all old ones, the one with the lowest hash.
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

__device__ __forceinline__ void StoreSlot(int64_t* p, int64_t value) {
  asm volatile("st.relaxed.gpu.global.s64 [%0], %1;" ::"l"(p), "l"(value)
               : "memory");
}

__device__ __forceinline__ void Prefetch(const void* p) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(p));
}

enum class Phase { kFill, kEvict };

enum class Proposal { kNext, kDone };

// One lane of a tile's view of the key that the tile is placing.
struct Seeker {
  int64_t key;
  uint64_t hash;
  int32_t table;
  int32_t index;  // -1: carried, not from the tile's own list entry
  Chain chain;
  uint32_t probes;
};

// What came out of placing one list entry.
struct Placed {
  int64_t slot = -1;      // of the entry's own key, when own is true
  bool own = false;       // the entry's own key has its answer
  bool is_new = false;
  bool took_free = false;  // a free slot was filled
  bool exhausted = false;  // the key in the Seeker found no bucket
  bool lost = false;       // someone's answer of this call has become stale
  int64_t evicted_key = 0;
  int64_t evicted_slot = -1;
  uint64_t evicted_score = 0;
};

// Proposes seeker's key to its bucket. REQUIRES: the tile holds the bucket's lock.
template <Phase kPhase, Eviction kEviction, typename Tile>
__device__ __forceinline__ Proposal Propose(const Tile& tile,
                                            const TableView& view,
                                            uint64_t call, Seeker* seeker,
                                            Placed* placed) {
  const int sub = tile.thread_rank();
  const int64_t first = seeker->chain.first_slot();
  int64_t* const bucket = view.keys + first;
  uint64_t* const scores = view.scores + first;
  const longlong2 v = LoadTwoSlots<Slots::kLive>(bucket + 2 * sub);
  // The scores are needed only when the bucket is full; in Evict it nearly always
  // is, so both lines are asked for together.
  longlong2 s = make_longlong2(0, 0);
  if (kPhase == Phase::kEvict) {
    s = LoadTwoSlots<Slots::kLive>(
        reinterpret_cast<const int64_t*>(scores) + 2 * sub);
  }
  const int64_t key = seeker->key;
  const unsigned mx = tile.ballot(v.x == key), my = tile.ballot(v.y == key);
  if ((mx | my) != 0) {  // the same key, placed for another of its occurrences
    if (seeker->index >= 0) {
      placed->own = true;
      placed->slot =
          first + (mx != 0 ? 2 * (__ffs(mx) - 1) : 2 * (__ffs(my) - 1) + 1);
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
    if (kPhase == Phase::kFill) {
      s = LoadTwoSlots<Slots::kLive>(
          reinterpret_cast<const int64_t*>(scores) + 2 * sub);
    }
    const bool new_x = Policy<kEviction>::IsNew(s.x, call);
    const bool new_y = Policy<kEviction>::IsNew(s.y, call);
    Rank x = {new_x ? kBestRank : static_cast<uint64_t>(s.x), MixKey(v.x),
              2 * sub};
    Rank y = {new_y ? kBestRank : static_cast<uint64_t>(s.y), MixKey(v.y),
              2 * sub + 1};
    if (kPhase == Phase::kFill) {  // old keys are not for sending away
      if (!new_x) x = {kBestRank, kBestRank, x.slot};
      if (!new_y) y = {kBestRank, kBestRank, y.slot};
    }
    const Rank victim = LowestInTile(tile, y.Below(x) ? y : x);
    victim_slot = victim.slot;
    const int owner = victim_slot / 2;
    displaced_key = tile.shfl(victim_slot % 2 == 0 ? v.x : v.y, owner);
    if (victim.score == kBestRank) {  // new keys only, or none that may go
      if (victim.hash >= seeker->hash) return Proposal::kNext;
      displaced = true;
      placed->lost = true;
    } else {
      placed->evicted_key = displaced_key;
      placed->evicted_slot = first + victim_slot;
      placed->evicted_score = victim.score;
      placed->lost |= Policy<kEviction>::MayBeUsed(victim.score, call);
    }
  }
  if (sub == 0) {
    StoreSlot(bucket + victim_slot, key);
    StoreSlot(reinterpret_cast<int64_t*>(scores) + victim_slot,
              static_cast<int64_t>(Policy<kEviction>::NewScore(call)));
  }
  if (seeker->index >= 0) {
    placed->own = true;
    placed->slot = first + victim_slot;
    placed->is_new = true;
  }
  if (!displaced) return Proposal::kDone;

  // Carry the displaced key on from its place in its own chain.
  const uint32_t pair = seeker->chain.pair;
  seeker->key = displaced_key;
  seeker->hash = MixKey(displaced_key);
  seeker->index = -1;
  seeker->chain = Chain(seeker->hash, view.num_pairs);
  seeker->probes = 0;
  while (seeker->chain.pair != pair) {
    seeker->chain.Next();
    ++seeker->probes;
  }
  return Proposal::kNext;
}

template <Phase kPhase, Eviction kEviction, typename Tile>
__device__ __forceinline__ void Place(const Tile& tile, const TableView& view,
                                      uint64_t call, unsigned* locks,
                                      Seeker* seeker, Placed* placed) {
  bool done = false;
  while (!done) {
    const int64_t first = seeker->chain.first_slot();
    // Bucket addresses are multiples of 128 bytes; two buckets that share a lock
    // only wait for each other.
    const uint64_t line =
        reinterpret_cast<uint64_t>(view.keys + first) / 128;
    unsigned* const lock =
        locks + ((line ^ (line >> 20)) & (kNumLocks - 1));
    // The lines are on their way while the lock is fetched.
    Prefetch(view.keys + first + 2 * tile.thread_rank());
    if (kPhase == Phase::kEvict) {
      Prefetch(view.scores + first + 2 * tile.thread_rank());
    }
    unsigned busy = 0;
    if (tile.thread_rank() == 0) busy = atomicCAS(lock, 0u, 1u);
    busy = tile.shfl(busy, 0);
    if (busy != 0) continue;
    __threadfence();
    const Proposal result =
        Propose<kPhase, kEviction>(tile, view, call, seeker, placed);
    __threadfence();
    tile.sync();
    if (tile.thread_rank() == 0) atomicExch(lock, 0u);
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
    PlaceKernel(const TableView* __restrict__ views, InsertOutputs outputs,
                Scratch scratch, int64_t* size_counters) {
  const auto tile = cg::tiled_partition<kTile>(cg::this_thread_block());
  CallState* const state = scratch.state;
  const uint64_t call = state->call;
  const int count =
      kPhase == Phase::kFill ? state->num_fill : state->num_evict;
  Pending* const list =
      kPhase == Phase::kFill ? scratch.fill : scratch.evict;
  const int tiles = gridDim.x * (kBlock / kTile);
  const int first = blockIdx.x * (kBlock / kTile) + threadIdx.x / kTile;
  const bool leader = tile.thread_rank() == 0;
  // The whole warp makes the same number of rounds.
  const int rounds = (count - (first & ~3) + tiles - 1) / tiles;
  for (int round = 0; round < rounds; ++round) {
    const int item = first + round * tiles;
    const bool mine = item < count;
    Seeker seeker;
    seeker.table = 0;
    Placed placed;
    if (mine) {
      const Pending pending = list[item];
      const TableView view = views[pending.table];
      seeker.key = pending.key;
      seeker.hash = MixKey(pending.key);
      seeker.table = pending.table;
      seeker.index = pending.index;
      seeker.chain = Chain(seeker.hash, view.num_pairs);
      seeker.probes = 0;
      if (kPhase == Phase::kEvict && seeker.index < 0) {
        // Fill could not place it and nobody knows which occurrence it is.
        placed.lost = true;
      }
      Place<kPhase, kEviction>(tile, view, call, scratch.locks, &seeker,
                               &placed);
      if (leader) {
        if (placed.own) {
          outputs.slots[pending.index] = placed.slot;
          if (kEviction == Eviction::kLru && placed.is_new &&
              outputs.is_new != nullptr) {
            outputs.is_new[pending.index] = 1;
          }
        }
        if (placed.lost || (kPhase == Phase::kEvict && placed.exhausted)) {
          state->must_verify = 1;
        }
        if (kPhase == Phase::kEvict) {
          list[item].key = placed.evicted_key;
          scratch.evicted_slot[item] = placed.evicted_slot;
          scratch.evicted_score[item] = placed.evicted_score;
        } else if (placed.exhausted) {
          scratch.evict[atomicAdd(&state->num_evict, 1)] =
              Pending{seeker.key, seeker.table, seeker.index};
        }
      }
    }
    __syncwarp();
    CountInWarp(size_counters, seeker.table, leader && placed.took_free,
                blockIdx.x);
  }
}

template <bool kOneTable, Eviction kEviction>
__global__ void __launch_bounds__(kBlock)
    FinishKernel(Batch batch, InsertOutputs outputs, Scratch scratch,
                 int64_t* rejected_counters) {
  const CallState state = *scratch.state;
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kBlock + threadIdx.x;
  const EvictedKeys& evicted = outputs.evicted;
  const int64_t block_first = static_cast<int64_t>(blockIdx.x) * kBlock;
  if (evicted.count != nullptr && block_first < state.num_evict) {
    const int64_t slot =
        i < state.num_evict ? scratch.evicted_slot[i] : -1;
    __shared__ unsigned long long base;
    __shared__ int total;
    if (threadIdx.x == 0) total = 0;
    __syncthreads();
    const int place = slot >= 0 ? atomicAdd(&total, 1) : 0;
    __syncthreads();
    if (threadIdx.x == 0) {
      base = atomicAdd(reinterpret_cast<unsigned long long*>(evicted.count),
                       static_cast<unsigned long long>(total));
    }
    __syncthreads();
    if (slot >= 0) {
      const int64_t at = static_cast<int64_t>(base) + place;
      evicted.keys[at] = scratch.evict[i].key;
      if (evicted.slots != nullptr) evicted.slots[at] = slot;
      if (evicted.tables != nullptr) {
        evicted.tables[at] = scratch.evict[i].table;
      }
      if (evicted.scores != nullptr) {
        evicted.scores[at] =
            Policy<kEviction>::Shown(scratch.evicted_score[i]);
      }
    }
  }

  if (kEviction == Eviction::kLru && state.must_verify == 0) return;
  const bool mine = i < batch.num_keys;
  const int64_t key = mine ? batch.keys[i] : 0;
  int t = 0;
  TableView view = batch.only;
  if (!kOneTable && mine) {
    t = BatchTable<kOneTable>(batch, i);
    view = batch.views[t];
  }
  int64_t slot = mine ? outputs.slots[i] : -1;
  if (state.must_verify != 0) {
    const bool stale = mine && (slot < 0 || view.keys[slot] != key);
    const int64_t found =
        FindInWarp<Slots::kFrozen>(view, key, stale, nullptr);
    if (stale) {
      slot = found;
      outputs.slots[i] = slot;
    }
  }
  CountInWarp(rejected_counters, t, mine && slot < 0, blockIdx.x);
  if (!mine) return;
  bool is_new = false;
  if (kEviction == Eviction::kLru) {
    if (slot >= 0) {
      unsigned long long* score =
          reinterpret_cast<unsigned long long*>(view.scores + slot);
      is_new = Policy<kEviction>::IsNew(*score, state.call) &&
               (atomicOr(score, static_cast<unsigned long long>(kLruClaimed)) &
                kLruClaimed) == 0;
    }
  } else {
    if (slot >= 0 && scratch.missed[i] != 0) {
      is_new = atomicAdd(
                   reinterpret_cast<unsigned long long*>(view.scores + slot),
                   1ULL) == 0;
    }
  }
  if (outputs.is_new != nullptr) outputs.is_new[i] = is_new ? 1 : 0;
}

template <bool kOneTable, Eviction kEviction>
__global__ void __launch_bounds__(kBlock)
    TouchKernel(Batch batch, const int64_t* __restrict__ slots,
                const CallState* state) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kBlock + threadIdx.x;
  if (i >= batch.num_keys || slots[i] < 0) return;
  const TableView view =
      BatchView<kOneTable>(batch, BatchTable<kOneTable>(batch, i));
  Policy<kEviction>::Use(view.scores + slots[i], state->call);
}

template <Eviction kEviction>
Status InsertAndEvict(const Batch& batch, const InsertOutputs& outputs,
                      const Scratch& scratch, int64_t* size_counters,
                      int64_t* rejected_counters, int num_processors,
                      cudaStream_t stream) {
  const bool one = batch.num_tables == 1;
  const unsigned blocks = BlocksFor(batch.num_keys);
  const unsigned all = BlocksFor(batch.num_keys * kTile);
  const unsigned resident = static_cast<unsigned>(num_processors) * 8;
  const unsigned placing = all < resident ? all : resident;
  BeginKernel<<<1, 1, 0, stream>>>(scratch.state, outputs.evicted.count);
  EV_CUDA_RETURN_IF_LAUNCH_FAILED("BeginKernel");
  if (one) {
    ClassifyKernel<true, kEviction>
        <<<blocks, kBlock, 0, stream>>>(batch, outputs, scratch);
  } else {
    ClassifyKernel<false, kEviction>
        <<<blocks, kBlock, 0, stream>>>(batch, outputs, scratch);
  }
  EV_CUDA_RETURN_IF_LAUNCH_FAILED("ClassifyKernel");
  PlaceKernel<Phase::kFill, kEviction><<<placing, kBlock, 0, stream>>>(
      batch.views, outputs, scratch, size_counters);
  EV_CUDA_RETURN_IF_LAUNCH_FAILED("PlaceKernel<kFill>");
  PlaceKernel<Phase::kEvict, kEviction><<<placing, kBlock, 0, stream>>>(
      batch.views, outputs, scratch, size_counters);
  EV_CUDA_RETURN_IF_LAUNCH_FAILED("PlaceKernel<kEvict>");
  if (one) {
    FinishKernel<true, kEviction>
        <<<blocks, kBlock, 0, stream>>>(batch, outputs, scratch,
                                         rejected_counters);
  } else {
    FinishKernel<false, kEviction>
        <<<blocks, kBlock, 0, stream>>>(batch, outputs, scratch,
                                         rejected_counters);
  }
  EV_CUDA_RETURN_IF_LAUNCH_FAILED("FinishKernel");
  return Status::OK();
}

template <Eviction kEviction>
void Touch(const Batch& batch, const int64_t* slots, const CallState* state,
           cudaStream_t stream) {
  const unsigned blocks = BlocksFor(batch.num_keys);
  if (batch.num_tables == 1) {
    TouchKernel<true, kEviction>
        <<<blocks, kBlock, 0, stream>>>(batch, slots, state);
  } else {
    TouchKernel<false, kEviction>
        <<<blocks, kBlock, 0, stream>>>(batch, slots, state);
  }
}

}  // namespace

Status LaunchInsertAndEvict(const Batch& batch, Eviction eviction,
                            const InsertOutputs& outputs,
                            const Scratch& scratch, int64_t* size_counters,
                            int64_t* rejected_counters, int num_processors,
                            cudaStream_t stream) {
  if (eviction == Eviction::kLru) {
    return InsertAndEvict<Eviction::kLru>(batch, outputs, scratch,
                                          size_counters, rejected_counters,
                                          num_processors, stream);
  }
  return InsertAndEvict<Eviction::kLfu>(batch, outputs, scratch, size_counters,
                                        rejected_counters, num_processors,
                                        stream);
}

Status LaunchTouch(const Batch& batch, const int64_t* slots, Eviction eviction,
                   const CallState* state, cudaStream_t stream) {
  if (eviction == Eviction::kLru) {
    Touch<Eviction::kLru>(batch, slots, state, stream);
  } else {
    Touch<Eviction::kLfu>(batch, slots, state, stream);
  }
  EV_CUDA_RETURN_IF_LAUNCH_FAILED("TouchKernel");
  return Status::OK();
}

}  // namespace gpu
}  // namespace ev
