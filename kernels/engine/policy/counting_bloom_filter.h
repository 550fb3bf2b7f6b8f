// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// How often was a key seen, in memory that does not depend on the number of
// keys? Each key adds to k of m shared counters; the smallest of its counters
// is what it was seen at most. So a count may be too high, never too low.
//
// For n keys and a probability p of a wrong count:
//   k = ceil(|log2 p|),  m = ceil(n * |ln p| / (ln 2)^2).

#ifndef KERNELS_ENGINE_POLICY_COUNTING_BLOOM_FILTER_H_
#define KERNELS_ENGINE_POLICY_COUNTING_BLOOM_FILTER_H_

#include <cstdint>
#include <memory>

#include "kernels/engine/base/status.h"

namespace ev {

// Thread-safe, except that Clear must be alone. Counters saturate, and adding
// commutes: what was added decides what is read, not when or on which thread.
class CountingBloomFilter {
 public:
  // Memory, m * counter_bits / 8 bytes, is zero pages until it is touched.
  // InvalidArgument: max_keys < 1, false_positive outside (0, 1), another width
  // than 8, 16, 32, 64; ResourceExhausted: no memory.
  static Status Make(int64_t max_keys, double false_positive, int counter_bits,
                     std::unique_ptr<CountingBloomFilter>* filter);
  ~CountingBloomFilter();
  CountingBloomFilter(const CountingBloomFilter&) = delete;
  CountingBloomFilter& operator=(const CountingBloomFilter&) = delete;

  // Counts the key 'occurrences' times; what is below 1 counts nothing.
  void Add(int64_t key, int64_t occurrences);
  // Takes back what was added. A counter that has saturated stays.
  void Remove(int64_t key, int64_t occurrences);
  // How often the key was seen, or more; saturates at int64's largest.
  int64_t Count(int64_t key) const;
  void Clear();

  int num_hashes() const { return num_hashes_; }
  uint64_t num_counters() const { return num_counters_; }
  int64_t bytes() const { return static_cast<int64_t>(bytes_); }

 private:
  static constexpr int kMaxHashes = 64;

  CountingBloomFilter(int num_hashes, uint64_t num_counters, int counter_bits);

  // Gives the places of a key's counters, each once; returns how many.
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
