// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include <cuda_runtime_api.h>

#include "kernels/engine/base/gpu/cuda_error.h"
#include "kernels/engine/base/gpu/process_device.h"
#include "kernels/engine/gpu_step/step_plan.cuh"
#include "kernels/engine/rows/gpu_step/counters_under_test.h"
#include "kernels/engine/rows/gpu_step/step_counters.h"

namespace ev {
namespace gpu {
namespace {

template <typename T>
Status ToDevice(const T& from, DeviceBuffer* to) {
  EV_RETURN_IF_ERROR(to->Allocate(sizeof(T), "a test"));
  EV_CUDA_RETURN_IF_ERROR(
      cudaMemcpy(to->data(), &from, sizeof(T), cudaMemcpyHostToDevice));
  return Status::OK();
}

}  // namespace

constexpr RowHandle CountersUnderTest::kFew;
constexpr RowHandle CountersUnderTest::kMany;

Status CountersUnderTest::Make(RowCounters* counters) {
  int device = 0;
  EV_RETURN_IF_ERROR(ProcessDevice("this test needs", &device));
  EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(device));
  counters_ = counters;
  EV_RETURN_IF_ERROR(counters->Reserve(kFew));
  EV_RETURN_IF_ERROR(counters->Reserve(kMany));
  EV_RETURN_IF_ERROR(ToDevice(SmallKey{kFew, 3, 0, 0}, &small_));
  EV_RETURN_IF_ERROR(ToDevice(LongKey{kMany, 0, 0, 20}, &longs_));
  StepCounts counts = {};
  counts.of[0].small = counts.of[0].longs = 1;
  return ToDevice(counts, &counts_);
}

Status CountersUnderTest::Set(const RowMeta& meta) {
  float* piece = nullptr;
  EV_CUDA_RETURN_IF_ERROR(
      cudaMemcpy(&piece, counters_->pieces() + (kMany >> kCounterRowsLog2),
                 sizeof(piece), cudaMemcpyDeviceToHost));
  EV_CUDA_RETURN_IF_ERROR(
      cudaMemcpy(piece, &meta, sizeof(meta), cudaMemcpyHostToDevice));
  return Status::OK();
}

Status CountersUnderTest::Update(uint64_t version_plus1, uint32_t call) {
  StepTable table = {};
  table.counters = counters_->pieces();
  table.counted_version_plus1 = version_plus1;
  table.counted_call = call;
  EV_RETURN_IF_ERROR(ToDevice(table, &table_));
  StepPlan plan = {};
  plan.small = small_.as<SmallKey>();
  plan.longs = longs_.as<LongKey>();
  plan.counts = counts_.as<StepCounts>();
  plan.tables = table_.as<StepTable>();
  counters_->WillHave();
  EV_RETURN_IF_ERROR(
      LaunchCounters(plan, /*num_processors=*/2, StreamView(nullptr)));
  EV_CUDA_RETURN_IF_ERROR(cudaStreamSynchronize(nullptr));
  return Status::OK();
}

}  // namespace gpu
}  // namespace ev
