// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// StepDescription: describes tables of a step to the kernels that look up ids
// and pool rows (step_lookup.h), and sends the description to the GPU.
//
// A description has an ENTRY for the ids and samples of one table or, for the
// pooling, of one GpuStepPiece.

#ifndef KERNELS_ENGINE_ROWS_GPU_STEP_STEP_DESCRIPTION_H_
#define KERNELS_ENGINE_ROWS_GPU_STEP_STEP_DESCRIPTION_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/engine/base/float_type.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/rows/gpu_step/step_ids.h"
#include "kernels/engine/rows/gpu_step/step_layout.h"
#include "kernels/engine/rows/gpu_step/step_lookup.h"
#include "kernels/engine/rows/gpu_step/step_work.h"

namespace ev {
namespace gpu {

// The entries and blocks of a description, with which its kernels are launched.
struct StepLaunches {
  int num_entries = 0;
  int find_blocks = 0, sample_blocks = 0;
  // First entry, in pool_order, and first block of each kind (PoolKind).
  std::vector<int> kind_begin, block_begin;
};

class StepDescription {
 public:
  // Tables [begin, end), for the kernels that look up ids, that pool, or both.
  struct Part {
    int begin = 0, end = 0;
    bool finds = false, pools = false;
    size_t on_host = 0;  // byte offset of the description in pinned memory
  };

  // All outlive this object.
  StepDescription(const StepLayout* layout, const StepWork* work,
                  const StepIds* ids)
      : layout_(layout), work_(work), ids_(ids) {}

  // Enqueues the copy of the part's description to the GPU, where it replaces
  // the last one. REQUIRES, if it finds: the key tables are locked.
  Status Send(const Part& part, StepLaunches* launches) const;
  // Arguments of the kernels for the description that was sent last.
  StepLookup View(const StepLaunches& launches) const;

 private:
  struct Entry {
    int t = 0;
    int64_t begin = 0;  // first id and first sample, in the table
    int64_t num_ids = 0, num_samples = 0;
    MutableFloats out;
  };
  std::vector<Entry> EntriesOf(const Part& part) const;
  Status Describe(const Part& part, const Entry& entry,
                  StepLookupTable* to) const;
  void DescribePools(const std::vector<Entry>& entries, int32_t* tiles,
                     int32_t* order, StepLaunches* launches) const;

  const StepLayout* const layout_;
  const StepWork* const work_;
  const StepIds* const ids_;
};

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_ROWS_GPU_STEP_STEP_DESCRIPTION_H_
