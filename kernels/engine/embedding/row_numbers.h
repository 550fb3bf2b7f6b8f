// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The numbers that rows count about themselves, as what is read from and
// written to a table end to end (checkpoints, snapshots) has them: int64 each.
// Another number is another entry here. Readable by C++14.

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

// The place of each number in a list of all.
enum RowNumber { kVersion, kFrequency, kNumRowNumbers };

// One entry for each number: T is a vector, a span or the like.
template <typename T>
using PerRowNumber = std::array<T, kNumRowNumbers>;

struct RowNumberSpec {
  const char* plural;  // in messages
  // Whether a table of these options has the number for each row.
  bool (*is_recorded)(const TableOptions& options);
  // Whether it has the number for the keys that an exact filter counts.
  bool (*is_counted)(const TableOptions& options);
  int64_t (*of_row)(const RowMeta& meta);
  // REQUIRES an exact filter that counts the handle.
  int64_t (*of_counted)(const AdmissionFilter& filter, RowHandle handle);
  // What an imported row gets of which the number is not known.
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

// What an import knows of the numbers of N rows: [N] each, or [0]: unknown.
struct ImportedNumbers {
  PerRowNumber<Span<const int64_t>> of;

  ImportedNumbers() = default;
  explicit ImportedNumbers(const PerRowNumber<std::vector<int64_t>>& numbers) {
    for (int i = 0; i < kNumRowNumbers; ++i) of[i] = numbers[i];
  }
};

}  // namespace ev

#endif  // KERNELS_ENGINE_EMBEDDING_ROW_NUMBERS_H_
