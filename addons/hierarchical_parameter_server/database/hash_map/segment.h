// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Part of a table: an open-addressing array of slots, each a key and its row.
// Slots form groups of eight whose keys share one cache line. A key is in the
// group that its hash selects, or in the next one with room. A search ends at a
// group with a free slot.
//
// A key and its row have the same slot number, so a row takes its own bytes and
// its key's, divided by the load (85 to 92 %).
//
// A free slot holds the "free key": a key that cannot be in this segment,
// because its hash belongs to another one.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_HASH_MAP_SEGMENT_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_HASH_MAP_SEGMENT_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "addons/hierarchical_parameter_server/database/hash_map/key_group.h"
#include "kernels/engine/base/pages.h"
#include "kernels/engine/base/prefetch.h"

namespace hps {

class Segment {
 public:
  static constexpr int kGroup = kKeyGroup;

  // Has room for at least `rows` rows. The top `depth` bits of a key's fraction
  // (partition.h) selected this segment. with_use: keep a counter per slot.
  // Throws std::bad_alloc.
  Segment(int width, int64_t rows, int depth, int64_t free_key, bool with_use);
  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  int depth() const { return depth_; }
  int64_t count() const { return count_; }
  bool full() const { return count_ >= limit_; }
  int64_t slots() const { return groups_ * kGroup; }
  int64_t bytes() const;
  // Bytes of a segment for `rows` rows.
  static int64_t BytesFor(int width, int64_t rows, bool with_use);

  int64_t GroupOf(uint64_t fraction) const {
    return static_cast<int64_t>(
        (static_cast<unsigned __int128>(fraction << depth_) * groups_) >> 64);
  }
  void PrefetchGroup(int64_t group) const {
    ev::PrefetchLine(keys_ + group * kGroup);
  }
  void PrefetchRow(int64_t slot) const {
    const char* const begin = reinterpret_cast<const char*>(row(slot));
    if (row_bytes_ != 8 * ev::kCacheLine) {
      ev::PrefetchBytes(begin, row_bytes_);
      return;
    }
    // Unrolled for rows of 128 floats: a fetch takes 6 to 9 % less time.
    for (int line = 0; line < 8; ++line) {
      ev::PrefetchLine(begin + line * ev::kCacheLine);
    }
    // g++ 12 treats a function that only prefetches as having no effect and
    // drops its calls. This statement is an effect without instructions.
    asm volatile("");
  }

  // Returns the key's slot, or -1.
  int64_t Find(int64_t key, int64_t group) const {
    for (;;) {
      const int64_t* const keys = keys_ + group * kGroup;
      const SameKeys same(keys, key);
      if (same.any()) return group * kGroup + same.first();
      if (SameKeys(keys, free_key_).any()) return -1;
      if (++group == groups_) group = 0;
    }
  }

  const float* row(int64_t slot) const { return rows_ + slot * width_; }
  float* row(int64_t slot) { return rows_ + slot * width_; }

  // Adds a key and returns its slot; the caller fills the row. REQUIRES: the
  // key is absent, and !full().
  int64_t Add(int64_t key, int64_t group);
  // Frees a slot. fraction_of(key) returns the fraction of a key in this
  // segment.
  template <typename FractionOf>
  void Remove(int64_t slot, const FractionOf& fraction_of);

  // Returns whether the slot has a key.
  bool Holds(int64_t slot) const { return keys_[slot] != free_key_; }
  int64_t key(int64_t slot) const { return keys_[slot]; }

  // REQUIRES: with_use.
  std::atomic<uint32_t>& use(int64_t slot) const { return use_[slot]; }
  bool with_use() const { return use_ != nullptr; }

 private:
  const int width_;
  const size_t row_bytes_;
  const int depth_;
  const int64_t free_key_;
  const int64_t groups_;
  const int64_t limit_;
  int64_t count_ = 0;
  // One allocation, so that the keys of a long segment are in huge pages too.
  void* block_ = nullptr;
  size_t block_bytes_ = 0;
  int64_t* keys_ = nullptr;
  float* rows_ = nullptr;
  std::atomic<uint32_t>* use_ = nullptr;

  static int64_t GroupsFor(int64_t rows);
  void MoveSlot(int64_t from, int64_t to);
};

template <typename FractionOf>
void Segment::Remove(int64_t slot, const FractionOf& fraction_of) {
  --count_;
  for (;;) {
    const int64_t hole_group = slot / kGroup;
    // A free slot stops searches; if the group was full, they used to go on.
    bool was_full = true;
    for (int i = 0; i < kGroup; ++i) {
      const int64_t at = hole_group * kGroup + i;
      was_full = was_full && (at == slot || Holds(at));
    }
    keys_[slot] = free_key_;
    if (!was_full) return;
    // Looks for a later key whose probe sequence passes the hole, to fill it.
    int64_t found = -1;
    for (int64_t step = 1; found < 0 && step < groups_; ++step) {
      const int64_t group = (hole_group + step) % groups_;
      bool has_free = false;
      for (int i = 0; i < kGroup; ++i) {
        const int64_t at = group * kGroup + i;
        if (!Holds(at)) {
          has_free = true;
          continue;
        }
        const int64_t home = GroupOf(fraction_of(keys_[at]));
        const int64_t way = (group - home + groups_) % groups_;
        if (way >= step && found < 0) found = at;
      }
      if (has_free && found < 0) return;
    }
    if (found < 0) return;
    MoveSlot(found, slot);
    slot = found;
  }
}

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_HASH_MAP_SEGMENT_H_
