// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// CUDA 10.0's error numbers. Its runtime and its driver had different numbers;
// since CUDA 10.1 both use the driver's. So cudaErrorInvalidValue is 11 to a
// program of CUDA 10.0 and 1 to a newer one.

#ifndef KERNELS_CUDA10_ERRORS_H_
#define KERNELS_CUDA10_ERRORS_H_

namespace cuda10 {

constexpr int kSuccess = 0;
constexpr int kInvalidDevice = 10;
constexpr int kInvalidValue = 11;
constexpr int kInsufficientDriver = 35;

// Returns the runtime's number for a result of the driver.
int FromDriver(int result);

// Returns the text for a number of the runtime; it lives forever.
const char* Text(int error);

}  // namespace cuda10

#endif  // KERNELS_CUDA10_ERRORS_H_
