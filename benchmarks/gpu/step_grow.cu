// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// What does SparseStep::GrowSync cost: 32 Mi rows of dim 16 with one optimizer
// slot (128 bytes), three quarters in use, to twice as many? Counted in rows
// that came; until done, memory included.

#include "benchmarks/gpu/table_bench.cuh"
#include "kernels/engine/gpu_resident/step/sparse_step.h"

using namespace ev::gpu;         // NOLINT: a program
using namespace ev::gpu::bench;  // NOLINT

int main() {
  const int64_t rows = 32 * kMi;
  char what[128];
  for (int calls : {8, 1}) {
    SparseStepOptions options;
    StepTableOptions table;
    table.name = "bench";
    table.capacity = rows;
    table.max_capacity = 2 * rows + 4096;
    table.dim = 16;
    table.default_rows.assign(16, 0.0f);
    options.tables = {table};
    options.slot_init = {0.1f};
    std::unique_ptr<SparseStep> step;
    Must(SparseStep::Create(options, StreamView(), &step));
    Array<int64_t> keys(kBatch), slots(kBatch);
    for (int64_t first = 0; first < rows * 3 / 4; first += kBatch) {
      NewKeysKernel<<<Blocks(kBatch), 256>>>(keys.get(), kBatch, first);
      KeyBatch batch;
      batch.keys = keys.get();
      batch.num_keys = kBatch;
      Must(step->tables()->FindOrInsert(batch, slots.get(), nullptr,
                                        EvictedKeys(), StreamView()));
    }
    const int64_t before = step->tables()->num_slots(0);
    GrowthTime sum, worst;
    for (int c = 0; c < calls; ++c) {
      const GrowthTime time = TimeGrowth([&] {
        Must(step->GrowSync(0, (before + calls - 1) / calls, StreamView()));
      });
      sum.host += time.host;
      sum.all += time.all;
      if (time.all > worst.all) worst = time;
    }
    // Three eighths of the slots that come get a row of 128 bytes, which is
    // read and written; the keys of all are read, those of both halves written
    // and those that came read again.
    const double limit = 4300.0 / (0.375 * 256 + 32);
    if (calls > 1) {
      std::snprintf(what, sizeof(what), "rows and index by 1/8, slowest of 8");
      Report(what, worst.all, 0, 0, limit, before / calls);
    }
    std::snprintf(what, sizeof(what), "rows and index twofold, %d calls",
                  calls);
    Report(what, sum.all, 0, 0, limit, before);
    std::snprintf(what, sizeof(what), "  of it until the calls return");
    Report(what, sum.host, 0, 0, 0, before);
  }
  return 0;
}
