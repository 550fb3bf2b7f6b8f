// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Steps of tables whose rows the CPU has found (GpuStepTable::are_handles),
// because some of them may be in CPU memory. A table without ids whose output
// is in GPU memory is in such a step too. For the files of embedding/ only.

#ifndef KERNELS_ENGINE_EMBEDDING_LOOKUP_HANDLE_STEP_H_
#define KERNELS_ENGINE_EMBEDDING_LOOKUP_HANDLE_STEP_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "kernels/engine/base/device_stream.h"
#include "kernels/engine/base/float_type.h"
#include "kernels/engine/base/parallel.h"
#include "kernels/engine/base/row_handle.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/combine/combiner.h"
#include "kernels/engine/embedding/table_impl.h"
#include "kernels/engine/rows/gpu_step.h"

namespace ev {

// One table's samples.
struct SamplesOfRows {
  const EmbeddingTable::Impl* table = nullptr;
  int64_t num_ids = 0, num_samples = 0;  // N >= 0, B >= 1
  Combiner combiner = Combiner::kSum;
  Span<const int32_t> offsets;  // [B + 1]; empty: each sample is one id
  MutableFloats out;            // as GpuStepTable::out
  // The handles of the distinct keys' rows, [U], and the index of each id's
  // key, [N]; null: each id is its own.
  const RowHandle* of_keys = nullptr;
  const int32_t* inverse = nullptr;
  // Called once, on any thread, when the rows may lose their places; not called
  // if PoolByHandles fails before that. Null: the rows keep their places.
  std::function<void()> release;
};

// Starts a step of these tables, tables[k] as table k of the step, and pools
// its samples. stream: that of outputs in GPU memory; null: outputs are in host
// memory, and are written when the call returns. ResourceExhausted: not enough
// memory; do not use *step then. REQUIRES: at least one table. The caller is in
// the table locks, and the rows have places (GpuRowCompute::PlaceRows) until
// 'release' is called. Throws std::bad_alloc.
Status PoolByHandles(const std::vector<SamplesOfRows>& tables,
                     const DeviceStream* stream, Parallel* parallel,
                     std::shared_ptr<GpuStep>* step);

// Sets handles[i] to that of id begin + i, given those of the distinct keys,
// [U]. inverse: the distinct key of each id, [N]; null: each id is its own.
void HandlesOfIds(const int32_t* inverse, const RowHandle* of_keys,
                  int64_t begin, Span<RowHandle> handles);

}  // namespace ev

#endif  // KERNELS_ENGINE_EMBEDDING_LOOKUP_HANDLE_STEP_H_
