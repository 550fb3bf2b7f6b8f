// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// A stable radix sort of the samples by the numbers of their ids' keys. Only
// the bits that these numbers use are sorted.

#include <cuda_runtime.h>

#include <algorithm>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>

#include "kernels/engine/base/gpu/cuda_error.h"
#include "kernels/engine/ids/gpu/group_ids.h"

namespace ev {
namespace gpu {
namespace {

constexpr int kBlock = 256;
constexpr size_t kAlign = 256;

size_t Aligned(size_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

// samples[i] = the last sample s with offsets[s] <= i, that of id i.
__global__ void __launch_bounds__(kBlock)
    SamplesKernel(const int32_t* offsets, uint32_t num_samples,
                  uint32_t num_ids, int32_t* samples) {
  const uint32_t i = blockIdx.x * kBlock + threadIdx.x;
  if (i >= num_ids) return;
  uint32_t low = 0, high = num_samples - 1;
  while (low < high) {
    const uint32_t middle = low + (high - low + 1) / 2;
    if (static_cast<uint32_t>(__ldg(offsets + middle)) <= i) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  samples[i] = static_cast<int32_t>(low);
}

// True if the batch is already grouped: all ids are equal, or all are distinct.
bool IsGrouped(const GroupedBatch& batch) {
  return batch.num_unique == 1 || batch.num_unique == batch.num_ids;
}

cudaError_t Sort(const GroupedBatch& batch, void* scratch, size_t* bytes,
                 const int32_t* samples_in, uint32_t* keys, int32_t* samples,
                 cudaStream_t stream) {
  int bits = 1;
  while (bits < 31 && (batch.num_unique - 1) >> bits != 0) ++bits;
  return cub::DeviceRadixSort::SortPairs(
      scratch, *bytes, reinterpret_cast<const uint32_t*>(batch.inverse), keys,
      samples_in, samples, static_cast<int>(batch.num_ids), 0, bits, stream);
}

cudaError_t SumCounts(const GroupedBatch& batch, void* scratch, size_t* bytes,
                      int32_t* ends, cudaStream_t stream) {
  return cub::DeviceScan::InclusiveSum(scratch, *bytes, batch.counts, ends,
                                       static_cast<int>(batch.num_unique),
                                       stream);
}

// Returns the scratch bytes of the sort or of the sum, which share them.
Status LibraryBytes(const GroupedBatch& batch, size_t* bytes) {
  size_t sort = 0, sum = 0;
  if (!IsGrouped(batch)) {
    EV_CUDA_RETURN_IF_ERROR(
        Sort(batch, nullptr, &sort, nullptr, nullptr, nullptr, nullptr));
  }
  EV_CUDA_RETURN_IF_ERROR(SumCounts(batch, nullptr, &sum, nullptr, nullptr));
  *bytes = std::max<size_t>(1, std::max(sort, sum));
  return Status::OK();
}

// Bytes of each of the sort's two arrays: samples in batch order, sorted keys.
size_t ArrayBytes(const GroupedBatch& batch) {
  return IsGrouped(batch) ? 0 : Aligned(batch.num_ids * sizeof(int32_t));
}

}  // namespace

Status GroupScratchBytes(const GroupedBatch& batch, size_t* bytes) {
  size_t library = 0;
  EV_RETURN_IF_ERROR(LibraryBytes(batch, &library));
  *bytes = 2 * ArrayBytes(batch) + Aligned(library);
  return Status::OK();
}

Status LaunchGroup(const GroupedBatch& batch, char* scratch,
                   size_t scratch_bytes, int32_t* ends, int32_t* samples,
                   StreamView stream) {
  const size_t array = ArrayBytes(batch);
  char* const library = scratch + 2 * array;
  size_t library_bytes = scratch_bytes - 2 * array;
  const bool is_grouped = IsGrouped(batch);
  int32_t* const in_order =
      is_grouped ? samples : reinterpret_cast<int32_t*>(scratch);
  SamplesKernel<<<static_cast<unsigned>((batch.num_ids + kBlock - 1) / kBlock),
                  kBlock, 0, stream.get()>>>(
      batch.offsets, static_cast<uint32_t>(batch.num_samples),
      static_cast<uint32_t>(batch.num_ids), in_order);
  EV_CUDA_RETURN_IF_LAUNCH_FAILED("SamplesKernel");
  if (!is_grouped) {
    EV_CUDA_RETURN_IF_ERROR(Sort(batch, library, &library_bytes, in_order,
                                 reinterpret_cast<uint32_t*>(scratch + array),
                                 samples, stream.get()));
  }
  if (ends == nullptr) return Status::OK();
  library_bytes = scratch_bytes - 2 * array;
  EV_CUDA_RETURN_IF_ERROR(
      SumCounts(batch, library, &library_bytes, ends, stream.get()));
  return Status::OK();
}

}  // namespace gpu
}  // namespace ev
