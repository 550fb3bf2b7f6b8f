// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The whole sparse step: 26 tables, 65,536 samples each, sum pooling, exact
// Adagrad, int64 keys through the hash table, all keys present.
//
//   step [DIM:HOT:zipf|uniform]...     no argument: every row of the goal table
//
// Beside the time: the time that the bytes of the step need at the rates which
// the card was measured to give for such touches
// (docs/design/0006-gpu-step.md).

#include <cmath>
#include <cstring>

#include "benchmarks/gpu/table_bench.cuh"
#include "kernels/engine/gpu_resident/step/sparse_step.h"

namespace ev {
namespace gpu {
namespace bench {

constexpr int kTables = 26;
constexpr int64_t kSamples = 65536;
constexpr int kSets = 6;
constexpr int kSteps = 20;

__global__ void FillRowsKernel(float* rows, int64_t n, int dim,
                               int64_t stride) {
  const int64_t i = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
  if (i >= n) return;
  const uint64_t r = static_cast<uint64_t>(KeyAt(i));
  rows[i] = i % stride < dim ? (r >> 40) * (1.0f / (1 << 24)) - 0.5f : 0.1f;
}

__global__ void RowKeysKernel(int64_t* keys, int64_t first, int64_t per_table,
                              int64_t rows) {
  const int64_t i = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
  if (i >= per_table * kTables) return;
  const int64_t t = i / per_table;
  keys[i] = KeyAt((t << 40) + min(first + i % per_table, rows - 1));
}

// cdf: [rows] of Zipf's law, or null: uniform.
__global__ void DrawKernel(int64_t* ids, int64_t per_table, int64_t rows,
                           const double* cdf, uint64_t seed) {
  const int64_t i = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
  if (i >= per_table * kTables) return;
  const int64_t t = i / per_table;
  const uint64_t r =
      static_cast<uint64_t>(KeyAt(seed * 0x100000000ULL + i)) >> 11;
  const double u = r * (1.0 / (1ULL << 53));
  int64_t row = static_cast<int64_t>(u * rows);
  if (cdf != nullptr) {
    int64_t low = 0, high = rows - 1;  // the first with cdf > u
    while (low < high) {
      const int64_t middle = (low + high) / 2;
      if (cdf[middle] > u) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    row = low;
  }
  ids[i] = KeyAt((t << 40) + row);
}

__global__ void GradKernel(float* grads, int64_t n) {
  const int64_t i = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
  if (i < n) {
    const uint64_t r = static_cast<uint64_t>(KeyAt(i + 77));
    grads[i] = ((r >> 40) * (1.0f / (1 << 24)) - 0.5f) * 1e-3f;
  }
}

double Median(std::vector<double> v) {
  std::nth_element(v.begin(), v.begin() + v.size() / 2, v.end());
  return v[v.size() / 2];
}

void Run(int dim, int hot, bool zipf) {
  const int64_t rows = dim <= 32 ? 5000000 : dim <= 64 ? 4000000 : 2000000;
  const int64_t per_table = kSamples * hot, n = per_table * kTables;
  SparseStepOptions options;
  options.slot_init = {0.1f};
  for (int t = 0; t < kTables; ++t) {
    StepTableOptions table;
    table.name = "bench";
    table.capacity = rows * 4 / 3;
    table.dim = dim;
    table.default_rows.assign(dim, 0.0f);
    options.tables.push_back(table);
  }
  std::unique_ptr<SparseStep> step;
  Must(SparseStep::Create(options, StreamView(), &step));
  Must(step->ReserveSync(n, kSamples * kTables));
  for (int t = 0; t < kTables; ++t) {
    const int64_t floats = step->tables()->num_slots(t) * step->rows(t).stride;
    FillRowsKernel<<<Blocks(floats), 256>>>(step->mutable_rows(t), floats, dim,
                                            step->rows(t).stride);
  }
  {
    const int64_t keys_per_call = 1 << 18;
    Array<int64_t> keys(keys_per_call * kTables),
        slots(keys_per_call * kTables), offsets(kTables + 1);
    std::vector<int64_t> host;
    for (int t = 0; t <= kTables; ++t) host.push_back(keys_per_call * t);
    MustCuda(cudaMemcpy(offsets.get(), host.data(), host.size() * 8,
                        cudaMemcpyHostToDevice));
    KeyBatch batch;
    batch.keys = keys.get();
    batch.num_keys = keys_per_call * kTables;
    batch.offsets = offsets.get();
    for (int64_t first = 0; first < rows; first += keys_per_call) {
      RowKeysKernel<<<Blocks(batch.num_keys), 256>>>(keys.get(), first,
                                                     keys_per_call, rows);
      Must(step->tables()->FindOrInsert(batch, slots.get(), nullptr,
                                        EvictedKeys(), StreamView()));
    }
    MustCuda(cudaDeviceSynchronize());
  }
  Array<int64_t> ids(n * kSets);
  {
    Array<double> cdf(rows);
    if (zipf) {
      std::vector<double> host(rows);
      double sum = 0;
      for (int64_t k = 0; k < rows; ++k) {
        sum += std::pow(static_cast<double>(k + 1), -1.05);
        host[k] = sum;
      }
      for (double& v : host) v /= sum;
      MustCuda(
          cudaMemcpy(cdf.get(), host.data(), rows * 8, cudaMemcpyHostToDevice));
    }
    for (int s = 0; s < kSets; ++s) {
      DrawKernel<<<Blocks(n), 256>>>(ids.get() + s * n, per_table, rows,
                                     zipf ? cdf.get() : nullptr, s + 1);
    }
    MustCuda(cudaDeviceSynchronize());
  }
  std::vector<int64_t> first(per_table);
  MustCuda(cudaMemcpy(first.data(), ids.get(), per_table * 8,
                      cudaMemcpyDeviceToHost));
  std::sort(first.begin(), first.end());
  const double share =
      static_cast<double>(std::unique(first.begin(), first.end()) -
                          first.begin()) /
      per_table;

  std::vector<int64_t> host_splits;
  for (int t = 0; t < kTables; ++t) {
    for (int64_t s = 0; s <= kSamples; ++s) host_splits.push_back(s * hot);
  }
  Array<int64_t> splits(host_splits.size());
  MustCuda(cudaMemcpy(splits.get(), host_splits.data(), host_splits.size() * 8,
                      cudaMemcpyHostToDevice));
  const int64_t pooled_size = kSamples * kTables * dim;
  Array<float> pooled(pooled_size), grads(pooled_size);
  GradKernel<<<Blocks(pooled_size), 256>>>(grads.get(), pooled_size);
  const std::vector<int64_t> num_ids(kTables, per_table),
      num_samples(kTables, kSamples);
  const std::vector<float> lr = {0.01f};
  StepBatch batch;
  batch.num_ids = num_ids;
  batch.num_samples = num_samples;
  batch.splits = hot == 1 ? nullptr : splits.get();

  cudaStream_t stream;
  MustCuda(cudaStreamCreate(&stream));
  cudaEvent_t e[3][kSteps];
  for (auto& row : e) {
    for (cudaEvent_t& event : row) MustCuda(cudaEventCreate(&event));
  }
  MustCuda(cudaDeviceSynchronize());
  size_t free_before = 0, free_after = 0, total = 0;
  for (int k = -kSets; k < kSteps; ++k) {
    if (k == 0) {
      MustCuda(cudaStreamSynchronize(stream));
      MustCuda(cudaMemGetInfo(&free_before, &total));
      MustCuda(cudaProfilerStart());
    }
    batch.ids = ids.get() + (k + kSets) % kSets * n;
    if (k >= 0) MustCuda(cudaEventRecord(e[0][k], stream));
    Must(step->Forward(batch, true, pooled.get(), stream));
    if (k >= 0) MustCuda(cudaEventRecord(e[1][k], stream));
    Must(step->Backward(grads.get(), "Adagrad", lr, stream));
    if (k >= 0) MustCuda(cudaEventRecord(e[2][k], stream));
  }
  MustCuda(cudaStreamSynchronize(stream));
  MustCuda(cudaProfilerStop());
  MustCuda(cudaMemGetInfo(&free_after, &total));
  std::vector<double> forward, backward, whole;
  for (int k = 0; k < kSteps; ++k) {
    float f = 0, b = 0;
    MustCuda(cudaEventElapsedTime(&f, e[0][k], e[1][k]));
    MustCuda(cudaEventElapsedTime(&b, e[1][k], e[2][k]));
    forward.push_back(f);
    backward.push_back(b);
    whole.push_back(f + b);
  }
  for (auto& row : e) {
    for (cudaEvent_t event : row) MustCuda(cudaEventDestroy(event));
  }
  MustCuda(cudaStreamDestroy(stream));
  std::vector<int64_t> rejected;
  Must(step->tables()->CountsSync(nullptr, &rejected, StreamView()));
  for (int64_t r : rejected) {
    if (r != 0) std::printf("rejected keys: %ld\n", static_cast<long>(r));
  }
  if (free_before != free_after) std::printf("a step allocated\n");

  // ms. A random read of b bytes costs as 128 at least does, at 4.3 TB/s; a
  // row that is read and written back moves 3.9 TB/s.
  const double u = share * n, bytes = 4.0 * dim, h = kSamples * kTables;
  const double model =
      (u * 128 / 4.34e9) +                                        // find
      (n * 8 + u * std::max(bytes, 107.0) + h * bytes) / 4.5e9 +  // pool
      h * bytes / 4.5e9 +                                         // gradients
      u * std::max(2 * 2 * bytes, 250.0) / 3.9e9;                 // update
  struct Peer {
    int dim, hot;
    double zipf, uniform;
  };
  const Peer peers[] = {{16, 1, 1.19, 1.32},  {32, 1, 1.24, 1.39},
                        {64, 1, 1.51, 1.79},  {128, 1, 2.05, 2.63},
                        {16, 10, 3.66, 5.08}, {64, 10, 5.00, 8.35}};
  double peer = 0;
  for (const Peer& p : peers) {
    if (p.dim == dim && p.hot == hot) peer = zipf ? p.zipf : p.uniform;
  }
  const double goal = peer * (hot == 1 && zipf ? 0.5 : 0.7);
  std::printf(
      "| %3d | %2d | %-7s | %.3f | %.3f | %.3f | %.3f | %.3f | %.2f | %.2f | "
      "%.3f | %3.0f %% |\n",
      dim, hot, zipf ? "Zipf" : "uniform", share, Median(forward),
      Median(backward), Median(whole), goal, peer,
      peer > 0 ? Median(whole) / peer : 0, model, 100 * model / Median(whole));
  std::fflush(stdout);
}

}  // namespace bench
}  // namespace gpu
}  // namespace ev

int main(int argc, char** argv) {
  std::vector<std::string> what;
  for (int i = 1; i < argc; ++i) what.push_back(argv[i]);
  if (what.empty()) {
    for (const char* d : {"16:1", "32:1", "64:1", "128:1", "16:10", "64:10"}) {
      what.push_back(std::string(d) + ":zipf");
      what.push_back(std::string(d) + ":uniform");
    }
    std::printf(
        "| dim | hot | ids | u/n | forward ms | backward ms | step ms | goal | "
        "FBGEMM TBE | ratio | model ms | of model |\n| --- | --- | --- | --- | "
        "--- | --- | --- | --- | --- | --- | --- | --- |\n");
  }
  for (const std::string& w : what) {
    int dim = 0, hot = 0;
    char ids[16] = "";
    if (std::sscanf(w.c_str(), "%d:%d:%15s", &dim, &hot, ids) != 3 || dim < 1 ||
        hot < 1) {
      std::fprintf(stderr, "expected DIM:HOT:zipf|uniform, got %s\n",
                   w.c_str());
      return 1;
    }
    ev::gpu::bench::Run(dim, hot, std::strcmp(ids, "zipf") == 0);
  }
  return 0;
}
