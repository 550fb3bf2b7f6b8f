// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/hugectr/reader/c_api.h"

#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "addons/hugectr/reader/batch_reader.h"
#include "addons/hugectr/reader/columns.h"
#include "addons/hugectr/reader/norm_source.h"
#include "addons/hugectr/reader/raw_source.h"
#include "kernels/engine/base/printable.h"

namespace hugectr {
namespace {

std::string& Error() {
  static thread_local std::string error;
  return error;
}

// Calls function(); on an exception, returns `failed` and stores the error
// message.
template <typename Result, typename Function>
Result Guarded(Result failed, const Function& function) {
  try {
    return function();
  } catch (const std::exception& e) {
    Error() = std::string("reader of the data: ") + e.what();
    return failed;
  }
}

Layout LayoutOf(const hugectr_options& options) {
  Layout layout;
  layout.label_dim = options.label_dim;
  layout.dense_dim = options.dense_dim;
  layout.slots = options.slots;
  for (int64_t i = 0; i < options.num_inputs; ++i) {
    const int64_t* input = options.inputs + 3 * i;
    layout.inputs.push_back(Input{input[0], input[1], input[2] != 0});
  }
  return layout;
}

void* Start(const ev::Status& status, std::unique_ptr<Source> source,
            const hugectr_options& options) {
  if (!status.ok()) {
    Error() = status.message();
    return nullptr;
  }
  ReaderOptions how;
  how.batch_size = options.batch_size;
  how.repeat = options.repeat != 0;
  how.rank = options.rank;
  how.ranks = options.ranks;
  how.threads = options.threads;
  how.depth = options.depth;
  return new BatchReader(std::move(source), how);
}

void Give(BatchPool::Owned taken, hugectr_batch* batch, hugectr_keys* keys) {
  batch->size = taken->size;
  batch->global_size = taken->global_size;
  batch->labels = taken->labels.as<float>();
  batch->dense = taken->dense.as<float>();
  for (size_t i = 0; i < taken->inputs.size(); ++i) {
    const InputKeys& input = taken->inputs[i];
    keys[i].keys = input.keys.as<int64_t>();
    keys[i].num_keys = input.num_keys;
    keys[i].splits = input.splits();
    keys[i].num_splits = input.num_splits;
    keys[i].has_one_key = input.one_key_splits != nullptr;
  }
  batch->handle = new BatchPool::Owned(std::move(taken));
}

int64_t TileOf(const hugectr_options& options) {
  return options.tile > 0 ? options.tile : NormSource::kTile;
}

}  // namespace
}  // namespace hugectr

using hugectr::BatchPool;
using hugectr::BatchReader;

const char* hugectr_error() {
  std::string& error = hugectr::Error();
  error = ev::PrintableUtf8(error);
  return error.c_str();
}

void* hugectr_open_norm(const hugectr_options* options,
                        const char* const* paths, int64_t num_paths,
                        int64_t key_bytes, int64_t with_sums) {
  return hugectr::Guarded<void*>(nullptr, [&] {
    hugectr::NormFormat format;
    format.layout = hugectr::LayoutOf(*options);
    format.key_bytes = key_bytes;
    format.with_sums = with_sums != 0;
    std::unique_ptr<hugectr::Source> source;
    const ev::Status status = hugectr::NormSource::Open(
        format, std::vector<std::string>(paths, paths + num_paths),
        hugectr::TileOf(*options), &source);
    return hugectr::Start(status, std::move(source), *options);
  });
}

void* hugectr_open_raw(const hugectr_options* options, const hugectr_raw* raw) {
  return hugectr::Guarded<void*>(nullptr, [&] {
    hugectr::RawFormat format;
    format.layout = hugectr::LayoutOf(*options);
    format.is_float = raw->is_float != 0;
    format.sizes.assign(raw->sizes, raw->sizes + options->slots);
    format.offsets.assign(raw->offsets, raw->offsets + options->slots);
    hugectr::RawOptions how;
    how.path = raw->path;
    how.samples = raw->samples;
    how.block = options->batch_size;
    how.is_shuffled = raw->is_shuffled != 0;
    how.seed = raw->seed;
    how.first_pass = raw->first_pass;
    how.tile = hugectr::TileOf(*options);
    std::unique_ptr<hugectr::Source> source;
    const ev::Status status = hugectr::RawSource::Open(format, how, &source);
    return hugectr::Start(status, std::move(source), *options);
  });
}

int hugectr_next(void* reader, int64_t milliseconds, hugectr_batch* batch,
                 hugectr_keys* keys) {
  return hugectr::Guarded<int>(-1, [&] {
    BatchReader::Result result;
    BatchPool::Owned taken;
    const ev::Status status =
        static_cast<BatchReader*>(reader)->Next(milliseconds, &result, &taken);
    if (!status.ok()) {
      hugectr::Error() = status.message();
      return -1;
    }
    if (result == BatchReader::Result::kEnd) return 0;
    if (result == BatchReader::Result::kNotYet) return 2;
    hugectr::Give(std::move(taken), batch, keys);
    return 1;
  });
}

int64_t hugectr_ready(void* reader) {
  return static_cast<BatchReader*>(reader)->ready();
}

void hugectr_release(void* batch) {
  delete static_cast<BatchPool::Owned*>(batch);
}

void hugectr_close(void* reader) { delete static_cast<BatchReader*>(reader); }

void* hugectr_open_pool(const hugectr_options* options) {
  return hugectr::Guarded<void*>(nullptr, [&]() -> void* {
    return new std::shared_ptr<BatchPool>(
        std::make_shared<BatchPool>(hugectr::LayoutOf(*options)));
  });
}

void hugectr_close_pool(void* pool) {
  delete static_cast<std::shared_ptr<BatchPool>*>(pool);
}

int hugectr_join(void* pool, const hugectr_piece* pieces, int64_t num_pieces,
                 int64_t global_size, hugectr_batch* batch,
                 hugectr_keys* keys) {
  return hugectr::Guarded<int>(-1, [&] {
    std::vector<hugectr::ColumnPiece> columns(num_pieces);
    int64_t size = 0;
    for (int64_t i = 0; i < num_pieces; ++i) {
      columns[i].count = pieces[i].count;
      columns[i].labels = {pieces[i].labels, pieces[i].labels_stride};
      columns[i].dense = {pieces[i].dense, pieces[i].dense_stride};
      columns[i].keys = pieces[i].keys;
      columns[i].added = pieces[i].added;
      size += pieces[i].count;
    }
    BatchPool::Owned taken = (*static_cast<std::shared_ptr<BatchPool>*>(pool))
                                 ->Take(size, global_size);
    hugectr::FillFromColumns(columns, taken.get());
    hugectr::Give(std::move(taken), batch, keys);
    return 1;
  });
}

int64_t hugectr_first_outside(const int64_t* keys, int64_t count,
                              int64_t size) {
  return hugectr::FirstOutside(keys, count, size);
}
