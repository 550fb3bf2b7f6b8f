// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Measures the new keys per second that a full table takes, where each evicts
// an old key whose key, slot and score are reported. Also measures how fast a
// table is listed.

#include "benchmarks/gpu/table_bench.cuh"

using namespace ev::gpu;         // NOLINT: a program
using namespace ev::gpu::bench;  // NOLINT

int main() {
  char what[128];
  for (Eviction eviction : {Eviction::kLru, Eviction::kLfu}) {
    Bench b(eviction);
    b.FillTo(0.9995);
    Array<int64_t> keys(kBatch), slots(kBatch);
    Array<uint64_t> scores(kBatch);
    EvictedKeys evicted;
    evicted.keys = keys.get();
    evicted.slots = slots.get();
    evicted.scores = scores.get();
    evicted.count = b.count.get();
    for (float hit_rate : {0.0f, 0.6f}) {
      b.MakeKeys(hit_rate);
      const double us = MedianUs(0, kBatches, [&](int i) {
        Must(b.set->FindOrInsert(b.Batch(i), b.slots.get(), b.is_new.get(),
                                 evicted, StreamView()));
      });
      int64_t count = 0;
      MustCuda(cudaMemcpy(&count, b.count.get(), 8, cudaMemcpyDeviceToHost));
      std::snprintf(what, sizeof(what),
                    "insert and evict, %s, %.0f %% present, %.2f evicted",
                    Name(eviction), hit_rate * 100,
                    static_cast<double>(count) / kBatch);
      Report(what, us, 2.2, 0.8, 0);
      b.ListPresent();
    }
    ExportedKeys out;
    Array<int64_t> all_slots(b.total_slots());
    out.keys = b.present.get();
    out.slots = all_slots.get();
    out.count = b.count.get();
    const double us = MedianUs(2, 10, [&](int) {
      Must(b.set->Export(0, 0, b.total_slots(), out, StreamView()));
    });
    std::snprintf(what, sizeof(what), "export keys and slots, %s, full",
                  Name(eviction));
    // A key and a slot written, a key read: 24 bytes.
    Report(what, us, 0, 1.1, 4300.0 / 24, b.total_slots());
  }
  return 0;
}
