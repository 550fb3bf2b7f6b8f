// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The gradient of pooling summed per distinct key and applied to its row, on
// the device.

#ifndef KERNELS_ENGINE_GPU_STEP_UPDATE_H_
#define KERNELS_ENGINE_GPU_STEP_UPDATE_H_

#include <type_traits>

#include "kernels/engine/base/gpu/stream.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/optimizer/rule_list.h"

namespace ev {
namespace gpu {

struct StepPlan;

// The rules of optimizer/rule_list.h that a step has kernels for. Another rule
// is an error of the step, and needs nothing here to be a rule of variables.
#define EV_STEP_RULES(RULE)  \
  RULE(SgdRule)              \
  RULE(MomentumRule<true>)   \
  RULE(MomentumRule<false>)  \
  RULE(AdagradRule)          \
  RULE(AdagradDecayRule)     \
  RULE(AdamRule)             \
  RULE(AdamAsyncRule<true>)  \
  RULE(AdamAsyncRule<false>) \
  RULE(AdamWRule)            \
  RULE(FtrlRule<true>)       \
  RULE(FtrlRule<false>)      \
  RULE(RmsPropRule)          \
  RULE(CenteredRmsPropRule)  \
  RULE(AdadeltaRule)

template <typename Rule>
struct HasStepKernels : std::false_type {};
#define EV_HAS_STEP_KERNELS(Rule) \
  template <>                     \
  struct HasStepKernels<Rule> : std::true_type {};
EV_STEP_RULES(EV_HAS_STEP_KERNELS)
#undef EV_HAS_STEP_KERNELS

// Applies rule (one of rule_list.h) to the rows of a class's keys. A key's
// gradient is the sum over its occurrences, in their order, of its sample's
// gradient times factor and weight. grads: as pooled. A fresh row starts from
// its default row and the initial slots. Two launches: keys of few occurrences
// on stream; those of up to kWarpSort, whose lists must be sorted before, on
// hot_stream, which may run beside it. Instantiated in update_*.cu, for the
// rules of EV_STEP_RULES.
template <typename Rule>
Status LaunchUpdate(const StepPlan& plan, int dim_class, const float* grads,
                    const Rule& rule, int num_processors, StreamView stream,
                    StreamView hot_stream);

// The same for keys of more occurrences, of all classes. max_dim: of all
// tables. One launch.
template <typename Rule>
Status LaunchHuge(const StepPlan& plan, int max_dim, const float* grads,
                  const Rule& rule, int num_processors, StreamView stream);

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_GPU_STEP_UPDATE_H_
