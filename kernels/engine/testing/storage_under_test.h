// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Runs the same test cases with rows in different memories. The storage is
// chosen at link time, by one of storage_under_test_*:
//
//   dram      CPU memory.
//   device    a device's memory: that of host_device_rows.h, or that of a GPU,
//             where every case is skipped if the process sees no GPU.
//   hbm_dram  at most 64 rows in a device's memory, the others in CPU memory.
//   hbm_dram_ssd  at most 64 rows in a device's memory, about 64 in CPU memory,
//             the others in a file.
//   ssd       all but about 64 rows in a file.

#ifndef KERNELS_ENGINE_TESTING_STORAGE_UNDER_TEST_H_
#define KERNELS_ENGINE_TESTING_STORAGE_UNDER_TEST_H_

#include <string>

#include "kernels/engine/embedding/embedding_table.h"

namespace ev {
namespace testing {

// Reason why no device is available; empty if one is.
const std::string& WhyNoGpu();

RowStorage StorageUnderTest();

// True if a table's hits and misses (TierStats) are ids found by the device and
// by the CPU. Otherwise they are rows read, by the memory that they were in.
inline bool CountsIdsByFinder() {
  return StorageUnderTest() == RowStorage::kHbm;
}

// Returns a directory that no other call returns.
std::string FreshDirectory();

// Sets the storage under test in the options of a table, whose dim must be set.
// Call it once per table.
void PutUnderTest(TableOptions* options);

}  // namespace testing
}  // namespace ev

#endif  // KERNELS_ENGINE_TESTING_STORAGE_UNDER_TEST_H_
