// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Measures the keys per second that TableSet::FindAndCopy looks up, including
// row copies.

#include "benchmarks/gpu/table_bench.cuh"

using namespace ev::gpu;         // NOLINT: a program
using namespace ev::gpu::bench;  // NOLINT

namespace {
__global__ void FillRowsKernel(float* rows, int64_t n) {
  const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
       i < n; i += stride) {
    rows[i] = static_cast<float>(KeyAt(i) >> 40);
  }
}
}  // namespace

int main() {
  const int64_t dims[] = {8, 32, 64};
  const double goals[] = {8, 7.5, 5.2};
  const double peer[] = {3.8, 3.8, 3.7};
  const double loads[] = {0.5, 0.75, 0.9995};
  const double reads[] = {1.001, 1.02, 1.08};
  Bench b(Eviction::kLru);
  Array<float> rows(b.total_slots() * 64);
  Array<float> out(kBatch * 64);
  FillRowsKernel<<<1024, 256>>>(rows.get(), b.total_slots() * 64);
  for (int l = 0; l < 3; ++l) {
    b.FillTo(loads[l]);
    b.MakeKeys(1.0f);
    for (int d = 0; d < 3; ++d) {
      const int64_t dim = dims[d];
      // A row is one 32-byte touch at dim 8, one line at dim 32, and 256 bytes
      // at dim 64.
      const double row_touches = dim == 8 ? 40.2 : dim == 32 ? 33.9 : 17.7;
      const double limit =
          1 / (reads[l] / 33.9 + 1 / row_touches + dim * 4 / 4300.0);
      Must(b.set->SetRowsSync(std::vector<RowBlock>{{rows.get(), dim}}, dim));
      const double us = MedianUs(8, 64, [&](int i) {
        Must(b.set->FindAndCopy(b.Batch(i), nullptr, out.get(), nullptr,
                                StreamView()));
      });
      char what[128];
      std::snprintf(what, sizeof(what), "find + copy, dim %d, load %.2f",
                    static_cast<int>(dim), loads[l]);
      Report(what, us, goals[d], peer[d], limit);
    }
  }
  return 0;
}
