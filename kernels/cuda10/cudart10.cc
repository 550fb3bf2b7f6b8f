// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// libcudart.so.10.0 for TensorFlow 1.15.0's GPU build, implemented on the
// driver alone.
//
// All kernels of that build, and the code that launches them, are in its
// _pywrap_tensorflow_internal.so, with CUDA 10.0's runtime linked in; current
// drivers still support that. Only libtensorflow_framework.so.1 needs a
// libcudart.so.10.0. It calls the nine functions below, with CUDA 10.0's
// structs and error numbers. No newer runtime can replace it, because the
// structs have grown and the numbers have changed. A library of kernels built
// for CUDA 10.0's shared runtime needs the real one.
//
// Every function is thread-safe.

#include <cstdint>
#include <mutex>
#include <new>

#include "kernels/cuda10/device_properties.h"
#include "kernels/cuda10/driver.h"
#include "kernels/cuda10/errors.h"

namespace cuda10 {
namespace {

constexpr int kMaxDevices = 64;

// The primary contexts that this library retains until the process ends.
std::mutex mutex;
void* contexts[kMaxDevices];

// The device that this thread has chosen, until it has a context of that
// device.
thread_local int chosen = 0;
thread_local int last_error = kSuccess;

int Remember(int error) {
  if (error != kSuccess) last_error = error;
  return error;
}

int CurrentDevice(const Driver& driver, int* ordinal) {
  void* context = nullptr;
  int result = driver.ctx_get_current(&context);
  if (result != 0) return FromDriver(result);
  if (context == nullptr) {
    *ordinal = chosen;
    return kSuccess;
  }
  return FromDriver(driver.ctx_get_device(ordinal));
}

// Makes the device's primary context current on this thread; retains it first
// if necessary.
int Activate(const Driver& driver, int ordinal) {
  std::lock_guard<std::mutex> lock(mutex);
  if (contexts[ordinal] == nullptr) {
    int device;
    int result = driver.device_get(&device, ordinal);
    if (result == 0) result = driver.primary_retain(&contexts[ordinal], device);
    if (result != 0) {
      contexts[ordinal] = nullptr;
      return FromDriver(result);
    }
  }
  return FromDriver(driver.ctx_set_current(contexts[ordinal]));
}

struct Callback {
  void (*function)(void* stream, int error, void* data);
  void* data;
};

void CallBack(void* stream, int result, void* data) {
  Callback* callback = static_cast<Callback*>(data);
  callback->function(stream, FromDriver(result), callback->data);
  delete callback;
}

}  // namespace
}  // namespace cuda10

#define EXPORTED extern "C" __attribute__((visibility("default")))

EXPORTED const char* cudaGetErrorString(int error) {
  return cuda10::Text(error);
}

EXPORTED int cudaGetLastError() {
  int error = cuda10::last_error;
  cuda10::last_error = cuda10::kSuccess;
  return error;
}

EXPORTED int cudaGetDeviceCount(int* count) {
  int error;
  const cuda10::Driver* driver = cuda10::GetDriver(&error);
  if (driver == nullptr) return cuda10::Remember(error);
  return cuda10::Remember(cuda10::FromDriver(driver->device_get_count(count)));
}

EXPORTED int cudaGetDevice(int* ordinal) {
  int error;
  const cuda10::Driver* driver = cuda10::GetDriver(&error);
  if (driver == nullptr) return cuda10::Remember(error);
  return cuda10::Remember(cuda10::CurrentDevice(*driver, ordinal));
}

// Allocates no memory on a device that this process does not use otherwise: the
// context is created when it is first needed, as in CUDA 10.0.
EXPORTED int cudaSetDevice(int ordinal) {
  int error;
  const cuda10::Driver* driver = cuda10::GetDriver(&error);
  if (driver == nullptr) return cuda10::Remember(error);
  int device;
  if (ordinal < 0 || ordinal >= cuda10::kMaxDevices ||
      driver->device_get(&device, ordinal) != 0) {
    return cuda10::Remember(cuda10::kInvalidDevice);
  }
  void* context;
  {
    std::lock_guard<std::mutex> lock(cuda10::mutex);
    context = cuda10::contexts[ordinal];
  }
  cuda10::chosen = ordinal;
  return cuda10::Remember(cuda10::FromDriver(driver->ctx_set_current(context)));
}

// cudaFree(nullptr) also creates the context of the thread's device; programs
// call it for that.
EXPORTED int cudaFree(void* pointer) {
  int error;
  const cuda10::Driver* driver = cuda10::GetDriver(&error);
  if (driver == nullptr) return cuda10::Remember(error);
  int ordinal;
  error = cuda10::CurrentDevice(*driver, &ordinal);
  if (error == cuda10::kSuccess) error = cuda10::Activate(*driver, ordinal);
  if (error == cuda10::kSuccess && pointer != nullptr) {
    error = cuda10::FromDriver(
        driver->mem_free(reinterpret_cast<uintptr_t>(pointer)));
  }
  return cuda10::Remember(error);
}

EXPORTED int cudaGetDeviceProperties(cuda10::DeviceProperties* properties,
                                     int ordinal) {
  int error;
  const cuda10::Driver* driver = cuda10::GetDriver(&error);
  if (driver == nullptr) return cuda10::Remember(error);
  return cuda10::Remember(cuda10::GetProperties(*driver, ordinal, properties));
}

EXPORTED int cudaPointerGetAttributes(cuda10::PointerAttributes* attributes,
                                      const void* pointer) {
  int error;
  const cuda10::Driver* driver = cuda10::GetDriver(&error);
  if (driver == nullptr) return cuda10::Remember(error);
  return cuda10::Remember(cuda10::GetAttributes(*driver, pointer, attributes));
}

EXPORTED int cudaStreamAddCallback(void* stream,
                                   void (*function)(void*, int, void*),
                                   void* data, unsigned flags) {
  int error;
  const cuda10::Driver* driver = cuda10::GetDriver(&error);
  if (driver == nullptr) return cuda10::Remember(error);
  if (function == nullptr) return cuda10::Remember(cuda10::kInvalidValue);
  auto* callback = new (std::nothrow) cuda10::Callback{function, data};
  if (callback == nullptr) return cuda10::Remember(2);
  int result =
      driver->stream_add_callback(stream, cuda10::CallBack, callback, flags);
  if (result != 0) delete callback;
  return cuda10::Remember(cuda10::FromDriver(result));
}
