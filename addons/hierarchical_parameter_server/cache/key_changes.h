// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Records which keys of a table changed since a lookup read their rows from a
// tier.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_CACHE_KEY_CHANGES_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_CACHE_KEY_CHANGES_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/engine/base/span.h"

namespace hps {

// Change numbers by hashed key. Keys with the same hash share one number: a
// change of one may keep another's row from being stored once, but no change is
// missed. All methods except count() are called under the table's lock.
class KeyChanges {
 public:
  // Keeps 2^bits numbers of 8 bytes each.
  explicit KeyChanges(int bits = 12);

  int64_t count() const { return count_.load(std::memory_order_acquire); }
  void Add(ev::Span<const int64_t> keys);
  void AddAll();
  // Returns whether the key may have changed since count() was `seen`.
  bool HasChanged(int64_t key, int64_t seen) const;

 private:
  size_t NumberOf(int64_t key) const {
    return (static_cast<uint64_t>(key) * 0x9e3779b97f4a7c15ULL) >> shift_;
  }

  const int shift_;
  std::atomic<int64_t> count_{0};
  int64_t all_ = 0;  // number of the last AddAll
  std::vector<int64_t> last_;
};

// Returns the indices, ascending, of the last occurrence of each key.
std::vector<int64_t> LastOfEach(ev::Span<const int64_t> keys);

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_CACHE_KEY_CHANGES_H_
