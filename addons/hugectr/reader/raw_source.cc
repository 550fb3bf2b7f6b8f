// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/hugectr/reader/raw_source.h"

#include <algorithm>
#include <utility>

#include "addons/hugectr/reader/file.h"

namespace hugectr {
namespace {

// Larger tiles have a multiple of this many samples, since loops take that many
// at a time.
constexpr int64_t kRound = 128;

}  // namespace

class RawWorker : public Worker {
 public:
  explicit RawWorker(RawSource* source) : source_(source) {}

  // All samples have the same size, so this is exact.
  bool Guess(const Place& place, const Span& span, Place* end) override;
  ev::Status Read(const Place& place, const Span& span, Batch* batch,
                  Place* end) override;
  ev::Status Scan(const Place& place, const Span& span, Place* end) override {
    return ev::Internal("Raw files are not scanned");
  }
  void Fill(const Span& span, Batch* batch) override {}
  ev::Status CheckEnd(const Place& place) override { return ev::Status::OK(); }

 private:
  ev::Status ReadTile(int64_t first, int64_t count, int64_t sample,
                      const Span& span, Batch* batch);

  RawSource* const source_;
  File file_;
  AlignedMemory tile_;
};

bool RawWorker::Guess(const Place& place, const Span& span, Place* end) {
  const int64_t samples = source_->options_.samples;
  const int64_t record = place.record + span.count;
  *end = Place{place.file + record / samples, record % samples, 0};
  return true;
}

ev::Status RawWorker::Read(const Place& place, const Span& span, Batch* batch,
                           Place* end) {
  const RawOptions& options = source_->options_;
  if (file_.path().empty()) EV_RETURN_IF_ERROR(file_.Open(options.path));
  Guess(place, span, end);
  source_->rows_.Prepare(batch);
  int64_t per_tile = std::max<int64_t>(1, options.tile / source_->row_bytes_);
  if (per_tile > kRound) per_tile -= per_tile % kRound;
  const int64_t whole_blocks = options.samples / options.block;
  int64_t pass = place.file, record = place.record;
  for (int64_t sample = 0; sample < span.count;) {
    if (record == options.samples) {
      ++pass;
      record = 0;
    }
    int64_t block = record / options.block;
    const int64_t in_block = record % options.block;
    if (options.is_shuffled && block < whole_blocks) {
      block = (*source_->order_.OfPass(pass))[block];
    }
    const int64_t first = block * options.block + in_block;
    const int64_t count =
        std::min({span.count - sample, options.block - in_block,
                  options.samples - record, per_tile});
    EV_RETURN_IF_ERROR(ReadTile(first, count, sample, span, batch));
    sample += count;
    record += count;
  }
  return ev::Status::OK();
}

ev::Status RawWorker::ReadTile(int64_t first, int64_t count, int64_t sample,
                               const Span& span, Batch* batch) {
  const int64_t row_bytes = source_->row_bytes_;
  const RawRows& rows = source_->rows_;
  tile_.Reserve(count * row_bytes);
  int64_t got;
  EV_RETURN_IF_ERROR(
      file_.Read(first * row_bytes, count * row_bytes, tile_.as<char>(), &got));
  if (got != count * row_bytes) {
    return ev::InvalidArgument(file_.path() + ": ends at byte " +
                               std::to_string(first * row_bytes + got) +
                               ", it has become shorter");
  }
  const int64_t width = row_bytes / sizeof(int32_t);
  const int32_t* numbers = tile_.as<int32_t>();
  const int64_t low = std::min(std::max(span.low - sample, int64_t{0}), count);
  const int64_t high = std::min(std::max(span.high - sample, low), count);
  if (rows.Check(numbers, low) &&
      rows.Copy(numbers + low * width, high - low, sample + low - span.low,
                batch) &&
      rows.Check(numbers + high * width, count - high)) {
    return ev::Status::OK();
  }
  int64_t row, column;
  std::string sentence;
  rows.Error(numbers, count, &row, &column, &sentence);
  return ev::InvalidArgument(
      file_.path() + ": record " + std::to_string(first + row) + ", byte " +
      std::to_string((first + row) * row_bytes + 4 * column) + ": " + sentence);
}

RawSource::RawSource(const RawFormat& format, const RawOptions& options)
    : layout_(format.layout),
      options_(options),
      row_bytes_(format.width() * sizeof(int32_t)),
      rows_(format),
      order_(options.samples / options.block, options.seed) {}

ev::Status RawSource::Open(const RawFormat& format, const RawOptions& options,
                           std::unique_ptr<Source>* source) {
  File file;
  EV_RETURN_IF_ERROR(file.Open(options.path));
  const int64_t row_bytes = format.width() * sizeof(int32_t);
  // Compare without a product, since `samples` may be any number.
  if (file.size() % row_bytes != 0 ||
      file.size() / row_bytes != options.samples) {
    return ev::InvalidArgument(
        options.path + ": " + std::to_string(file.size()) +
        " bytes, expected " + std::to_string(options.samples) + " samples of " +
        std::to_string(row_bytes) +
        " bytes: " + std::to_string(format.layout.label_dim) + " labels, " +
        std::to_string(format.layout.dense_dim) + " dense features and " +
        std::to_string(format.layout.slots) + " keys of 4 bytes");
  }
  source->reset(new RawSource(format, options));
  return ev::Status::OK();
}

std::unique_ptr<Worker> RawSource::MakeWorker() {
  return std::unique_ptr<Worker>(new RawWorker(this));
}

}  // namespace hugectr
