// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/policy/counting_bloom_filter.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <new>
#include <string>

#include "kernels/engine/base/hash.h"
#include "kernels/engine/base/pages.h"

namespace ev {
namespace {

// A larger filter can only come from a mistake in the options.
constexpr double kMaxCounters = 1e13;

}  // namespace

Status CountingBloomFilter::Make(int64_t max_keys, double false_positive,
                                 int counter_bits,
                                 std::unique_ptr<CountingBloomFilter>* filter) {
  if (max_keys < 1) {
    return InvalidArgument(
        "max_keys of a Bloom filter: expected at least 1, got " +
        std::to_string(max_keys));
  }
  if (!(false_positive > 0.0 && false_positive < 1.0)) {
    return InvalidArgument(
        "a Bloom filter's false positive probability: expected a number in (0, "
        "1), got " +
        std::to_string(false_positive));
  }
  if (counter_bits != 8 && counter_bits != 16 && counter_bits != 32 &&
      counter_bits != 64) {
    return InvalidArgument(
        "a Bloom filter's counters: expected 8, 16, 32 or 64 bits, got " +
        std::to_string(counter_bits));
  }
  const double ln2 = std::log(2.0);
  const double hashes = std::ceil(std::abs(std::log2(false_positive)));
  const double counters =
      std::ceil(std::abs(std::log(false_positive)) / (ln2 * ln2) *
                static_cast<double>(max_keys));
  const Status too_large = ResourceExhausted(
      "no memory for a Bloom filter of " + std::to_string(counters) +
      " counters of " + std::to_string(counter_bits) + " bits");
  if (counters > kMaxCounters) return too_large;
  try {
    filter->reset(new CountingBloomFilter(
        static_cast<int>(std::min<double>(kMaxHashes, std::max(1.0, hashes))),
        static_cast<uint64_t>(std::max(1.0, counters)), counter_bits));
  } catch (const std::bad_alloc&) {
    return too_large;
  }
  return Status::OK();
}

CountingBloomFilter::CountingBloomFilter(int num_hashes, uint64_t num_counters,
                                         int counter_bits)
    : num_hashes_(num_hashes),
      num_counters_(num_counters),
      counter_bits_(counter_bits),
      bytes_(num_counters * counter_bits / 8),
      counters_(MapPages(bytes_, PageKind::kSmall)) {
  if (counters_ == nullptr) throw std::bad_alloc();
}

CountingBloomFilter::~CountingBloomFilter() { UnmapPages(counters_, bytes_); }

int CountingBloomFilter::Places(int64_t key, uint64_t* places) const {
  // Derives k hashes from two: hash i is first + i * second. 'second' is mixed
  // from 'first' in another way, and is odd so that it is never 0.
  const uint64_t first = MixKey(key);
  const uint64_t second =
      MixKey(static_cast<int64_t>(first ^ 0x6a09e667f3bcc909ull)) | 1;
  int count = 0;
  for (int i = 0; i < num_hashes_; ++i) {
    const uint64_t hash = first + static_cast<uint64_t>(i) * second;
    const uint64_t place = static_cast<uint64_t>(
        static_cast<unsigned __int128>(hash) * num_counters_ >> 64);
    // Adding twice to one counter would count the key twice.
    if (std::find(places, places + count, place) == places + count) {
      places[count++] = place;
    }
  }
  return count;
}

template <typename T>
void CountingBloomFilter::AddTo(uint64_t place, uint64_t occurrences) {
  T* counter = static_cast<T*>(counters_) + place;
  constexpr T kMax = std::numeric_limits<T>::max();
  T before = __atomic_load_n(counter, __ATOMIC_RELAXED);
  T after;
  do {
    if (before == kMax) return;
    const uint64_t room = kMax - before;
    after = occurrences >= room ? kMax : static_cast<T>(before + occurrences);
  } while (!__atomic_compare_exchange_n(counter, &before, after, true,
                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED));
}

template <typename T>
void CountingBloomFilter::TakeFrom(uint64_t place, uint64_t occurrences) {
  T* counter = static_cast<T*>(counters_) + place;
  T before = __atomic_load_n(counter, __ATOMIC_RELAXED);
  T after;
  do {
    if (before == std::numeric_limits<T>::max()) return;
    after = before > occurrences ? static_cast<T>(before - occurrences) : 0;
  } while (!__atomic_compare_exchange_n(counter, &before, after, true,
                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED));
}

template <typename T>
uint64_t CountingBloomFilter::At(uint64_t place) const {
  return __atomic_load_n(static_cast<const T*>(counters_) + place,
                         __ATOMIC_RELAXED);
}

void CountingBloomFilter::Add(int64_t key, int64_t occurrences) {
  if (occurrences < 1) return;
  uint64_t places[kMaxHashes];
  const int count = Places(key, places);
  for (int i = 0; i < count; ++i) {
    const uint64_t more = static_cast<uint64_t>(occurrences);
    switch (counter_bits_) {
      case 8:
        AddTo<uint8_t>(places[i], more);
        break;
      case 16:
        AddTo<uint16_t>(places[i], more);
        break;
      case 32:
        AddTo<uint32_t>(places[i], more);
        break;
      default:
        AddTo<uint64_t>(places[i], more);
        break;
    }
  }
}

void CountingBloomFilter::Remove(int64_t key, int64_t occurrences) {
  if (occurrences < 1) return;
  uint64_t places[kMaxHashes];
  const int count = Places(key, places);
  for (int i = 0; i < count; ++i) {
    const uint64_t less = static_cast<uint64_t>(occurrences);
    switch (counter_bits_) {
      case 8:
        TakeFrom<uint8_t>(places[i], less);
        break;
      case 16:
        TakeFrom<uint16_t>(places[i], less);
        break;
      case 32:
        TakeFrom<uint32_t>(places[i], less);
        break;
      default:
        TakeFrom<uint64_t>(places[i], less);
        break;
    }
  }
}

int64_t CountingBloomFilter::Count(int64_t key) const {
  uint64_t places[kMaxHashes];
  const int count = Places(key, places);
  uint64_t least = std::numeric_limits<int64_t>::max();
  for (int i = 0; i < count; ++i) {
    uint64_t at;
    switch (counter_bits_) {
      case 8:
        at = At<uint8_t>(places[i]);
        break;
      case 16:
        at = At<uint16_t>(places[i]);
        break;
      case 32:
        at = At<uint32_t>(places[i]);
        break;
      default:
        at = At<uint64_t>(places[i]);
        break;
    }
    least = std::min(least, at);
  }
  return static_cast<int64_t>(least);
}

void CountingBloomFilter::Clear() {
  // Maps fresh zero pages; clears the old ones if there is no memory for that.
  void* fresh = MapPages(bytes_, PageKind::kSmall);
  if (fresh == nullptr) {
    std::fill_n(static_cast<char*>(counters_), bytes_, 0);
    return;
  }
  UnmapPages(counters_, bytes_);
  counters_ = fresh;
}

}  // namespace ev
