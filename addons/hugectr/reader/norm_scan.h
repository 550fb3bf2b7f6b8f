// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Norm records of any numbers of keys: found and checked one after the other,
// then copied.

#ifndef ADDONS_HUGECTR_READER_NORM_SCAN_H_
#define ADDONS_HUGECTR_READER_NORM_SCAN_H_

#include <cstdint>
#include <vector>

#include "addons/hugectr/reader/batch.h"
#include "addons/hugectr/reader/file.h"
#include "addons/hugectr/reader/norm_format.h"
#include "kernels/engine/base/status.h"

namespace hugectr {

// Holds the bytes of one batch at a time. Of one thread.
class NormScan {
 public:
  // tile: bytes that are read at a time at most.
  NormScan(const NormFormat& format, int64_t tile);

  // Forgets the last batch; what follows are samples of this span.
  void Start(const Span& span);

  // Reads and checks `count` records of a file, which become the next samples.
  //   first: the number of the first, for messages; records: those of the file.
  //   byte: where it begins; afterwards, where the last one ends.
  // An error names file, record and byte.
  ev::Status Add(const File& file, int64_t first, int64_t records,
                 int64_t count, int64_t* byte);

  // Fills the batch with the samples of the span that Start was given.
  void Fill(Batch* batch) const;

 private:
  class Piece;

  const NormFormat format_;
  const int64_t tile_;
  Span span_;
  // Samples so far, of the whole batch.
  int64_t samples_ = 0;
  AlignedMemory bytes_;
  int64_t num_bytes_ = 0;
  // Of samples of the span: where they begin in bytes_, without the frame, and
  // [samples, slots] numbers of keys.
  std::vector<int64_t> begins_;
  std::vector<int32_t> counts_;
  std::vector<int64_t> keys_of_slot_;
  // Of a record, as found so far: how much to read for the records to come.
  double mean_bytes_ = 0;
};

}  // namespace hugectr

#endif  // ADDONS_HUGECTR_READER_NORM_SCAN_H_
