// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The keys of an index in the order in which checkpoints hold them, without a
// list of all of them in memory.
//
// The order is that of (floormod(key, 1000), key). A first look at the index
// counts the keys of each remainder; neighbouring remainders of together at
// most a segment's worth of keys are then collected, each key into its
// remainder's place, and sorted remainder by remainder. So there are never more
// entries (16 bytes) in memory than a segment has. A remainder that alone has
// more is collected whole nevertheless.
//
// What is read column by column needs the handles in the same order each time.
// They are kept (4 bytes per key) up to a limit; beyond it each column collects
// and sorts again.
//
// Inserts may go on meanwhile if what they insert is marked before the index
// names it: marked handles are passed over.

#ifndef KERNELS_ENGINE_EMBEDDING_PARTS_KEY_ORDER_H_
#define KERNELS_ENGINE_EMBEDDING_PARTS_KEY_ORDER_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "kernels/engine/base/row_handle.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/embedding/parts/handle_marks.h"
#include "kernels/engine/ids/key_partition.h"
#include "kernels/engine/table/cpu/hash_index.h"

namespace ev {

struct KeyOrderLimits {
  int64_t segment_keys = int64_t{3} << 20;  // 48 MiB
  int64_t kept_handles = int64_t{1} << 25;  // 128 MiB
};

// Not thread-safe. REQUIRES that no thread erases from the index, nor inserts
// what is not marked, as long as this is used; Internal says that one did. May
// throw std::bad_alloc, and may then be used again.
class KeyOrder {
 public:
  using Limits = KeyOrderLimits;
  // marks: null, or handles with kFirst are passed over; outlives this.
  explicit KeyOrder(const HashIndex& index, const HandleMarks* marks = nullptr,
                    const Limits& limits = Limits());

  int64_t size() const { return begins_.back(); }
  // [1001]: keys of remainder r are [begins()[r], begins()[r + 1]).
  const std::vector<int64_t>& begins() const { return begins_; }

  // All three show all in order, in pieces of at most piece_size; the first
  // error ends it. ForEachHandle is the cheapest once ForEachKey has run.
  using VisitBoth =
      std::function<Status(Span<const int64_t>, Span<const RowHandle>)>;
  Status ForEach(int64_t piece_size, const VisitBoth& visit);
  using VisitKeys = std::function<Status(Span<const int64_t>)>;
  Status ForEachKey(int64_t piece_size, const VisitKeys& visit);
  using VisitHandles = std::function<Status(Span<const RowHandle>)>;
  Status ForEachHandle(int64_t piece_size, const VisitHandles& visit);

 private:
  struct Entry {
    int64_t key;
    RowHandle handle;
  };
  struct Segment {
    int64_t first_partition, end_partition;
  };

  // Makes entries_ those of a segment; cheap when they are already.
  Status Collect(int segment);
  bool IsPassedOver(RowHandle handle) const {
    return handle >= kFirstReservedHandle ||
           (marks_ != nullptr && marks_->Has(handle, HandleMarks::kFirst));
  }
  int64_t SizeOf(int segment) const;

  const HashIndex& index_;
  const HandleMarks* const marks_;
  const Limits limits_;
  std::vector<int64_t> begins_;
  std::vector<Segment> segments_;
  std::vector<Entry> entries_;
  int collected_ = -1;           // the segment in entries_
  std::vector<RowHandle> kept_;  // of all keys, or empty
};

}  // namespace ev

#endif  // KERNELS_ENGINE_EMBEDDING_PARTS_KEY_ORDER_H_
