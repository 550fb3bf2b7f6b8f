// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Finding or inserting keys in tables that evict when they are full.
//
// A NEW KEY proposes to the buckets of its chain in order, first for their free
// slots only, then, if it found none in the whole chain, once more for the slots
// of old keys. A bucket keeps the best 16 of what it holds and what came: new keys
// before old ones, new ones by hash, old ones by score and then by hash. What it
// gives up proposes further down its own chain if it is new, and is evicted if it
// is old. This is deferred acceptance (Gale and Shapley): its outcome does not
// depend on the order of the proposals, hence not on the order in which warps run.
//
// Most buckets hear from one new key in a call, and then nothing must be compared
// or locked. So the work is cut into seven launches, whatever the batch:
//
//   Begin     numbers the call, empties lists and marks.
//   Classify  one find. Present keys are marked as used; absent ones go on a list:
//             with the free slots of the first bucket of their chain that has any,
//             or on another when none has.
//   Fill      the first list: takes those free slots. A key whose slots all went
//             to others meanwhile is contested.
//   Contest   places the contested keys, old keys staying where they are; what
//             finds no place joins the contested keys of Evict.
//   Evict     the second list: the first key to mark its first bucket has that
//             for itself and takes the place of the lowest old key; others are
//             contested.
//   Contest   places them, over old keys as well.
//   Finish    packs the evicted keys; answers again for keys in buckets from which
//             this call took a slot that it had given out.
//
// Fill may serve proposals in any order because a bucket with a free slot never
// refuses; Evict because a full bucket without new keys never refuses a new one.

#include "kernels/engine/base/gpu/cuda_error.h"
#include "kernels/engine/table/gpu/claim.cuh"
#include "kernels/engine/table/gpu/evict.cuh"

namespace ev {
namespace gpu {
namespace {

constexpr unsigned kBeginBlocks = 512;

__global__ void __launch_bounds__(kBlock)
    BeginKernel(Scratch scratch, int64_t* evicted_count) {
  // claimed and stale are one piece of memory.
  uint4* const marks = reinterpret_cast<uint4*>(scratch.claimed);
  constexpr unsigned kPieces = 2 * (kNumMarks / 8) / sizeof(uint4);
  for (unsigned i = blockIdx.x * kBlock + threadIdx.x; i < kPieces;
       i += kBeginBlocks * kBlock) {
    marks[i] = make_uint4(0, 0, 0, 0);
  }
  if (blockIdx.x != 0 || threadIdx.x != 0) return;
  CallState* const state = scratch.state;
  ++state->call;
  state->num_fill = 0;
  state->num_evict = 0;
  state->num_contest_fill = 0;
  state->num_contest_evict = 0;
  state->num_overflow = 0;
  state->num_marked = 0;
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
  const int place =
      block_base + warp_base[warp] + __popc(mask & ((1u << lane) - 1));
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
  Chain chain;
  if (mine) chain = Chain(MixKey(key), view.num_pairs);
  bool wanted = mine;
  int64_t slot = -1;
  uint32_t probes = 0, free = 0, free_probes = 0;
  while (__any_sync(kAllLanes, wanted)) {
    const int64_t first = wanted ? chain.first_slot() : 0;
    const Seen seen = ProbeWarp<Slots::kFrozen, Want::kFreeToo>(
        view.keys + first, key, wanted);
    if (!wanted) continue;
    if (seen.match != 0) {
      slot = first + SlotOfBit(__ffs(seen.match) - 1);
      wanted = false;
      continue;
    }
    if (free == 0 && seen.free != 0) {
      free = seen.free;
      free_probes = probes;
    }
    if (seen.empty || ++probes == view.probe_limit) wanted = false;
    chain.Next();
  }
  const bool missed = mine && slot < 0;
  if (mine) {
    __stcs(outputs.slots + i, slot);
    if (outputs.is_new != nullptr) outputs.is_new[i] = 0;
    if (kEviction == Eviction::kLfu) scratch.missed[i] = missed ? 1 : 0;
    if (!missed) {
      Policy<kEviction>::Use(view.scores + slot, scratch.state->call);
    }
  }
  const bool fills = missed && free != 0, evicts = missed && free == 0;
  Pending pending = {key, t, static_cast<int32_t>(i), free, free_probes};
  const int fill_at = AppendInBlock(fills, &scratch.state->num_fill);
  if (fills) scratch.fill[fill_at] = pending;
  const int evict_at = AppendInBlock(evicts, &scratch.state->num_evict);
  pending.free_or_place = evict_at;
  if (evicts) scratch.evict[evict_at] = pending;
}

template <bool kOneTable, Eviction kEviction>
__global__ void __launch_bounds__(kBlock)
    FillKernel(Batch batch, InsertOutputs outputs, Scratch scratch,
               int64_t* size_counters) {
  CallState* const state = scratch.state;
  const int item = blockIdx.x * kBlock + threadIdx.x;
  const int count = state->num_fill;
  if (static_cast<int>(blockIdx.x * kBlock) >= count) return;
  const bool mine = item < count;
  Pending pending = {};
  bool inserted = false, contested = false;
  if (mine) {
    pending = scratch.fill[item];
    const TableView view = BatchView<kOneTable>(batch, pending.table);
    Chain chain(MixKey(pending.key), view.num_pairs);
    for (uint32_t j = 0; j < pending.probes; ++j) chain.Next();
    const int64_t first = chain.first_slot();
    const int in_bucket = ClaimSlot(view.keys + first, pending.key,
                                    chain.parity, pending.free_or_place,
                                    &inserted);
    contested = in_bucket < 0;
    if (!contested) outputs.slots[pending.index] = first + in_bucket;
    if (inserted) {
      view.scores[first + in_bucket] =
          Policy<kEviction>::NewScore(state->call);
      if (kEviction == Eviction::kLru && outputs.is_new != nullptr) {
        outputs.is_new[pending.index] = 1;
      }
    }
  }
  CountInWarp(size_counters, pending.table, inserted, blockIdx.x);
  const int at = AppendInBlock(contested, &state->num_contest_fill);
  if (contested) scratch.contest_fill[at] = pending;
}

// The lowest of the sixteen old keys of this lane's bucket.
struct Victim {
  int64_t key;
  uint64_t score;
  int slot;  // in the bucket
};

// REQUIRES: all lanes of the warp call it; lanes with wanted == false get an
// unspecified answer. Reads keys and scores of four buckets at once, four times in
// flight, twice.
template <Eviction kEviction>
__device__ __forceinline__ Victim LowestInWarp(const int64_t* bucket,
                                               const uint64_t* scores,
                                               bool wanted) {
  constexpr int kInFlight = kTile / 2;
  const int lane = threadIdx.x & (kWarp - 1);
  const int tile_base = lane & ~(kTile - 1);
  const int sub = lane & (kTile - 1);
  const unsigned need = __ballot_sync(kAllLanes, wanted);
  const auto keys_at = reinterpret_cast<unsigned long long>(bucket);
  const auto scores_at = reinterpret_cast<unsigned long long>(scores);
  Victim victim = {};
#pragma unroll
  for (int half = 0; half < kTile; half += kInFlight) {
    longlong2 k[kInFlight], s[kInFlight];
#pragma unroll
    for (int u = 0; u < kInFlight; ++u) {
      const int source = tile_base | (half + u);
      const auto keys_from = reinterpret_cast<const int64_t*>(
          __shfl_sync(kAllLanes, keys_at, source));
      const auto scores_from = reinterpret_cast<const int64_t*>(
          __shfl_sync(kAllLanes, scores_at, source));
      k[u] = s[u] = make_longlong2(0, 0);
      if ((need >> source) & 1) {
        s[u] = LoadTwoSlots<Slots::kLive>(scores_from + 2 * sub);
        k[u] = LoadTwoSlots<Slots::kLive>(keys_from + 2 * sub);
      }
    }
#pragma unroll
    for (int u = 0; u < kInFlight; ++u) {
      const uint64_t sx = Policy<kEviction>::Order(s[u].x);
      const uint64_t sy = Policy<kEviction>::Order(s[u].y);
      uint64_t lowest = sx < sy ? sx : sy;
#pragma unroll
      for (int delta = kTile / 2; delta > 0; delta /= 2) {
        const uint64_t other = __shfl_xor_sync(
            kAllLanes, static_cast<unsigned long long>(lowest), delta);
        lowest = other < lowest ? other : lowest;
      }
      bool cx = sx == lowest, cy = sy == lowest;
      unsigned x = (__ballot_sync(kAllLanes, cx) >> tile_base) & 0xFF;
      unsigned y = (__ballot_sync(kAllLanes, cy) >> tile_base) & 0xFF;
      if (__any_sync(kAllLanes, __popc(x) + __popc(y) > 1)) {
        // Equal scores: the lowest hash goes.
        const uint64_t hx = cx ? MixKey(k[u].x) : ~0ULL;
        const uint64_t hy = cy ? MixKey(k[u].y) : ~0ULL;
        uint64_t hash = hx < hy ? hx : hy;
#pragma unroll
        for (int delta = kTile / 2; delta > 0; delta /= 2) {
          const uint64_t other = __shfl_xor_sync(
              kAllLanes, static_cast<unsigned long long>(hash), delta);
          hash = other < hash ? other : hash;
        }
        cx = cx && hx == hash;
        cy = cy && hy == hash;
        x = (__ballot_sync(kAllLanes, cx) >> tile_base) & 0xFF;
        y = (__ballot_sync(kAllLanes, cy) >> tile_base) & 0xFF;
      }
      const int slot = x != 0 ? 2 * (__ffs(x) - 1) : 2 * (__ffs(y) - 1) + 1;
      const int64_t key = __shfl_sync(
          kAllLanes,
          static_cast<long long>(slot % 2 == 0 ? k[u].x : k[u].y),
          tile_base | (slot / 2));
      if (sub == half + u) victim = {key, lowest, slot};
    }
  }
  return victim;
}

template <bool kOneTable, Eviction kEviction>
__global__ void __launch_bounds__(kBlock)
    EvictKernel(Batch batch, InsertOutputs outputs, Scratch scratch) {
  CallState* const state = scratch.state;
  const int item = blockIdx.x * kBlock + threadIdx.x;
  const int count = state->num_evict;
  if (static_cast<int>(blockIdx.x * kBlock) >= count) return;
  const bool mine = item < count;
  const uint64_t call = state->call;
  Pending pending = {};
  TableView view = batch.only;
  int64_t first = 0;
  bool contested = false;
  if (mine) {
    pending = scratch.evict[item];
    view = BatchView<kOneTable>(batch, pending.table);
    first = Chain(MixKey(pending.key), view.num_pairs).first_slot();
    contested = SetMark(scratch.claimed, view.keys + first);
  }
  const Victim victim = LowestInWarp<kEviction>(view.keys + first,
                                                view.scores + first, mine);
  if (mine) {
    const int64_t slot = first + victim.slot;
    if (!contested) {
      view.keys[slot] = pending.key;
      view.scores[slot] = Policy<kEviction>::NewScore(call);
      outputs.slots[pending.index] = slot;
      if (kEviction == Eviction::kLru && outputs.is_new != nullptr) {
        outputs.is_new[pending.index] = 1;
      }
      if (Policy<kEviction>::MayBeUsed(victim.score, call)) {
        SetMark(scratch.stale, view.keys + first);
        state->num_marked = 1;
      }
    }
    if (outputs.evicted.count != nullptr) {
      scratch.evicted_key[item] = victim.key;
      scratch.evicted_slot[item] = contested ? -1 : slot;
      scratch.evicted_score[item] = victim.score;
      scratch.evicted_table[item] = pending.table;
    }
  }
  const int at = AppendInBlock(contested, &state->num_contest_evict);
  if (contested) scratch.contest_evict[at] = pending;
}

// Packs the evicted keys of this block's places into the caller's arrays.
template <Eviction kEviction>
__device__ __forceinline__ void PackEvicted(const EvictedKeys& evicted,
                                            const Scratch& scratch,
                                            int num_places) {
  __shared__ unsigned long long base;
  __shared__ int total;
  const int place = blockIdx.x * kBlock + threadIdx.x;
  const int64_t slot = place < num_places ? scratch.evicted_slot[place] : -1;
  if (threadIdx.x == 0) total = 0;
  __syncthreads();
  const int lane = threadIdx.x & (kWarp - 1);
  const unsigned mask = __ballot_sync(kAllLanes, slot >= 0);
  int warp_base = 0;
  if (lane == 0 && mask != 0) warp_base = atomicAdd(&total, __popc(mask));
  warp_base = __shfl_sync(kAllLanes, warp_base, 0);
  __syncthreads();
  if (threadIdx.x == 0) {
    base = atomicAdd(reinterpret_cast<unsigned long long*>(evicted.count),
                     static_cast<unsigned long long>(total));
  }
  __syncthreads();
  if (slot < 0) return;
  const int64_t at =
      static_cast<int64_t>(base) + warp_base + __popc(mask & ((1u << lane) - 1));
  evicted.keys[at] = scratch.evicted_key[place];
  if (evicted.slots != nullptr) evicted.slots[at] = slot;
  if (evicted.tables != nullptr) {
    evicted.tables[at] = scratch.evicted_table[place];
  }
  if (evicted.scores != nullptr) {
    evicted.scores[at] =
        Policy<kEviction>::Shown(scratch.evicted_score[place]);
  }
}

template <bool kOneTable, Eviction kEviction>
__global__ void __launch_bounds__(kBlock)
    FinishKernel(Batch batch, InsertOutputs outputs, Scratch scratch,
                 int64_t* rejected_counters) {
  const CallState state = *scratch.state;
  const int num_places = state.num_evict + state.num_overflow;
  if (outputs.evicted.count != nullptr &&
      static_cast<int>(blockIdx.x * kBlock) < num_places) {
    PackEvicted<kEviction>(outputs.evicted, scratch, num_places);
  }
  // A key goes without only where another had to go, too.
  if (kEviction == Eviction::kLru && state.num_marked == 0 &&
      state.num_contest_evict == 0) {
    return;
  }
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kBlock + threadIdx.x;
  const bool mine = i < batch.num_keys;
  int64_t slot = mine ? outputs.slots[i] : -1;
  int t = 0;
  TableView view = batch.only;
  if (!kOneTable && mine) {
    t = BatchTable<kOneTable>(batch, i);
    view = batch.views[t];
  }
  bool asks_again = false;
  if (state.num_marked != 0) {
    asks_again =
        mine && slot >= 0 &&
        HasMark(scratch.stale, view.keys + slot / kBucketSlots * kBucketSlots);
    const int64_t key = asks_again ? batch.keys[i] : 0;
    const bool moved = asks_again && view.keys[slot] != key;
    const int64_t found = FindInWarp<Slots::kFrozen>(view, key, moved, nullptr);
    if (moved) {
      slot = found;
      outputs.slots[i] = slot;
    }
  }
  CountInWarp(rejected_counters, t, mine && slot < 0, blockIdx.x);
  if (!mine) return;
  if (kEviction == Eviction::kLru) {
    if (!asks_again) return;
    bool is_new = false;
    if (slot >= 0) {
      unsigned long long* score =
          reinterpret_cast<unsigned long long*>(view.scores + slot);
      is_new = Policy<kEviction>::IsNew(*score, state.call) &&
               (atomicOr(score, static_cast<unsigned long long>(kLruClaimed)) &
                kLruClaimed) == 0;
    }
    if (outputs.is_new != nullptr) outputs.is_new[i] = is_new ? 1 : 0;
  } else if (slot >= 0 && scratch.missed[i] != 0) {
    const bool is_new =
        atomicAdd(reinterpret_cast<unsigned long long*>(view.scores + slot),
                  1ULL) == 0;
    if (outputs.is_new != nullptr) outputs.is_new[i] = is_new ? 1 : 0;
  }
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

template <bool kOneTable, Eviction kEviction>
Status InsertAndEvict(const Batch& batch, const InsertOutputs& outputs,
                      const Scratch& scratch, int64_t* size_counters,
                      int64_t* rejected_counters, int num_processors,
                      cudaStream_t stream) {
  const unsigned blocks = BlocksFor(batch.num_keys);
  BeginKernel<<<kBeginBlocks, kBlock, 0, stream>>>(scratch,
                                                   outputs.evicted.count);
  EV_CUDA_RETURN_IF_LAUNCH_FAILED("BeginKernel");
  ClassifyKernel<kOneTable, kEviction>
      <<<blocks, kBlock, 0, stream>>>(batch, outputs, scratch);
  EV_CUDA_RETURN_IF_LAUNCH_FAILED("ClassifyKernel");
  FillKernel<kOneTable, kEviction>
      <<<blocks, kBlock, 0, stream>>>(batch, outputs, scratch, size_counters);
  EV_CUDA_RETURN_IF_LAUNCH_FAILED("FillKernel");
  EV_RETURN_IF_ERROR(LaunchContest<Phase::kFill>(
      batch, kEviction, outputs, scratch, size_counters, num_processors,
      stream));
  EvictKernel<kOneTable, kEviction>
      <<<blocks, kBlock, 0, stream>>>(batch, outputs, scratch);
  EV_CUDA_RETURN_IF_LAUNCH_FAILED("EvictKernel");
  EV_RETURN_IF_ERROR(LaunchContest<Phase::kEvict>(
      batch, kEviction, outputs, scratch, size_counters, num_processors,
      stream));
  FinishKernel<kOneTable, kEviction><<<blocks, kBlock, 0, stream>>>(
      batch, outputs, scratch, rejected_counters);
  EV_CUDA_RETURN_IF_LAUNCH_FAILED("FinishKernel");
  return Status::OK();
}

}  // namespace

Status LaunchInsertAndEvict(const Batch& batch, Eviction eviction,
                            const InsertOutputs& outputs,
                            const Scratch& scratch, int64_t* size_counters,
                            int64_t* rejected_counters, int num_processors,
                            cudaStream_t stream) {
  const bool one = batch.num_tables == 1;
  const auto run =
      eviction == Eviction::kLru
          ? (one ? InsertAndEvict<true, Eviction::kLru>
                 : InsertAndEvict<false, Eviction::kLru>)
          : (one ? InsertAndEvict<true, Eviction::kLfu>
                 : InsertAndEvict<false, Eviction::kLfu>);
  return run(batch, outputs, scratch, size_counters, rejected_counters,
             num_processors, stream);
}

Status LaunchTouch(const Batch& batch, const int64_t* slots, Eviction eviction,
                   const CallState* state, cudaStream_t stream) {
  const bool one = batch.num_tables == 1;
  const auto kernel =
      eviction == Eviction::kLru
          ? (one ? TouchKernel<true, Eviction::kLru>
                 : TouchKernel<false, Eviction::kLru>)
          : (one ? TouchKernel<true, Eviction::kLfu>
                 : TouchKernel<false, Eviction::kLfu>);
  kernel<<<BlocksFor(batch.num_keys), kBlock, 0, stream>>>(batch, slots, state);
  EV_CUDA_RETURN_IF_LAUNCH_FAILED("TouchKernel");
  return Status::OK();
}

}  // namespace gpu
}  // namespace ev
