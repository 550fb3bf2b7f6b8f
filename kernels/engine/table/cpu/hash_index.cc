// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/table/cpu/hash_index.h"

#include <algorithm>
#include <numeric>

#include "kernels/engine/base/epoch.h"
#include "kernels/engine/base/prefetch.h"
#include "kernels/engine/table/cpu/segment_size.h"
#include "kernels/engine/table/cpu/segments.h"

namespace ev {
namespace {

// Keys whose lines are on their way at once, and keys per on_group. A core of
// today keeps 12 to 24 lines in flight; asking a little earlier than that keeps
// it from running dry, asking much earlier evicts what was asked for.
constexpr size_t kGroup = 32;

// A find-or-insert looks without locks for this many keys, whose lines then are
// still in the first-level cache when the absent ones are inserted.
constexpr size_t kInsertBatch = 256;

// The home of a key and, in the bits that an address of a line leaves free,
// which bit tells there whether to go on.
class Home {
 public:
  Home() {}
  Home(const Bucket* bucket, uint64_t hash)
      : word_(reinterpret_cast<uintptr_t>(bucket) | PassedBit(hash)) {}
  const Bucket* bucket() const {
    return reinterpret_cast<const Bucket*>(word_ & ~uintptr_t{kCacheLine - 1});
  }
  uint32_t passed_bit() const { return word_ & 15; }
  void Prefetch() const { PrefetchLine(reinterpret_cast<const void*>(word_)); }

 private:
  uintptr_t word_;
};

// A key that is not at home; its chain stands at the bucket that comes next.
struct Beyond {
  Chain chain;
  uint32_t passed_bit;
  size_t index;
};

struct BeyondList {
  size_t size = 0;
  Beyond keys[kGroup];
};

// Readers must not see a writer's unfinished segment, writers must not see each
// other's: unlocks on every way out.
class SegmentLock {
 public:
  SegmentLock(Segments* segments, uint64_t hash)
      : segment_(segments->Lock(hash)) {}
  ~SegmentLock() { segment_->lock.unlock(); }
  SegmentLock(const SegmentLock&) = delete;
  SegmentLock& operator=(const SegmentLock&) = delete;
  Segment* operator->() const { return segment_; }
  Segment* get() const { return segment_; }

 private:
  Segment* const segment_;
};

// Page by page, in an order that hops over the array: buckets ascend with the
// hash, and keys that come in the order of their hash would crowd into one end
// of whatever table they are inserted in, or stay on in one end of this one if
// the visitor erases them.
void VisitArray(uint64_t array,
                const std::function<void(int64_t, RowHandle)>& visit) {
  constexpr uint64_t kPage = kSmallPage / sizeof(Bucket);
  const uint64_t count = ArrayCount(array);
  const uint64_t pages = (count + kPage - 1) / kPage;
  uint64_t hop = pages * 5 / 8 + 1;
  while (std::gcd(hop, pages) != 1) ++hop;
  for (uint64_t i = 0, page = 0; i < pages; ++i, page = (page + hop) % pages) {
    const uint64_t end = std::min(count, (page + 1) * kPage);
    for (uint64_t b = page * kPage; b < end; ++b) {
      for (int s = 0; s < kSlots; ++s) {
        int64_t key;
        RowHandle row;
        if (ReadSlot(ArrayBuckets(array)[b], s, &key, &row)) visit(key, row);
      }
    }
  }
}

}  // namespace

class HashIndex::Impl {
 public:
  // Inserts the key unless it is there by now. *inserted tells which.
  Status InsertOne(int64_t key, RowSource* source, RowHandle* handle,
                   bool* inserted);
  int64_t EraseOne(int64_t key,
                   const std::function<void(int64_t, RowHandle)>& erased);
  void PrefetchHomes(Span<const int64_t> keys) const;

  Segments segments;
};

HashIndex::HashIndex() : impl_(new Impl) {}
HashIndex::~HashIndex() {}

// Several groups are under way: while the homes of group g are read, those of
// the next are asked for; the second buckets of group g - 1 are read, and
// whatever is left of group g - 2, which is then complete. Nothing is read that
// was not asked for a group earlier, but for the third bucket on of one key in
// fifty.
//
// The homes are computed ahead, so that the loop that waits for memory is
// short: a prefetch that misses the TLB holds up what comes after it, and the
// fewer the instructions from one prefetch to the next, the more of them wait
// together.
void HashIndex::FindInGroups(Span<const int64_t> keys, RowHandle* handles,
                             GroupFn fn, void* context) const {
  const size_t n = keys.size();
  if (n == 0) return;
  EpochDomain::Guard guard;
  Home homes[3][kGroup];
  BeyondList second[2], later[2];

  const auto compute = [&](size_t group) {
    const Directory& directory = impl_->segments.directory();
    Home* const to = homes[group % 3];
    const int64_t* const from = &keys[group * kGroup];
    const size_t size = std::min(n - group * kGroup, kGroup);
    for (size_t i = 0; i < size; ++i) {
      const uint64_t hash = MixKey(from[i]);
      to[i] = Home(HomeBucket(directory.arrays[directory.IndexOf(hash)].load(
                                  std::memory_order_acquire),
                              hash),
                   hash);
    }
    // The loop below asks for a whole group.
    for (size_t i = size; i < kGroup; ++i) to[i] = to[0];
  };
  // Sends the keys that are not at home on their chains.
  const auto go_beyond = [&](const Home* home, size_t begin,
                             const uint8_t* which, size_t size,
                             BeyondList* to) {
    const Directory& directory = impl_->segments.directory();
    for (size_t b = 0; b < size; ++b) {
      Beyond& beyond = to->keys[b];
      beyond.index = begin + which[b];
      const uint64_t hash = MixKey(keys[beyond.index]);
      beyond.passed_bit = PassedBit(hash);
      beyond.chain = Chain(directory.arrays[directory.IndexOf(hash)].load(
                               std::memory_order_acquire),
                           hash);
      // Unless the segment has grown since: then from the start.
      if (beyond.chain.bucket() == home[which[b]].bucket()) {
        beyond.chain.Next();
      }
      PrefetchLine(beyond.chain.bucket());
    }
    to->size = size;
  };
  // Looks at the next bucket of each key in 'from'; those that must go further
  // go to 'to'.
  const auto advance = [&](BeyondList* from, BeyondList* to) {
    for (size_t b = 0; b < from->size; ++b) {
      Beyond& at = from->keys[b];
      bool go_on = false;
      const RowHandle row = FindInBucket(*at.chain.bucket(), keys[at.index],
                                         at.passed_bit, &go_on);
      handles[at.index] = row;
      if (row == kNoRow && go_on && at.chain.Next()) {
        PrefetchLine(at.chain.bucket());
        to->keys[to->size++] = at;
      }
    }
    from->size = 0;
  };

  // Follows what is left of each chain to its end.
  const auto finish = [&](BeyondList* list) {
    for (size_t b = 0; b < list->size; ++b) {
      Beyond& at = list->keys[b];
      RowHandle row = kNoRow;
      bool go_on = true;
      while (go_on) {
        row = FindInBucket(*at.chain.bucket(), keys[at.index], at.passed_bit,
                           &go_on);
        if (row != kNoRow || !at.chain.Next()) break;
      }
      handles[at.index] = row;
    }
    list->size = 0;
  };

  const size_t groups = (n + kGroup - 1) / kGroup;
  compute(0);
  for (size_t i = 0; i < std::min(n, kGroup); ++i) homes[0][i].Prefetch();
  if (groups > 1) compute(1);
  for (size_t g = 0; g < groups + 2; ++g) {
    BeyondList* const new_second = &second[g % 2];
    BeyondList* const new_later = &later[g % 2];
    if (g + 2 < groups) compute(g + 2);
    if (g < groups) {
      const Home* const home = homes[g % 3];
      const Home* const next = homes[(g + (g + 1 < groups)) % 3];
      const size_t begin = g * kGroup;
      const size_t size = std::min(n - begin, kGroup);
      uint8_t not_home[kGroup];
      size_t num_not_home = 0;
      for (size_t i = 0; i < size; ++i) {
        next[i].Prefetch();
        size_t go_on;
        handles[begin + i] =
            FindInBucketBranchless(*home[i].bucket(), keys[begin + i],
                                   home[i].passed_bit(), &go_on);
        not_home[num_not_home] = static_cast<uint8_t>(i);
        num_not_home += go_on;
      }
      go_beyond(home, begin, not_home, num_not_home, new_second);
    }
    advance(&second[(g + 1) % 2], new_later);
    if (g < 2) continue;
    finish(&later[(g + 1) % 2]);
    if (fn != nullptr) {
      fn(context, (g - 2) * kGroup, std::min(n, (g - 1) * kGroup));
    }
  }
}

Status HashIndex::Impl::InsertOne(int64_t key, RowSource* source,
                                  RowHandle* handle, bool* inserted) {
  const uint64_t hash = MixKey(key);
  for (;;) {
    SegmentLock segment(&segments, hash);
    const Slot slot = LocateLocked(segment->array, hash, key);
    if (slot.bucket != nullptr) {
      *handle = ~slot.bucket->rows[slot.index].load(std::memory_order_relaxed);
      *inserted = false;
      return Status::OK();
    }
    const int64_t keys = segment->keys.load(std::memory_order_relaxed);
    const int64_t slots = static_cast<int64_t>(segment->buckets * kSlots);
    if (keys >= segment->max_keys) {
      // Without memory the segment goes on filling for a while.
      if (segments.Grow(segment.get())) {
        if (!segment->Owns(hash)) continue;
      } else if (keys >= MaxKeysWithoutMemory(segment->buckets)) {
        return ResourceExhausted("no memory for the index beyond " +
                                 std::to_string(segments.keys()) + " keys");
      }
    } else if (segment->erased * 2 > slots) {
      // So many slots have been emptied that most buckets only look as if keys
      // had passed them. Failing to clean up is no harm.
      segments.Rebuild(segment.get(), segment->buckets);
    }
    EV_RETURN_IF_ERROR(source->NewRow(key, handle));
    InsertLocked(segment->array, hash, key, *handle);
    // Read again: the segment may have split.
    segment->keys.store(segment->keys.load(std::memory_order_relaxed) + 1,
                        std::memory_order_relaxed);
    *inserted = true;
    return Status::OK();
  }
}

Status HashIndex::FindOrInsert(Span<const int64_t> keys, RowSource* source,
                               RowHandle* handles, int64_t* num_inserted) {
  int64_t total = 0;
  Status status;
  for (size_t begin = 0; begin < keys.size() && status.ok();
       begin += kInsertBatch) {
    const size_t size = std::min(kInsertBatch, keys.size() - begin);
    Find(keys.subspan(begin, size), handles + begin);
    for (size_t i = begin; i < begin + size; ++i) {
      if (handles[i] != kNoRow) continue;
      bool inserted = false;
      status = impl_->InsertOne(keys[i], source, &handles[i], &inserted);
      total += inserted;
      if (!status.ok()) {
        std::fill(handles + i, handles + keys.size(), kNoRow);
        break;
      }
    }
  }
  impl_->segments.Reclaim();
  if (num_inserted != nullptr) *num_inserted = total;
  return status;
}

void HashIndex::Impl::PrefetchHomes(Span<const int64_t> keys) const {
  const Directory& directory = segments.directory();
  for (const int64_t key : keys) {
    const uint64_t hash = MixKey(key);
    PrefetchLine(HomeBucket(directory.arrays[directory.IndexOf(hash)].load(
                                std::memory_order_acquire),
                            hash));
  }
}

int64_t HashIndex::Impl::EraseOne(
    int64_t key, const std::function<void(int64_t, RowHandle)>& erased) {
  const uint64_t hash = MixKey(key);
  SegmentLock segment(&segments, hash);
  const Slot slot = LocateLocked(segment->array, hash, key);
  if (slot.bucket == nullptr) return 0;
  const RowHandle row = EraseLocked(slot);
  ++segment->erased;
  const int64_t left = segment->keys.load(std::memory_order_relaxed) - 1;
  segment->keys.store(left, std::memory_order_relaxed);
  if (erased) erased(key, row);
  if (TooEmpty(segment->buckets, left)) {
    segments.Rebuild(segment.get(), BucketsFor(left));
  }
  return 1;
}

int64_t HashIndex::Erase(
    Span<const int64_t> keys,
    const std::function<void(int64_t, RowHandle)>& erased) {
  int64_t total = 0;
  for (size_t begin = 0; begin < keys.size(); begin += kGroup) {
    const Span<const int64_t> group =
        keys.subspan(begin, std::min(kGroup, keys.size() - begin));
    impl_->PrefetchHomes(group);
    for (const int64_t key : group) total += impl_->EraseOne(key, erased);
  }
  return total;
}

void HashIndex::ForEach(
    const std::function<void(int64_t, RowHandle)>& visit) const {
  // By ranges of the hash: each range is read from the one array that holds it
  // at that moment, so a segment that splits is not seen twice.
  uint64_t hash = 0;
  do {
    EpochDomain::Guard guard;
    uint64_t array, last;
    {
      SegmentLock segment(&impl_->segments, hash);
      array = segment->array;
      last = segment->depth == 0
                 ? ~uint64_t{0}
                 : hash | (~uint64_t{0} >> segment->depth);
    }
    VisitArray(array, visit);
    hash = last + 1;
  } while (hash != 0);
}

void HashIndex::Clear() { impl_->segments.Clear(); }

int64_t HashIndex::size() const { return impl_->segments.keys(); }

int64_t HashIndex::bytes() const {
  return static_cast<int64_t>(sizeof(*this)) + impl_->segments.bytes();
}

}  // namespace ev
