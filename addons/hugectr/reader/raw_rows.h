// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The samples of Raw files: labels, dense features, and one key per slot, of 4
// bytes each. Either all are int32, and dense features x become log(x + 1); or
// labels and dense features are float32.

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
  // Keys of slot s must be in [0, sizes[s]); offsets[s] is added to them.
  std::vector<int64_t> sizes;
  std::vector<int64_t> offsets;

  // Count of numbers per sample.
  int64_t width() const { return layout.fixed() + layout.slots; }
};

// Thread-safe.
class RawRows {
 public:
  explicit RawRows(const RawFormat& format);

  // Allocates a batch's memory for all of its samples.
  void Prepare(Batch* batch) const;

  // Copies samples of a file into [sample, sample + count) of a batch. Returns
  // false if one of their numbers is invalid; Error describes it.
  bool Copy(const int32_t* rows, int64_t count, int64_t sample,
            Batch* batch) const;

  // Checks samples without copying them.
  bool Check(const int32_t* rows, int64_t count) const;

  // Finds the first invalid number: its row and column, and an error message.
  void Error(const int32_t* rows, int64_t count, int64_t* row, int64_t* column,
             std::string* sentence) const;

 private:
  bool CopyFloats(const int32_t* rows, int64_t count, int64_t sample,
                  Batch* batch) const;
  bool CopyKeys(const int32_t* rows, int64_t count, int64_t sample,
                Batch* batch) const;
  float Logarithm(int32_t x) const;

  const RawFormat format_;
  // Largest valid key of each slot; -1 if there is none.
  std::vector<int32_t> last_;
  // Table of log(x + 1) for small x, with the results of the C library.
  std::vector<float> logarithms_;
};

}  // namespace hugectr

#endif  // ADDONS_HUGECTR_READER_RAW_ROWS_H_
