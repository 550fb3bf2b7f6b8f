// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// A fake driver with two devices and no GPU. The value of each attribute
// identifies the attribute and the device, and calls are counted.

#include <cstdint>
#include <cstdio>
#include <cstring>

namespace {

constexpr int kDevices = 2;
constexpr int kInvalidValue = 1, kInvalidDevice = 101;

// The context of a device is the address of its byte in this array.
char context_bytes[kDevices];
thread_local void* current = nullptr;
int retained = 0;
uint64_t freed = 0;

}  // namespace

#define EXPORTED extern "C" __attribute__((visibility("default")))

EXPORTED int cuInit(unsigned flags) { return flags == 0 ? 0 : kInvalidValue; }

EXPORTED int cuDriverGetVersion(int* version) {
  *version = 13000;
  return 0;
}

EXPORTED int cuDeviceGetCount(int* count) {
  *count = kDevices;
  return 0;
}

EXPORTED int cuDeviceGet(int* device, int ordinal) {
  if (ordinal < 0 || ordinal >= kDevices) return kInvalidDevice;
  *device = ordinal;
  return 0;
}

EXPORTED int cuDeviceGetName(char* name, int size, int device) {
  snprintf(name, size, "stand-in %d", device);
  return 0;
}

EXPORTED int cuDeviceGetUuid(void* uuid, int device) {
  memset(uuid, 0x30 + device, 16);
  return 0;
}

EXPORTED int cuDeviceTotalMem_v2(size_t* bytes, int device) {
  *bytes = (size_t{80} + device) << 30;
  return 0;
}

EXPORTED int cuDeviceGetAttribute(int* value, int attribute, int device) {
  // This attribute is not supported, as in newer drivers.
  if (attribute == 44) return kInvalidValue;
  *value = 1000 * (device + 1) + attribute;
  // A plausible compute capability.
  if (attribute == 75) *value = 9;
  if (attribute == 76) *value = device;
  return 0;
}

EXPORTED int cuDevicePrimaryCtxRetain(void** context, int device) {
  ++retained;
  *context = &context_bytes[device];
  return 0;
}

EXPORTED int cuCtxGetCurrent(void** context) {
  *context = current;
  return 0;
}

EXPORTED int cuCtxSetCurrent(void* context) {
  current = context;
  return 0;
}

EXPORTED int cuCtxGetDevice(int* device) {
  *device = static_cast<int>(static_cast<char*>(current) - context_bytes);
  return 0;
}

EXPORTED int cuMemFree_v2(uint64_t pointer) {
  if (pointer == 13) return 700;
  freed = pointer;
  return 0;
}

// Pointers below 4096 are device memory, 4096 is managed, others are unknown.
EXPORTED int cuPointerGetAttribute(void* value, int attribute,
                                   uint64_t pointer) {
  if (pointer > 4096) return kInvalidValue;
  int number = 0;
  switch (attribute) {
    case 2:
      number = 2;
      break;
    case 3:
      memcpy(value, &pointer, 8);
      return 0;
    case 4:
      if (pointer != 4096) return kInvalidValue;
      memcpy(value, &pointer, 8);
      return 0;
    case 8:
      *static_cast<unsigned char*>(value) = pointer == 4096;
      return 0;
    case 9:
      number = 1;
      break;
    default:
      return kInvalidValue;
  }
  memcpy(value, &number, 4);
  return 0;
}

EXPORTED int cuStreamAddCallback(void* stream,
                                 void (*function)(void*, int, void*),
                                 void* data, unsigned flags) {
  if (flags != 0) return kInvalidValue;
  function(stream, 700, data);
  return 0;
}

// Functions with which the tests inspect the fake itself.
EXPORTED int cuStandInRetained() { return retained; }

EXPORTED uint64_t cuStandInFreed() { return freed; }
