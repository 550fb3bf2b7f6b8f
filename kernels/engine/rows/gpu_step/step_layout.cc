// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/rows/gpu_step/step_layout.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "kernels/engine/base/gpu/block_parts.h"
#include "kernels/engine/base/gpu/pinned_memory.h"
#include "kernels/engine/combine/combiner.h"
#include "kernels/engine/gpu_step/place_sort.h"
#include "kernels/engine/rows/gpu_step/step_fetch.h"
#include "kernels/engine/rows/gpu_step/step_lookup.h"

namespace ev {
namespace gpu {
namespace {

// Outputs are aligned to four floats, which kernels access at once.
constexpr size_t kOutputAlignment = 4 * sizeof(float);

// Outputs in pinned memory of tables with rows in host memory are written over
// the link by the kernels that read the rows, if rows have that many floats.
// Writes of shorter rows are slower than a copy of all outputs.
constexpr int64_t kMinDimInPlace = 64;

// Maximum number of bytes that a small step (is_small) sends.
constexpr size_t kSmallBytes = 128 << 10;

size_t RoundUp(size_t bytes, size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

// Minimum number of ids per wave. Copying 2 M ids takes 150 us; with smaller
// waves the additional launches cost more GPU time than the overlap saves.
int64_t MinIdsOfWave() {
  static const int64_t ids = [] {
    const char* const value = std::getenv("TF_EV_GPU_WAVE_IDS");
    const int64_t given =
        value == nullptr ? 0 : std::strtoll(value, nullptr, 10);
    return given > 0 ? given : int64_t{2} << 20;
  }();
  return ids;
}

// Sets where the table's output is.
void PlaceOutput(StepLayout* layout, StepLayout::Table* table) {
  table->host_out = table->out.data();
  table->is_host_out_pinned = IsPinned(table->host_out);
  if (table->is_host_out_pinned && table->has_host_rows &&
      table->dim >= kMinDimInPlace) {
    return;
  }
  table->out = MutableFloats(static_cast<char*>(nullptr), table->out.type());
  table->out_at = layout->output_bytes;
  layout->output_bytes += RoundUp(table->out_bytes(), kOutputAlignment);
}

Status CheckIdsOnGpu(int device, const GpuStepTable& given) {
  for (const void* array : {given.ids, static_cast<const void*>(given.splits),
                            static_cast<const void*>(given.indices)}) {
    // Tables with the same samples share one tensor, which was checked.
    if (array == nullptr || (array != given.ids && given.samples_of >= 0)) {
      continue;
    }
    EV_RETURN_IF_ERROR(CheckIsOn(device, array, "a tensor of ids or samples"));
  }
  return Status::OK();
}

Status AddTable(int device, const GpuStepTable& given, bool has_stream,
                StepLayout* layout) {
  StepLayout::Table table;
  static_cast<GpuStepTable&>(table) = given;
  table.ids_owner = nullptr;
  table.rows = static_cast<GpuRows*>(given.table);
  table.known = table.rows->known();
  table.dim = table.rows->dim();
  table.row_type = table.rows->shape().value_type();
  if (table.rows->places() != nullptr) {
    table.has_host_rows = table.rows->has_host_rows();
    layout->has_places = true;
  }
  if (table.has_host_rows) {
    layout->has_host_rows = true;
    layout->staged_stride =
        std::max(layout->staged_stride, (table.dim + 3) / 4 * 4);
  }
  if (!has_stream) PlaceOutput(layout, &table);
  if (given.occurrences != nullptr) {
    if (given.num_ids != given.num_samples) {
      return Internal("ids that stand for several are not one for each sample");
    }
    layout->have_occurrences = true;
  }
  if (given.on_device) {
    table.where = StepLayout::IdsAre::kOnGpu;
    layout->are_on_device = true;
    EV_RETURN_IF_ERROR(CheckIdsOnGpu(device, given));
  } else if (IsPinned(given.ids)) {
    table.where = StepLayout::IdsAre::kPinned;
    table.ids_owner = given.ids_owner;
    layout->are_pinned = true;
  } else if (!given.is_narrow) {
    table.narrows = table.is_narrow = !table.rows->hints().has_wide_ids;
  }
  table.id_begin = layout->num_ids;
  layout->num_ids += given.num_ids;
  if (!layout->tables.empty()) {
    const StepLayout::Table& last = layout->tables.back();
    table.sample_begin = last.sample_begin + last.num_samples;
  }
  const int number = static_cast<int>(layout->tables.size());
  table.first = given.samples_of < 0 ? number : given.samples_of;
  table.offsets_at = table.first == number
                         ? layout->num_offsets
                         : layout->tables[table.first].offsets_at;
  if (table.first == number) layout->num_offsets += given.num_samples + 1;
  layout->divides |= Divides(given.combiner);
  layout->tables.push_back(std::move(table));
  return Status::OK();
}

// Divides the tables into waves, and decides whether their lookup and pooling
// are launched together. They are not if ids are in GPU memory, whose samples
// must be checked first.
void CutIntoWaves(int device, StepLayout* layout) {
  layout->pools_early = true;
  bool are_put = true;
  for (size_t t = 0; t < layout->tables.size() && layout->pools_early; ++t) {
    const StepLayout::Table& table = layout->tables[t];
    are_put = are_put && table.where == StepLayout::IdsAre::kPut;
    // Pool returns the error if an output is in another GPU's memory.
    layout->pools_early = table.where != StepLayout::IdsAre::kOnGpu &&
                          layout->CheckOutput(device, static_cast<int>(t)).ok();
  }
  const bool in_waves =
      layout->pools_early && are_put && layout->num_ids >= 2 * MinIdsOfWave();
  int64_t ids = 0;
  for (size_t t = 0; t < layout->tables.size(); ++t) {
    StepLayout::Table* const table = &layout->tables[t];
    if (t == 0 || (in_waves && ids >= MinIdsOfWave())) {
      layout->waves.emplace_back();
      layout->waves.back().begin = static_cast<int>(t);
      ids = 0;
    }
    StepLayout::Wave* const wave = &layout->waves.back();
    table->wave = static_cast<int>(layout->waves.size()) - 1;
    wave->end = static_cast<int>(t) + 1;
    ids += table->num_ids;
    layout->most_wave_ids = std::max(layout->most_wave_ids, ids);
    if (table->first != static_cast<int>(t)) continue;
    if (wave->num_offsets == 0) wave->offsets_at = table->offsets_at;
    wave->num_offsets += table->num_samples + 1;
  }
}

// Lays out the block of ids: first the ids that are put, contiguous for each
// wave, then all others. Within each range int64 ids come first, so that all
// are aligned without gaps.
void PlaceIds(StepLayout* layout) {
  const auto place = [layout](int begin, int end, bool put) {
    for (bool narrow : {false, true}) {
      for (int t = begin; t < end; ++t) {
        StepLayout::Table* const table = &layout->tables[t];
        if (table->is_narrow != narrow ||
            (table->where == StepLayout::IdsAre::kPut) != put) {
          continue;
        }
        table->ids_at = layout->id_bytes;
        layout->id_bytes += table->id_bytes();
      }
    }
  };
  for (StepLayout::Wave& wave : layout->waves) {
    wave.put_at = layout->id_bytes;
    place(wave.begin, wave.end, /*put=*/true);
    wave.put_bytes = layout->id_bytes - wave.put_at;
    layout->id_bytes = RoundUp(layout->id_bytes, sizeof(int64_t));
  }
  place(0, static_cast<int>(layout->tables.size()), /*put=*/false);
  layout->id_bytes = RoundUp(layout->id_bytes, sizeof(int64_t));
}

// Sets the memory for the sort of rows in host memory, and for these rows.
Status PlaceStaging(Parts* on_device, StepLayout* layout) {
  size_t sort_bytes = 0;
  EV_RETURN_IF_ERROR(PlaceSort::Bytes(layout->most_wave_ids, &sort_bytes));
  layout->on_device.sort = on_device->AddBytes(sort_bytes);
  const int64_t row_bytes = layout->staged_stride * sizeof(float);
  // Samples of most tables are one id each; their rows are not staged.
  const bool pools = std::any_of(
      layout->tables.begin(), layout->tables.end(),
      [](const StepLayout::Table& table) {
        return table.has_host_rows && (table.num_ids != table.num_samples ||
                                       table.out.type() != FloatType::kFloat32);
      });
  layout->num_staged =
      pools ? std::min(layout->most_wave_ids, kMaxStagedBytes / row_bytes) : 0;
  layout->on_device.staged =
      on_device->AddBytes(layout->num_staged * row_bytes);
  return Status::OK();
}

// Sets on_host and on_device.
Status PlaceArrays(StepLayout* layout) {
  const int n = static_cast<int>(layout->tables.size());
  const int64_t num_ids = layout->num_ids;
  const size_t offset_bytes = layout->num_offsets * sizeof(int32_t);
  const size_t counter_bytes = (1 + n) * sizeof(uint32_t);
  layout->table_bytes = StepLayout::DescriptionBytes(layout->NumEntries(0, n));
  // The description is followed by zeros for the counters.
  const size_t sent_bytes = layout->table_bytes + counter_bytes;
  // Each wave has its own description in pinned memory, since several may be in
  // flight.
  size_t wave_bytes = 0;
  for (StepLayout::Wave& wave : layout->waves) {
    if (layout->waves.size() == 1) break;
    wave.tables_at = wave_bytes;
    wave_bytes +=
        StepLayout::DescriptionBytes(layout->NumEntries(wave.begin, wave.end));
  }
  const size_t occurrence_bytes =
      layout->have_occurrences ? num_ids * sizeof(int32_t) : 0;
  Parts on_host, on_device;
  StepLayout::Memory* const host = &layout->on_host;
  StepLayout::Memory* const device = &layout->on_device;
  // The data that a small step sends is contiguous in both memories.
  host->ids = on_host.AddBytes(layout->id_bytes);
  host->offsets = on_host.AddBytes(offset_bytes);
  host->tables = on_host.AddBytes(sent_bytes);
  layout->is_small = layout->pools_early && layout->waves.size() == 1 &&
                     !layout->are_pinned && on_host.bytes() <= kSmallBytes;
  host->unknown = on_host.AddBytes(num_ids * sizeof(uint32_t));
  host->unknown_keys =
      on_host.AddBytes(layout->all_put() ? 0 : num_ids * sizeof(int64_t));
  host->occurrences = on_host.AddBytes(occurrence_bytes);
  host->waves = on_host.AddBytes(wave_bytes);
  host->pool_tables = on_host.AddBytes(layout->table_bytes);
  host->counter = on_host.AddBytes(counter_bytes);
  const bool is_staged = std::any_of(
      layout->tables.begin(), layout->tables.end(),
      [](const StepLayout::Table& table) {
        return table.host_out != nullptr && !table.is_host_out_pinned;
      });
  host->outputs = on_host.AddBytes(is_staged ? layout->output_bytes : 0);
  host->bytes = on_host.bytes();
  device->ids = on_device.AddBytes(layout->id_bytes);
  device->offsets = on_device.AddBytes(offset_bytes);
  device->tables = on_device.AddBytes(sent_bytes);
  device->counter = device->tables + layout->table_bytes;
  device->handles = on_device.AddBytes(num_ids * sizeof(RowHandle));
  device->rows =
      on_device.AddBytes(layout->has_places ? num_ids * sizeof(float*) : 0);
  if (layout->has_host_rows) {
    EV_RETURN_IF_ERROR(PlaceStaging(&on_device, layout));
  }
  device->samples = on_device.AddBytes(num_ids * sizeof(uint32_t));
  int64_t num_samples = 0;
  for (const StepLayout::Table& table : layout->tables) {
    num_samples += table.num_samples;
  }
  device->factors =
      on_device.AddBytes(layout->divides ? num_samples * sizeof(float) : 0);
  device->occurrences = on_device.AddBytes(occurrence_bytes);
  device->outputs = on_device.AddBytes(layout->output_bytes);
  device->bytes = on_device.bytes();
  return Status::OK();
}

}  // namespace

Status StepLayout::Make(int device, Span<const GpuStepTable> tables,
                        bool has_stream, StepLayout* layout) {
  StepLayout made;
  for (const GpuStepTable& given : tables) {
    EV_RETURN_IF_ERROR(AddTable(device, given, has_stream, &made));
  }
  CutIntoWaves(device, &made);
  PlaceIds(&made);
  EV_RETURN_IF_ERROR(PlaceArrays(&made));
  *layout = std::move(made);
  return Status::OK();
}

size_t StepLayout::NumEntries(int begin, int end) const {
  size_t count = 0;
  for (int t = begin; t < end; ++t) {
    count += std::max<size_t>(1, tables[t].pieces.size());
  }
  return count;
}

// n StepLookupTables and four arrays of tiles. A multiple of 8, the largest
// alignment among them.
size_t StepLayout::DescriptionBytes(size_t n) {
  static_assert(sizeof(StepLookupTable) % 8 == 0, "pointers are aligned");
  return RoundUp(n * sizeof(StepLookupTable) + 4 * (n + 1) * sizeof(int32_t),
                 8);
}

Status StepLayout::CheckOutput(int device, int t) const {
  const Table& table = tables[t];
  if (table.host_out != nullptr) return Status::OK();
  if (table.pieces.empty()) {
    return CheckIsOn(device, table.out.data(), "the output");
  }
  for (const GpuStepPiece& piece : table.pieces) {
    if (piece.count == 0) continue;
    EV_RETURN_IF_ERROR(CheckIsOn(device, piece.out, "the output"));
  }
  return Status::OK();
}

std::vector<GpuRows*> StepLayout::RowsOf(int begin, int end) const {
  std::vector<GpuRows*> rows;
  for (int t = begin; t < end; ++t) rows.push_back(tables[t].rows);
  return rows;
}

}  // namespace gpu
}  // namespace ev
