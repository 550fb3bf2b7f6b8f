// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Which keys of a table have changed since a lookup read their rows below.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_CACHE_KEY_CHANGES_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_CACHE_KEY_CHANGES_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/engine/base/span.h"

namespace hps {

// Changes are numbered. A key shares the number of its last change with others
// of its hash: another key's change may keep a row from being stored this time,
// and no change of its own goes unseen. All members but count are called under
// the table's lock.
class KeyChanges {
 public:
  // 2^bits numbers, of 8 bytes each.
  explicit KeyChanges(int bits = 12);

  int64_t count() const { return count_.load(std::memory_order_acquire); }
  void Add(ev::Span<const int64_t> keys);
  void AddAll();
  // Whether the key may have changed since count() was `seen`.
  bool HasChanged(int64_t key, int64_t seen) const;

 private:
  size_t NumberOf(int64_t key) const {
    return (static_cast<uint64_t>(key) * 0x9e3779b97f4a7c15ULL) >> shift_;
  }

  const int shift_;
  std::atomic<int64_t> count_{0};
  int64_t all_ = 0;  // the last change of all keys
  std::vector<int64_t> last_;
};

// The numbers of keys that do not come again later in the list, ascending.
std::vector<int64_t> LastOfEach(ev::Span<const int64_t> keys);

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_CACHE_KEY_CHANGES_H_
