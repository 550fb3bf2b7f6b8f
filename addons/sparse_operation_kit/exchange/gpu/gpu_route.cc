// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/sparse_operation_kit/exchange/gpu/gpu_route.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "addons/sparse_operation_kit/exchange/gpu/gpu_event.h"
#include "addons/sparse_operation_kit/exchange/gpu/sum_kernels.h"
#include "kernels/engine/base/gpu/cuda_error.h"
#include "kernels/engine/base/gpu/device_event.h"
#include "kernels/engine/base/gpu/pinned_memory.h"
#include "kernels/engine/base/tasks.h"
#include "kernels/engine/combine/gpu/long_sums.h"
#include "kernels/engine/ids/gpu/gpu_distinct.h"

namespace sok {
namespace gpu {
namespace {

using ev::Span;
using ev::Status;
using ev::gpu::DeviceEvent;
using ev::gpu::GpuDistinct;
using ev::gpu::Parts;
using ev::gpu::WorkContext;

// Ids per sort, unless one table has more.
constexpr int64_t kMostIds = int64_t{1} << 29;

bool IsByFours(const void* memory, ev::FloatType type) {
  return reinterpret_cast<uintptr_t>(memory) % (4 * ev::FloatBytes(type)) == 0;
}

}  // namespace

GpuRoute::~GpuRoute() {
  if (context_ == nullptr) return;
  EV_CUDA_LOG_IF_ERROR(cudaSetDevice(device_));
  // A context that failed is destroyed.
  if (context_->Wait().ok()) WorkContext::Release(std::move(context_));
}

Status GpuRoute::Start() {
  EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(device_));
  const int num_tables = plan_->num_tables();
  // StartPool uploads the first part from the context's pinned memory.
  tables_at_ = parts_.AddBytes(num_tables * sizeof(PooledTable));
  numbers_at_ = parts_.AddBytes(NumbersBytes());
  const size_t host_bytes = parts_.bytes();
  for (int t = 0; t < num_tables; ++t) {
    const RoutedTable& table = plan_->routed(t);
    if (table.has_weights || ev::Selects(table.combiner)) {
      return ev::InvalidArgument(
          "a GPU cannot pool samples with weights or with a combiner that "
          "selects (max), table '" +
          table.name + "'; pool them on the CPU");
    }
    samples_at_.push_back(parts_.AddBytes(table.for_pooling_bytes()));
  }
  EV_RETURN_IF_ERROR(
      WorkContext::Acquire(host_bytes, parts_.bytes(), &context_));
  for (int t = 0; t < num_tables; ++t) {
    const RoutedTable& table = plan_->routed(t);
    if (table.batch_size == 0 || table.for_pooling_bytes() == 0) continue;
    EV_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(
        context_->device() + samples_at_[t], table.for_pooling(),
        table.for_pooling_bytes(), cudaMemcpyHostToDevice, context_->stream()));
  }
  return Status::OK();
}

Status GpuRoute::StartPool(const char* rows, WireType wire,
                           const std::shared_ptr<StreamEvent>& rows_ready,
                           Span<const int64_t> chunk_starts,
                           Span<const ev::MutableFloats> outputs,
                           const ev::DeviceStream* stream,
                           std::shared_ptr<StreamEvent>* done) {
  if (is_pooled_)
    return ev::Internal("StartPool was called twice for one route");
  is_pooled_ = true;
  EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(device_));
  const Status status = ev::CatchBadAlloc([&] {
    return EnqueuePool(rows, wire, rows_ready, chunk_starts, outputs, stream,
                       done);
  });
  // On error the caller keeps nothing alive.
  if (!status.ok()) static_cast<void>(context_->Wait());
  return status;
}

Status GpuRoute::EnqueuePool(const char* rows, WireType wire,
                             const std::shared_ptr<StreamEvent>& rows_ready,
                             Span<const int64_t> chunk_starts,
                             Span<const ev::MutableFloats> outputs,
                             const ev::DeviceStream* stream,
                             std::shared_ptr<StreamEvent>* done) {
  const int num_tables = plan_->num_tables();
  std::vector<ev::MutableFloats> device_outputs(outputs.begin(), outputs.end());
  if (stream == nullptr) {
    Parts parts;
    std::vector<size_t> at;
    for (int t = 0; t < num_tables; ++t) {
      const RoutedTable& table = plan_->routed(t);
      at.push_back(parts.AddBytes(table.batch_size * table.dim *
                                  ev::FloatBytes(outputs[t].type())));
    }
    EV_RETURN_IF_ERROR(memory_->Allocate(parts.bytes(), &outputs_));
    for (int t = 0; t < num_tables; ++t) {
      if (device_outputs[t] == nullptr) continue;
      device_outputs[t] =
          ev::MutableFloats(outputs_.get() + at[t], outputs[t].type());
    }
  }
  char* const device = context_->device();
  PooledTable* const tables =
      reinterpret_cast<PooledTable*>(context_->host() + tables_at_);
  int64_t most = 0, num_pooled = 0;
  for (int t = 0; t < num_tables; ++t) {
    const RoutedTable& table = plan_->routed(t);
    if (device_outputs[t] == nullptr || table.batch_size == 0) continue;
    if (stream != nullptr) {
      EV_RETURN_IF_ERROR(
          ev::gpu::CheckIsOn(device_, device_outputs[t].data(), "the output"));
    }
    tables[num_pooled++] = Describe(t, chunk_starts, device_outputs[t]);
    most = std::max(most, table.batch_size * table.dim);
  }
  if (num_pooled == 0) return Status::OK();
  EV_CUDA_RETURN_IF_ERROR(
      cudaMemcpyAsync(device, context_->host(), numbers_at_ + NumbersBytes(),
                      cudaMemcpyHostToDevice, context_->stream()));
  if (stream != nullptr) EV_RETURN_IF_ERROR(context_->Follow(*stream));
  if (rows_ready != nullptr) {
    EV_RETURN_IF_ERROR(
        rows_ready->Before(ev::DeviceStream{context_->stream()}));
  }
  for (int64_t t = 0; t < num_pooled; t += kMostOfOneLaunch) {
    EV_RETURN_IF_ERROR(LaunchPoolReceived(
        reinterpret_cast<const PooledTable*>(device + tables_at_) + t,
        std::min(kMostOfOneLaunch, num_pooled - t), most, rows, wire,
        context_->stream()));
  }
  if (stream != nullptr) {
    std::shared_ptr<DeviceEvent> end;
    EV_RETURN_IF_ERROR(DeviceEvent::Record(context_->stream(), &end));
    EV_RETURN_IF_ERROR(end->Before(static_cast<cudaStream_t>(stream->native)));
    *done = std::make_shared<GpuEvent>(device_, std::move(end));
    return Status::OK();
  }
  for (int t = 0; t < num_tables; ++t) {
    const RoutedTable& table = plan_->routed(t);
    const size_t bytes =
        table.batch_size * table.dim * ev::FloatBytes(outputs[t].type());
    if (outputs[t] == nullptr || bytes == 0) continue;
    EV_CUDA_RETURN_IF_ERROR(
        cudaMemcpyAsync(outputs[t].data(), device_outputs[t].data(), bytes,
                        cudaMemcpyDeviceToHost, context_->stream()));
  }
  return Status::OK();
}

Status GpuRoute::Wait() {
  EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(device_));
  EV_RETURN_IF_ERROR(context_->Wait());
  outputs_.reset();
  return Status::OK();
}

size_t GpuRoute::NumbersBytes() const {
  return plan_->num_tables() * (2 * plan_->num_ranks() + 1) * sizeof(int64_t);
}

GpuRoute::Samples GpuRoute::SamplesOf(int t) const {
  const RoutedTable& table = plan_->routed(t);
  const char* const at = context_->device() + samples_at_[t];
  Samples samples;
  if (table.distinct != nullptr) {
    const auto& distinct = static_cast<const GpuDistinct&>(*table.distinct);
    samples.offsets = distinct.device_offsets();
    samples.inverse = distinct.device_inverse();
    samples.places = table.is_sorted_on_device
                         ? distinct.device_cache_slots()
                         : reinterpret_cast<const int32_t*>(at);
    return samples;
  }
  samples.offsets = reinterpret_cast<const int32_t*>(at);
  samples.inverse = reinterpret_cast<const int32_t*>(
      at + (reinterpret_cast<const char*>(table.inverse) -
            reinterpret_cast<const char*>(table.offsets)));
  samples.places = nullptr;
  return samples;
}

PooledTable GpuRoute::Describe(int t, Span<const int64_t> chunk_starts,
                               ev::MutableFloats out) {
  const RoutedTable& table = plan_->routed(t);
  const int num_tables = plan_->num_tables(), num_ranks = plan_->num_ranks();
  const size_t at = numbers_at_ + t * (2 * num_ranks + 1) * sizeof(int64_t);
  int64_t* const numbers = reinterpret_cast<int64_t*>(context_->host() + at);
  PooledTable pooled;
  pooled.by_fours = table.dim % 4 == 0 && IsByFours(out.data(), out.type());
  for (int r = 0; r <= num_ranks; ++r) numbers[r] = table.starts[r];
  for (int r = 0; r < num_ranks; ++r) {
    const int64_t chunk = chunk_starts[r * num_tables + t];
    numbers[num_ranks + 1 + r] = chunk;
    pooled.by_fours &= chunk % 4 == 0;
  }
  pooled.starts = reinterpret_cast<const int64_t*>(context_->device() + at);
  pooled.chunks = pooled.starts + num_ranks + 1;
  const Samples samples = SamplesOf(t);
  pooled.offsets = samples.offsets;
  pooled.inverse = samples.inverse;
  pooled.places = samples.places;
  pooled.out = out.data();
  pooled.out_type = out.type();
  pooled.num_samples = table.batch_size;
  pooled.dim = table.dim;
  pooled.combiner = table.combiner;
  return pooled;
}

Status GpuRoute::SumGradients(Span<const int> tables,
                              Span<const ev::ConstFloats> grads,
                              const ev::DeviceStream& stream,
                              Span<const int64_t> chunk_starts, WireType wire,
                              char* message,
                              std::shared_ptr<StreamEvent>* done) {
  done->reset();
  for (size_t begin = 0; begin < tables.size();) {
    int64_t num_ids = plan_->num_ids(tables[begin]);
    size_t end = begin + 1;
    while (end < tables.size() &&
           end - begin < static_cast<size_t>(kMostOfOneLaunch) &&
           num_ids + plan_->num_ids(tables[end]) <= kMostIds) {
      num_ids += plan_->num_ids(tables[end++]);
    }
    const Status status = ev::CatchBadAlloc([&] {
      return SumSome(tables, grads, stream, chunk_starts, wire, begin, end,
                     message, done);
    });
    if (!status.ok()) {
      // On error the caller keeps nothing alive.
      if (*done != nullptr) static_cast<void>((*done)->Wait());
      return status;
    }
    begin = end;
  }
  return Status::OK();
}

SummedTable GpuRoute::DescribeSum(int t, ev::ConstFloats grads,
                                  const int64_t* chunk_starts, size_t stride,
                                  int64_t* numbers) const {
  const RoutedTable& table = plan_->routed(t);
  const int num_ranks = plan_->num_ranks();
  SummedTable summed;
  summed.grads = reinterpret_cast<const float*>(grads.data());
  summed.grad_type = grads.type();
  summed.by_fours = table.dim % 4 == 0 && IsByFours(grads.data(), grads.type());
  for (int r = 0; r <= num_ranks; ++r) numbers[r] = table.starts[r];
  for (int r = 0; r < num_ranks; ++r) {
    const int64_t chunk = chunk_starts[r * stride];
    numbers[num_ranks + 1 + r] = chunk;
    summed.by_fours &= chunk % 4 == 0;
  }
  const Samples samples = SamplesOf(t);
  summed.offsets = samples.offsets;
  summed.inverse = samples.inverse;
  summed.places = samples.places;
  summed.num_ids = table.num_ids;
  summed.num_keys = table.num_unique;
  summed.num_samples = table.batch_size;
  summed.dim = table.dim;
  return summed;
}

Status GpuRoute::SumSome(Span<const int> tables,
                         Span<const ev::ConstFloats> grads,
                         const ev::DeviceStream& stream,
                         Span<const int64_t> chunk_starts, WireType wire,
                         size_t begin, size_t end, char* message,
                         std::shared_ptr<StreamEvent>* done) {
  EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(device_));
  // Record now: TensorFlow may enqueue more work on its stream, which the
  // gradients do not need.
  std::shared_ptr<DeviceEvent> made;
  EV_RETURN_IF_ERROR(
      DeviceEvent::Record(static_cast<cudaStream_t>(stream.native), &made));
  const int num_ranks = plan_->num_ranks();
  const size_t n = end - begin;
  const size_t table_numbers = (2 * num_ranks + 1) * sizeof(int64_t);
  SummedTables all;
  Parts parts;
  const size_t tables_at = parts.AddBytes(n * sizeof(SummedTable));
  const size_t numbers_at = parts.AddBytes(n * table_numbers);
  std::vector<size_t> factors_at(n), sums_at(n);
  for (size_t k = 0; k < n; ++k) {
    const RoutedTable& table = plan_->routed(tables[begin + k]);
    if (ev::FactorsOf(table) == nullptr) continue;
    factors_at[k] = parts.AddBytes(table.batch_size * sizeof(float));
  }
  const size_t up_bytes = parts.bytes();
  for (size_t k = 0; k < n; ++k) {
    const RoutedTable& table = plan_->routed(tables[begin + k]);
    if (table.num_ids > 0) {
      EV_RETURN_IF_ERROR(
          ev::gpu::CheckIsOn(device_, grads[begin + k].data(), "the gradient"));
    }
    sums_at[k] =
        parts.AddBytes(ev::gpu::LongSumBytes(table.num_ids, table.dim));
    SummedTable counted;
    counted.num_ids = table.num_ids;
    counted.num_keys = table.num_unique;
    counted.dim = table.dim;
    AddTable(counted, &all);
  }
  if (all.num_ids == 0) return Status::OK();
  GroupScratch scratch;
  EV_RETURN_IF_ERROR(
      SortScratchBytes(all.num_ids, all.num_keys, &scratch.sort_bytes));
  const size_t keys_at = parts.AddBytes(all.num_ids * sizeof(uint32_t));
  const size_t sorted_at = parts.AddBytes(all.num_ids * sizeof(uint32_t));
  const size_t unsorted_at = parts.AddBytes(all.num_ids * sizeof(int32_t));
  const size_t samples_at = parts.AddBytes(all.num_ids * sizeof(int32_t));
  const size_t ends_at = parts.AddBytes(all.num_keys * sizeof(int32_t));
  const size_t sort_at = parts.AddBytes(scratch.sort_bytes);
  std::unique_ptr<WorkContext> context;
  EV_RETURN_IF_ERROR(WorkContext::Acquire(up_bytes, parts.bytes(), &context));
  char* const device = context->device();
  SummedTable* const described =
      reinterpret_cast<SummedTable*>(context->host() + tables_at);
  int64_t first_id = 0, first_key = 0;
  for (size_t k = 0; k < n; ++k) {
    const int t = tables[begin + k];
    const RoutedTable& table = plan_->routed(t);
    const size_t at = numbers_at + k * table_numbers;
    SummedTable summed = DescribeSum(
        t, grads[begin + k], chunk_starts.data() + begin + k, tables.size(),
        reinterpret_cast<int64_t*>(context->host() + at));
    summed.starts = reinterpret_cast<const int64_t*>(device + at);
    summed.chunks = summed.starts + num_ranks + 1;
    const float* const factors = ev::FactorsOf(table);
    if (factors != nullptr) {
      std::memcpy(context->host() + factors_at[k], factors,
                  table.batch_size * sizeof(float));
      summed.factors = reinterpret_cast<const float*>(device + factors_at[k]);
    }
    summed.long_sums = reinterpret_cast<float*>(device + sums_at[k]);
    summed.first_id = first_id;
    summed.first_key = first_key;
    first_id += table.num_ids;
    first_key += table.num_unique;
    described[k] = summed;
  }
  EV_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(device, context->host(), up_bytes,
                                          cudaMemcpyHostToDevice,
                                          context->stream()));
  all.tables = reinterpret_cast<const SummedTable*>(device + tables_at);
  scratch.keys = reinterpret_cast<uint32_t*>(device + keys_at);
  scratch.sorted_keys = reinterpret_cast<uint32_t*>(device + sorted_at);
  scratch.samples = reinterpret_cast<int32_t*>(device + unsorted_at);
  scratch.sort = device + sort_at;
  int32_t* const ends = reinterpret_cast<int32_t*>(device + ends_at);
  int32_t* const samples = reinterpret_cast<int32_t*>(device + samples_at);
  // The copy of the route's samples may be in flight.
  EV_RETURN_IF_ERROR(context->Follow(ev::DeviceStream{context_->stream()}));
  EV_RETURN_IF_ERROR(
      LaunchGroupRoute(all, scratch, ends, samples, context->stream()));
  // Wait for the gradients only here, so that grouping overlaps with their
  // computation.
  EV_RETURN_IF_ERROR(made->Before(context->stream()));
  EV_RETURN_IF_ERROR(
      LaunchSumRoute(all, ends, samples, wire, message, context->stream()));
  if (*done != nullptr) {
    EV_RETURN_IF_ERROR((*done)->Before(ev::DeviceStream{context->stream()}));
  }
  EV_RETURN_IF_ERROR(GpuEvent::Make(device_, context->stream(), done));
  WorkContext::ReleaseBusy(std::move(context));
  return Status::OK();
}

}  // namespace gpu
}  // namespace sok
