// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The numbers that rows count about themselves, as what is read from and
// written to a table end to end (checkpoints, snapshots) has them: int64 each.
// Another number is another entry here. Readable by C++14.

#ifndef KERNELS_ENGINE_EMBEDDING_ROW_NUMBERS_H_
#define KERNELS_ENGINE_EMBEDDING_ROW_NUMBERS_H_

#include <array>
#include <cstdint>

namespace ev {

class AdmissionFilter;
struct RowMeta;
struct TableOptions;

// The place of each number in a list of all.
enum RowNumber { kVersion, kFrequency, kNumRowNumbers };

// One entry for each number: T is a vector, a span or the like.
template <typename T>
using PerRowNumber = std::array<T, kNumRowNumbers>;

struct RowNumberSpec {
  // Whether a table of these options has the number for each row.
  bool (*is_recorded)(const TableOptions& options);
  // Whether it has the number for the keys that an exact filter counts.
  bool (*is_counted)(const TableOptions& options);
  int64_t (*of_row)(const RowMeta& meta);
  // REQUIRES an exact filter that counts the handle.
  int64_t (*of_counted)(const AdmissionFilter& filter, uint32_t handle);
};

const RowNumberSpec& SpecOf(RowNumber number);
inline const RowNumberSpec& SpecOf(int number) {
  return SpecOf(static_cast<RowNumber>(number));
}

}  // namespace ev

#endif  // KERNELS_ENGINE_EMBEDDING_ROW_NUMBERS_H_
