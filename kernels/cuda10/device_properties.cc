// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/cuda10/device_properties.h"

#include <cstdint>

#include "kernels/cuda10/errors.h"

namespace cuda10 {
namespace {

// A field of cudaDeviceProp and the driver's number of its attribute.
struct IntField {
  int DeviceProperties::*field;
  int attribute;
};

struct SizeField {
  size_t DeviceProperties::*field;
  int attribute;
};

using P = DeviceProperties;

constexpr IntField kInts[] = {
    {&P::regs_per_block, 12},
    {&P::warp_size, 10},
    {&P::max_threads_per_block, 1},
    {&P::clock_rate, 13},
    {&P::major, 75},
    {&P::minor, 76},
    {&P::device_overlap, 15},
    {&P::multi_processor_count, 16},
    {&P::kernel_exec_timeout_enabled, 17},
    {&P::integrated, 18},
    {&P::can_map_host_memory, 19},
    {&P::compute_mode, 20},
    {&P::max_texture_1d, 21},
    {&P::max_texture_1d_mipmap, 77},
    {&P::max_texture_1d_linear, 69},
    {&P::max_texture_cubemap, 52},
    {&P::max_surface_1d, 55},
    {&P::max_surface_cubemap, 66},
    {&P::concurrent_kernels, 31},
    {&P::ecc_enabled, 32},
    {&P::pci_bus_id, 33},
    {&P::pci_device_id, 34},
    {&P::pci_domain_id, 50},
    {&P::tcc_driver, 35},
    {&P::async_engine_count, 40},
    {&P::unified_addressing, 41},
    {&P::memory_clock_rate, 36},
    {&P::memory_bus_width, 37},
    {&P::l2_cache_size, 38},
    {&P::max_threads_per_multi_processor, 39},
    {&P::stream_priorities_supported, 78},
    {&P::global_l1_cache_supported, 79},
    {&P::local_l1_cache_supported, 80},
    {&P::regs_per_multiprocessor, 82},
    {&P::managed_memory, 83},
    {&P::is_multi_gpu_board, 84},
    {&P::multi_gpu_board_group_id, 85},
    {&P::host_native_atomic_supported, 86},
    {&P::single_to_double_precision_perf_ratio, 87},
    {&P::pageable_memory_access, 88},
    {&P::concurrent_managed_access, 89},
    {&P::compute_preemption_supported, 90},
    {&P::can_use_host_pointer_for_registered_mem, 91},
    {&P::cooperative_launch, 95},
    {&P::cooperative_multi_device_launch, 96},
    {&P::pageable_memory_access_uses_host_page_tables, 100},
    {&P::direct_managed_mem_access_from_host, 101},
};

constexpr SizeField kSizes[] = {
    {&P::shared_mem_per_block, 8},
    {&P::mem_pitch, 11},
    {&P::total_const_mem, 9},
    {&P::texture_alignment, 14},
    {&P::texture_pitch_alignment, 51},
    {&P::surface_alignment, 30},
    {&P::shared_mem_per_multiprocessor, 81},
    {&P::shared_mem_per_block_optin, 97},
};

int Attribute(const Driver& driver, int device, int attribute) {
  int value = 0;
  if (driver.device_get_attribute(&value, attribute, device) != 0) return 0;
  return value;
}

// Attributes of one field have consecutive numbers.
template <int n>
void Fill(const Driver& driver, int device, int first, int (*field)[n]) {
  for (int i = 0; i < n; ++i) {
    (*field)[i] = Attribute(driver, device, first + i);
  }
}

}  // namespace

int GetProperties(const Driver& driver, int ordinal,
                  DeviceProperties* properties) {
  int device;
  int result = driver.device_get(&device, ordinal);
  if (result != 0) return FromDriver(result);
  DeviceProperties p = {};
  result = driver.device_get_name(p.name, sizeof(p.name), device);
  if (result == 0) result = driver.device_get_uuid(p.uuid, device);
  if (result == 0)
    result = driver.device_total_mem(&p.total_global_mem, device);
  if (result != 0) return FromDriver(result);
  p.name[sizeof(p.name) - 1] = '\0';
  for (const IntField& f : kInts) {
    p.*f.field = Attribute(driver, device, f.attribute);
  }
  for (const SizeField& f : kSizes) {
    p.*f.field = static_cast<unsigned>(Attribute(driver, device, f.attribute));
  }
  Fill(driver, device, 2, &p.max_threads_dim);
  Fill(driver, device, 5, &p.max_grid_size);
  Fill(driver, device, 22, &p.max_texture_2d);
  Fill(driver, device, 73, &p.max_texture_2d_mipmap);
  Fill(driver, device, 70, &p.max_texture_2d_linear);
  Fill(driver, device, 45, &p.max_texture_2d_gather);
  Fill(driver, device, 24, &p.max_texture_3d);
  Fill(driver, device, 47, &p.max_texture_3d_alt);
  Fill(driver, device, 42, &p.max_texture_1d_layered);
  Fill(driver, device, 27, &p.max_texture_2d_layered);
  Fill(driver, device, 53, &p.max_texture_cubemap_layered);
  Fill(driver, device, 56, &p.max_surface_2d);
  Fill(driver, device, 58, &p.max_surface_3d);
  Fill(driver, device, 61, &p.max_surface_1d_layered);
  Fill(driver, device, 63, &p.max_surface_2d_layered);
  Fill(driver, device, 67, &p.max_surface_cubemap_layered);
  *properties = p;
  return kSuccess;
}

int GetAttributes(const Driver& driver, const void* pointer,
                  PointerAttributes* attributes) {
  constexpr int kMemoryType = 2, kDevicePointer = 3, kHostPointer = 4,
                kIsManaged = 8, kDeviceOrdinal = 9;
  uint64_t address = reinterpret_cast<uintptr_t>(pointer);
  PointerAttributes a = {};
  int result =
      driver.pointer_get_attribute(&a.memory_type, kMemoryType, address);
  if (result != 0) return FromDriver(result);
  unsigned char managed = 0;
  driver.pointer_get_attribute(&managed, kIsManaged, address);
  driver.pointer_get_attribute(&a.device, kDeviceOrdinal, address);
  // CPU memory has both if it is mapped; device memory has only the first.
  driver.pointer_get_attribute(&a.device_pointer, kDevicePointer, address);
  driver.pointer_get_attribute(&a.host_pointer, kHostPointer, address);
  a.is_managed = managed;
  a.type = managed ? 3 : a.memory_type;
  *attributes = a;
  return kSuccess;
}

}  // namespace cuda10
