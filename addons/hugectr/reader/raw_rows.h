// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The samples of Raw files: labels, dense features, a key per slot, 4 bytes
// each. All are int32, and of a dense feature x log(x + 1) is taken; or labels
// and dense features are float32.

#ifndef ADDONS_HUGECTR_READER_RAW_ROWS_H_
#define ADDONS_HUGECTR_READER_RAW_ROWS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "addons/hugectr/reader/batch.h"
#include "addons/hugectr/reader/layout.h"

namespace hugectr {

struct RawFormat {
  Layout layout;
  bool is_float = false;
  // Keys of slot s must be in [0, sizes[s]), and offsets[s] is added to them.
  std::vector<int64_t> sizes;
  std::vector<int64_t> offsets;

  // Numbers of a sample.
  int64_t width() const { return layout.fixed() + layout.slots; }
};

// Thread-safe.
class RawRows {
 public:
  explicit RawRows(const RawFormat& format);

  // Makes room in a batch for all of its samples.
  void Prepare(Batch* batch) const;

  // Copies samples of a file into [sample, sample + count) of a batch. False:
  // a number of them cannot be; Error tells which.
  bool Copy(const int32_t* rows, int64_t count, int64_t sample,
            Batch* batch) const;

  // Checks samples and copies nothing.
  bool Check(const int32_t* rows, int64_t count) const;

  // The first number that cannot be: its row and column, and a sentence.
  void Error(const int32_t* rows, int64_t count, int64_t* row, int64_t* column,
             std::string* sentence) const;

 private:
  bool CopyFloats(const int32_t* rows, int64_t count, int64_t sample,
                  Batch* batch) const;
  bool CopyKeys(const int32_t* rows, int64_t count, int64_t sample,
                Batch* batch) const;
  float Logarithm(int32_t x) const;

  const RawFormat format_;
  // The largest key of each slot that may be; -1: none may.
  std::vector<int32_t> last_;
  // log(x + 1) of small x, as the C library has it.
  std::vector<float> logarithms_;
};

}  // namespace hugectr

#endif  // ADDONS_HUGECTR_READER_RAW_ROWS_H_
