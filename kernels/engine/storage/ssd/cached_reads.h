// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Many small pieces of a file that the system has in its page cache, for a
// fraction of a system call each.
//
// The file is mapped, and one call has the kernel copy some dozens of pieces
// from the mapping to memory of ours (a write to a file that is memory). Lines
// are asked for ahead, which the kernel cannot do. No instruction of ours reads
// the mapping: a page that cannot be read, or a file that another process has
// made shorter, is an error of that call and not a SIGBUS. (A prefetch of an
// address that cannot be read does nothing.)
//
// A page that is not in the page cache would have the caller wait for the disk,
// one page after the other. So pages are asked about first, until few of
// 65,536 pieces are absent; and again from when a call did wait.

#ifndef KERNELS_ENGINE_STORAGE_SSD_CACHED_READS_H_
#define KERNELS_ENGINE_STORAGE_SSD_CACHED_READS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>

#include "kernels/engine/base/span.h"

namespace ev {

// Thread-safe. Address space, and 2 MiB of page tables per GiB, are those of
// the parts of the file that were read.
class CachedReads {
 public:
  // fd is the caller's, open for reading, and outlives this.
  explicit CachedReads(int fd);
  ~CachedReads();
  CachedReads(const CachedReads&) = delete;
  CachedReads& operator=(const CachedReads&) = delete;

  enum class Found : uint8_t { kRead, kAbsent, kUnknown };

  // Reads 'bytes' bytes at each offset, which all lie within the file: calls
  // use(i, data) for those it has read, in order, and says so in found[i].
  // kAbsent: the piece is not in the page cache. kUnknown: try otherwise, since
  // this system cannot do it, or it cannot be read at all.
  void Read(Span<const int64_t> offsets, size_t bytes, Found* found,
            const std::function<void(size_t i, const char* data)>& use);

 private:
  static constexpr int64_t kAsked = 65536;

  const char* AddressOf(int64_t offset, size_t bytes);

  const int fd_;
  std::mutex mu_;  // to map
  std::unique_ptr<std::atomic<char*>[]> windows_;
  // Pieces that are still to be asked about, and how many were absent.
  std::atomic<int64_t> to_ask_{kAsked}, absent_{0};
};

}  // namespace ev

#endif  // KERNELS_ENGINE_STORAGE_SSD_CACHED_READS_H_
