// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef KERNELS_ENGINE_IDS_RECYCLED_PLAN_H_
#define KERNELS_ENGINE_IDS_RECYCLED_PLAN_H_

#include <cstddef>
#include <memory>
#include <utility>

#include "kernels/engine/base/scratch.h"

namespace ev {

// A plan of a step (of its lookup, of its route): a used one if there is any,
// whose memory serves again. When its last owner lets go, the plan gives back
// what it holds besides memory, and rests until the next call. At most as many
// plans rest as calls are likely to be under way at once, and none that hoards
// what one huge batch needed. Plan has a default constructor, size_t bytes()
// const and void GiveBack(). Thread-safe. Throws std::bad_alloc.
template <typename Plan>
std::shared_ptr<Plan> RecycledPlan() {
  constexpr size_t kMaxIdlePlans = 32;
  constexpr size_t kMaxIdleBytes = size_t{1} << 30;
  // Never destroyed: plans may be released while the process ends.
  static Recycler<Plan>* const idle = new Recycler<Plan>(kMaxIdlePlans);
  std::unique_ptr<Plan> plan = idle->Take();
  if (plan == nullptr) plan.reset(new Plan);
  return std::shared_ptr<Plan>(plan.release(), [](Plan* used) {
    std::unique_ptr<Plan> owned(used);
    owned->GiveBack();
    if (owned->bytes() <= kMaxIdleBytes) idle->Release(std::move(owned));
  });
}

}  // namespace ev

#endif  // KERNELS_ENGINE_IDS_RECYCLED_PLAN_H_
