// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The time at which a wait gives up. Every wait of the Redis client has one.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_REDIS_DEADLINE_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_REDIS_DEADLINE_H_

#include <chrono>
#include <cstdint>

namespace hps {

class Deadline {
 public:
  static Deadline InMs(int64_t ms) {
    return Deadline(Clock::now() + std::chrono::milliseconds(ms), ms);
  }
  // Returns the earlier of the two.
  Deadline OrEarlier(const Deadline& other) const {
    return at_ <= other.at_ ? *this : other;
  }
  // The argument of InMs, for messages.
  int64_t limit_ms() const { return limit_ms_; }
  // Milliseconds left, rounded up; 0 once the deadline has passed.
  int64_t LeftMs() const {
    const auto left = std::chrono::duration_cast<std::chrono::microseconds>(
                          at_ - Clock::now())
                          .count();
    return left <= 0 ? 0 : (left + 999) / 1000;
  }
  bool HasCome() const { return LeftMs() == 0; }

 private:
  using Clock = std::chrono::steady_clock;
  Deadline(Clock::time_point at, int64_t limit_ms)
      : at_(at), limit_ms_(limit_ms) {}

  Clock::time_point at_;
  int64_t limit_ms_;
};

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_REDIS_DEADLINE_H_
