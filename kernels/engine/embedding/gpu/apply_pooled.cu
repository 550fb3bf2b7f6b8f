// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// A thread sums one element's gradients and applies the rule to it: the sum is
// formed occurrence by occurrence, as SumOccurrences of
// combine/pooling_gradient.h forms it, bit for bit, and is never written. A
// key that occurs very often is left to a second kernel, in which a block sums
// it (long_sum.cuh).

#include <algorithm>
#include <utility>

#include "kernels/engine/base/gpu/cuda_error.h"
#include "kernels/engine/embedding/gpu/apply_pooled.h"
#include "kernels/engine/embedding/gpu/long_sum.cuh"
#include "kernels/engine/embedding/gpu/row_at.cuh"
#include "kernels/engine/embedding/gpu/row_rule.cuh"
#include "kernels/engine/optimizer/rule_list.h"

namespace ev {
namespace gpu {
namespace {

// Gradients that a thread has under way.
constexpr int kAhead = 16;

// From that many occurrences on a block sums a key: what it takes to begin, and
// the additions, are shorter then than a thread's rounds of kAhead loads.
constexpr int32_t kLong = 256;
constexpr int64_t kMaxLongBlocks = 1024;

// The keys that are left to the second kernel, in any order.
struct LongKeys {
  uint32_t* count = nullptr;  // null: there are none
  int32_t* keys = nullptr;    // a key's number in the batch
};

int64_t MaxLongKeys(int64_t num_ids) { return num_ids / kLong; }

// The sum of one column over occurrences [i, end), at least one.
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
                      PooledGradients gradients, LongKeys others, Rule rule) {
  const int64_t n = batch.num_rows * batch.dim;
  for (int64_t e = FirstIndex(); e < n; e += IndexStep()) {
    const int64_t u = e / batch.dim;
    const RowHandle handle = batch.handles[u];
    if (handle >= kFirstReservedHandle) continue;
    const int32_t begin = u == 0 ? 0 : gradients.ends[u - 1];
    const int32_t end = gradients.ends[u];
    const int64_t column = e - u * batch.dim;
    if (others.count != nullptr && end - begin >= kLong) {
      if (column == 0) {
        others.keys[atomicAdd(others.count, 1u)] = static_cast<int32_t>(u);
      }
      continue;
    }
    const float grad = SumOf(gradients, begin, end, batch.dim, column);
    ApplyToElement(rule, grad, RowAt(batch.rows, handle) + column, slots,
                   std::make_index_sequence<Rule::kNumSlots>());
  }
}

// A block takes kSumColumns columns of a key at a time. is_aligned: to float4.
template <typename Rule>
__global__ void __launch_bounds__(kSumThreads)
    ApplyLongKernel(RowBatch batch, SlotOffsets slots,
                    PooledGradients gradients, LongKeys keys, bool is_aligned,
                    Rule rule) {
  __shared__ SumStages stages;
  const int64_t cuts = (batch.dim + kSumColumns - 1) / kSumColumns;
  const int64_t n = *keys.count * cuts;
  // Blocks that share a processor do not add in the same quarter of it.
  const int adding_warp = (blockIdx.x >> 7) % (kSumThreads / kSumLanes);
  LongSum sum;
  sum.from = gradients;
  sum.dim = batch.dim;
  for (int64_t i = blockIdx.x; i < n; i += gridDim.x) {
    const int32_t u = keys.keys[i / cuts];
    sum.first = i % cuts * kSumColumns;
    sum.columns = static_cast<int>(
        min(int64_t{kSumColumns}, batch.dim - sum.first));
    sum.stride_log2 = 0;
    while ((1 << sum.stride_log2) < sum.columns) ++sum.stride_log2;
    sum.begin = u == 0 ? 0 : gradients.ends[u - 1];
    sum.end = gradients.ends[u];
    const float grad = is_aligned
                           ? SumByBlock<float4>(sum, adding_warp, &stages)
                           : SumByBlock<float>(sum, adding_warp, &stages);
    const int lane = threadIdx.x % kSumLanes;
    if (threadIdx.x / kSumLanes == adding_warp && lane < sum.columns) {
      ApplyToElement(
          rule, grad,
          RowAt(batch.rows, batch.handles[u]) + sum.first + lane, slots,
          std::make_index_sequence<Rule::kNumSlots>());
    }
    __syncthreads();  // the stages are used again
  }
}

// Launches the kernels of the rule that VisitRule finds.
struct Launch {
  const RowBatch* batch;
  SlotOffsets slots;
  PooledGradients gradients;
  LongKeys long_keys;
  int64_t max_long_keys;
  cudaStream_t stream;

  template <typename Rule>
  void operator()(const Rule& rule) const {
    static_assert(Rule::kNumSlots <= kMaxSlots, "");
    ApplyPooledKernel<Rule>
        <<<BlocksFor(batch->num_rows * batch->dim), kThreads, 0, stream>>>(
            *batch, slots, gradients, long_keys, rule);
    if (long_keys.count == nullptr) return;
    const int64_t cuts = (batch->dim + kSumColumns - 1) / kSumColumns;
    const int blocks =
        static_cast<int>(std::min(kMaxLongBlocks, max_long_keys * cuts));
    const bool is_aligned =
        batch->dim % 4 == 0 &&
        reinterpret_cast<uintptr_t>(gradients.grads) % sizeof(float4) == 0;
    ApplyLongKernel<Rule><<<blocks, kSumThreads, 0, stream>>>(
        *batch, slots, gradients, long_keys, is_aligned, rule);
  }
};

}  // namespace

size_t PooledScratchBytes(int64_t num_ids) {
  return sizeof(uint32_t) + MaxLongKeys(num_ids) * sizeof(int32_t);
}

Status LaunchApplyPooled(const std::string& rule, Span<const float> hyper,
                         const RowBatch& batch,
                         Span<const int64_t> slot_offsets,
                         const PooledGradients& gradients, int64_t num_ids,
                         char* scratch, StreamView stream) {
  if (batch.num_rows == 0) return Status::OK();
  Launch launch;
  launch.batch = &batch;
  launch.slots = OffsetsOf(slot_offsets);
  launch.gradients = gradients;
  launch.max_long_keys = MaxLongKeys(num_ids);
  launch.stream = stream.get();
  if (launch.max_long_keys > 0) {
    launch.long_keys.count = reinterpret_cast<uint32_t*>(scratch);
    launch.long_keys.keys =
        reinterpret_cast<int32_t*>(scratch + sizeof(uint32_t));
    EV_CUDA_RETURN_IF_ERROR(cudaMemsetAsync(launch.long_keys.count, 0,
                                            sizeof(uint32_t), launch.stream));
  }
  EV_RETURN_IF_ERROR(VisitRule(rule, hyper, launch));
  EV_CUDA_RETURN_IF_LAUNCH_FAILED("ApplyPooledKernel");
  return Status::OK();
}

}  // namespace gpu
}  // namespace ev
