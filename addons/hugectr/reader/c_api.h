// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The C functions that Python calls by ctypes. No function throws. After a
// failure, hugectr_error returns the error message.

#ifndef ADDONS_HUGECTR_READER_C_API_H_
#define ADDONS_HUGECTR_READER_C_API_H_

#include <stdint.h>

#define HUGECTR_EXPORT __attribute__((visibility("default")))

extern "C" {

// All members have 8 bytes, so there is no padding.
struct hugectr_options {
  int64_t label_dim;
  int64_t dense_dim;
  int64_t slots;
  // first, count, is_slot_major of each input
  const int64_t* inputs;
  int64_t num_inputs;
  // Samples per batch, of all ranks together.
  int64_t batch_size;
  int64_t repeat;
  int64_t rank;
  int64_t ranks;
  int64_t threads;
  // Largest number of finished batches that wait to be taken.
  int64_t depth;
  // Bytes per read of a thread; 0: a fast default.
  int64_t tile;
};

struct hugectr_raw {
  const char* path;
  int64_t samples;
  int64_t is_float;
  // One entry per slot.
  const int64_t* sizes;
  const int64_t* offsets;
  int64_t is_shuffled;
  int64_t seed;
  int64_t first_pass;
};

// The keys of one input. A batch's memory is aligned to 64 bytes, valid until
// the batch is released, and read-only.
struct hugectr_keys {
  const int64_t* keys;
  int64_t num_keys;
  const int64_t* splits;
  int64_t num_splits;
  // Whether the splits are those of samples with one key per slot.
  int64_t has_one_key;
};

struct hugectr_batch {
  void* handle;
  int64_t size;
  int64_t global_size;
  const float* labels;
  const float* dense;
};

// Samples in columns. labels, dense: address of the first sample's number in
// each column; consecutive samples are *_stride numbers apart. keys: one array
// per slot. added: offset to add to the keys of each slot.
struct hugectr_piece {
  int64_t count;
  const float* const* labels;
  int64_t labels_stride;
  const float* const* dense;
  int64_t dense_stride;
  const int64_t* const* keys;
  const int64_t* added;
};

// Returns the last error of this thread as printable UTF-8; valid until the
// thread's next call.
HUGECTR_EXPORT const char* hugectr_error();

// Returns a reader, or null on error. key_bytes: 4 or 8.
HUGECTR_EXPORT void* hugectr_open_norm(const hugectr_options* options,
                                       const char* const* paths,
                                       int64_t num_paths, int64_t key_bytes,
                                       int64_t with_sums);
HUGECTR_EXPORT void* hugectr_open_raw(const hugectr_options* options,
                                      const hugectr_raw* raw);

// Returns 1: *batch is set and must be released; `keys` gets one element per
// input. 0: end of the data. 2: no batch within `milliseconds`. -1: error.
HUGECTR_EXPORT int hugectr_next(void* reader, int64_t milliseconds,
                                hugectr_batch* batch, hugectr_keys* keys);

// Number of finished batches that wait to be taken; the end of the data counts
// as one.
HUGECTR_EXPORT int64_t hugectr_ready(void* reader);

// Batches may be released after their reader is closed.
HUGECTR_EXPORT void hugectr_release(void* batch);

HUGECTR_EXPORT void hugectr_close(void* reader);

// Returns a pool for batches made of columns, or null on error. Only the first
// five options are used.
HUGECTR_EXPORT void* hugectr_open_pool(const hugectr_options* options);
HUGECTR_EXPORT void hugectr_close_pool(void* pool);

// Concatenates pieces, whose samples have one key per slot, into a batch.
// Returns 1: *batch is set and must be released. -1: error.
HUGECTR_EXPORT int hugectr_join(void* pool, const hugectr_piece* pieces,
                                int64_t num_pieces, int64_t global_size,
                                hugectr_batch* batch, hugectr_keys* keys);

// Returns the position of the first key outside [0, size); -1 if there is none.
HUGECTR_EXPORT int64_t hugectr_first_outside(const int64_t* keys, int64_t count,
                                             int64_t size);

}  // extern "C"

#endif  // ADDONS_HUGECTR_READER_C_API_H_
