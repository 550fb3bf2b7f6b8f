// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// StepLayout: the tables of a step, and where their ids, samples and outputs
// lie in pinned memory and in GPU memory. A value, made from the caller's
// tables: the calls of a step read it and do not change it.
//
// MEMORY of a step, from Make until destruction, in bytes:
//
//   per id: 16 on the GPU and 12 pinned. 4 less of each if it is copied as
//     int32; 4 more of each if ids have occurrence counts; 8 more pinned if
//     some ids were not put; 8 more on the GPU if rows have places.
//   if rows are in host memory: 16 per id, the memory of a sort, and up to
//     kMaxStagedBytes of rows (step_fetch.h), on the GPU.
//   per sample: 4 on the GPU and 4 pinned. 4 more on the GPU if a combiner
//     divides.
//   outputs in host memory: their size on the GPU, and again pinned unless they
//     are in pinned memory.
//   per id, for an update: 40 on the GPU, 16 more if rows are in host memory;
//   12 pinned for tables with lists_rows
//     (step_rows.h), and 4 pinned if the update has handles. Held from the
//     update on, or from the pooling on if an update is expected.
//
// All of it is memory of contexts (base/gpu/work/work_context.h), except 16
// bytes per id of a table in the step in which it gets its first wide id: 8 on
// the GPU and 8 pageable.

#ifndef KERNELS_ENGINE_ROWS_GPU_STEP_STEP_LAYOUT_H_
#define KERNELS_ENGINE_ROWS_GPU_STEP_STEP_LAYOUT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/engine/base/float_type.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/rows/gpu/gpu_rows.h"
#include "kernels/engine/rows/gpu/known_keys.h"
#include "kernels/engine/rows/gpu_step.h"

namespace ev {
namespace gpu {

struct StepLayout {
  enum class IdsAre {
    kPut,     // copied by GpuStep::Put
    kPinned,  // in the caller's pinned memory, which the GPU reads
    kOnGpu,   // in GPU memory
  };

  // A table as the caller describes it, and where its data lies.
  //   ids, splits, indices: valid until StepIds::Wait has returned, or as long
  //     as ids_owner lives, which is null unless ids are pinned.
  //   occurrences: read by Start.
  //   is_narrow: ids in the block of ids are int32.
  struct Table : GpuStepTable {
    GpuRows* rows = nullptr;  // valid while the caller holds the table locks
    std::shared_ptr<KnownKeys> known;
    int64_t dim = 0;
    FloatType row_type = FloatType::kFloat32;
    IdsAre where = IdsAre::kPut;
    bool has_host_rows = false;  // when the step was made
    // True if the caller's int64 ids are copied to the block of ids as int32.
    // If one does not fit, StepIds copies all of them again as int64.
    bool narrows = false;
    void* host_out = nullptr;  // in host memory; null if the step has a stream
    bool is_host_out_pinned = false;
    size_t out_at = 0;  // byte offset in the context's outputs
    int wave = 0;
    int64_t id_begin = 0, sample_begin = 0;  // in the arrays of the step
    // The first table with these samples, and the index of their first offset.
    int first = 0;
    int64_t offsets_at = 0;
    size_t ids_at = 0;  // byte offset in the block of ids

    size_t id_width() const {
      return is_narrow ? sizeof(int32_t) : sizeof(int64_t);
    }
    size_t id_bytes() const { return num_ids * id_width(); }
    size_t out_bytes() const {
      return num_samples * dim * FloatBytes(out.type());
    }
    // Returns where the GPU writes the output: to GPU memory, or to host_out if
    // that is pinned. outputs: the context's outputs.
    MutableFloats OutIn(char* outputs) const {
      return host_out == nullptr || out != nullptr
                 ? out
                 : MutableFloats(outputs + out_at, out.type());
    }
  };

  // A WAVE is a range of tables [begin, end) that is looked up and pooled while
  // the ids of later waves are copied.
  struct Wave {
    int begin = 0, end = 0;
    // Byte range, in the block of ids, of their ids that are put.
    size_t put_at = 0, put_bytes = 0;
    // Range of their offsets in the offsets of all tables.
    int64_t offsets_at = 0, num_offsets = 0;
    size_t tables_at = 0;  // byte offset of their description in pinned memory
  };

  // Byte offsets of the arrays in one memory.
  struct Memory {
    size_t ids, handles, rows, sort, staged, samples, factors, offsets,
        occurrences, unknown, unknown_keys, counter, waves, tables, pool_tables,
        outputs, bytes;
  };

  // tables: all are GpuRows on this device. REQUIRES: the device is current,
  // and there is a RowPlaces::Use of each table whose rows have places.
  // InvalidArgument: ids or samples are in another GPU's memory.
  static Status Make(int device, Span<const GpuStepTable> tables,
                     bool has_stream, StepLayout* layout);

  // True if all ids were put, so that StepIds::OnHost has those of all tables.
  bool all_put() const { return !are_on_device && !are_pinned; }
  // Maximum number of entries of a description (step_description.h) of tables
  // [begin, end), and the bytes of a description of n entries.
  size_t NumEntries(int begin, int end) const;
  static size_t DescriptionBytes(size_t n);
  // InvalidArgument: table t's output is in another GPU's memory.
  Status CheckOutput(int device, int t) const;
  std::vector<GpuRows*> RowsOf(int begin, int end) const;

  std::vector<Table> tables;
  std::vector<Wave> waves;
  int64_t num_ids = 0;
  // B + 1 offsets per table; tables with the same samples share them.
  int64_t num_offsets = 0;
  size_t id_bytes = 0, table_bytes = 0;
  size_t output_bytes = 0;  // of outputs in the context's memory
  // Rows that fit into the staging buffer, and the floats of each.
  int64_t num_staged = 0, staged_stride = 0;
  int64_t most_wave_ids = 0;
  bool divides = false;  // some combiner divides
  // True if some table's rows have places, and if some table has rows in host
  // memory.
  bool has_places = false, has_host_rows = false;
  // True if some tables have ids in GPU memory, ids in the caller's pinned
  // memory, or occurrences.
  bool are_on_device = false, are_pinned = false, have_occurrences = false;
  // True if lookup and pooling are launched together.
  bool pools_early = false;
  // True if ids, offsets and the description are sent by one copy and the GPU
  // counts unknown ids in host memory. Each copy that this saves takes 5 us of
  // CPU and of GPU time.
  bool is_small = false;
  // The arrays in the context's pinned memory and in its GPU memory.
  Memory on_host = {}, on_device = {};
};

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_ROWS_GPU_STEP_STEP_LAYOUT_H_
