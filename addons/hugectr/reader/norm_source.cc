// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/hugectr/reader/norm_source.h"

#include <algorithm>
#include <utility>

#include "addons/hugectr/reader/file.h"
#include "addons/hugectr/reader/norm_scan.h"

namespace hugectr {
namespace {

// After this many batches with records of another shape, the fast path is no
// longer tried.
constexpr int kMisses = 4;

// More records than any disk holds; sums over several files do not overflow.
constexpr int64_t kCountable = int64_t{1} << 40;

// Larger tiles have a multiple of this many records, since the filler's loops
// take that many at a time.
constexpr int64_t kRound = 64;

// Bytes of the first record that are read to find its shape.
constexpr int64_t kLook = 1 << 16;

}  // namespace

class NormWorker : public Worker {
 public:
  explicit NormWorker(NormSource* source)
      : source_(*source),
        misses_(source->misses_),
        scan_(source->format_, source->tile_) {}

  bool Guess(const Place& place, const Span& span, Place* end) override;
  ev::Status Read(const Place& place, const Span& span, Batch* batch,
                  Place* end) override;
  ev::Status Scan(const Place& place, const Span& span, Place* end) override;
  void Fill(const Span& span, Batch* batch) override { scan_.Fill(batch); }
  ev::Status CheckEnd(const Place& place) override;

 private:
  using Listed = NormSource::Listed;

  const Listed& Of(const Place& place) const {
    return source_.files_[place.file];
  }
  Place After(const Place& place) const {
    const int64_t files = source_.files_.size();
    return Place{place.file + 1 == files ? 0 : place.file + 1, 0, kNormHeader};
  }
  ev::Status Open(int64_t file);
  // Checks that the file ends after its last record.
  ev::Status CheckFileEnd(const Place& place);
  bool ReadUniform(const Place& place, const Span& span, Batch* batch);

  const NormSource& source_;
  std::atomic<int>& misses_;
  NormScan scan_;
  File file_;
  int64_t opened_ = -1;
  AlignedMemory tile_;
};

ev::Status NormWorker::Open(int64_t file) {
  if (opened_ == file) return ev::Status::OK();
  opened_ = -1;
  EV_RETURN_IF_ERROR(file_.Open(source_.files_[file].path));
  opened_ = file;
  return ev::Status::OK();
}

bool NormWorker::Guess(const Place& place, const Span& span, Place* end) {
  if (source_.shape_.stride == 0 || misses_.load() >= kMisses) return false;
  Place at = place;
  for (int64_t left = span.count; left > 0;) {
    if (at.record == Of(at).records) {
      if (at.byte != Of(at).size) return false;
      at = After(at);
      continue;
    }
    const int64_t count = std::min(left, Of(at).records - at.record);
    at.record += count;
    at.byte += count * source_.shape_.stride;
    left -= count;
  }
  *end = at;
  return true;
}

bool NormWorker::ReadUniform(const Place& place, const Span& span,
                             Batch* batch) {
  const NormShape& shape = source_.shape_;
  int64_t per_tile = std::max<int64_t>(1, source_.tile_ / shape.stride);
  if (per_tile > kRound) per_tile -= per_tile % kRound;
  UniformFiller filler(source_.format_, shape, batch);
  tile_.Reserve(per_tile * shape.stride);
  const char* bytes = tile_.as<char>();
  Place at = place;
  for (int64_t sample = 0; sample < span.count;) {
    if (at.record == Of(at).records) {
      at = After(at);
      continue;
    }
    const int64_t count =
        std::min({span.count - sample, Of(at).records - at.record, per_tile});
    int64_t got = 0;
    if (!Open(at.file).ok() ||
        !file_.Read(at.byte, count * shape.stride, tile_.as<char>(), &got)
             .ok() ||
        got != count * shape.stride) {
      return false;
    }
    const int64_t low =
        std::min(std::max(span.low - sample, int64_t{0}), count);
    const int64_t high = std::min(std::max(span.high - sample, low), count);
    if (!filler.Check(bytes, low) ||
        !filler.Add(bytes + low * shape.stride, high - low,
                    sample + low - span.low) ||
        !filler.Check(bytes + high * shape.stride, count - high)) {
      return false;
    }
    at.record += count;
    at.byte += count * shape.stride;
    sample += count;
  }
  return true;
}

ev::Status NormWorker::Read(const Place& place, const Span& span, Batch* batch,
                            Place* end) {
  if (Guess(place, span, end)) {
    if (ReadUniform(place, span, batch)) return ev::Status::OK();
    ++misses_;
  }
  EV_RETURN_IF_ERROR(Scan(place, span, end));
  scan_.Fill(batch);
  return ev::Status::OK();
}

ev::Status NormWorker::Scan(const Place& place, const Span& span, Place* end) {
  scan_.Start(span);
  Place at = place;
  for (int64_t left = span.count; left > 0;) {
    if (at.record == Of(at).records) {
      EV_RETURN_IF_ERROR(CheckFileEnd(at));
      at = After(at);
      continue;
    }
    EV_RETURN_IF_ERROR(Open(at.file));
    const int64_t count = std::min(left, Of(at).records - at.record);
    EV_RETURN_IF_ERROR(
        scan_.Add(file_, at.record, Of(at).header_records, count, &at.byte));
    at.record += count;
    left -= count;
  }
  *end = at;
  return ev::Status::OK();
}

ev::Status NormWorker::CheckFileEnd(const Place& place) {
  EV_RETURN_IF_ERROR(Open(place.file));
  const int64_t more = file_.size() - place.byte;
  if (more == 0) return ev::Status::OK();
  const std::string where =
      file_.path() + ": byte " + std::to_string(place.byte) + ": ";
  if (more < 0) {
    return ev::InvalidArgument(where + "the file has become shorter");
  }
  return ev::InvalidArgument(
      where + std::to_string(more) + " bytes follow the " +
      std::to_string(Of(place).header_records) + " records");
}

ev::Status NormWorker::CheckEnd(const Place& place) {
  EV_RETURN_IF_ERROR(CheckFileEnd(place));
  const int64_t files = source_.files_.size();
  for (int64_t file = place.file + 1; file < files; ++file) {
    EV_RETURN_IF_ERROR(CheckFileEnd(Place{file, 0, kNormHeader}));
  }
  return ev::Status::OK();
}

ev::Status NormSource::Open(const NormFormat& format,
                            const std::vector<std::string>& paths, int64_t tile,
                            std::unique_ptr<Source>* source) {
  std::unique_ptr<NormSource> opened(new NormSource(format, tile));
  for (const std::string& path : paths) {
    EV_RETURN_IF_ERROR(opened->AddFile(path));
  }
  *source = std::move(opened);
  return ev::Status::OK();
}

ev::Status NormSource::AddFile(const std::string& path) {
  File file;
  EV_RETURN_IF_ERROR(file.Open(path));
  int64_t header[kNormHeader / sizeof(int64_t)];
  int64_t got;
  EV_RETURN_IF_ERROR(file.Read(0, kNormHeader, header, &got));
  if (got != kNormHeader) {
    return ev::InvalidArgument(path + ": " + std::to_string(got) +
                               " bytes, expected a header of " +
                               std::to_string(kNormHeader));
  }
  const struct {
    int at;
    const char* name;
    int64_t expected;
  } fields[] = {
      {0, "error_check, 1 if the JSON's check is Sum and else 0,",
       format_.with_sums ? 1 : 0},
      {2, "label_dim", format_.layout.label_dim},
      {3, "dense_dim", format_.layout.dense_dim},
      {4, "slot_num", format_.layout.slots},
  };
  for (const auto& field : fields) {
    if (header[field.at] == field.expected) continue;
    return ev::InvalidArgument(path + ": byte " + std::to_string(8 * field.at) +
                               " of the header: " + field.name + ": expected " +
                               std::to_string(field.expected) + ", got " +
                               std::to_string(header[field.at]));
  }
  Listed listed;
  listed.path = path;
  listed.size = file.size();
  listed.header_records = header[1];
  if (listed.header_records < 0) {
    return ev::InvalidArgument(path +
                               ": byte 8 of the header: number_of_records is " +
                               std::to_string(listed.header_records));
  }
  listed.records = std::min(listed.header_records, kCountable);
  if (listed.records > 0 && samples_ == 0) {
    std::vector<char> look(std::min(kLook, listed.size - kNormHeader));
    EV_RETURN_IF_ERROR(file.Read(kNormHeader, look.size(), look.data(), &got));
    shape_ = ShapeOf(format_, look.data(), got);
  }
  samples_ += listed.records;
  files_.push_back(std::move(listed));
  return ev::Status::OK();
}

std::unique_ptr<Worker> NormSource::MakeWorker() {
  return std::unique_ptr<Worker>(new NormWorker(this));
}

}  // namespace hugectr
