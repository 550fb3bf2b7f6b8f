// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/gpu_step/update.cuh"
#include "kernels/engine/optimizer/adam_rule.h"
#include "kernels/engine/optimizer/adam_w_rule.h"

namespace ev {
namespace gpu {

EV_INSTANTIATE_UPDATE(AdamRule)
EV_INSTANTIATE_UPDATE(AdamWRule)

}  // namespace gpu
}  // namespace ev
