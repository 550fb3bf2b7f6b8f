// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/table/cpu/hash_index.h"

#include <algorithm>
#include <numeric>

#include "kernels/engine/base/epoch.h"
#include "kernels/engine/base/hash.h"
#include "kernels/engine/base/pages.h"
#include "kernels/engine/base/prefetch.h"
#include "kernels/engine/table/cpu/bucket.h"
#include "kernels/engine/table/cpu/find_pipeline.h"
#include "kernels/engine/table/cpu/segment_size.h"
#include "kernels/engine/table/cpu/segments.h"

namespace ev {
namespace {

// Keys that a find-or-insert looks up without locks at a time. Their lines are
// still in the first-level cache when the absent keys are inserted.
constexpr size_t kInsertBatch = 256;

// Keys whose home buckets an erase prefetches before it reads the first.
constexpr size_t kEraseBatch = 32;

// Inserts in a row that keep the lock of one segment: about a microsecond.
constexpr int kInsertsPerLock = 16;

// Holds the lock of one segment and releases it on every exit path. It keeps
// readers and other writers from seeing a segment that a writer has not
// finished.
class SegmentLock {
 public:
  // Does not lock a segment yet.
  explicit SegmentLock(Segments* segments) : segments_(segments) {}
  SegmentLock(Segments* segments, uint64_t hash) : SegmentLock(segments) {
    Move(hash);
  }
  ~SegmentLock() { Unlock(); }
  SegmentLock(const SegmentLock&) = delete;
  SegmentLock& operator=(const SegmentLock&) = delete;

  // Locks the segment that holds this hash and unlocks the previous one. Keeps
  // the lock if both are the same, at most kInsertsPerLock - 1 times in a row,
  // because taking a lock waits until all earlier stores are in the cache.
  void Move(uint64_t hash) {
    if (segment_ != nullptr && kept_ + 1 < kInsertsPerLock &&
        segment_->Owns(hash)) {
      ++kept_;
      return;
    }
    Unlock();
    segment_ = segments_->Lock(hash);
    kept_ = 0;
  }

  Segment* operator->() const { return segment_; }
  Segment* get() const { return segment_; }

 private:
  void Unlock() {
    if (segment_ != nullptr) segment_->lock.unlock();
  }

  Segments* const segments_;
  Segment* segment_ = nullptr;
  int kept_ = 0;
};

// Visits the array page by page in an order that jumps across it. Buckets
// ascend with the hash. Keys visited in the order of their hash would all be
// inserted into one end of another table, or leave only one end of this one if
// the visitor erases them.
template <typename Visit>  // void(int64_t key, RowHandle row)
void VisitArray(uint64_t array, const Visit& visit) {
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
  // Inserts the keys whose handle is kNoRow, unless another thread has inserted
  // them meanwhile. At most kInsertBatch keys. Adds to *num_inserted. On an
  // error the handles of the failed key and of all keys after it are kNoRow.
  Status InsertAbsent(Span<const int64_t> keys, RowSource* source,
                      RowHandle* handles, int64_t* num_inserted);
  int64_t EraseOne(int64_t key,
                   const std::function<void(int64_t, RowHandle)>& erased);
  void PrefetchHomes(Span<const int64_t> keys) const;
  // Prefetches the buckets that inserts of keys[absent[..]] will fill. Their
  // home buckets must be in the cache.
  void PrefetchRoom(Span<const int64_t> keys,
                    Span<const uint16_t> absent) const;

  // Calls visit(array) for the arrays that hold the hashes [first, last].
  // Proceeds by ranges of the hash and reads each from the one array that holds
  // it at that moment, so a segment that splits is not visited twice.
  template <typename Visit>
  void ForEachArray(uint64_t first, uint64_t last, const Visit& visit) {
    for (uint64_t hash = first;;) {
      EpochDomain::Guard guard;
      uint64_t array, end;
      {
        SegmentLock segment(&segments, hash);
        array = segment->array;
        end = segment->depth == 0 ? ~uint64_t{0}
                                  : hash | (~uint64_t{0} >> segment->depth);
      }
      visit(array);
      if (end >= last) return;
      hash = end + 1;
    }
  }

  Segments segments;

 private:
  Status InsertOne(int64_t key, RowSource* source, SegmentLock* lock,
                   RowHandle* handle, bool* inserted);
};

HashIndex::HashIndex() : impl_(new Impl) {}
HashIndex::~HashIndex() {}

void HashIndex::FindInGroups(Span<const int64_t> keys, RowHandle* handles,
                             GroupFn fn, void* context) const {
  EpochDomain::Guard guard;
  FindPipeline(impl_->segments, keys, handles).Run(fn, context);
}

// Inserts the key unless another thread has inserted it meanwhile; *inserted is
// false then. Moves the lock.
Status HashIndex::Impl::InsertOne(int64_t key, RowSource* source,
                                  SegmentLock* lock, RowHandle* handle,
                                  bool* inserted) {
  const uint64_t place = MixKey(key);
  const uint32_t hash = BucketHash(segments.secret(), key);
  for (;;) {
    lock->Move(place);
    Segment* const segment = lock->get();
    const Slot slot = LocateLocked(segment->array, hash, key);
    if (slot.bucket != nullptr) {
      *handle = ~slot.bucket->rows[slot.index].load(std::memory_order_relaxed);
      *inserted = false;
      return Status::OK();
    }
    const int64_t keys = segment->keys.load(std::memory_order_relaxed);
    const int64_t slots = static_cast<int64_t>(segment->buckets * kSlots);
    if (keys >= segment->max_keys) {
      // Without memory the segment fills further for a while.
      if (segments.Grow(segment)) {
        if (!segment->Owns(place)) continue;
      } else if (keys >= MaxKeysWithoutMemory(segment->buckets)) {
        return ResourceExhausted("no memory for the index beyond " +
                                 std::to_string(segments.keys()) + " keys");
      }
    } else if (segment->erased * 2 > slots) {
      // Most passed bits are stale, because many slots have been emptied. A
      // failed cleanup does no harm.
      segments.Rebuild(segment, segment->buckets);
    }
    EV_RETURN_IF_ERROR(source->NewRow(key, handle));
    InsertLocked(segment->array, hash, key, *handle);
    // Read keys again: the segment may have split.
    segment->keys.store(segment->keys.load(std::memory_order_relaxed) + 1,
                        std::memory_order_relaxed);
    *inserted = true;
    return Status::OK();
  }
}

Status HashIndex::Impl::InsertAbsent(Span<const int64_t> keys,
                                     RowSource* source, RowHandle* handles,
                                     int64_t* num_inserted) {
  uint16_t absent[kInsertBatch];
  size_t num_absent = 0;
  for (size_t i = 0; i < keys.size(); ++i) {
    absent[num_absent] = static_cast<uint16_t>(i);
    num_absent += handles[i] == kNoRow;
  }
  if (num_absent == 0) return Status::OK();
  PrefetchRoom(keys, Span<const uint16_t>(absent, num_absent));
  SegmentLock lock(&segments);
  for (size_t a = 0; a < num_absent; ++a) {
    const size_t i = absent[a];
    bool inserted = false;
    const Status status =
        InsertOne(keys[i], source, &lock, &handles[i], &inserted);
    *num_inserted += inserted;
    if (!status.ok()) {
      std::fill(handles + i, handles + keys.size(), kNoRow);
      return status;
    }
  }
  return Status::OK();
}

Status HashIndex::FindOrInsert(Span<const int64_t> keys, RowSource* source,
                               RowHandle* handles, int64_t* num_inserted) {
  int64_t total = 0;
  Status status;
  size_t begin = 0;
  while (begin < keys.size() && status.ok()) {
    const Span<const int64_t> batch =
        keys.subspan(begin, std::min(kInsertBatch, keys.size() - begin));
    Find(batch, handles + begin);
    status = impl_->InsertAbsent(batch, source, handles + begin, &total);
    begin += batch.size();
  }
  // After an error: the handles of the batches that were not started.
  std::fill(handles + begin, handles + keys.size(), kNoRow);
  impl_->segments.Reclaim();
  if (num_inserted != nullptr) *num_inserted = total;
  return status;
}

void HashIndex::Impl::PrefetchHomes(Span<const int64_t> keys) const {
  const Directory& directory = segments.directory();
  for (const int64_t key : keys) {
    PrefetchLine(
        HomeBucket(directory.ArrayOf(key), BucketHash(segments.secret(), key)));
  }
}

// Prefetches beyond full home buckets. A find of an absent key ends at its home
// bucket, but 15 to 42 % of those are full. The insert of such a key would wait
// for a line that was not prefetched, which takes longer than the rest of the
// insert.
void HashIndex::Impl::PrefetchRoom(Span<const int64_t> keys,
                                   Span<const uint16_t> absent) const {
  EpochDomain::Guard guard;
  const Directory& directory = segments.directory();
  const KeyedHash secret = segments.secret();
  Chain full[kInsertBatch];
  size_t num_full = 0;
  for (const size_t i : absent) {
    full[num_full] =
        Chain(directory.ArrayOf(keys[i]), BucketHash(secret, keys[i]));
    num_full += EmptySlots(*full[num_full].bucket()) == 0;
  }
  // Goes one step along every chain, while the lines of the other chains are
  // being fetched. Few chains are full after three steps; their inserts wait
  // for memory.
  for (int step = 0; step < 3 && num_full != 0; ++step) {
    size_t left = 0;
    for (size_t i = 0; i < num_full; ++i) {
      Chain chain = full[i];
      if (step != 0 && EmptySlots(*chain.bucket()) != 0) continue;
      if (!chain.Next()) continue;
      PrefetchLine(chain.bucket());
      full[left++] = chain;
    }
    num_full = left;
  }
}

int64_t HashIndex::Impl::EraseOne(
    int64_t key, const std::function<void(int64_t, RowHandle)>& erased) {
  SegmentLock segment(&segments, MixKey(key));
  const Slot slot =
      LocateLocked(segment->array, BucketHash(segments.secret(), key), key);
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
  for (size_t begin = 0; begin < keys.size(); begin += kEraseBatch) {
    const Span<const int64_t> group =
        keys.subspan(begin, std::min(kEraseBatch, keys.size() - begin));
    impl_->PrefetchHomes(group);
    for (const int64_t key : group) total += impl_->EraseOne(key, erased);
  }
  return total;
}

void HashIndex::ForEach(
    const std::function<void(int64_t, RowHandle)>& visit) const {
  impl_->ForEachArray(0, ~uint64_t{0},
                      [&](uint64_t array) { VisitArray(array, visit); });
}

void HashIndex::ForEachBetween(
    uint64_t first, uint64_t last,
    const std::function<void(int64_t, RowHandle)>& visit) const {
  impl_->ForEachArray(first, last, [&](uint64_t array) {
    VisitArray(array, [&](int64_t key, RowHandle row) {
      const uint64_t hash = MixKey(key);
      if (first <= hash && hash <= last) visit(key, row);
    });
  });
}

void HashIndex::Clear() { impl_->segments.Clear(); }

int64_t HashIndex::size() const { return impl_->segments.keys(); }

int64_t HashIndex::bytes() const {
  return static_cast<int64_t>(sizeof(*this)) + impl_->segments.bytes();
}

}  // namespace ev
