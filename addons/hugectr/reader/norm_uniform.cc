// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/hugectr/reader/norm_uniform.h"

#include <algorithm>
#include <cstring>

#include "addons/hugectr/reader/wide.h"

namespace hugectr {
namespace {

// Records whose keys are copied slot by slot at a time; they stay in the L1
// cache.
constexpr int64_t kBlock = 64;

// Copies whole vectors: up to 15 bytes beyond the end, in both arrays.
inline void CopyWide(const char* from, int64_t bytes, char* to) {
  for (int64_t i = 0; i < bytes; i += 16) std::memcpy(to + i, from + i, 16);
}

// Copies the one key of each of `slots` consecutive slots of a record. The
// result is 0 if all key counts are 1.
template <int kKeyBytes>
inline uint32_t CopyRow(const char* counts, int64_t slots, int64_t* to) {
  uint32_t wrong = 0;
  for (int64_t s = 0; s < slots; ++s, counts += kWord + kKeyBytes) {
    wrong |= WordAt(counts) ^ 1;
    to[s] = KeyAt(counts + kWord, kKeyBytes);
  }
  return wrong;
}

template <int kKeyBytes>
inline uint32_t CopyColumn(const char* count, int64_t stride, int64_t records,
                           int64_t* to) {
  uint32_t wrong = 0;
  for (int64_t r = 0; r < records; ++r, count += stride) {
    wrong |= WordAt(count) ^ 1;
    to[r] = KeyAt(count + kWord, kKeyBytes);
  }
  return wrong;
}

}  // namespace

NormShape ShapeOf(const NormFormat& format, const char* record, int64_t bytes) {
  NormShape shape;
  const int64_t slots = format.layout.slots;
  int64_t at = format.before() + format.layout.fixed() * kWord;
  bool has_one_key = true;
  for (int64_t s = 0; s < slots; ++s) {
    if (at + kWord > bytes) return NormShape();
    const int32_t count = WordAt(record + at);
    if (count < 0) return NormShape();
    shape.counts.push_back(count);
    shape.count_at.push_back(at);
    has_one_key = has_one_key && count == 1;
    at += kWord + count * format.key_bytes;
  }
  if (at + format.after() > bytes) return NormShape();
  shape.payload = at - format.before();
  if (format.with_sums && WordAt(record) != shape.payload) return NormShape();
  shape.stride = at + format.after();
  shape.has_one_key = has_one_key;
  return shape;
}

UniformFiller::UniformFiller(const NormFormat& format, const NormShape& shape,
                             Batch* batch)
    : format_(format),
      shape_(shape),
      batch_(batch),
      inputs_(format.layout.inputs) {
  const int64_t size = batch->size;
  std::vector<bool> is_taken(format.layout.slots, false);
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const Input& input = inputs_[i];
    InputKeys& out = batch->inputs[i];
    int64_t of_sample = 0;
    bool has_one_key = true;
    for (int64_t s = input.first; s < input.first + input.count; ++s) {
      of_sample += shape.counts[s];
      is_taken[s] = true;
      has_one_key = has_one_key && shape.counts[s] == 1;
    }
    out.num_keys = size * of_sample;
    out.keys.Reserve(out.num_keys * sizeof(int64_t));
    out.num_splits = NumSplits(input, size);
    if (has_one_key) {
      out.one_key_splits = batch->pool->OneKeySplits(input, size);
    } else {
      out.one_key_splits.reset();
      out.own_splits.Reserve(out.num_splits * sizeof(int64_t));
    }
    int64_t* splits = has_one_key ? nullptr : out.own_splits.as<int64_t>();
    if (splits != nullptr && !input.is_slot_major) {
      int64_t end = 0;
      *splits++ = 0;
      for (int64_t n = 0; n < size; ++n) {
        for (int64_t s = 0; s < input.count; ++s) {
          *splits++ = end += shape.counts[input.first + s];
        }
      }
    }
    int64_t* keys = out.keys.as<int64_t>();
    for (int64_t s = input.first; s < input.first + input.count; ++s) {
      const int32_t count = shape.counts[s];
      slots_.push_back(Slot{shape.count_at[s] + kWord, count, keys,
                            input.is_slot_major ? count : of_sample});
      keys += input.is_slot_major ? size * count : count;
      if (splits != nullptr && input.is_slot_major) {
        for (int64_t n = 0; n <= size; ++n) *splits++ = n * count;
      }
    }
  }
  for (bool is : is_taken) takes_all_ = takes_all_ && is;
}

bool UniformFiller::SumsAreRight(const char* records, int64_t count) const {
  if (!format_.with_sums) return true;
  bool right = true;
  const bool is_wide = HasWide();
  for (int64_t r = 0; r < count; ++r) {
    const char* record = records + r * shape_.stride;
    const char* payload = record + kLengthBytes;
    right = right && WordAt(record) == shape_.payload &&
            (is_wide || ByteSum(payload, shape_.payload) ==
                            static_cast<uint8_t>(payload[shape_.payload]));
  }
  return right &&
         (!is_wide || WideSumsAreRight(records + kLengthBytes, shape_.stride,
                                       count, shape_.payload));
}

bool UniformFiller::Check(const char* records, int64_t count) const {
  uint32_t wrong = 0;
  const int64_t slots = format_.layout.slots;
  for (int64_t r = 0; r < count; ++r) {
    const char* record = records + r * shape_.stride;
    for (int64_t s = 0; s < slots; ++s) {
      wrong |= WordAt(record + shape_.count_at[s]) ^ shape_.counts[s];
    }
  }
  return wrong == 0 && SumsAreRight(records, count);
}

void UniformFiller::AddFloats(const char* records, int64_t count,
                              int64_t sample) const {
  const int64_t labels = format_.layout.label_dim * kWord;
  const int64_t dense = format_.layout.dense_dim * kWord;
  char* to_labels = batch_->labels.as<char>() + sample * labels;
  char* to_dense = batch_->dense.as<char>() + sample * dense;
  const char* from = records + format_.before();
  const bool is_wide = HasWide();
  if (is_wide) {
    WideWords(from + labels, shape_.stride, count, format_.layout.dense_dim,
              to_dense);
  }
  for (int64_t r = 0; r < count; ++r, from += shape_.stride) {
    if (labels == kWord) {
      std::memcpy(to_labels, from, kWord);
    } else {
      CopyWide(from, labels, to_labels);
    }
    to_labels += labels;
    if (is_wide) continue;
    CopyWide(from + labels, dense, to_dense);
    to_dense += dense;
  }
}

bool UniformFiller::AddOneKeys(const char* records, int64_t count,
                               int64_t sample) const {
  uint32_t wrong = 0;
  const int64_t stride = shape_.stride;
  const int64_t key_bytes = format_.key_bytes;
  const bool is_long = key_bytes == 8;
  const Slot* slot = slots_.data();
  for (const Input& input : inputs_) {
    if (input.count == 0) continue;
    int64_t done = 0;
    if (HasWide() && input.count >= kWideKeys) {
      done = input.is_slot_major ? count / kWideKeys * kWideKeys : count;
      const WideRows wide{records + slot->keys_at - kWord, stride, done,
                          input.count};
      int64_t* to = slot->keys + sample * slot->stride;
      const bool is_right =
          input.is_slot_major
              ? WideNormColumns(wide, key_bytes, to, batch_->size)
              : WideNormRows(wide, key_bytes, to);
      if (!is_right) return false;
    }
    if (input.is_slot_major) {
      for (int64_t s = 0; s < input.count; ++s, ++slot) {
        const char* from = records + slot->keys_at - kWord + done * stride;
        int64_t* to = slot->keys + sample + done;
        wrong |= is_long ? CopyColumn<8>(from, stride, count - done, to)
                         : CopyColumn<4>(from, stride, count - done, to);
      }
      continue;
    }
    const char* from = records + slot->keys_at - kWord + done * stride;
    int64_t* to = slot->keys + (sample + done) * input.count;
    for (int64_t r = done; r < count; ++r, from += stride, to += input.count) {
      wrong |= is_long ? CopyRow<8>(from, input.count, to)
                       : CopyRow<4>(from, input.count, to);
    }
    slot += input.count;
  }
  return wrong == 0;
}

void UniformFiller::AddKeys(const char* records, int64_t count,
                            int64_t sample) const {
  const int64_t key_bytes = format_.key_bytes;
  for (const Slot& slot : slots_) {
    const char* from = records + slot.keys_at;
    int64_t* to = slot.keys + sample * slot.stride;
    for (int64_t r = 0; r < count; ++r) {
      for (int32_t k = 0; k < slot.count; ++k) {
        to[k] = KeyAt(from + k * key_bytes, key_bytes);
      }
      from += shape_.stride;
      to += slot.stride;
    }
  }
}

bool UniformFiller::Add(const char* records, int64_t count, int64_t sample) {
  for (int64_t done = 0; done < count; done += kBlock) {
    const int64_t block = std::min(kBlock, count - done);
    if (shape_.has_one_key && takes_all_) {
      // Check sums first: that pass reads whole cache lines, so the others find
      // them in the cache.
      if (!SumsAreRight(records, block)) return false;
      AddFloats(records, block, sample);
      if (!AddOneKeys(records, block, sample)) return false;
    } else {
      AddFloats(records, block, sample);
      if (!Check(records, block)) return false;
      AddKeys(records, block, sample);
    }
    records += block * shape_.stride;
    sample += block;
  }
  return true;
}

}  // namespace hugectr
