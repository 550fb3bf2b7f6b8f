// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The fast path for Norm records that all have the same key counts, such as
// one-hot data. They have equal distances, and their counts are compared while
// keys are copied.

#ifndef ADDONS_HUGECTR_READER_NORM_UNIFORM_H_
#define ADDONS_HUGECTR_READER_NORM_UNIFORM_H_

#include <cstdint>
#include <vector>

#include "addons/hugectr/reader/batch.h"
#include "addons/hugectr/reader/norm_format.h"

namespace hugectr {

// Positions in a record.
struct NormShape {
  // Bytes of a record with its frame; 0: no shape.
  int64_t stride = 0;
  // Bytes of the record without its frame.
  int64_t payload = 0;
  std::vector<int32_t> counts;
  // Position of each slot's key count in the record.
  std::vector<int64_t> count_at;
  bool has_one_key = false;
};

// Returns the shape of the record at `record`, of which `bytes` bytes are
// available; the stride is 0 if it is malformed or longer.
NormShape ShapeOf(const NormFormat& format, const char* record, int64_t bytes);

// Fills a batch from records of one shape, in several calls.
class UniformFiller {
 public:
  // Allocates the batch's memory for all of its samples.
  UniformFiller(const NormFormat& format, const NormShape& shape, Batch* batch);

  // Copies records into samples [sample, sample + count). Returns false if one
  // of them has another shape or a wrong checksum.
  bool Add(const char* records, int64_t count, int64_t sample);

  // Checks records without copying them.
  bool Check(const char* records, int64_t count) const;

 private:
  struct Slot {
    int64_t keys_at;  // position in the record
    int32_t count;
    int64_t* keys;   // destination of sample 0's keys
    int64_t stride;  // distance of consecutive samples' keys, in keys
  };

  bool SumsAreRight(const char* records, int64_t count) const;
  void AddFloats(const char* records, int64_t count, int64_t sample) const;
  bool AddOneKeys(const char* records, int64_t count, int64_t sample) const;
  void AddKeys(const char* records, int64_t count, int64_t sample) const;

  const NormFormat& format_;
  const NormShape& shape_;
  Batch* const batch_;
  const std::vector<Input>& inputs_;
  // The slots of all inputs, input by input.
  std::vector<Slot> slots_;
  // Whether every slot belongs to an input.
  bool takes_all_ = true;
};

}  // namespace hugectr

#endif  // ADDONS_HUGECTR_READER_NORM_UNIFORM_H_
