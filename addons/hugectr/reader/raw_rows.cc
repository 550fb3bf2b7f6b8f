// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/hugectr/reader/raw_rows.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "addons/hugectr/reader/wide.h"

namespace hugectr {
namespace {

// Samples that are copied slot by slot at a time; they stay in the L1 cache.
// With fewer, the stores into columns would be short runs.
constexpr int64_t kBlock = 128;

// Size of the table of logarithms. The C library's log takes as long as the
// rest of a sample, and most dense features are small. A power of two.
constexpr int32_t kLogarithms = 1 << 15;

// The sign bit of the result is 1 if the key is not in [0, last].
inline uint32_t Outside(int32_t key, int32_t last) {
  return static_cast<uint32_t>(key) |
         (static_cast<uint32_t>(last) - static_cast<uint32_t>(key));
}

uint32_t CopyRowKeys(const int32_t* from, const int32_t* last,
                     const int64_t* offsets, int64_t slots, int64_t* to) {
  uint32_t wrong = 0;
  for (int64_t s = 0; s < slots; ++s) {
    wrong |= Outside(from[s], last[s]);
    to[s] = from[s] + offsets[s];
  }
  return wrong;
}

}  // namespace

RawRows::RawRows(const RawFormat& format) : format_(format) {
  for (int64_t size : format_.sizes) {
    last_.push_back(
        static_cast<int32_t>(std::min<int64_t>(size, int64_t{1} << 31) - 1));
  }
  if (!format_.is_float && format_.layout.dense_dim > 0) {
    logarithms_.resize(kLogarithms);
    for (int32_t x = 0; x < kLogarithms; ++x) {
      logarithms_[x] = log1pf(static_cast<float>(x));
    }
  }
}

inline float RawRows::Logarithm(int32_t x) const {
  if (static_cast<uint32_t>(x) < static_cast<uint32_t>(kLogarithms)) {
    return logarithms_[x];
  }
  return log1pf(static_cast<float>(x));
}

void RawRows::Prepare(Batch* batch) const {
  for (size_t i = 0; i < batch->inputs.size(); ++i) {
    const Input& input = format_.layout.inputs[i];
    InputKeys& out = batch->inputs[i];
    out.num_keys = batch->size * input.count;
    out.keys.Reserve(out.num_keys * sizeof(int64_t));
    out.num_splits = NumSplits(input, batch->size);
    out.one_key_splits = batch->pool->OneKeySplits(input, batch->size);
  }
}

bool RawRows::CopyFloats(const int32_t* rows, int64_t count, int64_t sample,
                         Batch* batch) const {
  const int64_t labels = format_.layout.label_dim;
  const int64_t dense = format_.layout.dense_dim;
  const int64_t width = format_.width();
  float* to_labels = batch->labels.as<float>() + sample * labels;
  float* to_dense = batch->dense.as<float>() + sample * dense;
  if (format_.is_float) {
    const bool is_wide = HasWide();
    if (is_wide) {
      WideWords(reinterpret_cast<const char*>(rows + labels),
                width * sizeof(int32_t), count, dense,
                reinterpret_cast<char*>(to_dense));
    }
    for (int64_t r = 0; r < count; ++r, rows += width) {
      for (int64_t i = 0; i < labels; ++i) {
        std::memcpy(to_labels++, rows + i, sizeof(float));
      }
      if (is_wide) continue;
      // Whole vectors: up to 12 bytes beyond the end, in both arrays.
      for (int64_t i = 0; i < dense; i += 4) {
        std::memcpy(to_dense + i, rows + labels + i, 16);
      }
      to_dense += dense;
    }
    return true;
  }
  int32_t signs = 0;
  for (int64_t r = 0; r < count; ++r, rows += width) {
    for (int64_t i = 0; i < labels; ++i) {
      *to_labels++ = static_cast<float>(rows[i]);
    }
    // Without branches for small numbers; samples with larger ones are computed
    // again.
    const int32_t* x = rows + labels;
    const float* logarithms = logarithms_.data();
    int32_t all = 0;
    for (int64_t i = 0; i < dense; ++i) {
      all |= x[i];
      to_dense[i] = logarithms[x[i] & (kLogarithms - 1)];
    }
    if (static_cast<uint32_t>(all) >= static_cast<uint32_t>(kLogarithms)) {
      for (int64_t i = 0; i < dense; ++i) to_dense[i] = Logarithm(x[i]);
    }
    signs |= all;
    to_dense += dense;
  }
  return signs >= 0;
}

bool RawRows::CopyKeys(const int32_t* rows, int64_t count, int64_t sample,
                       Batch* batch) const {
  const int64_t width = format_.width();
  uint32_t wrong = 0;
  for (size_t i = 0; i < batch->inputs.size(); ++i) {
    const Input& input = format_.layout.inputs[i];
    const int32_t* from = rows + format_.layout.fixed() + input.first;
    const int32_t* last = last_.data() + input.first;
    const int64_t* offsets = format_.offsets.data() + input.first;
    int64_t* keys = batch->inputs[i].keys.as<int64_t>();
    int64_t* to = keys + sample * (input.is_slot_major ? 1 : input.count);
    int64_t done = 0;
    if (HasWide() && input.count >= kWideKeys) {
      done = input.is_slot_major ? count / kWideKeys * kWideKeys : count;
      const WideRows wide{reinterpret_cast<const char*>(from),
                          width * static_cast<int64_t>(sizeof(int32_t)), done,
                          input.count};
      const bool is_right =
          input.is_slot_major
              ? WideRawColumns(wide, last, offsets, to, batch->size)
              : WideRawRows(wide, last, offsets, to);
      if (!is_right) return false;
    }
    if (input.is_slot_major) {
      for (int64_t s = 0; s < input.count; ++s, to += batch->size) {
        for (int64_t r = done; r < count; ++r) {
          const int32_t key = from[r * width + s];
          wrong |= Outside(key, last[s]);
          to[r] = key + offsets[s];
        }
      }
    } else {
      for (int64_t r = done; r < count; ++r) {
        wrong |= CopyRowKeys(from + r * width, last, offsets, input.count,
                             to + r * input.count);
      }
    }
  }
  return static_cast<int32_t>(wrong) >= 0;
}

bool RawRows::Copy(const int32_t* rows, int64_t count, int64_t sample,
                   Batch* batch) const {
  bool right = true;
  for (int64_t done = 0; done < count; done += kBlock) {
    const int64_t block = std::min(kBlock, count - done);
    const int32_t* from = rows + done * format_.width();
    right &= CopyFloats(from, block, sample + done, batch);
    right &= CopyKeys(from, block, sample + done, batch);
  }
  return right;
}

bool RawRows::Check(const int32_t* rows, int64_t count) const {
  const int64_t fixed = format_.layout.fixed();
  uint32_t wrong = 0;
  for (int64_t r = 0; r < count; ++r, rows += format_.width()) {
    if (!format_.is_float) {
      for (int64_t i = format_.layout.label_dim; i < fixed; ++i) {
        wrong |= rows[i];
      }
    }
    for (int64_t s = 0; s < format_.layout.slots; ++s) {
      wrong |= Outside(rows[fixed + s], last_[s]);
    }
  }
  return static_cast<int32_t>(wrong) >= 0;
}

void RawRows::Error(const int32_t* rows, int64_t count, int64_t* row,
                    int64_t* column, std::string* sentence) const {
  const int64_t fixed = format_.layout.fixed();
  for (*row = 0; *row < count; ++*row, rows += format_.width()) {
    for (*column = 0; *column < format_.width(); ++*column) {
      const int32_t value = rows[*column];
      if (*column >= fixed) {
        const int64_t slot = *column - fixed;
        if (value >= 0 && value <= last_[slot]) continue;
        *sentence = "key " + std::to_string(value) + " of slot " +
                    std::to_string(slot) + " is not in [0, " +
                    std::to_string(format_.sizes[slot]) + ")";
        return;
      }
      if (format_.is_float || *column < format_.layout.label_dim ||
          value >= 0) {
        continue;
      }
      *sentence = "dense feature " + std::to_string(value) +
                  ", which must not be negative: its logarithm is taken";
      return;
    }
  }
}

}  // namespace hugectr
