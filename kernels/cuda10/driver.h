// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The functions of the NVIDIA driver that our libcudart.so.10.0 calls. They are
// looked up in libcuda.so.1 at the first call. So a machine without a driver
// can load the library, and every call then returns
// cudaErrorInsufficientDriver.

#ifndef KERNELS_CUDA10_DRIVER_H_
#define KERNELS_CUDA10_DRIVER_H_

#include <cstddef>
#include <cstdint>

namespace cuda10 {

using DriverCallback = void (*)(void* stream, int result, void* data);

// The functions of the driver's interface. Handles are pointers, devices are
// ints, and a result of 0 is success.
struct Driver {
  int (*init)(unsigned flags);
  int (*device_get_count)(int* count);
  int (*device_get)(int* device, int ordinal);
  int (*device_get_name)(char* name, int size, int device);
  int (*device_get_uuid)(void* uuid, int device);
  int (*device_total_mem)(size_t* bytes, int device);
  int (*device_get_attribute)(int* value, int attribute, int device);
  int (*primary_retain)(void** context, int device);
  int (*ctx_get_current)(void** context);
  int (*ctx_set_current)(void* context);
  int (*ctx_get_device)(int* device);
  int (*mem_free)(uint64_t pointer);
  int (*pointer_get_attribute)(void* value, int attribute, uint64_t pointer);
  int (*stream_add_callback)(void* stream, DriverCallback callback, void* data,
                             unsigned flags);
};

// Returns the initialised driver. Returns null if it is missing, lacks a
// function or fails to start; `*error` is then the error number of CUDA 10.0 to
// return. Thread-safe.
const Driver* GetDriver(int* error);

}  // namespace cuda10

#endif  // KERNELS_CUDA10_DRIVER_H_
