// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Hash tables in GPU memory: any int64 key -> slot. The slot is the number of
// the key's row.
//
// LAYOUT. A table is an array of buckets. A bucket is 16 keys, one aligned line
// of 128 bytes, and nothing else. Tables that evict have a second array with
// one 8-byte score per slot, which finding never reads.
//
//             slot 0     1     2           15
//   bucket 0  [ key | key | free | .. | key ]   even keys    rows + 0 * stride
//   bucket 1  [ key | key | key  | .. | key ]   odd keys     rows + 16 * stride
//   bucket 2  [ ...                         ]   even keys
//
// Even and odd refer to the lowest bit of the key's hash (a bijection of 64
// bits). A key's chain is the sequence of buckets that may hold it. All of them
// have its parity:
//
//   pair = first, first + step, first + 2 * step, ... modulo pairs;
//   bucket = 2 * pair + parity
//
// Odd keys never live in even buckets and the reverse, so an odd key can mark
// the free slots of even buckets. No key is reserved and none needs a special
// case.
//
// INVARIANTS
//  1. A key is in at most one slot, in one of the first probe_limit buckets
//     of its chain (2 in tables that evict, 16 in tables that do not).
//  2. A key is beyond a bucket of its chain only if that bucket was full.
//  3. A free slot is "empty" while its bucket has never been full since the
//     last clear, else "erased". So an empty slot proves that no key is beyond.
//  4. A used slot stays used until an erase, an eviction or a clear. Rows never
//     move: a slot is a valid handle until its key leaves.
//
// FIND reads the first bucket. If it has neither a match nor an empty slot,
// FIND reads the next. A warp reads the buckets of 32 keys, eight lanes per
// bucket, with all 32 lines in flight.
//
// FIND OR INSERT, without eviction, walks the chain in the same way. Then the
// key's lane swaps the key into the first free slot of the chain. Slots are
// claimed in one fixed order, and free slots are only ever taken, so two
// occurrences of a key meet in one slot. One kernel, no lock.
//
// FIND OR INSERT, with eviction. The same walk first marks present keys as used
// and puts absent keys into free slots. The remaining keys replace old ones
// (evict.cu has the algorithm). New keys rank above old keys. Old keys rank by
// score: used later, or more often. Equal scores, and the new keys of one call,
// rank by hash. Each bucket keeps the best 16 of the keys that it held and the
// keys proposed to it. This rule has one outcome whatever the order of the
// keys, hence
//
// DETERMINISM. The slot of a key within its bucket may differ between runs. In
// tables that evict everything else is deterministic for any batch, duplicates
// included: the keys of a table, their buckets and scores, the evicted keys,
// and the keys that found no room. In tables that do not evict the bucket may
// differ, too; so may the refused keys once a chain of 16 buckets is full (see
// CAPACITY). is_new is set for exactly one occurrence of a new key; which one
// may differ.
//
// COST. An H200 serves 34 G random reads of a line per second, or 13 to 15 G if
// the line, or one sector of it, is also written back. Measured on an H200 with
// 128 Mi slots and 2^20 keys per call (benchmarks/results/gpu_table.md):
//
//   share of slots in use           0.5     0.75    0.9     1.0
//   buckets read per present key   1.001   1.02    1.05    1.08   (2 choices)
//   buckets read per absent key    1.004   1.1     1.4     2
//
//   refused or evicted early       2e-6    0.2 %   1.9 %   5.3 %  (2 choices)
//   refused, never evicting        0       0       1e-6    0.6 %  (16 choices)
//
//   memory accesses of one key                            limit  measured, G/s
//
//   find                    1 line                         34     27 / 26 / 24
//   find + copy, dim 8      + 1 row read, 1 written        16     14
//   find + copy, dim 64     + 4 lines                       6.9    6.1
//
//   insert, never evicting  1 line, its sector back        12     12 / 9.3
//   insert, LRU             + 1 score's sector, read        7.0    5.2 / 4.0
//                           and written
//   insert over old, LRU    2 lines; 1 line of keys, 1 of   4.7    3.1
//                           scores, both written back
//   (find at loads 0.5 / 0.75 / 1.0; inserts at 0.5 / 0.75, the last at 1.0,
//   all keys new)
//
// Why not digests: a line of 1-byte digests shows where to look, but the key
// itself is a second access. A line of 16 keys costs hardly more to read than
// the digests would (33.9 against 40.2 G accesses/s) and decides at once
// whether the key is present.
//
// CAPACITY. A table's slots are its capacity rounded up to whole pairs, at
// least two, and with a probe_limit above 2 to a prime number of pairs. Rows
// need num_slots() slots. A table that evicts may be run full: it keeps 99.8 %
// of distinct keys up to three quarters of its slots and 98 % up to nine
// tenths. Keep a table that does not evict below 0.9: a key whose 16 buckets
// are full gets no slot and is counted as rejected. Slot numbers are 64-bit: up
// to 2^37 per table.
//
// MEMORY. 8 bytes of index per slot, 16 with eviction. Eviction also takes up
// to 13 MB of marks and locks per set and 73 bytes per key of the largest call.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_CACHE_TABLE_TABLE_SET_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_CACHE_TABLE_TABLE_SET_H_

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
  kNone,  // refuses a key without room
  kLru,   // evicts the key whose last use is longest ago, counted in calls
  kLfu,   // evicts the key with the fewest occurrences
};

struct TableOptions {
  std::string name;      // for messages
  int64_t capacity = 0;  // slots, >= 1; rounded up to num_slots()
};

struct TableSetOptions {
  std::vector<TableOptions> tables;     // >= 1
  Eviction eviction = Eviction::kNone;  // of all tables of the set
  // Number of buckets that a key may be in, 1 to 16. 0: 16, or 2 with eviction.
  int probe_limit = 0;
};

// The keys of one call. Device memory, which must stay valid until the call's
// work on the stream is done.
struct KeyBatch {
  const int64_t* keys = nullptr;     // [num_keys], any values, any duplicates
  int64_t num_keys = 0;              // <= 2^31 - 1
  const int64_t* offsets = nullptr;  // [num_tables + 1] ascending, from 0 to
                                     // num_keys: table t's keys are
                                     // [offsets[t], offsets[t + 1]). May be
                                     // null for one table.
};

// The keys that FindOrInsert evicted, in no fixed order. Device memory. 'keys'
// and 'count' are both given or both null; the others may be null.
struct EvictedKeys {
  int64_t* keys = nullptr;     // [num_keys]
  int64_t* slots = nullptr;    // [num_keys] the row is still in this slot
  int32_t* tables = nullptr;   // [num_keys]
  uint64_t* scores = nullptr;  // [num_keys] number of the last call that used
                               // the key (kLru), or its occurrences (kLfu)
  int64_t* count = nullptr;    // [1]
};

// The keys that Export lists, in no fixed order. Device memory; slots and
// scores may be null. Scores as in EvictedKeys; not written if the set does not
// evict.
struct ExportedKeys {
  int64_t* keys = nullptr;
  int64_t* slots = nullptr;
  uint64_t* scores = nullptr;
  int64_t* count = nullptr;  // [1]
};

// The rows of a table: slot s has its row at base + s * stride (in floats).
struct RowBlock {
  const float* base = nullptr;
  int64_t stride = 0;
};

// A set of tables on one device. Every call takes the keys of all tables, in a
// number of launches that does not depend on the batch.
//
// All calls except Create and those that end in Sync only enqueue work on the
// stream: they neither wait nor allocate, and can be captured in a CUDA graph.
// The caller orders calls on different streams: Find, FindAndCopy and Touch may
// run concurrently with each other, no other calls may. The device that was
// current in Create must be current in every call. A call on an empty batch
// does nothing, except that FindOrInsert sets evicted.count to 0.
class TableSet {
 public:
  // InvalidArgument: options out of range. ResourceExhausted: memory is short;
  // the message has the needed and the free bytes. On an error *set is
  // unchanged.
  static Status Create(const TableSetOptions& options, StreamView stream,
                       std::unique_ptr<TableSet>* set);
  ~TableSet();
  TableSet(const TableSet&) = delete;
  TableSet& operator=(const TableSet&) = delete;

  int num_tables() const;
  int64_t num_slots(int table) const;
  int64_t index_bytes() const;  // device memory, bookkeeping included

  // Sets slots[i] to the slot of keys[i] in its table, or to -1. One launch.
  Status Find(const KeyBatch& batch, int64_t* slots, StreamView stream) const;

  // Sets the location of each table's rows, of which FindAndCopy copies 'dim'
  // floats. rows: [num_tables], host memory. InvalidArgument unless 1 <= dim <=
  // stride and, if 4 divides dim, base is 16-byte aligned and 4 divides the
  // stride. Waits.
  Status SetRowsSync(Span<const RowBlock> rows, int64_t dim);

  // Copies to out[i, :] the row of keys[i], or absent_row [dim] (null: zeros).
  // slots: as in Find, may be null. out and absent_row must be 16-byte aligned
  // if 4 divides dim. FailedPrecondition before SetRowsSync. One launch.
  Status FindAndCopy(const KeyBatch& batch, const float* absent_row, float* out,
                     int64_t* slots, StreamView stream) const;

  // Allocates scratch memory for evicting calls of up to max_keys keys (73
  // bytes per key). Waits if it has to allocate.
  Status ReserveSync(int64_t max_keys);

  // Sets slots[i] to the slot of keys[i] and inserts the key if it is absent.
  // Sets -1 if the key has no slot, because its chain is full or too many new
  // keys of this call came to its buckets. Such new keys may also displace a
  // key that was present before, which is then among the evicted. Counts as a
  // use of every key.
  //
  // is_new (may be null): 1 for exactly one occurrence of each key that this
  // call inserted; its row has no contents yet. evicted: ignored in a set that
  // does not evict.
  //
  // REQUIRES: with eviction, num_keys <= the largest max_keys of ReserveSync,
  // else FailedPrecondition. One launch, or seven with eviction.
  Status FindOrInsert(const KeyBatch& batch, int64_t* slots, uint8_t* is_new,
                      const EvictedKeys& evicted, StreamView stream);

  // Counts as a use of the keys at these slots (-1: none), as FindOrInsert
  // would. Reads the number and offsets of 'batch', not its keys. No effect
  // without eviction. One launch.
  Status Touch(const KeyBatch& batch, const int64_t* slots, StreamView stream);

  // Removes keys. Sets slots[i] (slots may be null) to the slot the key had,
  // for one occurrence of each key, else to -1. One launch.
  Status Erase(const KeyBatch& batch, int64_t* slots, StreamView stream);

  // Lists the keys in slots [first_slot, first_slot + num_slots) of a table;
  // both numbers are multiples of 16. The arrays of 'out' have room for
  // num_slots. Two launches.
  Status Export(int table, int64_t first_slot, int64_t num_slots,
                const ExportedKeys& out, StreamView stream) const;

  // Empties all tables and resets the counts of rejected keys. One launch per
  // table.
  Status Clear(StreamView stream);

  // Returns the number of keys per table, and how often FindOrInsert returned
  // -1 since the last Clear. [num_tables] each, may be null. Waits for the
  // stream.
  Status CountsSync(std::vector<int64_t>* sizes, std::vector<int64_t>* rejected,
                    StreamView stream) const;

 private:
  class Impl;
  explicit TableSet(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace gpu
}  // namespace ev

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_CACHE_TABLE_TABLE_SET_H_
