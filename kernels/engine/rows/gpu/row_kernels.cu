// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// A thread processes one element, or four adjacent ones. The lanes of a warp
// process adjacent elements, so their memory accesses are coalesced. These
// kernels are limited by the link that feeds them, whose bandwidth is an
// eightieth of the memory's.

#include <algorithm>
#include <utility>

#include "kernels/engine/base/float_math.h"
#include "kernels/engine/base/gpu/cuda_error.h"
#include "kernels/engine/base/gpu/warp.cuh"
#include "kernels/engine/base/hash.h"
#include "kernels/engine/base/random_rounding.h"
#include "kernels/engine/base/row_shape.h"
#include "kernels/engine/optimizer/row_squares.cuh"
#include "kernels/engine/optimizer/rule_list.h"
#include "kernels/engine/rows/gpu/row_at.cuh"
#include "kernels/engine/rows/gpu/row_kernels.h"
#include "kernels/engine/rows/gpu/row_places.h"
#include "kernels/engine/rows/gpu/row_rule.cuh"

namespace ev {
namespace gpu {
namespace {

// T: float or float4; dim and offset are in T's.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    ReadKernel(RowBatch batch, int64_t dim, int64_t offset, T* out) {
  const int64_t n = batch.num_rows * dim;
  for (int64_t e = FirstIndex(); e < n; e += IndexStep()) {
    const int64_t i = e / dim;
    const RowHandle handle = batch.handles[i];
    if (handle >= kFirstReservedHandle) continue;
    const T* row = reinterpret_cast<const T*>(RowAt(batch.rows, handle));
    out[e] = row[offset + (e - i * dim)];
  }
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    WriteKernel(RowBatch batch, int64_t dim, int64_t offset, const T* in) {
  const int64_t n = batch.num_rows * dim;
  for (int64_t e = FirstIndex(); e < n; e += IndexStep()) {
    const int64_t i = e / dim;
    const RowHandle handle = batch.handles[i];
    if (handle >= kFirstReservedHandle) continue;
    T* row = reinterpret_cast<T*>(RowAt(batch.rows, handle));
    row[offset + (e - i * dim)] = in[e];
  }
}

__device__ __forceinline__ uint16_t* NumbersOf(float* row) {
  return reinterpret_cast<uint16_t*>(row);
}

// The same for narrow numbers.
__global__ void __launch_bounds__(kThreads)
    ReadNarrowKernel(RowBatch batch, int64_t offset, float* out) {
  const int64_t n = batch.num_rows * batch.dim;
  for (int64_t e = FirstIndex(); e < n; e += IndexStep()) {
    const int64_t i = e / batch.dim;
    const RowHandle handle = batch.handles[i];
    if (handle >= kFirstReservedHandle) continue;
    out[e] = WidenAs(batch.type, NumbersOf(RowAt(batch.rows, handle) +
                                           offset)[e - i * batch.dim]);
  }
}

__global__ void __launch_bounds__(kThreads)
    WriteNarrowKernel(RowBatch batch, int64_t offset, const float* in) {
  const int64_t n = batch.num_rows * batch.dim;
  for (int64_t e = FirstIndex(); e < n; e += IndexStep()) {
    const int64_t i = e / batch.dim;
    const RowHandle handle = batch.handles[i];
    if (handle >= kFirstReservedHandle) continue;
    NumbersOf(RowAt(batch.rows, handle) + offset)[e - i * batch.dim] =
        RoundTo(batch.type, in[e]);
  }
}

// Returns number c of a row's value.
__device__ __forceinline__ float ValueAt(FloatType type, float* row,
                                         int64_t c) {
  return type == FloatType::kFloat32 ? row[c]
                                     : WidenAs(type, NumbersOf(row)[c]);
}

// One thread per row; it adds in the order of SumOfSquares in
// policy/eviction.h. Runs once per checkpoint.
__global__ void __launch_bounds__(kThreads)
    SquaredNormsKernel(RowBatch batch, double* out) {
  for (int64_t i = FirstIndex(); i < batch.num_rows; i += IndexStep()) {
    const RowHandle handle = batch.handles[i];
    if (handle >= kFirstReservedHandle) continue;
    float* const row = RowAt(batch.rows, handle);
    double squares = 0.0;
    for (int64_t c = 0; c < batch.dim; ++c) {
      const float value = ValueAt(batch.type, row, c);
      squares += static_cast<double>(value) * value;
    }
    out[i] = squares;
  }
}

__global__ void __launch_bounds__(kThreads)
    NewKernel(RowBatch batch, const int64_t* default_rows,
              const float* defaults, const float* new_slots) {
  const int64_t width = batch.rows.stride;
  const int64_t n = batch.num_rows * width;
  for (int64_t e = FirstIndex(); e < n; e += IndexStep()) {
    const int64_t i = e / width;
    const int64_t f = e - i * width;
    const PlacesView& placed = batch.rows.placed;
    if (f == 0 && placed.records != nullptr) {
      const RowHandle handle = batch.handles[i];
      placed.records[handle >> kPlacesLog2][handle & ((1u << kPlacesLog2) - 1)]
          .uses = kHasRow;
    }
    RowAt(batch.rows, batch.handles[i])[f] =
        f < batch.dim ? defaults[default_rows[i] * batch.dim + f]
                      : new_slots[f - batch.dim];
  }
}

__global__ void __launch_bounds__(kThreads)
    WriteHashesKernel(RowBatch batch, const int64_t* keys) {
  for (int64_t i = FirstIndex(); i < batch.num_rows; i += IndexStep()) {
    const RowHandle handle = batch.handles[i];
    if (handle >= kFirstReservedHandle) continue;
    *HashOf(RowAt(batch.rows, handle), batch.rows.stride) = MixKey(keys[i]);
  }
}

__global__ void __launch_bounds__(kThreads)
    RelayoutKernel(RowChange change, const float* from, float* to,
                   int64_t num_rows, const float* new_slots) {
  const int64_t n = num_rows * change.after;
  for (int64_t e = FirstIndex(); e < n; e += IndexStep()) {
    const int64_t i = e / change.after;
    const int64_t f = e - i * change.after;
    const float* const row = from + i * change.before;
    if (f >= change.after - change.hash) {
      to[e] = row[change.before - change.after + f];
    } else {
      to[e] = f < change.kept ? row[f] : new_slots[f - change.value_floats];
    }
  }
}

// A warp per row.
template <typename Rule>
__global__ void __launch_bounds__(kThreads)
    ApplyKernel(RowBatch batch, SlotOffsets slots, const float* grads,
                float grad_factor, RowRounding rounding, Rule rule) {
  const int lane = threadIdx.x % 32;
  const bool is_narrow = batch.type != FloatType::kFloat32;
  for (int64_t i = FirstIndex() / 32; i < batch.num_rows;
       i += IndexStep() / 32) {
    const RowHandle handle = batch.handles[i];
    if (handle >= kFirstReservedHandle) continue;
    const float* const grad = grads + i * batch.dim;
    float* const row = RowAt(batch.rows, handle);
    float rate = 0.0f;
    if constexpr (IsPerRow<Rule>::value) {
      float* const accumulator = row + slots.at[0];
      GroupSquares<1, 32> squares(kAllLanes);
      for (int64_t c = lane; c - lane < batch.dim; c += 32) {
        const float g = c < batch.dim ? grad[c] * grad_factor : 0.0f;
        squares.Add(&g);
      }
      const float sum = squares.Sum();
      const float accumulated = rule.Accumulate(*accumulator, sum, batch.dim);
      __syncwarp();  // all lanes have read it
      if (lane == 0) *accumulator = accumulated;
      rate = rule.Rate(accumulated);
    }
    bool overflows = false;
    for (int64_t c = lane; c < batch.dim; c += 32) {
      float value = ValueAt(batch.type, row, c);
      if constexpr (IsPerRow<Rule>::value) {
        rule(grad[c] * grad_factor, rate, &value);
      } else {
        ApplyToElement(rule, grad[c] * grad_factor, &value, row, c, slots,
                       std::make_index_sequence<Rule::kNumSlots>());
      }
      if (!is_narrow) {
        row[c] = value;
        continue;
      }
      const uint16_t rounded =
          rounding.salts == nullptr
              ? RoundTo(batch.type, value)
              : RoundRandomlyTo(batch.type, value,
                                RandomBitsOfColumn(rounding.salts[i],
                                                   static_cast<uint32_t>(c)));
      overflows |= Overflows(batch.type, value, rounded);
      NumbersOf(row)[c] = rounded;
    }
    if (is_narrow && __any_sync(kAllLanes, overflows) && lane == 0) {
      atomicAdd(rounding.overflows, 1ull);
    }
  }
}

// Visitor for VisitRule that launches the kernel of a rule.
struct Launch {
  const RowBatch* batch;
  SlotOffsets slots;
  const float* grads;
  Span<const float> hyper;
  RowRounding rounding;
  cudaStream_t stream;

  template <typename Rule>
  void operator()(const Rule& rule) const {
    static_assert(Rule::kNumSlots <= kMaxSlots, "");
    ApplyKernel<Rule><<<BlocksFor(batch->num_rows * 32), kThreads, 0, stream>>>(
        *batch, slots, grads, GradFactor<Rule>(hyper), rounding, rule);
  }
};

bool InFours(const RowBatch& batch, int64_t offset) {
  return batch.dim % 4 == 0 && offset % 4 == 0 && batch.rows.stride % 4 == 0;
}

}  // namespace

Status CheckDeviceRunsKernels() {
  cudaFuncAttributes attributes;
  const cudaError_t error = cudaFuncGetAttributes(&attributes, NewKernel);
  if (error == cudaSuccess) return Status::OK();
  cudaGetLastError();  // clears the error, which is returned below
  const Status failed =
      CudaStatus(error, "cudaFuncGetAttributes", __FILE__, __LINE__);
  // Other errors are failures of a supported device.
  if (failed.code() != StatusCode::kFailedPrecondition) return failed;
  int device = 0;
  cudaDeviceProp properties;
  EV_CUDA_RETURN_IF_ERROR(cudaGetDevice(&device));
  EV_CUDA_RETURN_IF_ERROR(cudaGetDeviceProperties(&properties, device));
  return FailedPrecondition(
      std::string("GPU ") + std::to_string(device) + ", " + properties.name +
      " of compute capability " + std::to_string(properties.major) + "." +
      std::to_string(properties.minor) +
      ", does not run this library's code, which is for 8.x, 9.0 and newer (" +
      cudaGetErrorString(error) + ")");
}

Status LaunchReadRows(const RowBatch& batch, int64_t offset, float* out,
                      StreamView stream) {
  if (batch.num_rows == 0) return Status::OK();
  const int64_t n = batch.num_rows * batch.dim;
  if (batch.type != FloatType::kFloat32) {
    ReadNarrowKernel<<<BlocksFor(n), kThreads, 0, stream.get()>>>(batch, offset,
                                                                  out);
  } else if (InFours(batch, offset)) {
    RowBatch fours = batch;
    ReadKernel<float4><<<BlocksFor(n / 4), kThreads, 0, stream.get()>>>(
        fours, batch.dim / 4, offset / 4, reinterpret_cast<float4*>(out));
  } else {
    ReadKernel<float><<<BlocksFor(n), kThreads, 0, stream.get()>>>(
        batch, batch.dim, offset, out);
  }
  EV_CUDA_RETURN_IF_LAUNCH_FAILED("ReadKernel");
  return Status::OK();
}

Status LaunchWriteRows(const RowBatch& batch, int64_t offset, const float* in,
                       StreamView stream) {
  if (batch.num_rows == 0) return Status::OK();
  const int64_t n = batch.num_rows * batch.dim;
  if (batch.type != FloatType::kFloat32) {
    WriteNarrowKernel<<<BlocksFor(n), kThreads, 0, stream.get()>>>(batch,
                                                                   offset, in);
  } else if (InFours(batch, offset)) {
    WriteKernel<float4><<<BlocksFor(n / 4), kThreads, 0, stream.get()>>>(
        batch, batch.dim / 4, offset / 4, reinterpret_cast<const float4*>(in));
  } else {
    WriteKernel<float><<<BlocksFor(n), kThreads, 0, stream.get()>>>(
        batch, batch.dim, offset, in);
  }
  EV_CUDA_RETURN_IF_LAUNCH_FAILED("WriteKernel");
  return Status::OK();
}

Status LaunchSquaredNorms(const RowBatch& batch, double* out,
                          StreamView stream) {
  if (batch.num_rows == 0) return Status::OK();
  SquaredNormsKernel<<<BlocksFor(batch.num_rows), kThreads, 0, stream.get()>>>(
      batch, out);
  EV_CUDA_RETURN_IF_LAUNCH_FAILED("SquaredNormsKernel");
  return Status::OK();
}

Status LaunchNewRows(const RowBatch& batch, const int64_t* default_rows,
                     const float* defaults, const float* new_slots,
                     StreamView stream) {
  if (batch.num_rows == 0) return Status::OK();
  NewKernel<<<BlocksFor(batch.num_rows * batch.rows.stride), kThreads, 0,
              stream.get()>>>(batch, default_rows, defaults, new_slots);
  EV_CUDA_RETURN_IF_LAUNCH_FAILED("NewKernel");
  return Status::OK();
}

Status LaunchWriteHashes(const RowBatch& batch, const int64_t* keys,
                         StreamView stream) {
  if (batch.num_rows == 0) return Status::OK();
  WriteHashesKernel<<<BlocksFor(batch.num_rows), kThreads, 0, stream.get()>>>(
      batch, keys);
  EV_CUDA_RETURN_IF_LAUNCH_FAILED("WriteHashesKernel");
  return Status::OK();
}

Status LaunchRelayout(const RowChange& change, const float* from, float* to,
                      int64_t num_rows, const float* new_slots,
                      StreamView stream) {
  RelayoutKernel<<<BlocksFor(num_rows * change.after), kThreads, 0,
                   stream.get()>>>(change, from, to, num_rows, new_slots);
  EV_CUDA_RETURN_IF_LAUNCH_FAILED("RelayoutKernel");
  return Status::OK();
}

Status LaunchApplyRule(const std::string& rule, Span<const float> hyper,
                       const RowBatch& batch, Span<const int64_t> slot_offsets,
                       const float* grads, const RowRounding& rounding,
                       StreamView stream) {
  if (batch.num_rows == 0) return Status::OK();
  Launch launch;
  launch.batch = &batch;
  launch.slots = OffsetsOf(slot_offsets);
  launch.grads = grads;
  launch.hyper = hyper;
  launch.rounding = rounding;
  launch.stream = stream.get();
  EV_RETURN_IF_ERROR(VisitRule(rule, hyper, launch));
  EV_CUDA_RETURN_IF_LAUNCH_FAILED("ApplyKernel");
  return Status::OK();
}

}  // namespace gpu
}  // namespace ev
