// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Threads that wait for a disk. An SSD is fast only when many reads are under
// way at once, many more than there are cores; so these are the process's own
// and not the caller's pool, whose threads are there to compute.

#ifndef KERNELS_ENGINE_STORAGE_SSD_IO_THREADS_H_
#define KERNELS_ENGINE_STORAGE_SSD_IO_THREADS_H_

#include <cstdint>
#include <functional>

namespace ev {

// Calls body(i) once for each i in [0, count), the caller taking part, and
// returns when all have returned. Bodies may block, but must not wait for each
// other. What one throws is thrown then: the first one's, by i. Thread-safe.
void RunBlocking(int64_t count, const std::function<void(int64_t)>& body);

}  // namespace ev

#endif  // KERNELS_ENGINE_STORAGE_SSD_IO_THREADS_H_
