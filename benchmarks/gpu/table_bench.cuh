// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Utilities of the GPU table's benchmarks: keys, filling to a load factor,
// timing, and the rows of the results table.

#ifndef BENCHMARKS_GPU_TABLE_BENCH_CUH_
#define BENCHMARKS_GPU_TABLE_BENCH_CUH_

#include <cuda_profiler_api.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "addons/hierarchical_parameter_server/cache/table/table_set.h"
#include "kernels/engine/base/gpu/device_buffer.h"

namespace ev {
namespace gpu {
namespace bench {

constexpr int64_t kMi = 1 << 20;
constexpr int64_t kSlots = 128 * kMi;
constexpr int64_t kBatch = kMi;  // keys per call
constexpr int kBatches = 8;      // different batches: more lines than L2 holds

inline void Must(const Status& status) {
  if (!status.ok()) {
    std::fprintf(stderr, "%s\n", status.message().c_str());
    std::exit(1);
  }
}
inline void MustCuda(cudaError_t error) {
  if (error != cudaSuccess) {
    std::fprintf(stderr, "%s\n", cudaGetErrorString(error));
    std::exit(1);
  }
}

template <typename T>
struct Array {
  explicit Array(int64_t n) { Must(buffer.Allocate(n * sizeof(T), "data")); }
  T* get() const { return buffer.as<T>(); }
  DeviceBuffer buffer;
};

// Returns the i-th key. Keys are distinct, spread over 64 bits, and unrelated
// to the table's own hash.
__host__ __device__ inline int64_t KeyAt(uint64_t i) {
  uint64_t z = i * 0x9E3779B97F4A7C15ULL + 0x1234567;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return static_cast<int64_t>(z ^ (z >> 31));
}

__global__ void NewKeysKernel(int64_t* keys, int64_t n, uint64_t first) {
  const int64_t i = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
  if (i < n) keys[i] = KeyAt(first + i);
}

// Draws key i uniformly from present, or with probability 1 - hit_rate makes a
// new key.
__global__ void MixKeysKernel(int64_t* keys, int64_t n, const int64_t* present,
                              int64_t num_present, float hit_rate,
                              uint64_t first_new, uint64_t seed) {
  const int64_t i = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
  if (i >= n) return;
  const uint64_t r = static_cast<uint64_t>(KeyAt(seed * 1000003 + i));
  const bool hit = (r >> 40) * (1.0f / (1 << 24)) < hit_rate;
  const uint64_t draw = static_cast<uint64_t>(KeyAt(r ^ 0x55));
  keys[i] = hit ? present[draw % num_present] : KeyAt(first_new + i);
}

inline unsigned Blocks(int64_t n) {
  return static_cast<unsigned>((n + 255) / 256);
}

// One table (or several of equal size with kSlots slots in all) and a supply of
// keys.
class Bench {
 public:
  explicit Bench(Eviction eviction, int num_tables = 1)
      : eviction(eviction),
        keys(kBatches * kBatch),
        slots(kBatch),
        is_new(kBatch),
        present(kSlots + 64 * kMi),
        offsets(num_tables + 1),
        count(1) {
    TableSetOptions options;
    for (int t = 0; t < num_tables; ++t) {
      options.tables.push_back({"bench", kSlots / num_tables});
    }
    options.eviction = eviction;
    Must(TableSet::Create(options, StreamView(), &set));
    Must(set->ReserveSync(kBatch));
    std::vector<int64_t> host;
    for (int t = 0; t <= num_tables; ++t) {
      host.push_back(kBatch * t / num_tables);
    }
    MustCuda(cudaMemcpy(offsets.get(), host.data(), host.size() * 8,
                        cudaMemcpyHostToDevice));
  }

  KeyBatch Batch(int b) const {
    KeyBatch batch;
    batch.keys = keys.get() + (b % kBatches) * kBatch;
    batch.num_keys = kBatch;
    batch.offsets = offsets.get();
    return batch;
  }

  int64_t size() const {
    std::vector<int64_t> sizes;
    Must(set->CountsSync(&sizes, nullptr, StreamView()));
    int64_t sum = 0;
    for (int64_t s : sizes) sum += s;
    return sum;
  }
  int64_t total_slots() const {
    int64_t sum = 0;
    for (int t = 0; t < set->num_tables(); ++t) sum += set->num_slots(t);
    return sum;
  }

  // Inserts new keys until the share of slots in use is load, then lists the
  // keys of table 0.
  void FillTo(double load) {
    const int64_t want = static_cast<int64_t>(load * total_slots());
    for (int64_t have = size(); have < want;) {
      // Near the end new keys meet full buckets and evict, so continue until
      // the table is full.
      const int64_t n = std::min(kBatch, std::max<int64_t>(want - have, 4096));
      NewKeysKernel<<<Blocks(kBatch), 256>>>(keys.get(), kBatch, next);
      next += kBatch;
      KeyBatch batch = Batch(0);
      if (set->num_tables() == 1) batch.num_keys = load < 0.99 ? n : kBatch;
      Must(set->FindOrInsert(batch, slots.get(), is_new.get(), EvictedKeys(),
                             StreamView()));
      have = size();
    }
    ListPresent();
  }
  void ListPresent() {
    ExportedKeys out;
    out.keys = present.get();
    out.count = count.get();
    Must(set->Export(0, 0, set->num_slots(0), out, StreamView()));
    MustCuda(cudaMemcpy(&num_present, count.get(), 8, cudaMemcpyDeviceToHost));
  }

  // Fills all batches. hit_rate 1: draws of present keys; 0: new keys.
  void MakeKeys(float hit_rate) {
    for (int b = 0; b < kBatches; ++b) {
      MixKeysKernel<<<Blocks(kBatch), 256>>>(keys.get() + b * kBatch, kBatch,
                                             present.get(), num_present,
                                             hit_rate, next, ++seed);
      next += kBatch;
    }
    MustCuda(cudaDeviceSynchronize());
  }

  Eviction eviction;
  std::unique_ptr<TableSet> set;
  Array<int64_t> keys, slots;
  Array<uint8_t> is_new;
  Array<int64_t> present;
  Array<int64_t> offsets, count;
  int64_t num_present = 0;
  uint64_t next = 0, seed = 0;
};

// Returns the median time of one call in microseconds; call(i) enqueues the
// i-th.
inline double MedianUs(int warm_up, int calls,
                       const std::function<void(int)>& call) {
  std::vector<cudaEvent_t> events(2 * calls);
  for (cudaEvent_t& e : events) MustCuda(cudaEventCreate(&e));
  for (int i = 0; i < warm_up; ++i) call(i);
  MustCuda(cudaDeviceSynchronize());
  MustCuda(cudaProfilerStart());  // restricts a profiler to the timed calls
  for (int i = 0; i < calls; ++i) {
    MustCuda(cudaEventRecord(events[2 * i]));
    call(warm_up + i);
    MustCuda(cudaEventRecord(events[2 * i + 1]));
  }
  MustCuda(cudaDeviceSynchronize());
  MustCuda(cudaProfilerStop());
  std::vector<double> us;
  for (int i = 0; i < calls; ++i) {
    float ms = 0;
    MustCuda(cudaEventElapsedTime(&ms, events[2 * i], events[2 * i + 1]));
    us.push_back(ms * 1e3);
  }
  for (cudaEvent_t& e : events) MustCuda(cudaEventDestroy(e));
  std::nth_element(us.begin(), us.begin() + calls / 2, us.end());
  return us[calls / 2];
}

// Prints one line of a results table. goal, peer, limit: G keys/s; 0: none.
inline void Report(const std::string& what, double us, double goal, double peer,
                   double limit, int64_t n = kBatch) {
  const double rate = n / us * 1e-3;
  auto cell = [](double v) {
    char text[32] = "-";
    if (v > 0) std::snprintf(text, sizeof(text), "%.1f", v);
    return std::string(text);
  };
  std::printf("| %-52s | %7.1f | %6.2f | %4s | %4s | %5s |\n", what.c_str(), us,
              rate, cell(goal).c_str(), cell(peer).c_str(),
              cell(limit).c_str());
  std::fflush(stdout);
}

inline const char* Name(Eviction eviction) {
  return eviction == Eviction::kNone  ? "never evicts"
         : eviction == Eviction::kLru ? "LRU"
                                      : "LFU";
}

}  // namespace bench
}  // namespace gpu
}  // namespace ev

#endif  // BENCHMARKS_GPU_TABLE_BENCH_CUH_
