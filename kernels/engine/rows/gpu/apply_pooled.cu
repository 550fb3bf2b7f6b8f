// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// A thread sums the gradients of one element and applies the rule to it. It
// adds occurrence by occurrence, bit for bit like SumOccurrences
// (combine/pooling_gradient.h), and does not store the sum. Sums of keys that
// occur very often were computed before (combine/gpu/long_sums.h).

#include <algorithm>
#include <utility>

#include "kernels/engine/base/gpu/cuda_error.h"
#include "kernels/engine/optimizer/rule_list.h"
#include "kernels/engine/rows/gpu/apply_pooled.h"
#include "kernels/engine/rows/gpu/row_at.cuh"
#include "kernels/engine/rows/gpu/row_rule.cuh"

namespace ev {
namespace gpu {
namespace {

// Number of gradients that a thread loads before it adds them.
constexpr int kAhead = 16;

// Returns the sum of one column over occurrences [i, end), at least one.
__device__ __forceinline__ float SumOf(const PooledGradients& g, int32_t i,
                                       int32_t end, int64_t dim,
                                       int64_t column) {
  const auto at = [&](int32_t k) {
    const int32_t sample = g.samples[k];
    const float grad = g.grads[sample * dim + column];
    if (g.weights != nullptr) return grad * g.weights[k];
    return g.factors != nullptr ? grad * g.factors[sample] : grad;
  };
  float sum = at(i++);
  for (; i + kAhead <= end; i += kAhead) {
    float ahead[kAhead];
#pragma unroll
    for (int k = 0; k < kAhead; ++k) ahead[k] = at(i + k);
#pragma unroll
    for (int k = 0; k < kAhead; ++k) sum += ahead[k];
  }
  for (; i < end; ++i) sum += at(i);
  return sum;
}

template <typename Rule>
__global__ void __launch_bounds__(kThreads)
    ApplyPooledKernel(RowBatch batch, SlotOffsets slots,
                      PooledGradients gradients, const float* long_sums,
                      Rule rule) {
  const int64_t n = batch.num_rows * batch.dim;
  for (int64_t e = FirstIndex(); e < n; e += IndexStep()) {
    const int64_t u = e / batch.dim;
    const RowHandle handle = batch.handles[u];
    if (handle >= kFirstReservedHandle) continue;
    const int32_t begin = u == 0 ? 0 : gradients.ends[u - 1];
    const int64_t column = e - u * batch.dim;
    const int32_t end = gradients.ends[u];
    const float grad =
        end - begin >= kManyOccurrences
            ? long_sums[begin / kManyOccurrences * batch.dim + column]
            : SumOf(gradients, begin, end, batch.dim, column);
    ApplyToElement(rule, grad, RowAt(batch.rows, handle) + column, slots,
                   std::make_index_sequence<Rule::kNumSlots>());
  }
}

// Launches the kernel of the rule that VisitRule finds.
struct Launch {
  const RowBatch* batch;
  SlotOffsets slots;
  PooledGradients gradients;
  const float* long_sums;
  cudaStream_t stream;

  template <typename Rule>
  void operator()(const Rule& rule) const {
    static_assert(Rule::kNumSlots <= kMaxSlots, "");
    ApplyPooledKernel<Rule>
        <<<BlocksFor(batch->num_rows * batch->dim), kThreads, 0, stream>>>(
            *batch, slots, gradients, long_sums, rule);
  }
};

}  // namespace

Status LaunchApplyPooled(const std::string& rule, Span<const float> hyper,
                         const RowBatch& batch,
                         Span<const int64_t> slot_offsets,
                         const PooledGradients& gradients,
                         const float* long_sums, StreamView stream) {
  if (batch.num_rows == 0) return Status::OK();
  Launch launch;
  launch.batch = &batch;
  launch.slots = OffsetsOf(slot_offsets);
  launch.gradients = gradients;
  launch.long_sums = long_sums;
  launch.stream = stream.get();
  EV_RETURN_IF_ERROR(VisitRule(rule, hyper, launch));
  EV_CUDA_RETURN_IF_LAUNCH_FAILED("ApplyPooledKernel");
  return Status::OK();
}

}  // namespace gpu
}  // namespace ev
