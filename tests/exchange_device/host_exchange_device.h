// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// A device between ranks that every machine has: sok::ExchangeDevice in the
// memory of kernels/engine/testing/host_device_memory.h, which cannot be read
// at the address that is handed round, beside rows of host_device_rows.h; and a
// carrier "nccl" that is the carrier "memory", and finds its way into that
// memory. A program that links it has both.
//
// It holds its caller to the seam: memory that is not the device's, or of the
// device where it should not be, and a route that is pooled twice or whose
// numbers changed after it was told, end the process with a sentence. Memory
// that is given out is filled with NaN, also when it is used again.

#ifndef TESTS_EXCHANGE_DEVICE_HOST_EXCHANGE_DEVICE_H_
#define TESTS_EXCHANGE_DEVICE_HOST_EXCHANGE_DEVICE_H_

#include <cstdint>

namespace sok {
namespace testing {

// What was done there so far, so that tests see that it was.
struct HostExchangeCounts {
  int64_t sent_from_there = 0;  // exchanges of what is in its memory
  int64_t pooled_routes = 0;
  int64_t spread_gradients = 0;
  int64_t live_blocks = 0;   // of memory
  int64_t deduplicated = 0;  // tables' batches
  int64_t sums_there = 0;    // calls that sum gradients in its memory
  int64_t sums_here = 0;     // and in CPU memory
  int64_t pooled_there = 0;  // routes whose outputs are in its memory
  int64_t summed_there = 0;  // routes whose gradients are
  int64_t ids_there = 0;     // of 'deduplicated', those of ids in its memory
  int64_t without_room = 0;  // routes whose tables found no memory
  int64_t started = 0;       // exchanges that ended before all had come
};
// Waits a while for memory that is kept.
HostExchangeCounts GetHostExchangeCounts();

}  // namespace testing
}  // namespace sok

#endif  // TESTS_EXCHANGE_DEVICE_HOST_EXCHANGE_DEVICE_H_
