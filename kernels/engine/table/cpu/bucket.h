// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// One bucket of the index is one cache line: five keys, their rows, and a
// metadata word.
//
// A key's chain is the sequence of buckets that may hold it. It is chosen by a
// secret hash of this process (BucketHash below): the home bucket, then 16
// steps of 1..64 buckets, then one by one through all buckets. The step length
// depends on the key, so that full regions dissolve, and is short, so that the
// chain stays on the same page. An insert takes the first free slot of the
// chain. In each full bucket that it passes it sets one of 16 bits, chosen by
// the key. A find goes past a bucket only if the key's bit is set. So at the
// highest load the find of an absent key reads 1.05 lines; with a single
// overflow flag it would read 1.5.
//
// Reading without a lock. A slot changes in two ways only: an insert fills an
// empty slot (key first, then row), and an erase empties it (row first, then
// the bucket's version). A key never moves. A reader loads version, key, row,
// key, version. If both versions and both keys are equal, it has seen one state
// of the slot. Had the row belonged to another occupant than the key, an erase,
// and with it a new version, would lie between two of the loads. On x86 each of
// these is a plain load from a line that is already in the cache.
//
// An emptied slot keeps its key, and an insert prefers the empty slot that has
// its key already. So if a live key appears in several slots of a bucket, the
// first of them is the live one, and a reader need not look at the others.

#ifndef KERNELS_ENGINE_TABLE_CPU_BUCKET_H_
#define KERNELS_ENGINE_TABLE_CPU_BUCKET_H_

#if defined(__SSE4_1__)
#include <smmintrin.h>
#endif

#include <atomic>
#include <cstdint>

#include "kernels/engine/base/hash.h"
#include "kernels/engine/base/keyed_hash.h"
#include "kernels/engine/base/pages.h"
#include "kernels/engine/base/row_handle.h"

namespace ev {

constexpr int kSlots = 5;
constexpr uint32_t kPassedBits = 0xFFFFu;   // of Bucket::meta
constexpr uint32_t kVersionOne = 0x10000u;  // the version: the upper 16 bits

// Zeroed memory is an empty bucket: rows are stored complemented, so that 0 is
// kNoRow.
struct alignas(kCacheLine) Bucket {
  std::atomic<int64_t> keys[kSlots];
  std::atomic<uint32_t> rows[kSlots];
  std::atomic<uint32_t> meta;
};
static_assert(sizeof(Bucket) == kCacheLine, "a bucket is one line");

// Returns the hash that chooses a key's buckets: the upper, well mixed half of
// the process's secret hash. 'hash' below is always this one.
inline uint32_t BucketHash(const KeyedHash& secret, int64_t key) {
  return static_cast<uint32_t>(secret(key) >> 32);
}

// Returns the number of the key's passed bit in Bucket::meta: 0..15. Uses the
// lowest bits of the hash, which hardly affect the choice of the bucket (bits
// 31 down).
inline uint32_t PassedBit(uint32_t hash) { return hash & 15; }

// An array of buckets as one word: bits 0..21 hold the count, the others the
// address (at most 47 bits in user space) without its six zero bits.
constexpr int kCountBits = 22;
constexpr uint64_t kCountMask = (uint64_t{1} << kCountBits) - 1;

inline uint64_t PackArray(const Bucket* buckets, uint64_t count) {
  return (reinterpret_cast<uint64_t>(buckets) >> 6) << kCountBits | count;
}
inline Bucket* ArrayBuckets(uint64_t array) {
  return reinterpret_cast<Bucket*>((array >> kCountBits) << 6);
}
inline uint32_t ArrayCount(uint64_t array) {
  return static_cast<uint32_t>(array & kCountMask);
}
inline Bucket* HomeBucket(uint64_t array, uint32_t hash) {
  return ArrayBuckets(array) + FastRange(hash, ArrayCount(array));
}

// Iterates over the chain of a hash, starting at the home bucket.
class Chain {
 public:
  Chain() {}  // empty
  Chain(uint64_t array, uint32_t hash)
      : buckets_(ArrayBuckets(array)),
        count_(ArrayCount(array)),
        index_(FastRange(hash, count_)),
        left_(kLeaps + count_) {
    const uint32_t longest = count_ - 1 < 64 ? count_ - 1 : 64;
    step_ = 1 + ((hash >> 4 & 63) * longest >> 6);
  }
  Bucket* bucket() const { return buckets_ + index_; }
  // Returns false after the chain has visited every bucket.
  bool Next() {
    if (--left_ == 0) return false;
    if (left_ < count_) step_ = 1;
    index_ += step_;
    if (index_ >= count_) index_ -= count_;
    return true;
  }

 private:
  static constexpr uint32_t kLeaps = 16;
  Bucket* buckets_;
  uint32_t count_, index_, step_, left_;
};

// Returns the slots of the bucket that hold this key, live or not, as bits.
// Another thread may be writing one of them, so a match is only a hint that
// callers verify by atomic loads. A key that no thread is writing is always
// matched.
inline uint32_t MatchKey(const Bucket& bucket, int64_t key) {
#if defined(__SSE4_1__) && !defined(__SANITIZE_THREAD__)
  const __m128i* line = reinterpret_cast<const __m128i*>(&bucket);
  const __m128i wanted = _mm_set1_epi64x(key);
  const __m128i slots01 = _mm_cmpeq_epi64(_mm_load_si128(line), wanted);
  const __m128i slots23 = _mm_cmpeq_epi64(_mm_load_si128(line + 1), wanted);
  const __m128i slot4 = _mm_cmpeq_epi64(_mm_load_si128(line + 2), wanted);
  // Packing 32-bit halves to 16, then to 8 bits turns 64 bits per slot into
  // bits of the mask.
  const __m128i slots0123 = _mm_packs_epi32(slots01, slots23);
  const uint32_t bytes = static_cast<uint32_t>(
      _mm_movemask_epi8(_mm_packs_epi16(slots0123, slot4)));
  return bytes & 0x155;  // one bit of each slot, two apart
#else
  uint32_t match = 0;
  for (int s = 0; s < kSlots; ++s) {
    match |= static_cast<uint32_t>(
                 bucket.keys[s].load(std::memory_order_relaxed) == key)
             << (2 * s);
  }
  return match;
#endif
}

// The key and the row of the first slot of a match.
inline const std::atomic<int64_t>& FirstKey(const Bucket& bucket,
                                            uint64_t match) {
  // Same as keys[bit / 2], without halving the bit's number and doubling it
  // again.
  return *reinterpret_cast<const std::atomic<int64_t>*>(
      reinterpret_cast<const char*>(bucket.keys) +
      size_t{4} * static_cast<size_t>(__builtin_ctzll(match)));
}
inline const std::atomic<uint32_t>& FirstRow(const Bucket& bucket,
                                             uint64_t match) {
  return *reinterpret_cast<const std::atomic<uint32_t>*>(
      reinterpret_cast<const char*>(bucket.rows) +
      size_t{2} * static_cast<size_t>(__builtin_ctzll(match)));
}

// Repeats FindInBucket after a writer changed the bucket between its loads.
RowHandle FindInBucketAgain(const Bucket& bucket, int64_t key,
                            uint32_t passed_bit, uint32_t* go_on);

// Returns the row of the key if it is in this bucket. Otherwise returns kNoRow
// and sets *go_on to 1 if the key may be further along its chain, else to 0.
// Takes no lock. This is the innermost step of every lookup; it has no branch
// that depends on whether the key is present, which would be unpredictable.
// Only the low five bits of passed_bit are used.
inline RowHandle FindInBucket(const Bucket& bucket, int64_t key,
                              uint32_t passed_bit, uint32_t* go_on) {
  const uint32_t meta = bucket.meta.load(std::memory_order_acquire);
  const uint32_t match = MatchKey(bucket, key);
  // Without a match the loads read the words behind the slots, and their result
  // is masked out.
  constexpr uint64_t kBehindSlots = 1u << (2 * kSlots);
  const uint64_t at = match | kBehindSlots;
  const uint32_t row = FirstRow(bucket, at).load(std::memory_order_acquire);
  const int64_t again = FirstKey(bucket, at).load(std::memory_order_acquire);
  const uint32_t changed = bucket.meta.load(std::memory_order_relaxed) ^ meta;
  // All ones without a match. Computed as a mask, since compilers turn a
  // condition into a branch.
  const int64_t none = -static_cast<int64_t>(match == 0);
  const uint64_t torn = (static_cast<uint64_t>(again ^ key) | changed) &
                        ~static_cast<uint64_t>(none);
  if (__builtin_expect(torn != 0, 0)) {
    return FindInBucketAgain(bucket, key, passed_bit, go_on);
  }
  const uint32_t result = ~row | static_cast<uint32_t>(none);
  *go_on =
      static_cast<uint32_t>(result == kNoRow) & (meta >> (passed_bit & 31));
  return result;
}

// Reads slot s; returns false if it is empty. Takes no lock.
inline bool ReadSlot(const Bucket& bucket, int s, int64_t* key,
                     RowHandle* row) {
  for (;;) {
    const uint32_t meta = bucket.meta.load(std::memory_order_acquire);
    const uint32_t stored = bucket.rows[s].load(std::memory_order_acquire);
    if (stored == 0) return false;
    *key = bucket.keys[s].load(std::memory_order_acquire);
    *row = ~stored;
    if (bucket.meta.load(std::memory_order_relaxed) == meta) return true;
  }
}

// --- Writers: under the lock of the segment. ---

// Returns 1 if slot s is empty.
inline uint32_t IsEmpty(const Bucket& bucket, int s) {
  return bucket.rows[s].load(std::memory_order_relaxed) == 0;
}

// Returns the empty slots of the bucket as bits, like MatchKey. Reads them one
// by one: a vector load would stall on a row that was stored a moment ago.
inline uint32_t EmptySlots(const Bucket& bucket) {
  static_assert(kSlots == 5, "written out: compilers keep the loop");
  return IsEmpty(bucket, 0) | IsEmpty(bucket, 1) << 2 |
         IsEmpty(bucket, 2) << 4 | IsEmpty(bucket, 3) << 6 |
         IsEmpty(bucket, 4) << 8;
}

// A slot of a bucket on a key's chain.
struct Slot {
  Bucket* bucket = nullptr;
  int index = 0;
};

// Returns the key's slot; its bucket is null if the key is absent.
inline Slot LocateLocked(uint64_t array, uint32_t hash, int64_t key) {
  Chain chain(array, hash);
  const uint32_t bit = 1u << PassedBit(hash);
  do {
    Bucket* bucket = chain.bucket();
    const uint32_t match = MatchKey(*bucket, key) & ~EmptySlots(*bucket);
    if (match != 0) return Slot{bucket, __builtin_ctz(match) / 2};
    if ((bucket->meta.load(std::memory_order_relaxed) & bit) == 0) break;
  } while (chain.Next());
  return Slot{};
}

// Inserts an absent key into its chain. Returns false if every bucket is full.
inline bool InsertLocked(uint64_t array, uint32_t hash, int64_t key,
                         RowHandle row) {
  Chain chain(array, hash);
  const uint32_t bit = 1u << PassedBit(hash);
  for (;;) {
    Bucket* bucket = chain.bucket();
    const uint32_t empty = EmptySlots(*bucket);
    if (__builtin_expect(empty != 0, 1)) {
      const uint32_t had_key = empty & MatchKey(*bucket, key);
      const int s = __builtin_ctz(had_key != 0 ? had_key : empty) / 2;
      bucket->keys[s].store(key, std::memory_order_release);
      bucket->rows[s].store(~row, std::memory_order_release);
      return true;
    }
    const uint32_t meta = bucket->meta.load(std::memory_order_relaxed);
    if ((meta & bit) == 0) {
      bucket->meta.store(meta | bit, std::memory_order_release);
    }
    if (!chain.Next()) return false;
  }
}

// InsertLocked for an array that no other thread sees yet and that only Append
// has filled. Fills each bucket from the front and uses the version as the
// number of its keys; a version may start at any value. Reading that one word
// saves four loads per key.
inline bool Append(uint64_t array, uint32_t hash, int64_t key, RowHandle row) {
  Chain chain(array, hash);
  for (;;) {
    Bucket* bucket = chain.bucket();
    const uint32_t meta = bucket->meta.load(std::memory_order_relaxed);
    const uint32_t filled = meta / kVersionOne;
    if (__builtin_expect(filled < kSlots, 1)) {
      bucket->keys[filled].store(key, std::memory_order_relaxed);
      bucket->rows[filled].store(~row, std::memory_order_relaxed);
      bucket->meta.store(meta + kVersionOne, std::memory_order_relaxed);
      return true;
    }
    bucket->meta.store(meta | 1u << PassedBit(hash), std::memory_order_relaxed);
    if (!chain.Next()) return false;
  }
}

// Empties the slot and returns its row.
inline RowHandle EraseLocked(Slot slot) {
  const uint32_t row =
      slot.bucket->rows[slot.index].load(std::memory_order_relaxed);
  slot.bucket->rows[slot.index].store(0, std::memory_order_relaxed);
  slot.bucket->meta.store(
      slot.bucket->meta.load(std::memory_order_relaxed) + kVersionOne,
      std::memory_order_release);
  return ~row;
}

}  // namespace ev

#endif  // KERNELS_ENGINE_TABLE_CPU_BUCKET_H_
