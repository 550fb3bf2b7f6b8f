// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Lets the same cases run with rows in several places. What a program links
// says which, one of storage_under_test_*:
//
//   dram      CPU memory
//   device    behind the seam of a device: those of host_device_rows.h, or
//             those of a GPU, where every case is skipped, by name, when the
//             process sees no GPU
//   dedup     the same, and all batches that may be are deduplicated there
//   hbm_dram  at most 64 rows there, and the others in CPU memory
//   ssd       all but some 64 rows in a file

#ifndef KERNELS_ENGINE_TESTING_STORAGE_UNDER_TEST_H_
#define KERNELS_ENGINE_TESTING_STORAGE_UNDER_TEST_H_

#include <string>

#include "kernels/engine/embedding/embedding_table.h"

namespace ev {
namespace testing {

// Why there are no rows on a device; empty when there are.
const std::string& WhyNoGpu();

RowStorage StorageUnderTest();

// A directory that no other call gets.
std::string FreshDirectory();

// A table made with these options, of which the dim is set, has the storage
// under test. Two tables need two calls.
void PutUnderTest(TableOptions* options);

}  // namespace testing
}  // namespace ev

#endif  // KERNELS_ENGINE_TESTING_STORAGE_UNDER_TEST_H_
