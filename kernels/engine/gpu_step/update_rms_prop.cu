// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/gpu_step/update.cuh"
#include "kernels/engine/optimizer/centered_rms_prop_rule.h"
#include "kernels/engine/optimizer/rms_prop_rule.h"

namespace ev {
namespace gpu {

EV_INSTANTIATE_UPDATE(RmsPropRule)
EV_INSTANTIATE_UPDATE(CenteredRmsPropRule)

}  // namespace gpu
}  // namespace ev
