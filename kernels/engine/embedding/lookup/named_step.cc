// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/embedding/lookup/named_step.h"

#include <algorithm>

#include "kernels/engine/base/tasks.h"
#include "kernels/engine/rows/gpu_compute.h"

namespace ev {
namespace {

constexpr int64_t kNamesPerTask = 8192;
static_assert(sizeof(RowHandle) == sizeof(int32_t), "names are put as int32");

// A step's tables have at least one id. One that is in no sample stands for
// none.
int64_t NumIds(const NamedSamples& table) {
  return std::max<int64_t>(1, table.num_ids);
}

// Puts the names of ids [begin, end) of table k of the step.
Status PutNames(const NamedSamples& table, int k, int64_t begin, int64_t end,
                GpuStep* step) {
  RowHandle names[kNamesPerTask];
  if (table.num_ids == 0) {
    names[0] = AbsentAs(0);
  } else {
    NameIds(table.inverse, table.of_keys, begin,
            Span<RowHandle>(names, end - begin));
  }
  return table.table->WithName(
      step->Put(k, begin,
                Span<const int32_t>(reinterpret_cast<const int32_t*>(names),
                                    end - begin)));
}

}  // namespace

Status PoolByNames(const std::vector<NamedSamples>& tables,
                   const DeviceStream* stream, Parallel* parallel,
                   std::shared_ptr<GpuStep>* step) {
  const int num_tables = static_cast<int>(tables.size());
  std::vector<GpuStepTable> given;
  TaskList put(kNamesPerTask);
  for (int k = 0; k < num_tables; ++k) {
    const NamedSamples& table = tables[k];
    GpuStepTable one;
    one.table = table.table->home->gpu()->placed_rows();
    one.num_ids = NumIds(table);
    one.num_samples = table.num_samples;
    one.is_narrow = one.are_names = true;
    one.combiner = table.combiner;
    one.out = table.out;
    given.push_back(one);
    put.Add(k, one.num_ids, 1);
  }
  const auto& first = *tables[0].table;
  EV_RETURN_IF_ERROR(
      first.WithName(given[0].table->StartStep(given, stream, step)));
  EV_RETURN_IF_ERROR(RunPieces(parallel, put, [&](const Piece& piece) {
    for (int64_t i = piece.begin; i < piece.end; i += kNamesPerTask) {
      EV_RETURN_IF_ERROR(PutNames(tables[piece.item], piece.item, i,
                                  std::min(piece.end, i + kNamesPerTask),
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

void NameIds(const int32_t* inverse, const RowHandle* of_keys, int64_t begin,
             Span<RowHandle> names) {
  if (inverse == nullptr) {
    std::copy_n(of_keys + begin, names.size(), names.data());
    return;
  }
  for (size_t i = 0; i < names.size(); ++i) {
    names[i] = of_keys[inverse[begin + i]];
  }
}

}  // namespace ev
