// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// An array on its way from ordinary memory to a device, in pieces that come in
// any order from any threads. It is staged whole in pinned memory, so
// that no thread waits for the link, and sent in few long copies: each costs
// the link some 5 us, whatever its length.

#ifndef KERNELS_ENGINE_ROWS_GPU_STAGED_UPLOAD_H_
#define KERNELS_ENGINE_ROWS_GPU_STAGED_UPLOAD_H_

#include <atomic>
#include <cstddef>
#include <vector>

#include "kernels/engine/base/gpu/stream.h"
#include "kernels/engine/base/status.h"

namespace ev {
namespace gpu {

class StagedUpload {
 public:
  // An array of at most so many bytes. Throws std::bad_alloc.
  explicit StagedUpload(size_t most_bytes);

  // Bytes [at, at + bytes) of an array of 'total', which have been read when it
  // returns. What is whole by then is on its way, on the stream, from
  // 'host' to 'device', where the array begins. May be called by several at
  // once. REQUIRES that each byte is put once, and always the same total.
  Status Put(size_t at, const void* from, size_t bytes, size_t total,
             char* host, char* device, StreamView stream);
  // The same of ids that are sent as int32, 'at' and 'total' being bytes of
  // those. *fit: false where one is too wide, of which a caller makes what it
  // can; what was sent is of no use then.
  Status PutNarrowed(size_t at, const int64_t* ids, size_t count, size_t total,
                     char* host, char* device, StreamView stream, bool* fit);

 private:
  // Bytes [at, at + bytes) are staged: sends the parts that are whole now.
  Status Send(size_t at, size_t bytes, size_t total, char* host, char* device,
              StreamView stream);

  std::vector<std::atomic<size_t>> staged_;  // bytes of each part
};

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_ROWS_GPU_STAGED_UPLOAD_H_
