// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// A table that never evicts, one key at a time on the host. It walks slots and
// marks in the same memory layout as the kernels, and tests bucket.h without a
// GPU.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_CACHE_TABLE_HOST_TABLE_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_CACHE_TABLE_HOST_TABLE_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "addons/hierarchical_parameter_server/cache/table/bucket.h"

namespace ev {
namespace gpu {

class HostTable {
 public:
  HostTable(uint32_t num_pairs, uint32_t probe_limit)
      : view_{nullptr, nullptr, num_pairs, probe_limit} {
    for (uint32_t p = 0; p < num_pairs; ++p) {
      for (uint32_t parity = 0; parity < 2; ++parity) {
        slots_.insert(slots_.end(), kBucketSlots, EmptyMark(parity));
      }
    }
  }

  const TableView& view() const { return view_; }
  const std::vector<int64_t>& slots() const { return slots_; }
  int64_t num_slots() const { return static_cast<int64_t>(slots_.size()); }
  static bool IsFree(int64_t slot, int64_t key) {
    const uint32_t parity = (slot / kBucketSlots) & 1;
    return key == EmptyMark(parity) || key == ErasedMark(parity);
  }

  // Returns the slot of the key, or -1. *buckets (may be null): how many
  // buckets were read.
  int64_t Find(int64_t key, int* buckets = nullptr) const {
    Chain chain(MixKey(key), view_);
    for (uint32_t j = 0; j < view_.probe_limit; ++j) {
      if (buckets != nullptr) *buckets = static_cast<int>(j) + 1;
      const int64_t* const bucket = slots_.data() + chain.first_slot();
      const int64_t* const end = bucket + kBucketSlots;
      const int64_t* const at = std::find(bucket, end, key);
      if (at != end) return at - slots_.data();
      if (std::find(bucket, end, EmptyMark(chain.parity)) != end) return -1;
      chain.Next();
    }
    return -1;
  }

  // Inserts into the first free slot of the chain, like the kernels. Returns -1
  // if the chain is full.
  int64_t FindOrInsert(int64_t key) {
    const int64_t found = Find(key);
    if (found >= 0) return found;
    Chain chain(MixKey(key), view_);
    for (uint32_t j = 0; j < view_.probe_limit; ++j) {
      for (int s = 0; s < kBucketSlots; ++s) {
        const int64_t slot = chain.first_slot() + s;
        if (!IsFree(slot, slots_[slot])) continue;
        slots_[slot] = key;
        return slot;
      }
      chain.Next();
    }
    return -1;
  }

  void Erase(int64_t key) {
    const int64_t slot = Find(key);
    if (slot < 0) return;
    const uint32_t parity = (slot / kBucketSlots) & 1;
    const int64_t* const bucket =
        slots_.data() + slot / kBucketSlots * kBucketSlots;
    const bool has_empty =
        std::find(bucket, bucket + kBucketSlots, EmptyMark(parity)) !=
        bucket + kBucketSlots;
    slots_[slot] = has_empty ? EmptyMark(parity) : ErasedMark(parity);
  }

 private:
  TableView view_;
  std::vector<int64_t> slots_;
};

}  // namespace gpu
}  // namespace ev

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_CACHE_TABLE_HOST_TABLE_H_
