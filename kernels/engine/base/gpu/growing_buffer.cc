// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/base/gpu/growing_buffer.h"

#include <cuda.h>
#include <cudaTypedefs.h>
#include <cuda_runtime_api.h>

#include <utility>

#include "kernels/engine/base/gpu/cuda_error.h"

namespace ev {
namespace gpu {
namespace {

// Driver functions that the runtime does not wrap. They are looked up in the
// driver that the runtime loaded, so that nothing links against a driver.
struct Driver {
  PFN_cuDeviceGet_v2000 device_get = nullptr;
  PFN_cuDeviceGetAttribute_v2000 device_get_attribute = nullptr;
  PFN_cuMemGetAllocationGranularity_v10020 granularity = nullptr;
  PFN_cuMemAddressReserve_v10020 reserve = nullptr;
  PFN_cuMemAddressFree_v10020 free = nullptr;
  PFN_cuMemCreate_v10020 create = nullptr;
  PFN_cuMemRelease_v10020 release = nullptr;
  PFN_cuMemMap_v10020 map = nullptr;
  PFN_cuMemUnmap_v10020 unmap = nullptr;
  PFN_cuMemSetAccess_v10020 set_access = nullptr;
};

template <typename Function>
Status Look(const char* name, unsigned version, Function* function) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSymbolNotFound;
#if CUDART_VERSION >= 12050
  EV_CUDA_RETURN_IF_ERROR(cudaGetDriverEntryPointByVersion(
      name, &found, version, cudaEnableDefault, &result));
#else
  EV_CUDA_RETURN_IF_ERROR(
      cudaGetDriverEntryPoint(name, &found, cudaEnableDefault, &result));
#endif
  if (result != cudaDriverEntryPointSuccess || found == nullptr) {
    return FailedPrecondition(
        std::string("growing GPU memory needs an NVIDIA driver with the "
                    "function ") +
        name + "; update the driver");
  }
  *function = reinterpret_cast<Function>(found);
  return Status::OK();
}

Status LoadDriver(Driver* d) {
  EV_RETURN_IF_ERROR(Look("cuDeviceGet", 2000, &d->device_get));
  EV_RETURN_IF_ERROR(
      Look("cuDeviceGetAttribute", 2000, &d->device_get_attribute));
  EV_RETURN_IF_ERROR(
      Look("cuMemGetAllocationGranularity", 10020, &d->granularity));
  EV_RETURN_IF_ERROR(Look("cuMemAddressReserve", 10020, &d->reserve));
  EV_RETURN_IF_ERROR(Look("cuMemAddressFree", 10020, &d->free));
  EV_RETURN_IF_ERROR(Look("cuMemCreate", 10020, &d->create));
  EV_RETURN_IF_ERROR(Look("cuMemRelease", 10020, &d->release));
  EV_RETURN_IF_ERROR(Look("cuMemMap", 10020, &d->map));
  EV_RETURN_IF_ERROR(Look("cuMemUnmap", 10020, &d->unmap));
  return Look("cuMemSetAccess", 10020, &d->set_access);
}

// Returns null, and the reason in *status, if the driver lacks a function.
const Driver* GetDriver(Status* status) {
  struct Loaded {
    Driver driver;
    Status status;
    Loaded() { status = LoadDriver(&driver); }
  };
  static const Loaded loaded;
  *status = loaded.status;
  return loaded.status.ok() ? &loaded.driver : nullptr;
}

// Driver and runtime use the same error numbers.
cudaError_t AsRuntime(CUresult result) {
  return static_cast<cudaError_t>(result);
}

CUdeviceptr Address(const char* p) { return reinterpret_cast<CUdeviceptr>(p); }

CUmemAllocationProp OnDevice(int device) {
  CUmemAllocationProp prop = {};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  prop.location.id = device;
  return prop;
}

size_t RoundUp(size_t n, size_t granularity) {
  return (n + granularity - 1) / granularity * granularity;
}

// Maps size bytes of memory to the addresses from p on.
cudaError_t Back(const Driver& driver, char* p, size_t size, int device) {
  const CUmemAllocationProp prop = OnDevice(device);
  CUmemGenericAllocationHandle memory = 0;
  CUresult result = driver.create(&memory, size, &prop, 0);
  if (result != CUDA_SUCCESS) return AsRuntime(result);
  result = driver.map(Address(p), size, 0, memory, 0);
  // The mapping, if it succeeded, keeps the memory alive.
  EV_CUDA_LOG_IF_ERROR(AsRuntime(driver.release(memory)));
  if (result != CUDA_SUCCESS) return AsRuntime(result);
  CUmemAccessDesc access = {};
  access.location = prop.location;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  result = driver.set_access(Address(p), size, &access, 1);
  if (result != CUDA_SUCCESS) {
    EV_CUDA_LOG_IF_ERROR(AsRuntime(driver.unmap(Address(p), size)));
  }
  return AsRuntime(result);
}

}  // namespace

GrowingBuffer::~GrowingBuffer() { Free(); }

GrowingBuffer::GrowingBuffer(GrowingBuffer&& other) : GrowingBuffer() {
  *this = std::move(other);
}

GrowingBuffer& GrowingBuffer::operator=(GrowingBuffer&& other) {
  std::swap(fixed_, other.fixed_);
  std::swap(data_, other.data_);
  std::swap(reserved_, other.reserved_);
  std::swap(max_bytes_, other.max_bytes_);
  std::swap(granularity_, other.granularity_);
  std::swap(device_, other.device_);
  std::swap(ends_, other.ends_);
  return *this;
}

Status GrowingBuffer::Allocate(size_t size_bytes, size_t max_bytes,
                               const std::string& what) {
  Free();
  if (max_bytes <= size_bytes) return fixed_.Allocate(size_bytes, what);
  Status status;
  const Driver* const driver = GetDriver(&status);
  if (driver == nullptr) return status;
  EV_CUDA_RETURN_IF_ERROR(cudaFree(nullptr));  // the driver needs a context
  EV_CUDA_RETURN_IF_ERROR(cudaGetDevice(&device_));
  CUdevice device = 0;
  int supported = 0;
  EV_CUDA_RETURN_IF_ERROR(AsRuntime(driver->device_get(&device, device_)));
  EV_CUDA_RETURN_IF_ERROR(AsRuntime(driver->device_get_attribute(
      &supported, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED,
      device)));
  if (supported == 0) {
    return FailedPrecondition(
        what + " cannot grow: GPU " + std::to_string(device_) +
        " has no virtual memory management; give it its final size");
  }
  const CUmemAllocationProp prop = OnDevice(device_);
  EV_CUDA_RETURN_IF_ERROR(AsRuntime(driver->granularity(
      &granularity_, &prop, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED)));
  const size_t reserved = RoundUp(max_bytes, granularity_);
  CUdeviceptr address = 0;
  const CUresult result = driver->reserve(&address, reserved, 0, 0, 0);
  if (AsRuntime(result) == cudaErrorMemoryAllocation) {
    return ResourceExhausted(what + " needs " + std::to_string(reserved) +
                             " free device addresses to grow in; give it a "
                             "smaller maximum");
  }
  EV_CUDA_RETURN_IF_ERROR(AsRuntime(result));
  data_ = reinterpret_cast<char*>(address);
  reserved_ = reserved;
  max_bytes_ = max_bytes;
  status = GrowTo(size_bytes, what);
  if (!status.ok()) Free();
  return status;
}

Status GrowingBuffer::GrowTo(size_t size_bytes, const std::string& what) {
  const size_t now = this->size_bytes();
  if (size_bytes <= now) return Status::OK();
  if (size_bytes > max_bytes_) {
    return InvalidArgument(what + " can grow to at most " +
                           std::to_string(max_bytes_) + " bytes, got " +
                           std::to_string(size_bytes));
  }
  Status status;
  const Driver* const driver = GetDriver(&status);
  if (driver == nullptr) return status;
  const size_t piece = RoundUp(size_bytes - now, granularity_);
  const cudaError_t error = Back(*driver, data_ + now, piece, device_);
  if (error == cudaErrorMemoryAllocation) {
    size_t free_bytes = 0, total_bytes = 0;
    EV_CUDA_RETURN_IF_ERROR(cudaMemGetInfo(&free_bytes, &total_bytes));
    return ResourceExhausted(what + " needs " + std::to_string(piece) +
                             " bytes of device memory in addition to its " +
                             std::to_string(now) + ", " +
                             std::to_string(free_bytes) + " of " +
                             std::to_string(total_bytes) + " are free");
  }
  EV_CUDA_RETURN_IF_ERROR(error);
  ends_.push_back(now + piece);
  return Status::OK();
}

void GrowingBuffer::ShrinkTo(size_t size_bytes) {
  Status status;
  const Driver* const driver = ends_.empty() ? nullptr : GetDriver(&status);
  while (!ends_.empty()) {
    const size_t begin = ends_.size() == 1 ? 0 : ends_[ends_.size() - 2];
    if (begin < size_bytes) break;
    EV_CUDA_LOG_IF_ERROR(
        AsRuntime(driver->unmap(Address(data_ + begin), ends_.back() - begin)));
    ends_.pop_back();
  }
}

void GrowingBuffer::Free() {
  fixed_.Free();
  if (data_ == nullptr) return;
  EV_CUDA_LOG_IF_ERROR(cudaDeviceSynchronize());
  ShrinkTo(0);
  Status status;
  const Driver* const driver = GetDriver(&status);
  EV_CUDA_LOG_IF_ERROR(AsRuntime(driver->free(Address(data_), reserved_)));
  data_ = nullptr;
  reserved_ = 0;
  max_bytes_ = 0;
}

}  // namespace gpu
}  // namespace ev
