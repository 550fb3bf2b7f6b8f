// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// One cache line of the index: five keys, their rows, and a word about the line.
//
// Which buckets a key may be in, and in which order, is its chain: home, then 16
// steps of 1..64 buckets that depend on the key (so that full neighbourhoods
// dissolve, while the chain stays on the same page), then one by one through all.
// An insert takes the first free slot of the chain. In each full bucket that it
// passes it sets one of 16 bits, chosen by the key: a find goes on past a bucket
// only if its own bit is set there, so an absent key is known to be absent after
// 1.05 lines at the highest load, where a single overflow flag would need 1.5.
//
// Reading without a lock. A slot changes in two ways only: an insert fills an
// empty one (key first, then row), and an erase empties it (row first, then the
// bucket's version). A key never moves. A reader that saw version, key, row, key,
// version, both pairs equal, has seen one state of the slot: had the row been of
// an older or newer occupant than the key, then an erase, and with it a new
// version, would lie between two of its loads. On x86 each of these is a plain
// load from a line that is already there.

#ifndef KERNELS_ENGINE_TABLE_CPU_BUCKET_H_
#define KERNELS_ENGINE_TABLE_CPU_BUCKET_H_

#include <atomic>
#include <cstdint>

#include "kernels/engine/base/hash.h"
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

// The bit of a key among kPassedBits. Uses bits of the hash that choose neither
// the bucket (0..31) nor, below 2^22 segments, the segment (from 63 down).
inline uint32_t PassedBit(uint64_t hash) {
  return 1u << ((hash >> 32) & 15);
}

// An array of buckets as one word: bits 0..21 how many, the rest the address
// (47 bits at most in user space) without its six zero bits.
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
inline Bucket* HomeBucket(uint64_t array, uint64_t hash) {
  return ArrayBuckets(array) +
         FastRange(static_cast<uint32_t>(hash), ArrayCount(array));
}

// Walks the chain of a hash; starts at home.
class Chain {
 public:
  Chain(uint64_t array, uint64_t hash)
      : buckets_(ArrayBuckets(array)),
        count_(ArrayCount(array)),
        index_(FastRange(static_cast<uint32_t>(hash), count_)),
        left_(kLeaps + count_) {
    const uint32_t longest = count_ - 1 < 64 ? count_ - 1 : 64;
    step_ = 1 + ((static_cast<uint32_t>(hash >> 36) & 63) * longest >> 6);
  }
  Bucket* bucket() const { return buckets_ + index_; }
  // False when the chain has visited every bucket.
  bool Next() {
    if (--left_ == 0) return false;
    if (left_ < count_) step_ = 1;
    index_ += step_;
    if (index_ >= count_) index_ -= count_;
    return true;
  }

 private:
  static constexpr uint32_t kLeaps = 16;
  Bucket* const buckets_;
  const uint32_t count_;
  uint32_t index_, step_, left_;
};

// Slots of the bucket that hold this key, live or not, as bits.
inline uint32_t MatchKey(const Bucket& bucket, int64_t key) {
  uint32_t match = 0;
  for (int s = 0; s < kSlots; ++s) {
    match |= static_cast<uint32_t>(
                 bucket.keys[s].load(std::memory_order_relaxed) == key)
             << s;
  }
  return match;
}

// The row of the key if it is in this bucket; else kNoRow, and *go_on says
// whether it may be further along its chain. Takes no lock.
inline RowHandle FindInBucket(const Bucket& bucket, int64_t key,
                              uint32_t passed_bit, bool* go_on) {
  for (;;) {
    const uint32_t meta = bucket.meta.load(std::memory_order_acquire);
    bool torn = false;
    for (uint32_t match = MatchKey(bucket, key); match != 0;
         match &= match - 1) {
      const int s = __builtin_ctz(match);
      const uint32_t row = bucket.rows[s].load(std::memory_order_acquire);
      if (row == 0) continue;
      const bool same_key =
          bucket.keys[s].load(std::memory_order_acquire) == key;
      const uint32_t changed =
          bucket.meta.load(std::memory_order_relaxed) ^ meta;
      if (same_key && changed < kVersionOne) return ~row;
      torn = true;
      break;
    }
    if (torn) continue;
    *go_on = (meta & passed_bit) != 0;
    return kNoRow;
  }
}

// The rest of the chain, home excluded.
inline RowHandle FindBeyondHome(uint64_t array, uint64_t hash, int64_t key) {
  Chain chain(array, hash);
  const uint32_t bit = PassedBit(hash);
  bool go_on = true;
  while (go_on && chain.Next()) {
    const RowHandle row = FindInBucket(*chain.bucket(), key, bit, &go_on);
    if (row != kNoRow) return row;
  }
  return kNoRow;
}

// What slot s holds; false when it is empty. Takes no lock.
inline bool ReadSlot(const Bucket& bucket, int s, int64_t* key,
                     RowHandle* row) {
  for (;;) {
    const uint32_t meta = bucket.meta.load(std::memory_order_acquire);
    const uint32_t stored = bucket.rows[s].load(std::memory_order_acquire);
    if (stored == 0) return false;
    *key = bucket.keys[s].load(std::memory_order_acquire);
    *row = ~stored;
    const uint32_t changed =
        bucket.meta.load(std::memory_order_relaxed) ^ meta;
    if (changed < kVersionOne) return true;
  }
}

// --- Writers: under the lock of the segment. ---

// A place for a key on its chain.
struct Slot {
  Bucket* bucket = nullptr;
  int index = 0;
};

inline int EmptySlot(const Bucket& bucket) {
  for (int s = 0; s < kSlots; ++s) {
    if (bucket.rows[s].load(std::memory_order_relaxed) == 0) return s;
  }
  return -1;
}

// Where the key is; bucket null when it is absent.
inline Slot LocateLocked(uint64_t array, uint64_t hash, int64_t key) {
  Chain chain(array, hash);
  const uint32_t bit = PassedBit(hash);
  do {
    Bucket* bucket = chain.bucket();
    for (uint32_t match = MatchKey(*bucket, key); match != 0;
         match &= match - 1) {
      const int s = __builtin_ctz(match);
      if (bucket->rows[s].load(std::memory_order_relaxed) != 0) {
        return Slot{bucket, s};
      }
    }
    if ((bucket->meta.load(std::memory_order_relaxed) & bit) == 0) break;
  } while (chain.Next());
  return Slot{};
}

// Puts a key that is absent on its chain; false when every bucket is full.
inline bool InsertLocked(uint64_t array, uint64_t hash, int64_t key,
                         RowHandle row) {
  Chain chain(array, hash);
  const uint32_t bit = PassedBit(hash);
  for (;;) {
    Bucket* bucket = chain.bucket();
    const int s = EmptySlot(*bucket);
    if (s >= 0) {
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

// Empties the slot and returns the row it held.
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
