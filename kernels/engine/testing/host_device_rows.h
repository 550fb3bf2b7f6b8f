// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Stand-in for a GPU: a GpuRowHome (rows/gpu_row_home.h) with its rows in CPU
// memory. A program that links it uses it for RowStorage::kHbm, so that every
// machine can test what a table does with rows on a GPU.
//
// It checks that its caller keeps the contract of the interface, and otherwise
// aborts the process with a message. It reports:
//   a row that was never created, or created or forgotten twice
//   GPU memory (host_device_memory.h) without its stream, or other memory with
//     one
//   a row named twice by one write, or written by two calls at once
//   Relayout, Forget or Clear beside another call
//   what host_device_distinct.h and host_device_step.h check
// Results that a call leaves unspecified are filled with NaN.

#ifndef KERNELS_ENGINE_TESTING_HOST_DEVICE_ROWS_H_
#define KERNELS_ENGINE_TESTING_HOST_DEVICE_ROWS_H_

#include <cstdint>

namespace ev {
namespace testing {

// Makes NewRow return ResourceExhausted if all tables together have that many
// rows. Negative, the default: no limit.
void LimitHostDeviceRows(int64_t rows);

// Makes StartStep return ResourceExhausted.
void RefuseHostDeviceSteps(bool refuse);

// Returns the number of batches fetched so far.
int64_t HostDeviceFetches();
// Makes the next fetch fail.
void FailNextHostDeviceFetch();
// Makes the next TakeCounters fail.
void FailNextHostDeviceCounters();
// Makes NewKeyedRow return ResourceExhausted for lack of memory for the key.
void RefuseHostDeviceKeys(bool refuse);

// Returns the number of rows of all tables.
int64_t LiveHostDeviceRows();

}  // namespace testing
}  // namespace ev

#endif  // KERNELS_ENGINE_TESTING_HOST_DEVICE_ROWS_H_
