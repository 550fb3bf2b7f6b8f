// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// One partition of a table: an extendible hash directory of segments. The top
// bits of a key's fraction (hash_map_table.h) select the segment. A full
// segment is copied to one that is 8 % longer; a long one is split in two by
// the next bit. So growth never holds two copies of more than one segment, and
// memory stays close to the size of the rows.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_HASH_MAP_PARTITION_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_HASH_MAP_PARTITION_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "addons/hierarchical_parameter_server/database/hash_map/segment.h"
#include "kernels/engine/base/keyed_hash.h"

namespace hps {

// Selects the rows to evict when a partition has too many.
enum class EvictionPolicy { kRandom, kLeastUsed, kOldest };

// Partition and segment position of a key.
struct Place {
  int partition;
  uint64_t fraction;
};

// Maps keys to places: a table's hash and its number of partitions.
class Placing {
 public:
  Placing(ev::KeyedHash hash, int partitions)
      : hash_(hash), partitions_(partitions) {}
  Place Of(int64_t key) const {
    const unsigned __int128 product =
        static_cast<unsigned __int128>(hash_(key)) * partitions_;
    return {static_cast<int>(product >> 64), static_cast<uint64_t>(product)};
  }
  // Returns a key that cannot be in half `upper` of a partition.
  int64_t ForeignKey(int partition, bool upper) const {
    return hash_.KeyOf(partition == 0 && !upper ? ~uint64_t{0} : 0);
  }
  int partitions() const { return partitions_; }

 private:
  ev::KeyedHash hash_;
  int partitions_;
};

// One thread at a time may change a partition or its segments. Pointers of
// SegmentOf are valid until the next call of Grow, Reserve or Evict.
class Partition {
 public:
  // `placing` must outlive this. with_use: keep a use counter per slot.
  Partition(int number, int width, bool with_use, const Placing* placing);
  Partition(const Partition&) = delete;
  Partition& operator=(const Partition&) = delete;

  int64_t count() const { return count_; }
  int64_t bytes() const;

  Segment* SegmentOf(uint64_t fraction) const {
    return directory_[fraction >> (64 - depth_)];
  }

  // Runs a step while no thread reads the partition or its segments. Segments
  // that the step replaces are freed after it.
  using Exclusively = std::function<void(const std::function<void()>&)>;

  // Makes room for one more row in the segment of `fraction`. Readers may go on
  // until `exclusively` is called. On std::bad_alloc nothing has changed.
  void Grow(uint64_t fraction, const Exclusively& exclusively);
  // Sizes an empty partition for `rows` rows. No-op if it has rows.
  void Reserve(int64_t rows, const Exclusively& exclusively);

  // Call after adding or removing rows.
  void Counted(int64_t difference) { count_ += difference; }

  // Evicts rows until `target` are left; returns the number evicted. Calls
  // `exclusively` once per segment; readers may go on between the calls. On
  // std::bad_alloc some of the rows may have been evicted; count() is right.
  // kOldest computes a row's age as the distance of its counter from `now`; see
  // LimitAges.
  // kLeastUsed halves the counters, so that older uses count less.
  int64_t Evict(EvictionPolicy policy, int64_t target, uint32_t now,
                uint64_t seed, const Exclusively& exclusively);

  // Makes rows that were not used for more than kOldestAge calls this old, so
  // that their ages stay below half of the counters' range. Readers may go on.
  static constexpr uint32_t kOldestAge = uint32_t{1} << 30;
  void LimitAges(uint32_t now) const;

  const std::vector<std::unique_ptr<Segment>>& segments() const {
    return segments_;
  }

 private:
  using Segments = std::vector<std::unique_ptr<Segment>>;

  std::unique_ptr<Segment> Empty(uint64_t fraction, int depth,
                                 int64_t rows) const;
  void CopyRow(const Segment& from, int64_t slot, Segment* to) const;
  // Replaces segment number `old` by `fresh`: its two halves, or one
  // segment in its place.
  void Replace(size_t old, uint64_t fraction, Segments fresh,
               const Exclusively& exclusively);

  const int number_;
  const int width_;
  const bool with_use_;
  const Placing* const placing_;
  int depth_ = 1;  // directory bits; >= 1, as ForeignKey requires
  std::vector<Segment*> directory_;
  Segments segments_;
  int64_t count_ = 0;
};

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_HASH_MAP_PARTITION_H_
