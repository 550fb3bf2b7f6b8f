// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Measures the cost of growing a table, and the cost of using a table that has
// grown. The rate of a growth is added slots per second until it is complete,
// including memory allocation.

#include "benchmarks/gpu/table_bench.cuh"

using namespace ev::gpu;         // NOLINT: a program
using namespace ev::gpu::bench;  // NOLINT

namespace {

void TimeFinds(Bench* b, const char* when) {
  char what[128];
  const double load = static_cast<double>(b->size()) / b->total_slots();
  b->ListPresent();
  for (int miss = 0; miss < 2; ++miss) {
    b->MakeKeys(miss ? 0.0f : 1.0f);
    const double us = MedianUs(8, 64, [&](int i) {
      Must(b->set->Find(b->Batch(i), b->slots.get(), StreamView()));
    });
    std::snprintf(what, sizeof(what), "find, %s, load %.2f, %s, all %s",
                  Name(b->eviction), load, when, miss ? "absent" : "present");
    Report(what, us, 0, 0, 33.9);
  }
}

// Grows to twice kSlots in `calls` calls.
void Double(Bench* b, int calls, bool finds) {
  char what[128];
  // A slot's key and score are read, written, and written again.
  const double limit = 4300.0 / (b->eviction == Eviction::kNone ? 24 : 48);
  const int64_t first = b->set->num_slots(0);
  GrowthTime sum, worst;
  for (int c = 0; c < calls; ++c) {
    Growth growth;
    const GrowthTime time = TimeGrowth([&] {
      Must(b->set->GrowSync(0, (first + calls - 1) / calls, &growth,
                            StreamView()));
    });
    sum.host += time.host;
    sum.all += time.all;
    if (time.all > worst.all) worst = time;
    if (finds && c == calls / 2 - 1) TimeFinds(b, "half of it split");
  }
  if (calls > 1) {
    std::snprintf(what, sizeof(what), "grow by 1/%d, %s, slowest of %d", calls,
                  Name(b->eviction), calls);
    Report(what, worst.all, 0, 0, limit, first / calls);
    std::snprintf(what, sizeof(what), "  of it until the call returns");
    Report(what, worst.host, 0, 0, 0, first / calls);
  }
  std::snprintf(what, sizeof(what), "grow to twice its size, %s, %d calls",
                Name(b->eviction), calls);
  Report(what, sum.all, 0, 0, limit, first);
  std::snprintf(what, sizeof(what), "  of it until the calls return");
  Report(what, sum.host, 0, 0, 0, first);
}

}  // namespace

int main() {
  for (Eviction eviction : {Eviction::kNone, Eviction::kLru}) {
    for (int calls : {8, 1}) {
      Bench b(eviction, 1, 2);
      b.FillTo(0.75);
      if (calls > 1) TimeFinds(&b, "may grow");
      Double(&b, calls, calls > 1);
      if (calls > 1) continue;
      TimeFinds(&b, "doubled");
      b.FillTo(0.75);
      TimeFinds(&b, "doubled and filled");
    }
  }
  return 0;
}
