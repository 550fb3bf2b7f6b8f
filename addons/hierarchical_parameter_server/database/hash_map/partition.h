// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// One partition of a table: a directory of segments. The top bits of a key's
// fraction (hash_map_table.h) choose the segment. A segment that is full is
// copied to one that is 8 % longer; one that has become long is split in two
// by the next bit. So a table grows without a moment that has two copies of
// more than one segment, and never has much more memory than its rows.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_HASH_MAP_PARTITION_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_HASH_MAP_PARTITION_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "addons/hierarchical_parameter_server/database/hash_map/segment.h"
#include "kernels/engine/base/keyed_hash.h"

namespace hps {

// Which rows go when a partition has too many.
enum class EvictionPolicy { kRandom, kLeastUsed, kOldest };

// Where a key belongs.
struct Place {
  int partition;
  uint64_t fraction;
};

// Hash and number of partitions of a table; the same for all of its keys.
class Placing {
 public:
  Placing(ev::KeyedHash hash, int partitions)
      : hash_(hash), partitions_(partitions) {}
  Place Of(int64_t key) const {
    const unsigned __int128 product =
        static_cast<unsigned __int128>(hash_(key)) * partitions_;
    return {static_cast<int>(product >> 64), static_cast<uint64_t>(product)};
  }
  // A key that does not belong to the half `upper` of a partition.
  int64_t ForeignKey(int partition, bool upper) const {
    return hash_.KeyOf(partition == 0 && !upper ? ~uint64_t{0} : 0);
  }
  int partitions() const { return partitions_; }

 private:
  ev::KeyedHash hash_;
  int partitions_;
};

class Partition {
 public:
  // `placing` outlives this. with_use: slots have counters.
  Partition(int number, int width, bool with_use, const Placing* placing);
  Partition(const Partition&) = delete;
  Partition& operator=(const Partition&) = delete;

  int64_t count() const { return count_; }
  int64_t bytes() const;

  Segment* SegmentOf(uint64_t fraction) const {
    return directory_[fraction >> (64 - depth_)];
  }

  // Runs a step that readers must not see half done.
  using Exclusively = std::function<void(const std::function<void()>&)>;

  // Makes room for one more row of the segment of `fraction`. Readers may go on
  // until `exclusively` is called. Throws std::bad_alloc, and nothing has
  // changed.
  void Grow(uint64_t fraction, const Exclusively& exclusively);
  // Sizes an empty partition for so many rows.
  void Reserve(int64_t rows, const Exclusively& exclusively);

  // A row was added or removed by the caller.
  void Counted(int64_t difference) { count_ += difference; }

  // Removes rows until `target` are left; returns how many went. As Grow.
  // `now`: kOldest takes the distance of a counter from it for the age.
  // Counters of kLeastUsed are halved, so that the past counts less.
  int64_t Evict(EvictionPolicy policy, int64_t target, uint32_t now,
                uint64_t seed, const Exclusively& exclusively);

  const std::vector<std::unique_ptr<Segment>>& segments() const {
    return segments_;
  }

 private:
  using Segments = std::vector<std::unique_ptr<Segment>>;

  std::unique_ptr<Segment> Empty(uint64_t fraction, int depth,
                                 int64_t rows) const;
  void CopyRow(const Segment& from, int64_t slot, Segment* to) const;
  // Puts `fresh`, the halves of segment number `old` or one in its place, into
  // segments and directory.
  void Replace(size_t old, uint64_t fraction, Segments fresh,
               const Exclusively& exclusively);

  const int number_;
  const int width_;
  const bool with_use_;
  const Placing* const placing_;
  int depth_ = 1;  // bits that choose an entry; >= 1, for ForeignKey
  std::vector<Segment*> directory_;
  Segments segments_;
  int64_t count_ = 0;
};

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_HASH_MAP_PARTITION_H_
