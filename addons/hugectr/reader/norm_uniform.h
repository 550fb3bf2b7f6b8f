// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Norm records that all have the numbers of keys of one record, as one-hot data
// has: the fast way. They are at equal distances, and the numbers of keys are
// compared while keys are copied.

#ifndef ADDONS_HUGECTR_READER_NORM_UNIFORM_H_
#define ADDONS_HUGECTR_READER_NORM_UNIFORM_H_

#include <cstdint>
#include <vector>

#include "addons/hugectr/reader/batch.h"
#include "addons/hugectr/reader/norm_format.h"

namespace hugectr {

// Where things are in a record.
struct NormShape {
  // Bytes of a record with its frame; 0: there is no shape.
  int64_t stride = 0;
  // Of the record without its frame.
  int64_t payload = 0;
  std::vector<int32_t> counts;
  // Of each slot's number of keys, from the record's begin.
  std::vector<int64_t> count_at;
  bool has_one_key = false;
};

// The shape of the record at `record`, of which `bytes` bytes are there;
// without a stride if it is malformed or longer.
NormShape ShapeOf(const NormFormat& format, const char* record, int64_t bytes);

// Fills a batch from records of one shape, piece by piece.
class UniformFiller {
 public:
  // Makes room in the batch for all of its samples.
  UniformFiller(const NormFormat& format, const NormShape& shape, Batch* batch);

  // Copies records into samples [sample, sample + count). False: one of them
  // has another shape, or a wrong checksum.
  bool Add(const char* records, int64_t count, int64_t sample);

  // Checks records and copies nothing.
  bool Check(const char* records, int64_t count) const;

 private:
  struct Slot {
    int64_t keys_at;  // From the record's begin.
    int32_t count;
    int64_t* keys;   // Where those of sample 0 go.
    int64_t stride;  // From one sample's keys to the next one's, in keys.
  };

  bool SumsAreRight(const char* records, int64_t count) const;
  void AddFloats(const char* records, int64_t count, int64_t sample) const;
  bool AddOneKeys(const char* records, int64_t count, int64_t sample) const;
  void AddKeys(const char* records, int64_t count, int64_t sample) const;

  const NormFormat& format_;
  const NormShape& shape_;
  Batch* const batch_;
  const std::vector<Input>& inputs_;
  // Of the slots that an input takes, input by input.
  std::vector<Slot> slots_;
  // Whether each slot is some input's.
  bool takes_all_ = true;
};

}  // namespace hugectr

#endif  // ADDONS_HUGECTR_READER_NORM_UNIFORM_H_
