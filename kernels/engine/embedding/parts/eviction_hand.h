// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Which keys a full table looks at when it must evict: a hand that goes round
// the hashes of all keys. Where a key's hash lies is random, so the next keys
// under the hand are a random sample; and it is a property of the key alone, so
// the sample does not depend on which thread inserted what where. Keys are
// fetched from the index some ten thousand at a time, in one scan of the
// segments that hold them.

#ifndef KERNELS_ENGINE_EMBEDDING_PARTS_EVICTION_HAND_H_
#define KERNELS_ENGINE_EMBEDDING_PARTS_EVICTION_HAND_H_

#include <cstdint>
#include <vector>

#include "kernels/engine/base/row_handle.h"
#include "kernels/engine/table/cpu/hash_index.h"

namespace ev {

struct EvictionCandidate {
  int64_t key;
  RowHandle handle;
};

// Not thread-safe.
class EvictionHand {
 public:
  // seed: of where the first of the fetches ends, of which each costs a few
  // milliseconds.
  explicit EvictionHand(uint64_t seed = 0) : seed_(seed) {}

  // The next 'count' keys that are in the index, or all of them when there are
  // fewer or the table is small; each once. In an order that depends on nothing
  // but the keys and the hand. Throws std::bad_alloc.
  void Next(const HashIndex& index, int64_t count,
            std::vector<EvictionCandidate>* candidates);

  // Back to the start.
  void Reset();

 private:
  void Fetch(const HashIndex& index);

  const uint64_t seed_;
  bool first_ = true;          // nothing was fetched yet
  uint64_t next_hash_ = 0;     // of the keys to fetch
  std::vector<int64_t> keys_;  // fetched, in the order of their hashes
  size_t used_ = 0;            // of keys_
};

}  // namespace ev

#endif  // KERNELS_ENGINE_EMBEDDING_PARTS_EVICTION_HAND_H_
