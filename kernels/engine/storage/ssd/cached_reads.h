// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Reads many small pieces of a file from the system's page cache at a fraction
// of a system call each.
//
// The file is mapped, and one system call copies some dozens of pieces from the
// mapping to a buffer (it writes them to a memory file). The pieces' lines are
// prefetched first, which the kernel cannot do. No instruction of this process
// loads from the mapping. So a page that cannot be read, or a file that another
// process has truncated, makes that call fail instead of raising SIGBUS. (A
// prefetch of an address that cannot be read does nothing.)
//
// A page that is not in the page cache would block the caller for the disk, one
// page after the other. So Read first queries whether pages are cached, until
// few of 65,536 pieces are absent. It starts querying again when a call did
// block.

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

// Thread-safe. Takes address space, and 2 MiB of page tables per GiB, for the
// parts of the file that were read.
class CachedReads {
 public:
  // fd belongs to the caller, is open for reading, and must outlive this
  // object.
  explicit CachedReads(int fd);
  ~CachedReads();
  CachedReads(const CachedReads&) = delete;
  CachedReads& operator=(const CachedReads&) = delete;

  enum class Found : uint8_t { kRead, kAbsent, kUnknown };

  // Reads 'bytes' bytes at each offset, all within the file. Calls use(i, data)
  // in order for each piece that was read, and sets found[i]. kAbsent: the
  // piece is not in the page cache. kUnknown: use another way to read it,
  // because this system does not support this one, or the piece is unreadable.
  void Read(Span<const int64_t> offsets, size_t bytes, Found* found,
            const std::function<void(size_t i, const char* data)>& use);

 private:
  static constexpr int64_t kQueries = 65536;

  const char* AddressOf(int64_t offset, size_t bytes);

  const int fd_;
  std::mutex mu_;  // to map
  std::unique_ptr<std::atomic<char*>[]> windows_;
  // Pieces still to be queried, and how many of them were absent.
  std::atomic<int64_t> to_query_{kQueries}, absent_{0};
};

}  // namespace ev

#endif  // KERNELS_ENGINE_STORAGE_SSD_CACHED_READS_H_
