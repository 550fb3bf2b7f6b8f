// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The circuit breaker of a tier. After `failures` lookups in a row that end as
// Unavailable the tier is away: lookups skip it for `pause_ms`, then one of
// them tries it again, while others go on skipping it. A lookup that reaches
// the tier ends this.

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
  int64_t failures = 0;  // lookups that asked the tier and got Unavailable
  int64_t skipped = 0;   // lookups that did not ask it
  std::string last_error;
};

// Thread-safe. A lookup in a tier that answers takes no lock.
class Breaker {
 public:
  using Clock = std::chrono::steady_clock;

  // tier: begins the messages, "volatile_db redis_cluster". type: of the
  // configuration.
  Breaker(std::string tier, std::string type, const OutageConfig& config);

  // OK: ask the tier, and call End with what came. Unavailable, with the
  // reason: do not ask it now.
  ev::Status Begin(Clock::time_point now = Clock::now());
  // status: what the tier gave. Every code except Unavailable means that it was
  // reached.
  void End(const ev::Status& status, Clock::time_point now = Clock::now());

  // Whether a lookup goes on without the tier (on_unavailable "skip").
  bool skips() const { return config_.on_unavailable == "skip"; }
  const std::string& tier() const { return tier_; }
  const std::string& type() const { return type_; }
  BreakerCounts Counts() const;

 private:
  const std::string tier_, type_;
  const OutageConfig config_;
  // Whether a lookup has failed since the last one that reached the tier.
  std::atomic<bool> is_troubled_{false};
  mutable std::mutex mutex_;  // guards what follows
  int64_t in_a_row_ = 0;
  Clock::time_point away_since_, next_try_;
  BreakerCounts counts_;
};

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_SERVER_BREAKER_H_
