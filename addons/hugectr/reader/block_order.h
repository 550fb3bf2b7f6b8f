// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The order in which a pass over a Raw file reads its blocks.

#ifndef ADDONS_HUGECTR_READER_BLOCK_ORDER_H_
#define ADDONS_HUGECTR_READER_BLOCK_ORDER_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace hugectr {

// Returns the numbers 0 to count - 1 in the order of
// numpy.random.RandomState(seed).shuffle. Runs of an earlier version, whose
// readers used NumPy, can thus be repeated exactly.
std::vector<int64_t> Shuffled(int64_t count, uint32_t seed);

// Thread-safe.
class BlockOrder {
 public:
  // Pass p is shuffled with seed (seed + p) modulo 2^32.
  BlockOrder(int64_t blocks, int64_t seed) : blocks_(blocks), seed_(seed) {}

  // Returns the order of a pass; cached for the next callers.
  std::shared_ptr<const std::vector<int64_t>> OfPass(int64_t pass);

 private:
  struct Kept {
    int64_t pass = -1;
    std::shared_ptr<const std::vector<int64_t>> order;
  };

  const int64_t blocks_;
  const int64_t seed_;
  std::mutex lock_;
  // Cache of one even and one odd pass. Batches in flight belong to at most two
  // consecutive passes, unless passes are tiny.
  Kept kept_[2];
};

}  // namespace hugectr

#endif  // ADDONS_HUGECTR_READER_BLOCK_ORDER_H_
