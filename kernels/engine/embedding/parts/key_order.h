// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Visits the keys of an index in checkpoint order, without a list of all of
// them in memory.
//
// The order is that of (floormod(key, 1000), key). A first scan of the index
// counts the keys of each remainder. Neighbouring remainders with together at
// most segment_keys keys form a segment. Each segment is collected by a scan of
// its own, which puts each key into its remainder's range, and is then sorted
// remainder by remainder. So memory never holds more entries (16 bytes each)
// than one segment has. A single remainder with more keys is one segment
// nevertheless.
//
// Data that is read column by column needs the handles in the same order each
// time. They are kept (4 bytes per key) up to a limit; beyond it each column
// collects and sorts again.
//
// Inserts may go on meanwhile if their handles are marked before they are in
// the index: marked handles are skipped.

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

// Not thread-safe. REQUIRES: while it is in use, no thread erases from the
// index or inserts handles that are not marked; otherwise calls return
// Internal. May throw std::bad_alloc, and may be used again afterwards.
class KeyOrder {
 public:
  using Limits = KeyOrderLimits;
  // marks: null, or handles with mark kFirst are skipped; must outlive this
  // object.
  explicit KeyOrder(const HashIndex& index, const HandleMarks* marks = nullptr,
                    const Limits& limits = Limits());

  int64_t size() const { return begins_.back(); }
  // [1001]: keys of remainder r are [begins()[r], begins()[r + 1]).
  const std::vector<int64_t>& begins() const { return begins_; }

  // These visit everything in order, in pieces of at most piece_size, and stop
  // at the first error. ForEachHandle is cheapest after ForEachKey.
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

  // Collects a segment into entries_; a no-op if it is there already.
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
