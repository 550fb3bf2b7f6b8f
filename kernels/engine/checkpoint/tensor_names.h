// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Names of a table's tensors in a checkpoint. No other C++ file contains a
// suffix; for Python it is
// python/embedding_variable/checkpoint_format/tensor_names.py. The strings are
// DeepRec's, except where a comment marks them as our own.
//
// The tensor names of table 'v' start with "v", those of its slot 's' with
// "v/s", and those of a table stored in parts with "v/part_0" and so on.

#ifndef KERNELS_ENGINE_CHECKPOINT_TENSOR_NAMES_H_
#define KERNELS_ENGINE_CHECKPOINT_TENSOR_NAMES_H_

#include <cstdint>
#include <string>

#include "kernels/engine/embedding/row_numbers.h"

namespace ev {
namespace tensor_names {

// A full checkpoint. N: rows; M: filtered keys. Keys are int64 or int32; both
// ascend by (floormod(key, 1000), key).
constexpr char kKeys[] = "-keys";                         // [N]
constexpr char kValues[] = "-values";                     // float [N, dim]
constexpr char kPartitionOffset[] = "-partition_offset";  // int32 [1001]
constexpr char kFilteredKeys[] = "-keys_filtered";        // [M]
constexpr char kFilteredPartitionOffset[] =
    "-partition_filter_offset";  // int32 [1001]

// An incremental checkpoint: the changes since the previous checkpoint.
constexpr char kDeltaKeys[] = "-sparse_incr_keys";      // [N]
constexpr char kDeltaValues[] = "-sparse_incr_values";  // float [N, dim]
// The following are our own.
constexpr char kDeltaErasedKeys[] = "-sparse_incr_erased_keys";
constexpr char kDeltaReplaces[] = "-sparse_incr_replaces";  // int64 [1]
constexpr char kDeltaFilteredKeys[] = "-sparse_incr_keys_filtered";  // [M]
constexpr char kDeltaPlacement[] = "-sparse_incr_placement";  // int64 [any]

// The tensors of one number that every row and every filtered key has: int64
// [N] and [M], or [0] if the table does not record it.
struct NumberNames {
  const char* rows;
  const char* filtered;
  const char* delta_rows;
  const char* delta_filtered;
};
// In the order of RowNumber (row_numbers.h).
constexpr NumberNames kNumbers[] = {
    {"-versions", "-versions_filtered", "-sparse_incr_versions",
     "-sparse_incr_versions_filtered"},
    {"-freqs", "-freqs_filtered", "-sparse_incr_freqs",
     "-sparse_incr_freqs_filtered"},
};
static_assert(sizeof(kNumbers) / sizeof(kNumbers[0]) == kNumRowNumbers,
              "each number has names");

constexpr const NumberNames& Of(int number) { return kNumbers[number]; }

// Return the name of a tensor of the table as a whole, all of which are our own
// (table_tensors.cc), in a full checkpoint and in an incremental one.
inline std::string TensorOf(const std::string& table, const char* tensor) {
  return table + "-" + tensor;
}
inline std::string DeltaTensorOf(const std::string& table, const char* tensor) {
  return table + "-sparse_incr_" + tensor;
}

// Returns the prefix of a slot's tensor names.
inline std::string SlotOf(const std::string& table, const std::string& slot) {
  return table + "/" + slot;
}

// Returns the prefix of a part's tensor names.
inline std::string PartOf(const std::string& table, int64_t part) {
  return table + "/part_" + std::to_string(part);
}

}  // namespace tensor_names
}  // namespace ev

#endif  // KERNELS_ENGINE_CHECKPOINT_TENSOR_NAMES_H_
