// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Copies into memory that a device reads next, and no processor. The stores
// bypass the caches. This takes a third less memory traffic than memcpy, which
// reads the lines it is about to overwrite.

#ifndef KERNELS_ENGINE_BASE_COPY_PAST_CACHES_H_
#define KERNELS_ENGINE_BASE_COPY_PAST_CACHES_H_

#include <cstddef>
#include <cstdint>

namespace ev {

// Copies like memcpy. A device that is notified after the return reads the
// copied bytes.
void CopyPastCaches(const void* from, size_t bytes, void* to);

// Sets to[i] = from[i] for i < count. Returns true if all values fit into
// int32; otherwise false, and the contents of 'to' are unspecified.
bool NarrowPastCaches(const int64_t* from, size_t count, int32_t* to);

}  // namespace ev

#endif  // KERNELS_ENGINE_BASE_COPY_PAST_CACHES_H_
