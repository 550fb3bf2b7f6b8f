// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Hash tables in GPU memory: any int64 key -> slot, and the slot is the number
// of the key's row.
//
// LAYOUT. A table is an array of buckets; a bucket is 16 keys, one aligned line
// of 128 bytes, and nothing else. Tables that evict have a second array beside
// it, one 8-byte score per slot, which finding never reads.
//
//             slot 0     1     2           15
//   bucket 0  [ key | key | free | .. | key ]   even keys    rows + 0 * stride
//   bucket 1  [ key | key | key  | .. | key ]   odd keys     rows + 16 * stride
//   bucket 2  [ ...                         ]   even keys
//
// Even and odd are the lowest bit of the key's hash (a bijection of 64 bits).
// The buckets that may hold a key, its chain, all have its parity:
//
//   pair = first, first + step, first + 2 * step, ... modulo pairs;
//   bucket = 2 * pair + parity
//
// (of a table that has not grown; see GROWTH)
//
// so a free slot of an even bucket can be marked by an odd key, which never
// lives there, and the reverse. No key is reserved and none needs a special
// case.
//
// INVARIANTS
//  1. A key is in at most one slot, in one of the first probe_limit buckets
//     of its chain (2 in tables that evict, 16 in tables that do not).
//  2. It went past a bucket only because that was full.
//  3. A free slot is "empty" while its bucket has never been full since the
//     last clear, else "erased". So an empty slot proves that no key went past.
//  4. A slot that is taken stays taken until an erase, an eviction, a growth or
//     a clear: rows do not move by themselves, and a slot is a handle until the
//     key leaves or the table grows.
//
// FIND reads the first bucket; on no match and no empty slot, the next. A warp
// reads 32 keys' buckets, eight lanes a bucket, all 32 lines in flight.
//
// FIND OR INSERT, never evicting, is the same walk; then the key's lane swaps
// the key into the first free slot of the chain. Keys are claimed in one fixed
// order of the slots and free slots only ever get taken, so two occurrences of
// a key meet in one slot. One kernel, no lock.
//
// FIND OR INSERT, EVICTING. The same walk first marks present keys as used and
// puts absent ones into free slots; what is left goes over old keys (evict.cu
// tells how). A new key goes before any old one; an old one with a higher score
// (used later, or more often) before one with a lower; equal scores, and the
// new keys of one call, in the order of their hashes. Each bucket keeps the
// best 16 of what it held and of what was proposed to it. That rule has one
// outcome whatever the order in which keys come, hence
//
// DETERMINISM. Which of a bucket's slots a key gets may differ from run to run.
// In tables that evict nothing else may: which keys a table holds, in which
// buckets, with which scores, which were evicted and which found no room, for
// any batch, duplicates included. In tables that do not evict the bucket may
// differ, too, and with it which keys are refused once a chain of 16 buckets is
// full (see CAPACITY). is_new is set for exactly one occurrence of a new key;
// which one may differ.
//
// GROWTH splits pairs, as linear hashing does. A table is made with P pairs,
// its base; after d doublings pair number b + P * l is the base pair b in layer
// l, and l is d bits of the key's hash, d + 1 where the pair is split:
//
//   pairs  [ 0 .. split )  [ split .. P * 2^d )  [ P * 2^d .. + split )
//            split: d + 1    not yet: d bits       the other halves
//
// Steps of a chain go from base pair to base pair and from layer to layer, the
// same whatever d. So a split bucket's keys stay in their slots or go to the
// same slots of the other half, P * 2^d pairs further, by one bit of their
// hashes, wherever in their chains the bucket is; nothing overflows, no key is
// refused or evicted. Free slots in both halves are marked as they were in the
// one bucket: 2 and 3 hold on. The new slots list what moved (Growth). Memory
// is put behind addresses that were reserved for max_capacity: no pointer
// changes, and there are never two copies.
//
// COST. An H200 serves 34 G random reads of a line per second, and 13 to 15 G
// of those when the line, or one sector of it, is written back. Measured on
// one, 128 Mi slots, 2^20 keys per call (benchmarks/results/gpu_table.md):
//
//   share of slots in use           .5      .75     .9      1.0
//   buckets read per present key   1.001   1.02    1.05    1.08   (2 choices)
//   buckets read per absent key    1.004   1.1     1.4     2
//   refused or evicted early       2e-6    .2 %    1.9 %   5.3 %  (2 choices)
//   refused, never evicting        0       0       1e-6    .6 %   (16 choices)
//
//   touches of one key                                     limit  measured, G/s
//   find                    1 line                         34     27 / 26 / 24
//   find + copy, dim 8      + 1 row read, 1 written        16     14
//   find + copy, dim 64     + 4 lines' worth                6.9    6.1
//   insert, never evicting  1 line, its sector back        12     12 / 9.3
//   insert, LRU             + 1 score's sector, there       7.0    5.2 / 4.0
//                           and back
//   insert over old, LRU    2 lines; 1 line of keys, 1 of   4.7    3.1
//                           scores, both back
//   (find at loads .5 / .75 / 1.0; inserts at .5 / .75, the last at 1.0, all
//   keys new)
//
// Why not digests: a line of 1-byte digests says where to look, but the key
// itself is a second touch. 16 keys fill a line that costs hardly more to read
// than the digests would (33.9 against 40.2 G touches/s), and hit or miss is
// decided there.
//
// CAPACITY. A table's slots are its capacity rounded up to whole pairs. With
// eviction a table may be run full; it holds on to 99.8 % of distinct keys up
// to three quarters and 98 % up to nine tenths of its slots. Without eviction
// keep it below .9: a key whose 16 buckets are full gets no slot and is counted
// as rejected. A table that grows: double it at .75, or add eighths of a
// doubling from .6 on; half split, its old pairs are twice as full as its new
// ones (docs/design/0005-gpu-table.md has the figures). Slots are 64-bit: up to
// 2^37 per table.
//
// MEMORY. 8 bytes of index per slot, 16 with eviction, in multiples of 2 MiB in
// tables that grow; with eviction also up to 13 MB of marks and locks per set
// and 73 bytes per key of the largest call.

#ifndef KERNELS_ENGINE_TABLE_GPU_TABLE_SET_H_
#define KERNELS_ENGINE_TABLE_GPU_TABLE_SET_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/engine/base/gpu/stream.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"

namespace ev {
namespace gpu {

enum class Eviction {
  kNone,  // a key without room is refused
  kLru,   // the key goes whose last use is longest ago, counted in calls
  kLfu,   // the key goes that occurred least often
};

struct TableOptions {
  std::string name;      // for messages
  int64_t capacity = 0;  // slots, >= 1; rounded up to a multiple of 32, >= 64
  // Slots that GrowSync may bring it to, >= capacity, rounded up likewise. It
  // costs addresses, not memory. 0: the table does not grow.
  int64_t max_capacity = 0;
};

struct TableSetOptions {
  std::vector<TableOptions> tables;     // >= 1
  Eviction eviction = Eviction::kNone;  // of all tables of the set
  // Buckets that a key may be in, 1 to 16; 0: 16, or 2 with eviction.
  int probe_limit = 0;
};

// The keys of one call. Device memory, which must live until the call's work on
// the stream is done.
struct KeyBatch {
  const int64_t* keys = nullptr;     // [num_keys], any values, any duplicates
  int64_t num_keys = 0;              // <= 2^31 - 1
  const int64_t* offsets = nullptr;  // [num_tables + 1] ascending, from 0 to
                                     // num_keys: table t's keys are
                                     // [offsets[t], offsets[t + 1]). May be
                                     // null for one table.
};

// What FindOrInsert evicted, in no fixed order. Device memory; keys and count
// are both given or both null, the others may be null.
struct EvictedKeys {
  int64_t* keys = nullptr;     // [num_keys]
  int64_t* slots = nullptr;    // [num_keys] where the row still is
  int32_t* tables = nullptr;   // [num_keys]
  uint64_t* scores = nullptr;  // [num_keys] number of the last call that used
                               // the key (kLru), or its occurrences (kLfu)
  int64_t* count = nullptr;    // [1]
};

// What Export lists, in no fixed order. Device memory; slots and scores may be
// null. Scores as in EvictedKeys; not written when the set does not evict.
struct ExportedKeys {
  int64_t* keys = nullptr;
  int64_t* slots = nullptr;
  uint64_t* scores = nullptr;
  int64_t* count = nullptr;  // [1]
};

// What GrowSync did: slots [first_slot, first_slot + num_slots) came, at the
// table's end. A key that is in one of them, s, was in slot s - distance; all
// other keys are where they were.
struct Growth {
  int64_t first_slot = 0;
  int64_t num_slots = 0;
  int64_t distance =
      0;  // >= num_slots: nothing moves to where others move from
};

// The rows of a table: slot s has its row at base + s * stride (in floats).
struct RowBlock {
  const float* base = nullptr;
  int64_t stride = 0;
};

struct TableView;  // bucket.h

// For kernels of other rooms that probe the tables themselves, as one step's
// kernels do. Device memory, as long as the set lives. Code that inserts adds
// to the counters as warp_probe.cuh's CountInWarp does.
struct DeviceTables {
  const TableView* views = nullptr;  // [num_tables]
  int64_t* size_counters = nullptr;
  int64_t* rejected_counters = nullptr;
};

// A set of tables on one device that are worked on together: every call takes
// the keys of all of them, in a number of launches that does not depend on the
// batch.
//
// All calls but Create and those that end in Sync only enqueue on the stream:
// they neither wait nor allocate, and can be captured in a CUDA graph. The
// caller orders calls on different streams: Find, FindAndCopy and Touch may run
// at the same time as such calls, nothing else may overlap. The device that was
// current in Create must be current in every call. A call on an empty batch
// does nothing.
class TableSet {
 public:
  // InvalidArgument for options out of range; ResourceExhausted, with what is
  // needed and free, when memory is short. Leaves *set alone on an error.
  static Status Create(const TableSetOptions& options, StreamView stream,
                       std::unique_ptr<TableSet>* set);
  ~TableSet();
  TableSet(const TableSet&) = delete;
  TableSet& operator=(const TableSet&) = delete;

  int num_tables() const;
  int64_t num_slots(int table) const;
  int64_t index_bytes() const;  // device memory, bookkeeping included
  DeviceTables device_tables() const;

  // slots[i] = the slot of keys[i] in its table, or -1. One launch.
  Status Find(const KeyBatch& batch, int64_t* slots, StreamView stream) const;

  // Says where each table's rows are; dim floats of each row are copied. rows:
  // [num_tables], host memory. InvalidArgument unless 1 <= dim <= stride and,
  // when 4 divides dim, base is 16-byte aligned and 4 divides the stride.
  // Waits.
  Status SetRowsSync(Span<const RowBlock> rows, int64_t dim);

  // out[i, :] = the row of keys[i], or absent_row [dim] (null: zeros). slots:
  // as Find, may be null. out and absent_row are 16-byte aligned when 4 divides
  // dim. FailedPrecondition before SetRowsSync. One launch.
  Status FindAndCopy(const KeyBatch& batch, const float* absent_row, float* out,
                     int64_t* slots, StreamView stream) const;

  // Makes room for evicting calls of up to max_keys keys (73 bytes per key).
  // Waits when it has to allocate.
  Status ReserveSync(int64_t max_keys);

  // slots[i] = the slot of keys[i], which is inserted if it was absent; -1 when
  // it has none: its chain is full, or so many new keys of this call came to
  // its buckets that it lost (a key that was there before may lose its slot so,
  // too: it is then among the evicted). is_new (may be null): 1 for exactly one
  // occurrence of each key that this call inserted: its row holds nothing yet.
  // evicted: ignored in a set that does not evict. Counts as a use of every
  // key. REQUIRES: with eviction, num_keys <= what ReserveSync was last given,
  // else FailedPrecondition. One launch, or seven with eviction.
  Status FindOrInsert(const KeyBatch& batch, int64_t* slots, uint8_t* is_new,
                      const EvictedKeys& evicted, StreamView stream);

  // Counts as a use of the keys at these slots (-1: none), as FindOrInsert
  // would. batch gives number and offsets, its keys are not read. No effect
  // without eviction. One launch.
  Status Touch(const KeyBatch& batch, const int64_t* slots, StreamView stream);

  // Removes keys. slots (may be null): where the key was, for one occurrence of
  // each, else -1. One launch.
  Status Erase(const KeyBatch& batch, int64_t* slots, StreamView stream);

  // Lists the keys in slots [first_slot, first_slot + num_slots) of a table,
  // both multiples of 16. The arrays of out have room for num_slots. Two
  // launches.
  Status Export(int table, int64_t first_slot, int64_t num_slots,
                const ExportedKeys& out, StreamView stream) const;

  // Adds up to max_new_slots slots to a table, in multiples of 32; fewer where
  // the table doubles or reaches its max_capacity: call again. About half of
  // the keys of as many old slots move, with their scores; Growth tells which.
  // The caller moves their rows (Export of the new slots lists them) before the
  // next call that uses rows or evicts, and calls SetRowsSync again if the
  // rows' memory is another. Slots of moved keys that were given out, and CUDA
  // graphs with calls of this set in them, are void. Takes memory for the new
  // slots, in multiples of 2 MiB, while kernels may run; one launch and a copy;
  // waits only where the marks of evicting calls outgrow theirs. growth may be
  // null. ResourceExhausted names the table, the bytes needed and those free;
  // FailedPrecondition: it has all that max_capacity allows; InvalidArgument:
  // no such table, max_new_slots below 32. On an error nothing has changed.
  Status GrowSync(int table, int64_t max_new_slots, Growth* growth,
                  StreamView stream);
  // What GrowSync would do, if there is memory.
  Status PlanGrowth(int table, int64_t max_new_slots, Growth* growth) const;

  // Marks free slots empty again (see INVARIANTS) where no key is past their
  // bucket. Growth and erasing leave such slots, and finding absent keys and
  // inserting goes on past them. Changes no answer. Reads a table's keys twice;
  // two launches and a fill; keeps a bit per bucket, waits when it takes them.
  // ResourceExhausted: no memory for those; InvalidArgument: no such table.
  Status RestoreEmptySync(int table, StreamView stream);

  // Empties all tables; rejected counts restart too. One launch per table.
  Status Clear(StreamView stream);

  // Keys per table, and answers of -1 that FindOrInsert gave since the last
  // Clear. [num_tables] each, may be null. Waits for the stream.
  Status CountsSync(std::vector<int64_t>* sizes, std::vector<int64_t>* rejected,
                    StreamView stream) const;

 private:
  class Impl;
  explicit TableSet(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_TABLE_GPU_TABLE_SET_H_
