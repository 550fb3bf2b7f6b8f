// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The two structs of CUDA 10.0 that a program compiled for it reads, and
// functions that fill them. Later versions inserted fields into the middle of
// both.

#ifndef KERNELS_CUDA10_DEVICE_PROPERTIES_H_
#define KERNELS_CUDA10_DEVICE_PROPERTIES_H_

#include <cstddef>

#include "kernels/cuda10/driver.h"

namespace cuda10 {

// cudaDeviceProp.
struct DeviceProperties {
  char name[256];
  char uuid[16];
  char luid[8];  // only on Windows
  unsigned luid_device_node_mask;
  size_t total_global_mem;
  size_t shared_mem_per_block;
  int regs_per_block;
  int warp_size;
  size_t mem_pitch;
  int max_threads_per_block;
  int max_threads_dim[3];
  int max_grid_size[3];
  int clock_rate;
  size_t total_const_mem;
  int major;
  int minor;
  size_t texture_alignment;
  size_t texture_pitch_alignment;
  int device_overlap;
  int multi_processor_count;
  int kernel_exec_timeout_enabled;
  int integrated;
  int can_map_host_memory;
  int compute_mode;
  int max_texture_1d;
  int max_texture_1d_mipmap;
  int max_texture_1d_linear;
  int max_texture_2d[2];
  int max_texture_2d_mipmap[2];
  int max_texture_2d_linear[3];
  int max_texture_2d_gather[2];
  int max_texture_3d[3];
  int max_texture_3d_alt[3];
  int max_texture_cubemap;
  int max_texture_1d_layered[2];
  int max_texture_2d_layered[3];
  int max_texture_cubemap_layered[2];
  int max_surface_1d;
  int max_surface_2d[2];
  int max_surface_3d[3];
  int max_surface_1d_layered[2];
  int max_surface_2d_layered[3];
  int max_surface_cubemap;
  int max_surface_cubemap_layered[2];
  size_t surface_alignment;
  int concurrent_kernels;
  int ecc_enabled;
  int pci_bus_id;
  int pci_device_id;
  int pci_domain_id;
  int tcc_driver;
  int async_engine_count;
  int unified_addressing;
  int memory_clock_rate;
  int memory_bus_width;
  int l2_cache_size;
  int max_threads_per_multi_processor;
  int stream_priorities_supported;
  int global_l1_cache_supported;
  int local_l1_cache_supported;
  size_t shared_mem_per_multiprocessor;
  int regs_per_multiprocessor;
  int managed_memory;
  int is_multi_gpu_board;
  int multi_gpu_board_group_id;
  int host_native_atomic_supported;
  int single_to_double_precision_perf_ratio;
  int pageable_memory_access;
  int concurrent_managed_access;
  int compute_preemption_supported;
  int can_use_host_pointer_for_registered_mem;
  int cooperative_launch;
  int cooperative_multi_device_launch;
  size_t shared_mem_per_block_optin;
  int pageable_memory_access_uses_host_page_tables;
  int direct_managed_mem_access_from_host;
};

// TensorFlow 1.15.0's machine code multiplies a device's number by this size.
static_assert(sizeof(DeviceProperties) == 712,
              "not CUDA 10.0's cudaDeviceProp");

// cudaPointerAttributes.
struct PointerAttributes {
  int memory_type;  // 1: CPU memory, 2: a device's
  int type;         // the same, and 3: managed
  int device;
  void* device_pointer;
  void* host_pointer;
  int is_managed;
};

static_assert(sizeof(PointerAttributes) == 40,
              "not CUDA 10.0's cudaPointerAttributes");

// Fills all of `*properties`. Attributes that this driver does not return are
// 0. Returns an error number of CUDA 10.0; on an error `*properties` is
// unchanged.
int GetProperties(const Driver& driver, int ordinal,
                  DeviceProperties* properties);

// Fills `*attributes` for a pointer in the same way. Returns kInvalidValue for
// a pointer unknown to the driver, like CUDA 10.0's runtime.
int GetAttributes(const Driver& driver, const void* pointer,
                  PointerAttributes* attributes);

}  // namespace cuda10

#endif  // KERNELS_CUDA10_DEVICE_PROPERTIES_H_
