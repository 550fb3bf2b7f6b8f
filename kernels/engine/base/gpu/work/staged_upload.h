// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// StagedUpload: copies an array from pageable host memory to a device. Threads
// put ranges of the array in any order. The whole array is staged in pinned
// memory, so that no thread waits for the link. It is sent in a few long
// copies, because each copy costs the link some 5 us regardless of its length.

#ifndef KERNELS_ENGINE_BASE_GPU_WORK_STAGED_UPLOAD_H_
#define KERNELS_ENGINE_BASE_GPU_WORK_STAGED_UPLOAD_H_

#include <atomic>
#include <cstddef>
#include <vector>

#include "kernels/engine/base/gpu/stream.h"
#include "kernels/engine/base/status.h"

namespace ev {
namespace gpu {

class StagedUpload {
 public:
  // most_bytes: the maximum size of the array. Throws std::bad_alloc.
  explicit StagedUpload(size_t most_bytes);

  // Puts bytes [at, at + bytes) of an array of 'total' bytes. They have been
  // read when this returns. If they complete a part of the array, enqueues its
  // copy on the stream, from 'host' to 'device', which are the array's
  // addresses in pinned and device memory; nothing is copied if 'device' is
  // null. Thread-safe. REQUIRES: each byte is put once; 'total' is the same in
  // all calls.
  Status Put(size_t at, const void* from, size_t bytes, size_t total,
             char* host, char* device, StreamView stream);
  // The same for ids that are sent as int32; 'at' and 'total' are in bytes of
  // int32. Sets *fit to false if an id does not fit into int32; then the copied
  // array is not usable.
  Status PutNarrowed(size_t at, const int64_t* ids, size_t count, size_t total,
                     char* host, char* device, StreamView stream, bool* fit);

 private:
  // Records that bytes [at, at + bytes) are staged, and sends the parts that
  // are complete.
  Status Send(size_t at, size_t bytes, size_t total, char* host, char* device,
              StreamView stream);

  std::vector<std::atomic<size_t>> staged_;  // bytes staged of each part
};

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_BASE_GPU_WORK_STAGED_UPLOAD_H_
