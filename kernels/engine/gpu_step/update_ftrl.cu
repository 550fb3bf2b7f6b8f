// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/gpu_step/update.cuh"
#include "kernels/engine/optimizer/adadelta_rule.h"
#include "kernels/engine/optimizer/ftrl_rule.h"

namespace ev {
namespace gpu {

EV_INSTANTIATE_UPDATE(FtrlRule<true>)
EV_INSTANTIATE_UPDATE(FtrlRule<false>)
EV_INSTANTIATE_UPDATE(AdadeltaRule)

}  // namespace gpu
}  // namespace ev
