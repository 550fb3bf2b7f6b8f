// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Which rows go, as decisions on what a row counts about itself. A version is
// the global step of a row's last update, -1 when it never had one.

#ifndef KERNELS_ENGINE_POLICY_EVICTION_H_
#define KERNELS_ENGINE_POLICY_EVICTION_H_

#include <cstdint>
#include <tuple>

namespace ev {

enum class CacheStrategy {
  kLru,  // the row that was updated longest ago goes first
  kLfu,  // the row that occurred least often goes first
};

// How many rows a table may hold; 0: no bound. Both given: the smaller counts.
struct CapacityOptions {
  int64_t max_rows = 0;
  int64_t max_bytes = 0;  // of rows, slots, meta and index
  CacheStrategy strategy = CacheStrategy::kLfu;

  bool bounded() const { return max_rows > 0 || max_bytes > 0; }
};

inline bool operator==(const CapacityOptions& a, const CapacityOptions& b) {
  return a.max_rows == b.max_rows && a.max_bytes == b.max_bytes &&
         a.strategy == b.strategy;
}

// Nothing updated the row for more than steps_to_live steps.
inline bool IsStale(int64_t version, int64_t step, int64_t steps_to_live) {
  return step - version > steps_to_live;
}

// In this order wherever the row is, so that every memory evicts the same rows.
inline double SumOfSquares(const float* row, int64_t dim) {
  double squares = 0.0;
  for (int64_t c = 0; c < dim; ++c) {
    squares += static_cast<double>(row[c]) * row[c];
  }
  return squares;
}

// Half of the sum of a row's squares is below the threshold; not so for NaN.
inline bool IsWeak(double squares, float threshold) {
  return 0.5 * squares < threshold;
}

// Rows with a smaller rank go first. A rank is unique in a table, since hashes
// of distinct keys are: what goes does not depend on where rows lie.
using EvictionRank = std::tuple<uint64_t, uint64_t, uint64_t>;

// step: of the update that fills the table. Among the least frequent a row of
// that very step is spared: a newcomer could otherwise never stay.
inline EvictionRank RankOf(CacheStrategy strategy, uint64_t frequency,
                           int64_t version, int64_t step, uint64_t hash) {
  const uint64_t age = static_cast<uint64_t>(version + 1);
  if (strategy == CacheStrategy::kLru) return EvictionRank(age, 0, hash);
  const uint64_t is_new = version >= 0 && version == step;
  return EvictionRank(is_new << 63 | frequency, age, hash);
}

}  // namespace ev

#endif  // KERNELS_ENGINE_POLICY_EVICTION_H_
