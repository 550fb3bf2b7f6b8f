// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/embedding/lookup/handle_step.h"

#include <algorithm>

#include "kernels/engine/base/tasks.h"
#include "kernels/engine/rows/gpu_compute.h"

namespace ev {
namespace {

constexpr int64_t kHandlesPerTask = 8192;
static_assert(sizeof(RowHandle) == sizeof(int32_t), "handles are put as int32");

// A step's tables have at least one id. One that is in no sample stands for
// none.
int64_t NumIds(const SamplesOfRows& table) {
  return std::max<int64_t>(1, table.num_ids);
}

// Puts the handles of ids [begin, end) of table k of the step.
Status PutHandles(const SamplesOfRows& table, int k, int64_t begin, int64_t end,
                  GpuStep* step) {
  RowHandle handles[kHandlesPerTask];
  if (table.num_ids == 0) {
    handles[0] = AbsentAs(0);
  } else {
    HandlesOfIds(table.inverse, table.of_keys, begin,
                 Span<RowHandle>(handles, end - begin));
  }
  return table.table->WithName(
      step->Put(k, begin,
                Span<const int32_t>(reinterpret_cast<const int32_t*>(handles),
                                    end - begin)));
}

}  // namespace

Status PoolByHandles(const std::vector<SamplesOfRows>& tables,
                     const DeviceStream* stream, Parallel* parallel,
                     std::shared_ptr<GpuStep>* step) {
  const int num_tables = static_cast<int>(tables.size());
  std::vector<GpuStepTable> given;
  TaskList put(kHandlesPerTask);
  for (int k = 0; k < num_tables; ++k) {
    const SamplesOfRows& table = tables[k];
    GpuStepTable one;
    one.table = table.table->home->gpu()->placed_rows();
    one.num_ids = NumIds(table);
    one.num_samples = table.num_samples;
    one.is_narrow = one.are_handles = true;
    one.combiner = table.combiner;
    one.out = table.out;
    given.push_back(one);
    put.Add(k, one.num_ids, 1);
  }
  const auto& first = *tables[0].table;
  EV_RETURN_IF_ERROR(
      first.WithName(given[0].table->StartStep(given, stream, step)));
  EV_RETURN_IF_ERROR(RunPieces(parallel, put, [&](const Piece& piece) {
    for (int64_t i = piece.begin; i < piece.end; i += kHandlesPerTask) {
      EV_RETURN_IF_ERROR(PutHandles(tables[piece.item], piece.item, i,
                                    std::min(piece.end, i + kHandlesPerTask),
                                    step->get()));
    }
    return Status::OK();
  }));
  for (int k = 0; k < num_tables; ++k) {
    EV_RETURN_IF_ERROR(
        tables[k].table->WithName((*step)->Start(k, tables[k].offsets)));
  }
  EV_RETURN_IF_ERROR(first.WithName((*step)->Pool()));
  return RunTasksWithStatus(parallel, num_tables, [&](int64_t k) {
    // The rows are released while the device pools: later changes of their
    // places follow its work.
    if (tables[k].release != nullptr) tables[k].release();
    if (stream != nullptr) return Status::OK();
    return tables[k].table->WithName((*step)->TakeOutput(static_cast<int>(k)));
  });
}

void HandlesOfIds(const int32_t* inverse, const RowHandle* of_keys,
                  int64_t begin, Span<RowHandle> handles) {
  if (inverse == nullptr) {
    std::copy_n(of_keys + begin, handles.size(), handles.data());
    return;
  }
  for (size_t i = 0; i < handles.size(); ++i) {
    handles[i] = of_keys[inverse[begin + i]];
  }
}

}  // namespace ev
