// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include <cub/device/device_radix_sort.cuh>

#include "kernels/engine/base/gpu/block_parts.h"
#include "kernels/engine/base/gpu/cuda_error.h"
#include "kernels/engine/base/gpu/warp.cuh"
#include "kernels/engine/gpu_step/place_sort.h"
#include "kernels/engine/gpu_step/step_plan.cuh"

namespace ev {
namespace gpu {
namespace {

cudaError_t Sort(void* scratch, size_t* bytes,
                 cub::DoubleBuffer<uint32_t>* keys,
                 cub::DoubleBuffer<uint32_t>* values, int64_t count, int bits,
                 cudaStream_t stream) {
  return cub::DeviceRadixSort::SortPairs(scratch, *bytes, *keys, *values,
                                         static_cast<int>(count), 0, bits,
                                         stream);
}

Status ScratchBytes(int64_t n, size_t* bytes) {
  cub::DoubleBuffer<uint32_t> keys, values;
  *bytes = 0;
  EV_CUDA_RETURN_IF_ERROR(
      Sort(nullptr, bytes, &keys, &values, n, /*bits=*/32, nullptr));
  return Status::OK();
}

// Adds the rows of a warp's lanes that are in host memory to the counters of
// their tables. All lanes call it. A lane with 'has' has the row of table t at
// that place.
__device__ __forceinline__ void CountUpdated(const StepPlan& plan, bool has,
                                             uint32_t t, uint32_t place) {
  has = has && plan.tables[t].updated_on_host != nullptr &&
        place >= plan.tables[t].first_on_host;
  unsigned left = __ballot_sync(kAllLanes, has);
  while (left != 0) {
    const int first = __ffs(left) - 1;
    const uint32_t of = __shfl_sync(kAllLanes, t, first);
    const unsigned same = __ballot_sync(kAllLanes, has && t == of);
    if (threadIdx.x % 32 == first) {
      atomicAdd(plan.tables[of].updated_on_host, 0ull + __popc(same));
    }
    left &= ~same;
  }
}

// Makes the sort's input of a class, and counts its keys in host memory.
__global__ void __launch_bounds__(kStepBlock)
    SmallKeysKernel(const __grid_constant__ StepPlan plan, int dim_class,
                    PlaceOrder order, uint32_t* keys, uint32_t* values) {
  const uint32_t k = blockIdx.x * kStepBlock + threadIdx.x;
  uint32_t t = 0, place = 0;
  const bool is_small = k < plan.counts->of[dim_class].small;
  // The sort keeps elements that are no key behind all keys.
  uint32_t key = ~0u;
  if (is_small) {
    const SmallKey small = plan.small[plan.id_base[dim_class] + k];
    t = small.table_and_count >> 8;
    place = PlaceOf(plan.tables[t], small.row);
    key = order.KeyOf(t, place);
    if ((small.table_and_count & 0xFF) > 1) key |= order.late_bit();
  }
  if (k < plan.class_ids[dim_class]) {
    keys[k] = key;
    values[k] = k;
  }
  CountUpdated(plan, is_small, t, place);
  // A class has fewer long keys than ids.
  const bool is_long = k < plan.counts->of[dim_class].longs;
  if (__ballot_sync(kAllLanes, is_long) == 0) return;
  if (is_long) {
    const LongKey& key = plan.longs[plan.long_base[dim_class] + k];
    t = key.table;
    place = PlaceOf(plan.tables[t], key.row);
  }
  CountUpdated(plan, is_long, t, place);
}

}  // namespace

PlaceSort::PlaceSort(char* memory, int64_t n) {
  Carver carve(memory);
  for (uint32_t*& array : keys_) array = carve.Take<uint32_t>(n);
  for (uint32_t*& array : values_) array = carve.Take<uint32_t>(n);
  scratch_ = carve.next();
}

Status PlaceSort::Bytes(int64_t n, size_t* bytes) {
  Carver carve(nullptr);
  for (int array = 0; array < 4; ++array) carve.Take<uint32_t>(n);
  EV_RETURN_IF_ERROR(ScratchBytes(n, bytes));
  *bytes += carve.bytes();
  return Status::OK();
}

Status PlaceSort::Launch(int64_t first, int64_t count, int bits,
                         StreamView stream, const uint32_t** sorted_keys,
                         const uint32_t** sorted_values) {
  cub::DoubleBuffer<uint32_t> keys(keys_[0] + first, keys_[1] + first);
  cub::DoubleBuffer<uint32_t> values(values_[0] + first, values_[1] + first);
  size_t bytes = 0;
  EV_RETURN_IF_ERROR(ScratchBytes(count, &bytes));
  EV_CUDA_RETURN_IF_ERROR(
      Sort(scratch_, &bytes, &keys, &values, count, bits, stream.get()));
  *sorted_keys = keys.Current();
  *sorted_values = values.Current();
  return Status::OK();
}

Status LaunchOrderSmall(int dim_class, const PlaceOrder& order, PlaceSort* sort,
                        StreamView stream, StepPlan* plan) {
  const int64_t first = plan->id_base[dim_class];
  const int64_t count = plan->class_ids[dim_class];
  const int blocks = static_cast<int>((count + kStepBlock - 1) / kStepBlock);
  SmallKeysKernel<<<blocks, kStepBlock, 0, stream.get()>>>(
      *plan, dim_class, order, sort->keys() + first, sort->values() + first);
  EV_CUDA_RETURN_IF_LAUNCH_FAILED("SmallKeysKernel");
  const uint32_t* keys = nullptr;
  return sort->Launch(first, count, order.bits, stream, &keys,
                      &plan->small_order[dim_class]);
}

}  // namespace gpu
}  // namespace ev
