// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef KERNELS_ENGINE_TESTING_UNIQUE_KEYS_H_
#define KERNELS_ENGINE_TESTING_UNIQUE_KEYS_H_

#include <cstdint>

#include "gtest/gtest.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/embedding/lookup/lookup_plan.h"

namespace ev {
namespace testing {

// Return the keys of LookupPlan::UniqueKeys and their counts.
inline Span<const int64_t> UniqueKeys(const LookupPlan& plan, int t,
                                      Span<const int32_t>* counts = nullptr) {
  Span<const int64_t> keys;
  const Status status = plan.UniqueKeys(t, &keys, counts);
  EXPECT_TRUE(status.ok()) << status.message();
  return keys;
}
inline Span<const int32_t> UniqueCounts(const LookupPlan& plan, int t) {
  Span<const int32_t> counts;
  UniqueKeys(plan, t, &counts);
  return counts;
}

}  // namespace testing
}  // namespace ev

#endif  // KERNELS_ENGINE_TESTING_UNIQUE_KEYS_H_
