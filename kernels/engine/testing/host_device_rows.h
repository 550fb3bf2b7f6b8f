// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// A device that is none: rows behind the seam of rows/row_home.h, in CPU
// memory. A program that links it gets them for RowStorage::kHbm, so whatever a
// table does for rows on a device is tested on every machine.
//
// It holds its caller to the seam's contract and ends the process with a
// sentence when that is broken: a row that was never made, made twice or
// forgotten twice; memory of its own that comes without its stream
// (host_device_memory.h), or other memory with one; a row named twice by one
// write, or written by two calls at once; Relayout, Forget or Clear beside
// another call; what host_device_distinct.h looks for. What a call leaves
// unspecified is filled with NaN. Batches of 100 ids and more are deduplicated
// by it, unless the environment says otherwise (ids/device_distinct.h).

#ifndef KERNELS_ENGINE_TESTING_HOST_DEVICE_ROWS_H_
#define KERNELS_ENGINE_TESTING_HOST_DEVICE_ROWS_H_

#include <cstdint>

namespace ev {
namespace testing {

// New rows beyond that many, over all tables, are ResourceExhausted. Negative,
// as at first: no limit.
void LimitHostDeviceRows(int64_t rows);

// Whether StartDistinct and StartStep are ResourceExhausted; StartStep alone.
void RefuseHostDeviceDistinct(bool refuse);
void RefuseHostDeviceSteps(bool refuse);
// The next batch is not deduplicated before it is waited for.
void DelayNextHostDeviceDistinct();

// Batches that were deduplicated so far.
int64_t HostDeviceDistincts();

// How many of those keys it did not know, in all.
int64_t HostDeviceUnknownKeys();
// How many batches were fetched so far, and whether the next is an error.
int64_t HostDeviceFetches();
void FailNextHostDeviceFetch();
// The next tally is not taken: an error.
void FailNextHostDeviceTally();
// From here on devices know nothing new, as without memory, or do again. A
// table that gets a key meanwhile does not know all keys from then on.
void LetHostDevicesLearn(bool learn);

// Rows that all tables have.
int64_t LiveHostDeviceRows();

}  // namespace testing
}  // namespace ev

#endif  // KERNELS_ENGINE_TESTING_HOST_DEVICE_ROWS_H_
