// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Steps of tables whose rows the CPU has found (GpuStepTable::are_names): those
// with rows in GPU and CPU memory, a table that occurs a second time in a call,
// and keys of rows that are copied to GPU memory. For the files of embedding/
// only.

#ifndef KERNELS_ENGINE_EMBEDDING_LOOKUP_NAMED_STEP_H_
#define KERNELS_ENGINE_EMBEDDING_LOOKUP_NAMED_STEP_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "kernels/engine/base/device_stream.h"
#include "kernels/engine/base/parallel.h"
#include "kernels/engine/base/row_handle.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/combine/combiner.h"
#include "kernels/engine/embedding/lookup/planned_table.h"
#include "kernels/engine/embedding/table_impl.h"
#include "kernels/engine/ids/device_distinct.h"
#include "kernels/engine/rows/gpu_step.h"

namespace ev {

// One table's samples.
struct NamedSamples {
  const EmbeddingTable::Impl* table = nullptr;
  int64_t num_ids = 0, num_samples = 0;  // N >= 0, B >= 1
  Combiner combiner = Combiner::kSum;
  Span<const int32_t> offsets;  // [B + 1]; empty: each sample is one id
  // The outputs, like GpuStepTable::out and pieces.
  float* out = nullptr;
  std::vector<GpuStepPiece> pieces;
  // Writes the names of ids [begin, begin + names.size()). Thread-safe.
  std::function<void(int64_t begin, Span<RowHandle> names)> name;
  // Called once, on any thread, when the rows may lose their places; not called
  // if PoolByNames fails before that. Null: the rows keep their places.
  std::function<void()> release;
};

// Starts a step of these tables, tables[k] as table k of the step, and pools
// its samples. stream: that of outputs in GPU memory; null: outputs are in host
// memory, and are written when the call returns. ResourceExhausted: not enough
// memory; do not use *step then. REQUIRES: at least one table. The caller is in
// the tables' gates, and the rows have places (GpuRowCompute::PlaceRows) until
// 'release' is called. Throws std::bad_alloc.
Status PoolByNames(const std::vector<NamedSamples>& tables,
                   const DeviceStream* stream, Parallel* parallel,
                   std::shared_ptr<GpuStep>* step);

// Sets names[i] to the name of id begin + i, given those of the distinct keys,
// [U]. inverse: the distinct key of each id, [N]; null: each id is its own.
void NameIds(const int32_t* inverse, const RowHandle* of_keys, int64_t begin,
             Span<RowHandle> names);

// Returns the step of a table that was pooled on a GPU, and the table's number
// in it; null if it was pooled on the CPU.
inline GpuStep* StepOf(const PlannedTable& planned, int* number) {
  if (planned.distinct != nullptr) {
    *number = planned.distinct->step_table();
    return planned.distinct->step();
  }
  *number = planned.named_number;
  return planned.named_step.get();
}

}  // namespace ev

#endif  // KERNELS_ENGINE_EMBEDDING_LOOKUP_NAMED_STEP_H_
