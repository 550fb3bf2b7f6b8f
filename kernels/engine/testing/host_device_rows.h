// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Stand-in for a GPU: rows behind the interface of rows/row_home.h, in CPU
// memory. A program that links it gets them for RowStorage::kHbm, so that what
// a table does with rows on a GPU is tested on every machine.
//
// It checks that its caller keeps the contract of the interface, and otherwise
// aborts the process with a message: a row that was never created, or created
// or forgotten twice; GPU memory (host_device_memory.h) without its stream, or
// other memory with one; a row named twice by one write, or written by two
// calls at once; Relayout, Forget or Clear beside another call; and what
// host_device_distinct.h and host_device_step.h check. Results that a call
// leaves unspecified are filled with NaN.

#ifndef KERNELS_ENGINE_TESTING_HOST_DEVICE_ROWS_H_
#define KERNELS_ENGINE_TESTING_HOST_DEVICE_ROWS_H_

#include <cstdint>

namespace ev {
namespace testing {

// New rows beyond that many, over all tables, are ResourceExhausted. Negative,
// the default: no limit.
void LimitHostDeviceRows(int64_t rows);

// Whether StartStep returns ResourceExhausted.
void RefuseHostDeviceSteps(bool refuse);

// Number of batches fetched so far; and makes the next fetch fail.
int64_t HostDeviceFetches();
void FailNextHostDeviceFetch();
// Makes the next TakeTally fail.
void FailNextHostDeviceTally();
// Makes NewKeyedRow return ResourceExhausted for lack of memory for the key.
void RefuseHostDeviceKeys(bool refuse);

// Number of rows of all tables.
int64_t LiveHostDeviceRows();

}  // namespace testing
}  // namespace ev

#endif  // KERNELS_ENGINE_TESTING_HOST_DEVICE_ROWS_H_
