// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/gpu_step/update.cuh"
#include "kernels/engine/optimizer/adagrad_decay_rule.h"
#include "kernels/engine/optimizer/adagrad_rule.h"
#include "kernels/engine/optimizer/row_wise_adagrad_rule.h"

namespace ev {
namespace gpu {

EV_INSTANTIATE_UPDATE(AdagradRule)
EV_INSTANTIATE_UPDATE(AdagradDecayRule)
EV_INSTANTIATE_UPDATE(RowWiseAdagradRule)

}  // namespace gpu
}  // namespace ev
