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

// The numbers 0 to count - 1, shuffled as numpy.random.RandomState(seed)
// .shuffle does: runs of an earlier version, whose readers were NumPy's, are
// repeated exactly.
std::vector<int64_t> Shuffled(int64_t count, uint32_t seed);

// Thread-safe.
class BlockOrder {
 public:
  // Pass p is shuffled by seed + p modulo 2^32.
  BlockOrder(int64_t blocks, int64_t seed) : blocks_(blocks), seed_(seed) {}

  // The order of a pass; kept for the threads that ask next.
  std::shared_ptr<const std::vector<int64_t>> OfPass(int64_t pass);

 private:
  struct Kept {
    int64_t pass = -1;
    std::shared_ptr<const std::vector<int64_t>> order;
  };

  const int64_t blocks_;
  const int64_t seed_;
  std::mutex lock_;
  // Of even and of odd passes: batches that are read at a time are of two
  // passes that follow each other at most, unless passes are tiny.
  Kept kept_[2];
};

}  // namespace hugectr

#endif  // ADDONS_HUGECTR_READER_BLOCK_ORDER_H_
