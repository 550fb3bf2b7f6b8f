// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Finds or inserts keys in tables that evict when they are full.
//
// A NEW KEY proposes to the buckets of its chain in order, first only for free
// slots. If the whole chain has none, it proposes once more, now for the slots
// of old keys. A bucket keeps the best 16 of its own keys and the proposed
// ones: new keys before old ones, new keys by hash, old keys by score and then
// by hash. A key that the bucket gives up proposes further down its own chain
// if it is new, and is evicted if it is old. This is deferred acceptance (Gale
// and Shapley). Its outcome does not depend on the order of the proposals,
// hence not on the order in which warps run.
//
// Most buckets get a proposal from at most one new key in a call, and then
// neither comparisons nor locks are needed. So the work is cut into seven
// launches, whatever the batch:
//
//   Begin     numbers the call, empties lists and marks.
//   Seek      walks the chain once. A present key is marked as used; an absent
//             one takes a free slot of its first bucket. Other keys are
//             pending.
//   Fill      puts pending keys whose first bucket was full from the start into
//             the free slots that Seek saw further on. If other keys took
//             these, or took the last slot of an earlier bucket, the key is
//             contested.
//   Contest   places contested keys; old keys stay where they are.
//   Evict     handles pending keys whose buckets were all full from the start.
//             The first key to mark its first bucket has it for itself and
//             replaces the lowest old key. Other keys are contested.
//   Contest   places these, and those the first Contest could not, over old
//   keys. Finish    repeats the find for keys in buckets from which this call
//   took a
//             slot that it may have returned already.
//
// Seek and Fill may serve proposals in any order because a bucket with a free
// slot never refuses; Evict may because a full bucket without new keys never
// refuses one. The key that takes a bucket's last free slot sets a mark, so a
// bucket without the mark was full from the start. Free slots are taken in a
// fixed order, so the last one is the highest.

#include "addons/hierarchical_parameter_server/cache/table/claim.cuh"
#include "addons/hierarchical_parameter_server/cache/table/evict.cuh"
#include "kernels/engine/base/gpu/cuda_error.h"

namespace ev {
namespace gpu {
namespace {

constexpr unsigned kBeginBlocks = 512;

__global__ void __launch_bounds__(kBlock)
    BeginKernel(Scratch scratch, int64_t* evicted_count) {
  uint4* const marks = reinterpret_cast<uint4*>(scratch.filled);
  const unsigned pieces = kMarkSets * (scratch.num_marks / 8) / sizeof(uint4);
  for (unsigned i = blockIdx.x * kBlock + threadIdx.x; i < pieces;
       i += kBeginBlocks * kBlock) {
    marks[i] = make_uint4(0, 0, 0, 0);
  }
  if (blockIdx.x != 0 || threadIdx.x != 0) return;
  CallState* const state = scratch.state;
  ++state->call;
  state->num_pending = 0;
  state->num_contest_fill = 0;
  state->num_contest_evict = 0;
  state->num_stale = 0;
  if (evicted_count != nullptr) *evicted_count = 0;
}

// Reserves room in a list for the lanes of a block that add to it: one atomic
// per block. REQUIRES: all threads of the block call it.
template <typename Length>
__device__ __forceinline__ Length AppendInBlock(bool adds, Length* length) {
  __shared__ int warp_base[kBlock / kWarp];
  __shared__ Length block_base;
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
    block_base = total == 0 ? 0 : atomicAdd(length, static_cast<Length>(total));
  }
  __syncthreads();
  const Length place =
      block_base + warp_base[warp] + __popc(mask & ((1u << lane) - 1));
  __syncthreads();  // the arrays may be used again after this
  return place;
}

template <bool kOneTable, Eviction kEviction>
__global__ void __launch_bounds__(kBlock, 3)
    SeekKernel(Batch batch, InsertOutputs outputs, Scratch scratch,
               int64_t* size_counters) {
  WaitForPreviousKernel();
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kBlock + threadIdx.x;
  const bool mine = i < batch.num_keys;
  const int64_t key = mine ? __ldcs(batch.keys + i) : 0;
  const uint64_t call = scratch.state->call;
  int t = 0;
  TableView view = batch.only;
  if (!kOneTable && mine) {
    t = BatchTable<kOneTable>(batch, i);
    view = batch.views[t];
  }
  Chain chain;
  if (mine) chain = Chain(MixKey(key), view);
  const int64_t own_first = mine ? chain.first_slot() : 0;
  bool wanted = mine;
  int64_t slot = -1;
  uint32_t probes = 0, free = 0, free_probes = 0;
  while (__any_sync(kAllLanes, wanted)) {
    const int64_t first = wanted ? chain.first_slot() : 0;
    const Seen seen =
        ProbeWarp<Slots::kLive, Want::kFreeToo>(view.keys + first, key, wanted);
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
  bool inserted = false, missed = false;
  if (mine && slot >= 0) {
    uint64_t* const score = view.scores + slot;
    // An earlier occurrence may have inserted the key in this same call.
    missed = kEviction == Eviction::kLfu &&
             *reinterpret_cast<volatile uint64_t*>(score) == 0;
    if (!missed) Policy<kEviction>::Use(score, call);
  } else if (mine) {
    missed = true;
    if (free != 0 && free_probes == 0) {
      int64_t* const bucket = view.keys + own_first;
      const int in_bucket =
          ClaimSlot(bucket, key, chain.parity, free, &inserted);
      if (in_bucket >= 0) slot = own_first + in_bucket;
      if (inserted) {
        Policy<kEviction>::SetNew(view.scores + slot, call);
        if (in_bucket == SlotOfBit(31 - __clz(free))) {
          SetMark(scratch, scratch.filled, bucket);
        }
      }
    }
  }
  if (mine) {
    __stcs(outputs.slots + i, slot);
    if (kEviction == Eviction::kLfu) {
      scratch.missed[i] = missed ? 1 : 0;
    }
    if (outputs.is_new != nullptr) {
      outputs.is_new[i] = kEviction == Eviction::kLru && inserted ? 1 : 0;
    }
  }
  CountInWarp(size_counters, t, inserted, blockIdx.x);
  const bool pends = mine && slot < 0;
  const int at = AppendInBlock(pends, &scratch.state->num_pending);
  if (pends) {
    scratch.pending[at] = Pending{
        key, t, static_cast<int32_t>(i), static_cast<uint16_t>(free),
        static_cast<uint16_t>(free != 0 ? free_probes : view.probe_limit)};
  }
}

// Moves *chain to the first bucket before position 'probes' that Seek filled,
// and returns its position. Without one returns 'probes', with *chain at that
// position.
__device__ __forceinline__ uint32_t FirstFilled(const Scratch& scratch,
                                                const TableView& view,
                                                uint32_t probes, Chain* chain) {
  for (uint32_t j = 0; j < probes; ++j) {
    if (HasMark(scratch, scratch.filled, view.keys + chain->first_slot())) {
      return j;
    }
    chain->Next();
  }
  return probes;
}

template <bool kOneTable, Eviction kEviction>
__global__ void __launch_bounds__(kBlock)
    FillKernel(Batch batch, InsertOutputs outputs, Scratch scratch,
               int64_t* size_counters) {
  WaitForPreviousKernel();
  CallState* const state = scratch.state;
  const int count = state->num_pending;
  for (int block = blockIdx.x * kBlock; block < count;
       block += gridDim.x * kBlock) {
    const int item = block + threadIdx.x;
    Pending pending = {};
    bool inserted = false, contested = false;
    if (item < count) {
      pending = scratch.pending[item];
      const TableView view = BatchView<kOneTable>(batch, pending.table);
      Chain chain(MixKey(pending.key), view);
      const uint32_t j = FirstFilled(scratch, view, pending.probes, &chain);
      contested = j < pending.probes || (pending.probes == 0);
      if (!contested && pending.free != 0) {
        const int64_t first = chain.first_slot();
        const int in_bucket = ClaimSlot(view.keys + first, pending.key,
                                        chain.parity, pending.free, &inserted);
        contested = in_bucket < 0;
        if (!contested) outputs.slots[pending.index] = first + in_bucket;
        if (inserted) {
          Policy<kEviction>::SetNew(view.scores + first + in_bucket,
                                    state->call);
          if (kEviction == Eviction::kLru && outputs.is_new != nullptr) {
            outputs.is_new[pending.index] = 1;
          }
        }
      }
      pending.probes = static_cast<uint16_t>(j);
    }
    CountInWarp(size_counters, pending.table, inserted, blockIdx.x);
    const int at = AppendInBlock(contested, &state->num_contest_fill);
    if (contested) scratch.contest_fill[at] = pending;
  }
}

// The lowest-ranked of the sixteen old keys of this lane's bucket.
struct Victim {
  int64_t key;
  uint64_t score;
  int slot;  // in the bucket
};

// Lanes without a bucket to read get an unspecified result. Reads keys and
// scores of four buckets at a time, four times in flight, twice. REQUIRES: all
// lanes of the warp call it.
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
        // Equal scores: the key with the lowest hash goes.
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
          kAllLanes, static_cast<long long>(slot % 2 == 0 ? k[u].x : k[u].y),
          tile_base | (slot / 2));
      if (sub == half + u) victim = {key, lowest, slot};
    }
  }
  return victim;
}

template <bool kOneTable, Eviction kEviction>
__global__ void __launch_bounds__(kBlock)
    EvictKernel(Batch batch, InsertOutputs outputs, Scratch scratch) {
  WaitForPreviousKernel();
  CallState* const state = scratch.state;
  const int count = state->num_pending;
  const uint64_t call = state->call;
  for (int block = blockIdx.x * kBlock; block < count;
       block += gridDim.x * kBlock) {
    const int item = block + threadIdx.x;
    Pending pending = {};
    TableView view = batch.only;
    int64_t first = 0;
    bool evicts = false, contested = false;
    if (item < count) {
      pending = scratch.pending[item];
      view = BatchView<kOneTable>(batch, pending.table);
      Chain chain(MixKey(pending.key), view);
      first = chain.first_slot();
      evicts =
          pending.free == 0 && pending.probes != 0 &&
          FirstFilled(scratch, view, pending.probes, &chain) == pending.probes;
    }
    if (evicts)
      contested = SetMark(scratch, scratch.claimed, view.keys + first);
    const Victim victim =
        LowestInWarp<kEviction>(view.keys + first, view.scores + first, evicts);
    const int64_t slot = first + victim.slot;
    const bool takes = evicts && !contested;
    if (takes) {
      view.keys[slot] = pending.key;
      view.scores[slot] = Policy<kEviction>::NewScore(call);
      outputs.slots[pending.index] = slot;
      if (kEviction == Eviction::kLru && outputs.is_new != nullptr) {
        outputs.is_new[pending.index] = 1;
      }
      if (Policy<kEviction>::MayBeUsed(victim.score, call)) {
        SetMark(scratch, scratch.stale, view.keys + first);
        state->num_stale = 1;
      }
    }
    if (outputs.evicted.count != nullptr) {
      const unsigned long long place = AppendInBlock(
          takes, reinterpret_cast<unsigned long long*>(outputs.evicted.count));
      if (takes) {
        ReportEvicted<kEviction>(outputs.evicted, place, victim.key, slot,
                                 victim.score, pending.table);
      }
    }
    const int at = AppendInBlock(contested, &state->num_contest_evict);
    if (contested) {
      pending.probes = 0;
      scratch.contest_evict[at] = pending;
    }
  }
}

// FindInWarp for a single lane. Finish uses it for the few keys that it finds
// again. It is not inlined, because its registers would halve the number of
// warps that check all keys.
__device__ __noinline__ int64_t FindAlone(const TableView* table, int64_t key) {
  const TableView view = *table;
  Chain chain(MixKey(key), view);
  const int64_t empty = EmptyMark(chain.parity);
  for (uint32_t j = 0; j < view.probe_limit; ++j) {
    bool went_past = true;
    for (int s = 0; s < kBucketSlots; ++s) {
      const int64_t slot = chain.first_slot() + s;
      if (view.keys[slot] == key) return slot;
      went_past = went_past && view.keys[slot] != empty;
    }
    if (!went_past) return -1;
    chain.Next();
  }
  return -1;
}

template <bool kOneTable, Eviction kEviction>
__global__ void __launch_bounds__(kBlock,
                                  kOneTable&& kEviction == Eviction::kLfu ? 8
                                                                          : 6)
    FinishKernel(Batch batch, InsertOutputs outputs, Scratch scratch,
                 int64_t* rejected_counters) {
  WaitForPreviousKernel();
  const CallState state = *scratch.state;
  // Every key has its final slot: a key gets none, or loses it, only where keys
  // were contested.
  if (kEviction == Eviction::kLru && state.num_stale == 0 &&
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
  if (state.num_stale != 0) {
    asks_again = mine && slot >= 0 &&
                 HasMark(scratch, scratch.stale,
                         view.keys + slot / kBucketSlots * kBucketSlots);
    const int64_t key = asks_again ? batch.keys[i] : 0;
    const bool moved = asks_again && view.keys[slot] != key;
    if (moved) {
      slot = FindAlone(batch.views + t, key);
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
                      int64_t* rejected_counters, const DeviceInfo& device,
                      cudaStream_t stream) {
  const unsigned blocks = BlocksFor(batch.num_keys);
  // There may be few pending keys or many. A grid of several blocks per
  // processor ends quickly if they are few and has no long tail if they are
  // many.
  const unsigned several = static_cast<unsigned>(device.num_processors) * 16;
  const unsigned pending_blocks = blocks < several ? blocks : several;
  const bool overlap = device.overlaps_kernels;
  // Not chained, so that the caller's previous kernel needs no preparation.
  BeginKernel<<<kBeginBlocks, kBlock, 0, stream>>>(scratch,
                                                   outputs.evicted.count);
  EV_CUDA_RETURN_IF_LAUNCH_FAILED("BeginKernel");
  EV_CUDA_RETURN_IF_ERROR(LaunchChained(SeekKernel<kOneTable, kEviction>,
                                        blocks, overlap, stream, batch, outputs,
                                        scratch, size_counters));
  EV_CUDA_RETURN_IF_ERROR(LaunchChained(FillKernel<kOneTable, kEviction>,
                                        pending_blocks, overlap, stream, batch,
                                        outputs, scratch, size_counters));
  EV_RETURN_IF_ERROR(LaunchContest<Phase::kFill>(
      batch, kEviction, outputs, scratch, size_counters, device, stream));
  EV_CUDA_RETURN_IF_ERROR(LaunchChained(EvictKernel<kOneTable, kEviction>,
                                        pending_blocks, overlap, stream, batch,
                                        outputs, scratch));
  EV_RETURN_IF_ERROR(LaunchContest<Phase::kEvict>(
      batch, kEviction, outputs, scratch, size_counters, device, stream));
  EV_CUDA_RETURN_IF_ERROR(LaunchChained(FinishKernel<kOneTable, kEviction>,
                                        blocks, overlap, stream, batch, outputs,
                                        scratch, rejected_counters));
  return Status::OK();
}

}  // namespace

Status LaunchInsertAndEvict(const Batch& batch, Eviction eviction,
                            const InsertOutputs& outputs,
                            const Scratch& scratch, int64_t* size_counters,
                            int64_t* rejected_counters,
                            const DeviceInfo& device, cudaStream_t stream) {
  const bool one = batch.num_tables == 1;
  const auto run = eviction == Eviction::kLru
                       ? (one ? InsertAndEvict<true, Eviction::kLru>
                              : InsertAndEvict<false, Eviction::kLru>)
                       : (one ? InsertAndEvict<true, Eviction::kLfu>
                              : InsertAndEvict<false, Eviction::kLfu>);
  return run(batch, outputs, scratch, size_counters, rejected_counters, device,
             stream);
}

Status EvictingKernelsWait(bool* wait) {
  // Does not use the device's compute capability: the device may run code that
  // was compiled for a lower one.
  cudaFuncAttributes attributes;
  EV_CUDA_RETURN_IF_ERROR(
      cudaFuncGetAttributes(&attributes, SeekKernel<true, Eviction::kLru>));
  *wait = attributes.ptxVersion >= 90;
  return Status::OK();
}

Status LaunchTouch(const Batch& batch, const int64_t* slots, Eviction eviction,
                   const CallState* state, cudaStream_t stream) {
  const bool one = batch.num_tables == 1;
  const auto kernel = eviction == Eviction::kLru
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
