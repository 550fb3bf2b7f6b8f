// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// All arrays are in pinned memory, which both processors access.

#include <cuda_runtime_api.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <numeric>
#include <random>
#include <set>
#include <vector>

#include "kernels/engine/base/gpu/cuda_error.h"
#include "kernels/engine/base/gpu/device_buffer.h"
#include "kernels/engine/base/gpu/process_device.h"
#include "kernels/engine/gpu_step/place_sort.h"
#include "kernels/engine/rows/gpu/row_places.h"
#include "kernels/engine/rows/gpu_step/fetch_under_test.h"
#include "kernels/engine/rows/gpu_step/step_fetch.h"

namespace ev {
namespace gpu {
namespace {

constexpr int kRowsLog2 = 4;  // rows per piece
constexpr int64_t kDefaults = 7;

// Pinned arrays, freed together.
class Arrays {
 public:
  ~Arrays() {
    for (void* array : arrays_) EV_CUDA_LOG_IF_ERROR(cudaFreeHost(array));
  }
  template <typename T>
  T* New(size_t count) {
    void* array = nullptr;
    const cudaError_t error =
        cudaMallocHost(&array, std::max<size_t>(1, count) * sizeof(T));
    if (error != cudaSuccess) return nullptr;
    arrays_.push_back(array);
    T* const made = static_cast<T*>(array);
    std::fill_n(made, count, T());
    return made;
  }

 private:
  std::vector<void*> arrays_;
};

// The value of element e of the row of a handle, and of a default row.
float ValueOf(RowHandle handle, int64_t e) {
  return handle < kFirstReservedHandle
             ? static_cast<float>(handle * 512 + e)
             : -1.0f - static_cast<float>(
                           (handle - kFirstReservedHandle) * 512 + e);
}
constexpr float kUnwritten = -7777.0f;

struct Made {
  StepLookupTable table;
  int64_t num_places = 0;
  std::vector<uint32_t> place;  // of each handle

  bool IsOnHost(RowHandle handle) const {
    return handle < kFirstReservedHandle &&
           table.rows.placed.places != nullptr &&
           place[handle] >= table.rows.placed.num_on_gpu;
  }
};

Made MakeTable(bool is_placed, std::mt19937* random, Arrays* arrays) {
  Made made;
  StepLookupTable& to = made.table;
  to.dim =
      (*random)() % 2 == 0 ? 8 * (1 + (*random)() % 20) : 1 + (*random)() % 40;
  to.value_floats = to.dim;
  const int64_t stride = 2 * to.dim;
  made.num_places = 200 + (*random)() % 3000;
  made.place.resize(made.num_places);
  std::iota(made.place.begin(), made.place.end(), 0u);
  if (is_placed) std::shuffle(made.place.begin(), made.place.end(), *random);
  const int64_t num_pieces = (made.num_places >> kRowsLog2) + 1;
  float* const rows = arrays->New<float>((num_pieces << kRowsLog2) * stride);
  float** const pieces = arrays->New<float*>(num_pieces);
  for (int64_t p = 0; p < num_pieces; ++p) {
    pieces[p] = rows + (p << kRowsLog2) * stride;
  }
  uint32_t* const words = arrays->New<uint32_t>(size_t{1} << kPlacesLog2);
  for (RowHandle handle = 0; handle < made.num_places; ++handle) {
    words[handle] = handle ^ made.place[handle];
    for (int64_t e = 0; e < stride; ++e) {
      rows[made.place[handle] * stride + e] = ValueOf(handle, e);
    }
  }
  to.rows.pieces = pieces;
  to.rows.rows_log2 = kRowsLog2;
  to.rows.stride = stride;
  if (is_placed) {
    uint32_t** const all_words = arrays->New<uint32_t*>(1);
    all_words[0] = words;
    to.rows.placed.places = all_words;
    to.rows.placed.state = arrays->New<PlaceState>(1);
    to.rows.placed.num_on_gpu = static_cast<uint32_t>(made.num_places / 10);
  }
  float* const defaults = arrays->New<float>(kDefaults * to.dim);
  for (int64_t e = 0; e < kDefaults * to.dim; ++e) {
    defaults[e] = ValueOf(kFirstReservedHandle + e / to.dim, e % to.dim);
  }
  to.defaults = defaults;
  return made;
}

// Most ids are one row, some are frequent or have no row.
RowHandle DrawHandle(const Made& made, RowHandle hot, std::mt19937* random) {
  const uint32_t k = (*random)() % 10;
  if (k == 0) return kFirstReservedHandle + (*random)() % kDefaults;
  if (k < 4) return hot;
  return (*random)() % (k < 7 ? 20 : made.num_places);
}

// Checks the address of one id's row, or its output.
std::string Check(const StepLookup& lookup, const StepFetch& fetch,
                  const Made& made, int64_t j, std::set<const void*>* reads,
                  int64_t* num_host_ids) {
  const StepLookupTable& table = made.table;
  const int64_t i = table.id_begin + j;
  const RowHandle handle = lookup.handles[i];
  const float* const row = lookup.rows[i];
  const float* const out = static_cast<const float*>(table.out) + j * table.dim;
  const bool is_on_host = made.IsOnHost(handle);
  const std::string what =
      "id " + std::to_string(i) + ", handle " + std::to_string(handle) + ": ";
  if (row == nullptr && (!is_on_host || table.offsets != nullptr)) {
    return what + "written to the output";
  }
  for (int64_t e = 0; e < table.dim; ++e) {
    const float got = row == nullptr ? out[e] : row[e];
    if (got != ValueOf(handle, e)) return what + "another row";
    if (row != nullptr && out[e] != kUnwritten) {
      return what + "output written, too";
    }
  }
  if (!is_on_host) return "";
  ++*num_host_ids;
  const bool is_staged = row >= fetch.staged &&
                         row < fetch.staged + fetch.num_staged * fetch.stride;
  if (is_staged) reads->insert(row);
  if (table.offsets == nullptr && row != nullptr) return what + "not written";
  if (table.offsets != nullptr && fetch.num_staged == fetch.num_ids &&
      !is_staged) {
    return what + "not staged";
  }
  return "";
}

}  // namespace

Status UseGpuForFetch() {
  int device = 0;
  EV_RETURN_IF_ERROR(ProcessDevice("this test needs", &device));
  EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(device));
  return Status::OK();
}

Status RunFetch(const FetchCase& what, std::string* wrong,
                int64_t* num_host_ids, int64_t* num_reads) {
  std::mt19937 random(what.seed);
  Arrays arrays;
  std::deque<Made> all;
  StepLookup lookup;
  lookup.num_tables = what.num_tables;
  StepLookupTable* const tables = arrays.New<StepLookupTable>(what.num_tables);
  int32_t* const tiles = arrays.New<int32_t>(what.num_tables + 1);
  int64_t num_places = 0;
  std::vector<RowHandle> drawn;
  StepFetch fetch;
  for (int t = 0; t < what.num_tables; ++t) {
    all.push_back(MakeTable(t == 0 || random() % 3 != 0, &random, &arrays));
    Made* const made = &all.back();
    StepLookupTable& table = made->table;
    table.id_begin = static_cast<int64_t>(drawn.size());
    table.num_ids = table.num_samples = 1 + random() % 3000;
    const RowHandle hot = random() % made->num_places;
    for (int64_t j = 0; j < table.num_ids; ++j) {
      drawn.push_back(DrawHandle(*made, hot, &random));
    }
    // One output in three is not aligned to 16 bytes.
    const int64_t floats = table.num_ids * table.dim;
    float* const out =
        arrays.New<float>(floats + 1) + (random() % 3 == 0 ? 1 : 0);
    std::fill_n(out, floats, kUnwritten);
    table.out = out;
    // The kernels only test offsets for null.
    if (random() % 2 == 0) table.offsets = tiles;
    tables[t] = table;
    tiles[t + 1] = tiles[t] + static_cast<int32_t>(
                                  (table.num_ids + kFindTile - 1) / kFindTile);
    if (table.rows.placed.places == nullptr) continue;
    num_places = std::max(num_places, made->num_places);
    fetch.stride = std::max<int64_t>(fetch.stride, (table.dim + 3) / 4 * 4);
  }
  const int64_t n = static_cast<int64_t>(drawn.size());
  lookup.tables = tables;
  lookup.find_tiles = tiles;
  lookup.handles = arrays.New<RowHandle>(n);
  std::copy(drawn.begin(), drawn.end(), lookup.handles);
  lookup.rows = arrays.New<const float*>(n);
  fetch.num_ids = n;
  fetch.order = PlaceOrder::Of(what.num_tables, num_places / what.known_part);
  const int more = std::min(what.more_window_log2, fetch.order.window_bits);
  fetch.order.window_log2 += more;
  fetch.order.window_bits -= more;
  fetch.order.bits -= more;
  fetch.num_staged = n / what.staged_part;
  fetch.staged = arrays.New<float>(fetch.num_staged * fetch.stride);
  size_t bytes = 0;
  DeviceBuffer memory;
  EV_RETURN_IF_ERROR(PlaceSort::Bytes(n, &bytes));
  EV_RETURN_IF_ERROR(memory.Allocate(bytes, "a test"));
  PlaceSort sort(memory.as<char>(), n);
  const uint32_t *keys = nullptr, *positions = nullptr;
  EV_RETURN_IF_ERROR(LaunchLocate(lookup, tiles[what.num_tables], fetch,
                                  sort.keys(), sort.values(), StreamView()));
  EV_RETURN_IF_ERROR(
      sort.Launch(0, n, fetch.order.bits, StreamView(), &keys, &positions));
  EV_RETURN_IF_ERROR(LaunchFetch(lookup, fetch, keys, positions, StreamView()));
  EV_CUDA_RETURN_IF_ERROR(cudaStreamSynchronize(nullptr));

  std::set<const void*> reads;
  *num_host_ids = 0;
  for (const Made& made : all) {
    const int64_t before = *num_host_ids;
    const size_t reads_before = reads.size();
    for (int64_t j = 0; j < made.table.num_ids; ++j) {
      *wrong = Check(lookup, fetch, made, j, &reads, num_host_ids);
      if (!wrong->empty()) return Status::OK();
    }
    const PlaceState* const state = made.table.rows.placed.state;
    if (state != nullptr &&
        static_cast<int64_t>(state->misses) != *num_host_ids - before) {
      *wrong = "counted " + std::to_string(state->misses) +
               " ids with rows in host memory, expected " +
               std::to_string(*num_host_ids - before);
      return Status::OK();
    }
    if (state != nullptr && made.table.offsets != nullptr &&
        fetch.num_staged == fetch.num_ids &&
        state->fetched != reads.size() - reads_before) {
      *wrong = "counted " + std::to_string(state->fetched) +
               " reads of host memory, expected " +
               std::to_string(reads.size() - reads_before);
      return Status::OK();
    }
  }
  *num_reads = static_cast<int64_t>(reads.size());
  return Status::OK();
}

}  // namespace gpu
}  // namespace ev
