// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef KERNELS_ENGINE_IDS_RECYCLED_PLAN_H_
#define KERNELS_ENGINE_IDS_RECYCLED_PLAN_H_

#include <cstddef>
#include <memory>
#include <utility>

#include "kernels/engine/base/scratch.h"

namespace ev {

// Returns a plan for a step's lookup or route. Takes an idle plan if there is
// one, so that its memory is reused. When the last owner releases the plan,
// GiveBack() releases everything except memory, and the plan is idle until the
// next call. At most 32 idle plans are kept, about as many as calls in flight
// at once, and none larger than 1 GiB, so that a single huge batch does not pin
// its memory.
//
// Plan has a default constructor, size_t bytes() const and void GiveBack().
// Thread-safe. Throws std::bad_alloc.
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
