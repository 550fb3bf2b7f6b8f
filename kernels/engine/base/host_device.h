// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// EV_HOST_DEVICE marks a function that both CPU code and GPU code call, so that
// its arithmetic is written once.

#ifndef KERNELS_ENGINE_BASE_HOST_DEVICE_H_
#define KERNELS_ENGINE_BASE_HOST_DEVICE_H_

#ifdef __CUDACC__
#define EV_HOST_DEVICE __host__ __device__ __forceinline__
#else
#define EV_HOST_DEVICE inline
#endif

#endif  // KERNELS_ENGINE_BASE_HOST_DEVICE_H_
