// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Threads that wait for a disk. An SSD is fast only with many more reads in
// flight than there are cores. So these threads belong to the process and are
// not those of the caller's pool, which are for computing.

#ifndef KERNELS_ENGINE_STORAGE_SSD_IO_THREADS_H_
#define KERNELS_ENGINE_STORAGE_SSD_IO_THREADS_H_

#include <cstdint>
#include <functional>

namespace ev {

// Calls body(i) once for each i in [0, count), also on the calling thread, and
// returns when all have returned. Bodies may block, but must not wait for each
// other. If bodies throw, the exception with the lowest i is rethrown at the
// end. Throws std::bad_alloc before any body is called if there is no memory.
// Thread-safe.
void RunBlocking(int64_t count, const std::function<void(int64_t)>& body);

}  // namespace ev

#endif  // KERNELS_ENGINE_STORAGE_SSD_IO_THREADS_H_
