// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Measures the keys per second of TableSet::FindOrInsert for a mix of new and
// present keys, and of Erase.

#include "benchmarks/gpu/table_bench.cuh"

using namespace ev::gpu;         // NOLINT: a program
using namespace ev::gpu::bench;  // NOLINT

// An optional argument, a policy's name as printed, restricts the timing to
// that policy.
int main(int argc, char** argv) {
  const double loads[] = {0.5, 0.75, 1.0};
  const double goals[] = {5, 4.6, 3.2}, peer[] = {2.4, 2.3, 1.3};
  char what[128];
  for (Eviction eviction : {Eviction::kNone, Eviction::kLru, Eviction::kLfu}) {
    if (argc > 1 && std::string(argv[1]) != Name(eviction)) continue;
    Bench b(eviction);
    for (int l = 0; l < 3; ++l) {
      if (eviction == Eviction::kNone && l == 2) continue;
      if (eviction == Eviction::kLfu && l == 1) continue;
      for (float hit_rate : {1.0f, 0.6f, 0.0f}) {
        // The load while the batches' new keys are inserted is on average the
        // reported load.
        const double drift = (1 - hit_rate) * kBatches * kBatch / kSlots / 2;
        b.FillTo(l == 2 ? 0.9995 : loads[l] - drift);
        b.MakeKeys(hit_rate);
        const double us = MedianUs(0, kBatches, [&](int i) {
          Must(b.set->FindOrInsert(b.Batch(i), b.slots.get(), b.is_new.get(),
                                   EvictedKeys(), StreamView()));
        });
        std::snprintf(what, sizeof(what),
                      "find or insert, %s, load %.2f, %.0f %% present",
                      Name(eviction), loads[l], hit_rate * 100);
        Report(what, us, goals[l], peer[l], 0);
        if (l == 2 || hit_rate > 0) continue;
        const double erase_us = MedianUs(0, kBatches, [&](int i) {
          Must(b.set->Erase(b.Batch(i), nullptr, StreamView()));
        });
        std::snprintf(what, sizeof(what), "erase, %s, load %.2f",
                      Name(eviction), loads[l]);
        Report(what, erase_us, 0, 0, 0);
      }
    }
  }
  return 0;
}
