// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Connections over which a partition was read and found intact. While such a
// connection is open, the same server process runs at its other end, so it
// cannot have restarted with fewer rows.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_REDIS_KNOWN_CONNECTIONS_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_REDIS_KNOWN_CONNECTIONS_H_

#include <atomic>
#include <cstdint>

namespace hps {

// Thread-safe. Drops the oldest entry when full.
class KnownConnections {
 public:
  // `connection`: a Connection::id().
  bool Has(int64_t connection) const {
    for (const std::atomic<int64_t>& known : ids_) {
      if (known.load(std::memory_order_relaxed) == connection) return true;
    }
    return false;
  }
  void Add(int64_t connection) {
    if (Has(connection)) return;
    ids_[next_.fetch_add(1, std::memory_order_relaxed) % kMost].store(
        connection, std::memory_order_relaxed);
  }
  void Clear() {
    for (std::atomic<int64_t>& known : ids_) {
      known.store(0, std::memory_order_relaxed);
    }
  }

 private:
  static constexpr uint32_t kMost = 16;
  std::atomic<int64_t> ids_[kMost] = {};  // 0: unused
  std::atomic<uint32_t> next_{0};
};

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_REDIS_KNOWN_CONNECTIONS_H_
