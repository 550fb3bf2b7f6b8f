// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Samples the keys that a full table considers for eviction: a clock hand that
// goes round the hashes of all keys. Hashes are random, so the next keys at the
// hand are a random sample. A hash depends on the key alone, so the sample does
// not depend on which thread inserted a key, or where. Keys are fetched from
// the index some hundred thousand at a time, in one scan of the segments that
// hold them.

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
  // seed: varies where the first fetch ends, so that tables do not all fetch in
  // the same step. A fetch costs a few milliseconds.
  explicit EvictionHand(uint64_t seed = 0) : seed_(seed) {}

  // Sets *candidates to the next 'count' keys in the index, each once, or to
  // all keys if there are fewer or the table is small. The order depends only
  // on the keys and the hand. Throws std::bad_alloc.
  void Next(const HashIndex& index, int64_t count,
            std::vector<EvictionCandidate>* candidates);

  // Moves the hand back to the start.
  void Reset();

 private:
  void Fetch(const HashIndex& index);

  const uint64_t seed_;
  bool first_ = true;          // nothing was fetched yet
  uint64_t next_hash_ = 0;     // where the next fetch begins
  std::vector<int64_t> keys_;  // fetched, in the order of their hashes
  size_t used_ = 0;            // number of keys_ taken
};

}  // namespace ev

#endif  // KERNELS_ENGINE_EMBEDDING_PARTS_EVICTION_HAND_H_
