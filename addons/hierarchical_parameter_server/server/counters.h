// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Counts of what a table has served. Threads count in separate cache lines, so
// that counting stays cheap with many threads.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_SERVER_COUNTERS_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_SERVER_COUNTERS_H_

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>

#include "kernels/engine/base/status.h"
#include "kernels/engine/base/thread_stripe.h"

namespace hps {

struct Served {
  int64_t lookups = 0;  // calls
  int64_t keys = 0;     // ids in the calls that succeeded
  int64_t from_cache = 0;
  int64_t from_volatile = 0;
  int64_t from_persistent = 0;
  int64_t defaults = 0;  // ids that no tier had
  // Ids answered with the default value because a tier was unavailable.
  int64_t unavailable = 0;
  // ids answered without reading the tiers (hit_rate_threshold)
  int64_t late = 0;
  int64_t failed = 0;  // calls that returned an error
  int64_t nanoseconds = 0;
  // latency[i]: calls that took at least 2^(i-1) and less than 2^i
  // microseconds; the last one has all longer calls.
  static constexpr int kLatencies = 24;
  std::array<int64_t, kLatencies> latency{};
};

// Counts of refreshing a table's cache.
struct Refreshed {
  int64_t walks = 0;     // complete walks over the cache
  int64_t rows = 0;      // rows read from the tiers
  int64_t failures = 0;  // walks ended by an error of a tier or the cache
  int64_t last_walk_nanoseconds = 0;
  std::string last_failure;
};

// Thread-safe.
class RefreshCounters {
 public:
  void Add(int64_t rows, const ev::Status& status) {
    std::lock_guard<std::mutex> lock(mu_);
    counts_.rows += rows;
    if (status.ok()) return;
    ++counts_.failures;
    // Copies the characters, here and in Get: in this library's ABI, copies of
    // a string share their text, which would then be shared between threads.
    last_failure_.assign(status.message().data(), status.message().size());
  }
  void EndWalk(std::chrono::nanoseconds took) {
    std::lock_guard<std::mutex> lock(mu_);
    ++counts_.walks;
    counts_.last_walk_nanoseconds = took.count();
  }
  Refreshed Get() const {
    std::lock_guard<std::mutex> lock(mu_);
    Refreshed counts = counts_;
    counts.last_failure.assign(last_failure_.data(), last_failure_.size());
    return counts;
  }

 private:
  mutable std::mutex mu_;
  Refreshed counts_;  // guarded by mu_; last_failure is kept below instead
  std::string last_failure_;  // guarded by mu_
};

class Counters {
 public:
  void Add(const Served& served) {
    Stripe& stripe = stripes_[ev::ThisThreadStripe() % kStripes];
    const auto add = [](std::atomic<int64_t>* to, int64_t what) {
      if (what != 0) to->fetch_add(what, std::memory_order_relaxed);
    };
    add(&stripe.values[0], served.lookups);
    add(&stripe.values[1], served.keys);
    add(&stripe.values[2], served.from_volatile);
    add(&stripe.values[3], served.from_persistent);
    add(&stripe.values[4], served.defaults);
    add(&stripe.values[5], served.failed);
    add(&stripe.values[6], served.nanoseconds);
    add(&stripe.values[7], served.from_cache);
    add(&stripe.values[8], served.late);
    add(&stripe.values[9], served.unavailable);
    int bin = 0;
    while (bin + 1 < Served::kLatencies &&
           served.nanoseconds >= (int64_t{1000} << bin)) {
      ++bin;
    }
    add(&stripe.values[kFields + bin], served.lookups);
  }
  Served Sum() const {
    Served sum;
    for (const Stripe& stripe : stripes_) {
      const auto get = [&](int i) {
        return stripe.values[i].load(std::memory_order_relaxed);
      };
      sum.lookups += get(0);
      sum.keys += get(1);
      sum.from_volatile += get(2);
      sum.from_persistent += get(3);
      sum.defaults += get(4);
      sum.failed += get(5);
      sum.nanoseconds += get(6);
      sum.from_cache += get(7);
      sum.late += get(8);
      sum.unavailable += get(9);
      for (int bin = 0; bin < Served::kLatencies; ++bin) {
        sum.latency[bin] += get(kFields + bin);
      }
    }
    return sum;
  }

 private:
  static constexpr int kStripes = 16, kFields = 10;
  struct alignas(64) Stripe {
    std::atomic<int64_t> values[kFields + Served::kLatencies] = {};
  };
  Stripe stripes_[kStripes];
};

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_SERVER_COUNTERS_H_
