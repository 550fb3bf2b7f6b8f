// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Reads Norm records with any number of keys: scans and checks them in order,
// then copies them.

#ifndef ADDONS_HUGECTR_READER_NORM_SCAN_H_
#define ADDONS_HUGECTR_READER_NORM_SCAN_H_

#include <cstdint>
#include <vector>

#include "addons/hugectr/reader/batch.h"
#include "addons/hugectr/reader/file.h"
#include "addons/hugectr/reader/norm_format.h"
#include "kernels/engine/base/status.h"

namespace hugectr {

// Holds the bytes of one batch at a time. Not thread-safe.
class NormScan {
 public:
  // tile: largest number of bytes per read.
  NormScan(const NormFormat& format, int64_t tile);

  // Discards the last batch; the following samples belong to `span`.
  void Start(const Span& span);

  // Reads and checks `count` records of a file, which become the next samples.
  // first: number of the first record, for error messages.
  // records: number of records in the file.
  // byte: start of the first record; set to the end of the last one.
  // Errors name file, record and byte.
  ev::Status Add(const File& file, int64_t first, int64_t records,
                 int64_t count, int64_t* byte);

  // Fills the batch with the samples of the span passed to Start.
  void Fill(Batch* batch) const;

 private:
  class Piece;

  const NormFormat format_;
  const int64_t tile_;
  Span span_;
  // Samples of the whole batch read so far.
  int64_t samples_ = 0;
  AlignedMemory bytes_;
  int64_t num_bytes_ = 0;
  // For samples of the span: start of each in bytes_, without the frame, and
  // the key counts [samples, slots].
  std::vector<int64_t> begins_;
  std::vector<int32_t> counts_;
  std::vector<int64_t> keys_of_slot_;
  // Mean size of a record so far, which determines how much to read.
  double mean_bytes_ = 0;
};

}  // namespace hugectr

#endif  // ADDONS_HUGECTR_READER_NORM_SCAN_H_
