// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Counting Bloom filter: counts the occurrences of keys in memory that does not
// grow with the number of keys. Each key adds to k of m shared counters, and
// its count is the smallest of them. A count may be too high, never too low.
//
// For n keys and a probability p of a wrong count:
//   k = ceil(|log2 p|),  m = ceil(n * |ln p| / (ln 2)^2).

#ifndef KERNELS_ENGINE_POLICY_COUNTING_BLOOM_FILTER_H_
#define KERNELS_ENGINE_POLICY_COUNTING_BLOOM_FILTER_H_

#include <cstdint>
#include <memory>

#include "kernels/engine/base/status.h"

namespace ev {

// Thread-safe, except that Clear must not run at the same time as another call.
// Counters saturate and additions commute, so counts depend neither on the
// order nor on the threads of the calls.
class CountingBloomFilter {
 public:
  // Creates a filter of m * counter_bits / 8 bytes. Its pages take physical
  // memory only once they are written. InvalidArgument: max_keys < 1,
  // false_positive outside (0, 1), or counter_bits other than 8, 16, 32 and 64.
  // ResourceExhausted: no memory.
  static Status Make(int64_t max_keys, double false_positive, int counter_bits,
                     std::unique_ptr<CountingBloomFilter>* filter);
  ~CountingBloomFilter();
  CountingBloomFilter(const CountingBloomFilter&) = delete;
  CountingBloomFilter& operator=(const CountingBloomFilter&) = delete;

  // Adds 'occurrences' to the key's count. No-op if it is below 1.
  void Add(int64_t key, int64_t occurrences);
  // Subtracts occurrences that were added earlier. A saturated counter stays.
  void Remove(int64_t key, int64_t occurrences);
  // Returns the key's count, which may be too high; at most INT64_MAX.
  int64_t Count(int64_t key) const;
  void Clear();

  int num_hashes() const { return num_hashes_; }
  uint64_t num_counters() const { return num_counters_; }
  int64_t bytes() const { return static_cast<int64_t>(bytes_); }

 private:
  static constexpr int kMaxHashes = 64;

  CountingBloomFilter(int num_hashes, uint64_t num_counters, int counter_bits);

  // Writes the indices of a key's counters, without duplicates, and returns
  // their number.
  int Places(int64_t key, uint64_t* places) const;
  template <typename T>
  void AddTo(uint64_t place, uint64_t occurrences);
  template <typename T>
  void TakeFrom(uint64_t place, uint64_t occurrences);
  template <typename T>
  uint64_t At(uint64_t place) const;

  const int num_hashes_;
  const uint64_t num_counters_;
  const int counter_bits_;
  const uint64_t bytes_;
  void* counters_ = nullptr;
};

}  // namespace ev

#endif  // KERNELS_ENGINE_POLICY_COUNTING_BLOOM_FILTER_H_
