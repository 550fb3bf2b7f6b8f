// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Saturating counts of occurrences. An id of a batch stands for one occurrence;
// a key that another rank sends stands for that rank's count.

#ifndef KERNELS_ENGINE_IDS_OCCURRENCES_H_
#define KERNELS_ENGINE_IDS_OCCURRENCES_H_

#include <algorithm>
#include <cstdint>

namespace ev {

constexpr int64_t kMostOccurrences = (int64_t{1} << 31) - 1;

// Clamps 'count' to [0, kMostOccurrences].
inline int32_t ToOccurrences(int64_t count) {
  return static_cast<int32_t>(
      std::min(kMostOccurrences, std::max<int64_t>(0, count)));
}

// Adds ToOccurrences(more) to *count, which saturates at kMostOccurrences.
inline void AddOccurrences(int64_t more, int32_t* count) {
  *count = ToOccurrences(int64_t{*count} + ToOccurrences(more));
}

}  // namespace ev

#endif  // KERNELS_ENGINE_IDS_OCCURRENCES_H_
