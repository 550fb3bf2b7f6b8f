// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/gpu_step/update.cuh"
#include "kernels/engine/optimizer/momentum_rule.h"
#include "kernels/engine/optimizer/sgd_rule.h"

namespace ev {
namespace gpu {

EV_INSTANTIATE_UPDATE(SgdRule)
EV_INSTANTIATE_UPDATE(MomentumRule<true>)
EV_INSTANTIATE_UPDATE(MomentumRule<false>)

}  // namespace gpu
}  // namespace ev
