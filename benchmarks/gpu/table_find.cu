// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Measures the keys per second that TableSet::Find looks up.

#include "benchmarks/gpu/table_bench.cuh"

using namespace ev::gpu;         // NOLINT: a program
using namespace ev::gpu::bench;  // NOLINT

int main() {
  const double loads[] = {0.5, 0.75, 1.0};
  const double goals[] = {15, 14, 11}, peer[] = {7.3, 6.5, 4.7};
  // Buckets read per present and per absent key; a line is limited to 33.9 G
  // touches/s.
  const double hit_reads[] = {1.001, 1.02, 1.08},
               miss_reads[] = {1.004, 1.1, 2};
  char what[128];
  {
    Bench b(Eviction::kLru);
    for (int l = 0; l < 3; ++l) {
      b.FillTo(loads[l] == 1.0 ? 0.9995 : loads[l]);
      const double load = static_cast<double>(b.size()) / b.total_slots();
      for (int miss = 0; miss < 2; ++miss) {
        b.MakeKeys(miss ? 0.0f : 1.0f);
        const double us = MedianUs(8, 64, [&](int i) {
          Must(b.set->Find(b.Batch(i), b.slots.get(), StreamView()));
        });
        std::snprintf(what, sizeof(what), "find, load %.4f, all %s", load,
                      miss ? "absent" : "present");
        Report(what, us, miss ? 0 : goals[l], miss ? 0 : peer[l],
               33.9 / (miss ? miss_reads[l] : hit_reads[l]));
      }
    }
  }
  {
    Bench b(Eviction::kNone);
    b.FillTo(0.75);
    b.MakeKeys(1.0f);
    const double us = MedianUs(8, 64, [&](int i) {
      Must(b.set->Find(b.Batch(i), b.slots.get(), StreamView()));
    });
    Report("find, load 0.75, never evicting, all present", us, 14, 6.5,
           33.9 / 1.02);
  }
  {
    Bench b(Eviction::kLru, 26);
    b.FillTo(0.75);
    // Only table 0's keys are listed, so the other 25 tables are searched for
    // absent keys, which costs a little more.
    b.MakeKeys(0.5f);
    const double us = MedianUs(8, 64, [&](int i) {
      Must(b.set->Find(b.Batch(i), b.slots.get(), StreamView()));
    });
    Report("find, load 0.75, 26 tables in one launch", us, 0, 0, 33.9 / 1.1);
  }
  return 0;
}
