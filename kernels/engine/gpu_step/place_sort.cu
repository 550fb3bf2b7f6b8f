// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include <cub/device/device_radix_sort.cuh>

#include "kernels/engine/base/gpu/block_parts.h"
#include "kernels/engine/base/gpu/cuda_error.h"
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

__global__ void __launch_bounds__(kStepBlock)
    SmallKeysKernel(const __grid_constant__ StepPlan plan, int dim_class,
                    PlaceOrder order, uint32_t* keys, uint32_t* values) {
  const uint32_t k = blockIdx.x * kStepBlock + threadIdx.x;
  if (k >= plan.class_ids[dim_class]) return;
  // The sort keeps elements that are no key behind all keys.
  uint32_t key = ~0u;
  if (k < plan.counts->of[dim_class].small) {
    const SmallKey small = plan.small[plan.id_base[dim_class] + k];
    const uint32_t t = small.table_and_count >> 8;
    key = order.KeyOf(t, PlaceOf(plan.tables[t], small.row));
    if ((small.table_and_count & 0xFF) > 1) key |= order.late_bit();
  }
  keys[k] = key;
  values[k] = k;
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
