// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Numbers that are recorded per row (version, frequency), as checkpoints and
// snapshots hold them: int64 each. To add a number, add an entry here. Compiles
// as C++14.

#ifndef KERNELS_ENGINE_EMBEDDING_ROW_NUMBERS_H_
#define KERNELS_ENGINE_EMBEDDING_ROW_NUMBERS_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include "kernels/engine/base/row_handle.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/embedding/embedding_table.h"
#include "kernels/engine/embedding/parts/admission_filter.h"
#include "kernels/engine/storage/dram/row_store.h"

namespace ev {

// Index of each number in a list of all.
enum RowNumber { kVersion, kFrequency, kNumRowNumbers };

// One T for each number: a vector, a span or the like.
template <typename T>
using PerRowNumber = std::array<T, kNumRowNumbers>;

struct RowNumberSpec {
  const char* plural;  // in messages
  // Whether a table with these options records the number for each row.
  bool (*is_recorded)(const TableOptions& options);
  // Whether it records the number for the keys that an exact filter counts.
  bool (*is_counted)(const TableOptions& options);
  int64_t (*of_row)(const RowMeta& meta);
  // REQUIRES: the filter is exact and has the handle.
  int64_t (*of_counted)(const AdmissionFilter& filter, RowHandle handle);
  // The number of an imported row for which none is given.
  int64_t unknown;
  void (*set)(int64_t number, RowMeta* meta);
};

// Frequencies are kept in 32 bits.
inline uint32_t SaturatedCount(int64_t count) {
  return static_cast<uint32_t>(std::min<int64_t>(
      std::numeric_limits<uint32_t>::max(), std::max<int64_t>(0, count)));
}

inline const RowNumberSpec& SpecOf(int number) {
  // In the order of RowNumber.
  static const RowNumberSpec kSpecs[] = {
      {"versions",
       [](const TableOptions& options) { return options.record_version; },
       [](const TableOptions& options) { return options.record_version; },
       [](const RowMeta& meta) { return meta.version(); },
       [](const AdmissionFilter& filter, RowHandle handle) {
         return filter.VersionOf(handle);
       },
       -1,
       [](int64_t version, RowMeta* meta) {
         meta->version_plus1 = RowMeta::PlusOne(version);
       }},
      {"frequencies",
       [](const TableOptions& options) { return options.record_frequency; },
       [](const TableOptions&) { return true; },
       [](const RowMeta& meta) { return static_cast<int64_t>(meta.frequency); },
       [](const AdmissionFilter& filter, RowHandle handle) {
         return filter.CountOf(handle);
       },
       0,
       [](int64_t count, RowMeta* meta) {
         meta->frequency = SaturatedCount(count);
       }},
  };
  static_assert(sizeof(kSpecs) / sizeof(kSpecs[0]) == kNumRowNumbers,
                "each number has an entry");
  return kSpecs[number];
}

// Numbers of N imported rows: [N] each, or [0] if they are not given.
struct ImportedNumbers {
  PerRowNumber<Span<const int64_t>> of;

  ImportedNumbers() = default;
  explicit ImportedNumbers(const PerRowNumber<std::vector<int64_t>>& numbers) {
    for (int i = 0; i < kNumRowNumbers; ++i) of[i] = numbers[i];
  }
};

}  // namespace ev

#endif  // KERNELS_ENGINE_EMBEDDING_ROW_NUMBERS_H_
