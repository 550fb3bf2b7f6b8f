// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// What Python calls, by ctypes. No function throws. A function that fails
// leaves its sentence for hugectr_error.

#ifndef ADDONS_HUGECTR_READER_C_API_H_
#define ADDONS_HUGECTR_READER_C_API_H_

#include <stdint.h>

#define HUGECTR_EXPORT __attribute__((visibility("default")))

extern "C" {

// Every number of 8 bytes, so that there is no gap.
struct hugectr_options {
  int64_t label_dim;
  int64_t dense_dim;
  int64_t slots;
  // first, count, is_slot_major of each input.
  const int64_t* inputs;
  int64_t num_inputs;
  // Samples of a batch of all ranks.
  int64_t batch_size;
  int64_t repeat;
  int64_t rank;
  int64_t ranks;
  int64_t threads;
  // Finished batches that wait at most.
  int64_t depth;
  // Bytes that a thread reads at a time; 0: as many as are fast.
  int64_t tile;
};

struct hugectr_raw {
  const char* path;
  int64_t samples;
  int64_t is_float;
  // Of each slot.
  const int64_t* sizes;
  const int64_t* offsets;
  int64_t is_shuffled;
  int64_t seed;
  int64_t first_pass;
};

// An input's keys. Memory of a batch begins at multiples of 64 bytes, stays
// until the batch is released, and is read only.
struct hugectr_keys {
  const int64_t* keys;
  int64_t num_keys;
  const int64_t* splits;
  int64_t num_splits;
  // Whether splits are those of samples with one key in each slot.
  int64_t has_one_key;
};

struct hugectr_batch {
  void* handle;
  int64_t size;
  int64_t global_size;
  const float* labels;
  const float* dense;
};

// Samples in columns. labels, dense: of each column the first sample's number;
// the next sample's is *_stride numbers further. keys: of each slot. added:
// what is added to the keys of each slot.
struct hugectr_piece {
  int64_t count;
  const float* const* labels;
  int64_t labels_stride;
  const float* const* dense;
  int64_t dense_stride;
  const int64_t* const* keys;
  const int64_t* added;
};

// The last error of this thread in printable UTF-8; valid until its next call.
HUGECTR_EXPORT const char* hugectr_error();

// A reader, or null. key_bytes: 4 or 8.
HUGECTR_EXPORT void* hugectr_open_norm(const hugectr_options* options,
                                       const char* const* paths,
                                       int64_t num_paths, int64_t key_bytes,
                                       int64_t with_sums);
HUGECTR_EXPORT void* hugectr_open_raw(const hugectr_options* options,
                                      const hugectr_raw* raw);

// 1: a batch, to be released; keys is an array of as many as there are inputs.
// 0: the data has ended. 2: there is none after `milliseconds`. -1: an error.
HUGECTR_EXPORT int hugectr_next(void* reader, int64_t milliseconds,
                                hugectr_batch* batch, hugectr_keys* keys);

// Finished batches that wait; the end of the data counts as one.
HUGECTR_EXPORT int64_t hugectr_ready(void* reader);

// Batches that were taken may outlive their reader.
HUGECTR_EXPORT void hugectr_release(void* batch);

HUGECTR_EXPORT void hugectr_close(void* reader);

// Where batches of columns get their memory, or null. Of the options it needs
// the first five.
HUGECTR_EXPORT void* hugectr_open_pool(const hugectr_options* options);
HUGECTR_EXPORT void hugectr_close_pool(void* pool);

// 1: a batch of pieces one behind the other, of which each sample has one key
// in each slot; to be released. -1: an error.
HUGECTR_EXPORT int hugectr_join(void* pool, const hugectr_piece* pieces,
                                int64_t num_pieces, int64_t global_size,
                                hugectr_batch* batch, hugectr_keys* keys);

// The place of the first key that is not in [0, size); -1: there is none.
HUGECTR_EXPORT int64_t hugectr_first_outside(const int64_t* keys, int64_t count,
                                             int64_t size);

}  // extern "C"

#endif  // ADDONS_HUGECTR_READER_C_API_H_
