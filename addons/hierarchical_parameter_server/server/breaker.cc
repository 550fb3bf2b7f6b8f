// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/hierarchical_parameter_server/server/breaker.h"

#include <utility>

#include "addons/hierarchical_parameter_server/server/warnings.h"

namespace hps {
namespace {

int64_t MsBetween(Breaker::Clock::time_point begin,
                  Breaker::Clock::time_point end) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(end - begin)
      .count();
}

}  // namespace

Breaker::Breaker(std::string tier, std::string type, const OutageConfig& config)
    : tier_(std::move(tier)), type_(std::move(type)), config_(config) {}

ev::Status Breaker::Begin(Clock::time_point now) {
  if (!is_troubled_.load(std::memory_order_relaxed)) return ev::Status::OK();
  std::lock_guard<std::mutex> lock(mutex_);
  if (!counts_.is_away) return ev::Status::OK();
  if (now >= next_try_) {
    // This lookup tries the tier. If it never calls End, another one tries
    // later.
    next_try_ = now + std::chrono::milliseconds(config_.breaker_pause_ms);
    return ev::Status::OK();
  }
  ++counts_.skipped;
  return ev::Unavailable(
      tier_ + " is unavailable: lookups skip it for another " +
      std::to_string(MsBetween(now, next_try_) + 1) + " ms, after " +
      std::to_string(in_a_row_) +
      " consecutive lookups did not reach it; the last error: " +
      counts_.last_error);
}

void Breaker::End(const ev::Status& status, Clock::time_point now) {
  const bool is_reached = status.code() != ev::StatusCode::kUnavailable;
  if (is_reached && !is_troubled_.load(std::memory_order_relaxed)) return;
  std::lock_guard<std::mutex> lock(mutex_);
  if (is_reached) {
    if (counts_.is_away) {
      Warn(tier_ + " is available again after " +
           std::to_string(MsBetween(away_since_, now)) + " ms; " +
           std::to_string(counts_.skipped) + " lookups have skipped it so far");
    }
    in_a_row_ = 0;
    counts_.is_away = false;
    is_troubled_.store(false, std::memory_order_relaxed);
    return;
  }
  is_troubled_.store(true, std::memory_order_relaxed);
  ++counts_.failures;
  ++in_a_row_;
  // Copies the characters: in this library's ABI, copies of a string share
  // their text, which would then be shared between threads.
  counts_.last_error.assign(status.message().data(), status.message().size());
  if (in_a_row_ < config_.breaker_failures) return;
  if (!counts_.is_away) {
    counts_.is_away = true;
    away_since_ = now;
    Warn(tier_ + " is unavailable: " + std::to_string(in_a_row_) +
         " consecutive lookups did not reach it. " +
         (skips() ? "Lookups skip it: keys that the other tiers lack get the "
                    "default row and are counted as `unavailable`. "
                  : "Lookups fail with Unavailable. ") +
         "One lookup tries it every " +
         std::to_string(config_.breaker_pause_ms) +
         " ms. The last error: " + counts_.last_error);
  }
  next_try_ = now + std::chrono::milliseconds(config_.breaker_pause_ms);
}

BreakerCounts Breaker::Counts() const {
  std::lock_guard<std::mutex> lock(mutex_);
  BreakerCounts counts = counts_;
  counts.last_error.assign(counts_.last_error.data(),
                           counts_.last_error.size());
  return counts;
}

}  // namespace hps
