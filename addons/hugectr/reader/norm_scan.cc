// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/hugectr/reader/norm_scan.h"

#include <algorithm>
#include <cstring>
#include <string>

namespace hugectr {
namespace {

// Bytes read beyond the expected records, since some are larger.
constexpr int64_t kSpare = 4096;

// Returns what is wrong with the checksum that follows a record's bytes; empty
// if nothing is.
std::string WrongSum(const char* bytes, int64_t length) {
  const uint8_t found = ByteSum(bytes, length);
  const uint8_t expected = static_cast<uint8_t>(bytes[length]);
  if (found == expected) return "";
  return "the checksum is " + std::to_string(expected) +
         ", but the record's bytes sum to " + std::to_string(found);
}

}  // namespace

// The bytes of one file's records, read on demand.
class NormScan::Piece {
 public:
  // begin: position in the file. The bytes are appended to those of the scan.
  Piece(NormScan* scan, const File& file, int64_t begin)
      : scan_(scan),
        file_(file),
        begin_(begin),
        offset_(scan->num_bytes_),
        data_(scan->bytes_.as<char>() + offset_) {}

  // Keeps the first `used` bytes; drops the rest that was read.
  void End(int64_t used) { scan_->num_bytes_ = offset_ + used; }

  // Reads at least the first `bytes` bytes; *there is false if the file has
  // fewer. expected: total number of bytes that will probably be needed.
  ev::Status Need(int64_t bytes, int64_t expected, bool* is_complete) {
    *is_complete = bytes <= have_;
    if (*is_complete) return ev::Status::OK();
    *is_complete = begin_ + bytes <= file_.size();
    if (!*is_complete) return ev::Status::OK();
    const int64_t wanted =
        std::max(bytes, std::min(have_ + scan_->tile_, expected));
    const int64_t to_read = std::min(wanted, file_.size() - begin_) - have_;
    scan_->bytes_.Grow(offset_ + have_ + to_read, offset_ + have_);
    data_ = scan_->bytes_.as<char>() + offset_;
    int64_t got;
    EV_RETURN_IF_ERROR(
        file_.Read(begin_ + have_, to_read, data_ + have_, &got));
    have_ += got;
    *is_complete = bytes <= have_;
    return ev::Status::OK();
  }

  int64_t have() const { return have_; }
  const char* data() const { return data_; }
  // Start of the piece in the scan's bytes.
  int64_t offset() const { return offset_; }

 private:
  NormScan* const scan_;
  const File& file_;
  const int64_t begin_;
  const int64_t offset_;
  int64_t have_ = 0;
  char* data_;
};

NormScan::NormScan(const NormFormat& format, int64_t tile)
    : format_(format), tile_(tile), keys_of_slot_(format.layout.slots) {
  bytes_.Reserve(tile);
}

void NormScan::Start(const Span& span) {
  span_ = span;
  samples_ = 0;
  num_bytes_ = 0;
  begins_.clear();
  counts_.clear();
  begins_.reserve(span.size());
  counts_.reserve(span.size() * format_.layout.slots);
  std::fill(keys_of_slot_.begin(), keys_of_slot_.end(), 0);
}

ev::Status NormScan::Add(const File& file, int64_t first, int64_t records,
                         int64_t count, int64_t* byte) {
  Piece piece(this, file, *byte);
  const int64_t slots = format_.layout.slots;
  const int64_t fixed = format_.layout.fixed() * kWord;
  const int64_t key_bytes = format_.key_bytes;
  std::vector<int32_t> counts(slots);
  int64_t at = 0;
  int64_t record = first;

  const auto error = [&](int64_t where, const std::string& sentence) {
    return ev::InvalidArgument(file.path() + ": record " +
                               std::to_string(record) + ", byte " +
                               std::to_string(*byte + where) + ": " + sentence);
  };
  const auto too_short = [&] {
    return error(at, "the file ends within the record, but its header counts " +
                         std::to_string(records) + " records");
  };
  const auto bad_count = [&](int64_t slot, int64_t where) {
    return error(where, "slot " + std::to_string(slot) + " has " +
                            std::to_string(counts[slot]) +
                            " keys, which do not fit into the record");
  };

  for (int64_t n = 0; n < count; ++n, ++record) {
    bool is_complete;
    const auto need = [&](int64_t end) {
      if (end <= piece.have()) {
        is_complete = true;
        return ev::Status::OK();
      }
      // Expected bytes of the remaining records.
      const int64_t more =
          mean_bytes_ > 0
              ? static_cast<int64_t>(mean_bytes_ * (count - n)) + kSpare
              : tile_;
      return piece.Need(end, at + more, &is_complete);
    };
    int64_t begin = at;
    int64_t place, end = 0;
    if (format_.with_sums) {
      EV_RETURN_IF_ERROR(need(at + kLengthBytes));
      if (!is_complete) return too_short();
      const int64_t length = WordAt(piece.data() + at);
      if (length < 0 || length % kWord != 0) {
        return error(at, "the record's length is " + std::to_string(length));
      }
      begin = at + kLengthBytes;
      end = begin + length;
      EV_RETURN_IF_ERROR(need(end + kSumBytes));
      if (!is_complete) return too_short();
      const std::string wrong = WrongSum(piece.data() + begin, length);
      if (!wrong.empty()) return error(begin, wrong);
      if (length < fixed + slots * kWord) {
        return error(begin, "the record has " + std::to_string(length) +
                                " bytes, which is too short");
      }
      place = begin + fixed;
      for (int64_t s = 0; s < slots; ++s) {
        counts[s] = WordAt(piece.data() + place);
        const int64_t after = place + kWord + counts[s] * key_bytes;
        if (counts[s] < 0 || after > end - (slots - 1 - s) * kWord) {
          return bad_count(s, place);
        }
        place = after;
      }
      if (place != end) {
        return error(place, std::to_string(end - place) +
                                " bytes follow the last slot of the record");
      }
    } else {
      place = begin + fixed;
      for (int64_t s = 0; s < slots; ++s) {
        EV_RETURN_IF_ERROR(need(place + kWord));
        if (!is_complete) return too_short();
        counts[s] = WordAt(piece.data() + place);
        if (counts[s] < 0) return bad_count(s, place);
        place += kWord + counts[s] * key_bytes;
      }
      EV_RETURN_IF_ERROR(need(place));
      if (!is_complete) return too_short();
    }
    if (samples_ >= span_.low && samples_ < span_.high) {
      begins_.push_back(piece.offset() + begin);
      counts_.insert(counts_.end(), counts.begin(), counts.end());
      for (int64_t s = 0; s < slots; ++s) keys_of_slot_[s] += counts[s];
    }
    ++samples_;
    at = place + format_.after();
  }
  if (count > 0) mean_bytes_ = static_cast<double>(at) / count;
  piece.End(at);
  *byte += at;
  return ev::Status::OK();
}

void NormScan::Fill(Batch* batch) const {
  // Destination of the next key and of the next split of a slot.
  struct Out {
    int64_t slot;
    int64_t* keys;
    int64_t* splits;
    int64_t split_stride;
    int64_t end;  // keys so far of the slot, or of the whole input
  };
  struct Group {
    bool is_slot_major;
    std::vector<Out> outs;
  };
  const int64_t size = span_.size();
  std::vector<Group> groups;
  for (size_t i = 0; i < format_.layout.inputs.size(); ++i) {
    const Input& input = format_.layout.inputs[i];
    InputKeys& out = batch->inputs[i];
    out.num_keys = 0;
    for (int64_t s = input.first; s < input.first + input.count; ++s) {
      out.num_keys += keys_of_slot_[s];
    }
    out.keys.Reserve(out.num_keys * sizeof(int64_t));
    out.num_splits = NumSplits(input, size);
    out.one_key_splits.reset();
    out.own_splits.Reserve(out.num_splits * sizeof(int64_t));
    int64_t* keys = out.keys.as<int64_t>();
    int64_t* splits = out.own_splits.as<int64_t>();
    Group group{input.is_slot_major, {}};
    if (!input.is_slot_major) *splits++ = 0;
    for (int64_t s = input.first; s < input.first + input.count; ++s) {
      if (input.is_slot_major) {
        *splits = 0;
        group.outs.push_back(Out{s, keys, splits + 1, 1, 0});
        keys += keys_of_slot_[s];
        splits += size + 1;
      } else {
        group.outs.push_back(Out{s, keys, splits++, input.count, 0});
      }
    }
    groups.push_back(std::move(group));
  }
  const int64_t slots = format_.layout.slots;
  const int64_t labels = format_.layout.label_dim * kWord;
  const int64_t dense = format_.layout.dense_dim * kWord;
  const int64_t key_bytes = format_.key_bytes;
  std::vector<int64_t> places(slots);
  for (int64_t n = 0; n < size; ++n) {
    const char* record = bytes_.as<char>() + begins_[n];
    const int32_t* counts = counts_.data() + n * slots;
    std::memcpy(batch->labels.as<char>() + n * labels, record, labels);
    std::memcpy(batch->dense.as<char>() + n * dense, record + labels, dense);
    int64_t place = labels + dense;
    for (int64_t s = 0; s < slots; ++s) {
      places[s] = place + kWord;
      place += kWord + counts[s] * key_bytes;
    }
    for (Group& group : groups) {
      int64_t* keys = group.outs.empty() ? nullptr : group.outs[0].keys;
      int64_t end = group.outs.empty() ? 0 : group.outs[0].end;
      for (Out& out : group.outs) {
        const int32_t count = counts[out.slot];
        if (group.is_slot_major) {
          keys = out.keys;
          end = out.end;
        }
        const char* from = record + places[out.slot];
        for (int32_t k = 0; k < count; ++k) {
          keys[k] = KeyAt(from + k * key_bytes, key_bytes);
        }
        keys += count;
        end += count;
        *out.splits = end;
        out.splits += out.split_stride;
        if (group.is_slot_major) {
          out.keys = keys;
          out.end = end;
        }
      }
      if (!group.is_slot_major && !group.outs.empty()) {
        group.outs[0].keys = keys;
        group.outs[0].end = end;
      }
    }
  }
}

}  // namespace hugectr
