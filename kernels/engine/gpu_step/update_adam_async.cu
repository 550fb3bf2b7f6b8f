// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/gpu_step/update.cuh"
#include "kernels/engine/optimizer/adam_async_rule.h"

namespace ev {
namespace gpu {

EV_INSTANTIATE_UPDATE(AdamAsyncRule<true>)
EV_INSTANTIATE_UPDATE(AdamAsyncRule<false>)

}  // namespace gpu
}  // namespace ev
