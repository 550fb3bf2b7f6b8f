// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// A tier's circuit breaker. After `failures` consecutive lookups that return
// Unavailable it opens: lookups skip the tier for `pause_ms`. Then one lookup
// tries the tier while others still skip it. A lookup that reaches the tier
// closes the breaker.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_SERVER_BREAKER_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_SERVER_BREAKER_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>

#include "addons/hierarchical_parameter_server/config/config.h"
#include "kernels/engine/base/status.h"

namespace hps {

struct BreakerCounts {
  bool is_away = false;
  int64_t failures = 0;  // lookups that tried the tier and got Unavailable
  int64_t skipped = 0;   // lookups that did not try it
  std::string last_error;
};

// Thread-safe. Lookups take no lock while the tier responds.
class Breaker {
 public:
  using Clock = std::chrono::steady_clock;

  // tier: prefix of the messages, such as "volatile_db redis_cluster". type:
  // its type in the configuration.
  Breaker(std::string tier, std::string type, const OutageConfig& config);

  // OK: use the tier, then call End with the result. Otherwise Unavailable with
  // the reason: do not use the tier now.
  ev::Status Begin(Clock::time_point now = Clock::now());
  // status: the tier's result. Any code except Unavailable means that it was
  // reached.
  void End(const ev::Status& status, Clock::time_point now = Clock::now());

  // Returns whether lookups continue without the tier (on_unavailable "skip").
  bool skips() const { return config_.on_unavailable == "skip"; }
  const std::string& tier() const { return tier_; }
  const std::string& type() const { return type_; }
  BreakerCounts Counts() const;

 private:
  const std::string tier_, type_;
  const OutageConfig config_;
  // True if a lookup has failed since the tier was last reached.
  std::atomic<bool> is_troubled_{false};
  mutable std::mutex mutex_;  // guards the members below
  int64_t in_a_row_ = 0;
  Clock::time_point away_since_, next_try_;
  BreakerCounts counts_;
};

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_SERVER_BREAKER_H_
