// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// A stand-in for the GPUs of an exchange between ranks, for machines without a
// GPU. It registers two classes:
//
//   ExchangeDevice   Its memory is that of
//                    kernels/engine/testing/host_device_memory.h, which the
//                    host cannot read at the device address. Use it with the
//                    rows of host_device_rows.h.
//   Carrier "nccl"   The carrier "memory", with access to that memory.
//
// The stand-in checks its caller and ends the process with a message: for
// example if it gets host memory in place of device memory, if a route is
// pooled twice, or if a route's arrays change after StartRoute. New memory, and
// reused memory, is filled with NaN.

#ifndef TESTS_EXCHANGE_DEVICE_HOST_EXCHANGE_DEVICE_H_
#define TESTS_EXCHANGE_DEVICE_HOST_EXCHANGE_DEVICE_H_

#include <cstdint>

namespace sok {
namespace testing {

// Counts of what the stand-in has done in this process.
struct HostExchangeCounts {
  int64_t sends_from_device = 0;  // exchanges of data in device memory
  int64_t pooled_routes = 0;
  int64_t spread_gradients = 0;
  int64_t live_blocks = 0;       // blocks of device memory
  int64_t deduplicated = 0;      // batches of tables
  int64_t sums_on_device = 0;    // calls that summed gradients in device memory
  int64_t sums_on_host = 0;      // and in host memory
  int64_t pooled_on_device = 0;  // routes with outputs in device memory
  int64_t summed_on_device = 0;  // routes with gradients in device memory
  // Batches among 'deduplicated' whose ids were in device memory.
  int64_t ids_on_device = 0;
  int64_t without_room = 0;  // routes whose tables found no device memory
  int64_t started = 0;  // exchanges that returned before all data had arrived
};
// Waits up to a second for memory that KeepUntil still holds.
HostExchangeCounts GetHostExchangeCounts();

}  // namespace testing
}  // namespace sok

#endif  // TESTS_EXCHANGE_DEVICE_HOST_EXCHANGE_DEVICE_H_
