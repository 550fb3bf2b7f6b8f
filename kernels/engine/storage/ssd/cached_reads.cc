// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/storage/ssd/cached_reads.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "kernels/engine/base/pages.h"
#include "kernels/engine/base/prefetch.h"

namespace ev {
namespace {

// The file is mapped in windows of this size.
constexpr int64_t kWindow = int64_t{1} << 30;
constexpr int64_t kWindows = 4096;

// Size of the copy's target; small enough for the second-level cache.
constexpr size_t kBufferBytes = 256 << 10;
constexpr size_t kPiecesAtOnce = 64;

// Waiting for one piece costs as much as querying this many.
constexpr int64_t kQueriesPerWait = 256;

// A memory file and its mapping.
struct Buffer {
  int fd = -1;
  char* data = nullptr;

  ~Buffer() {
    if (data != nullptr) munmap(data, kBufferBytes);
    if (fd >= 0) close(fd);
  }
};

// The buffers of the process, one per reading thread. Never destroyed.
class Buffers {
 public:
  // Returns null if the system does not support memory files.
  std::unique_ptr<Buffer> Take() {
    {
      std::lock_guard<std::mutex> lock(mu_);
      if (!idle_.empty()) {
        std::unique_ptr<Buffer> buffer = std::move(idle_.back());
        idle_.pop_back();
        return buffer;
      }
    }
    std::unique_ptr<Buffer> made(new Buffer);
    constexpr unsigned kCloseOnExec = 1;  // MFD_CLOEXEC
    made->fd = static_cast<int>(
        syscall(SYS_memfd_create, "rows being read", kCloseOnExec));
    if (made->fd < 0 || ftruncate(made->fd, kBufferBytes) != 0) return nullptr;
    void* data = mmap(nullptr, kBufferBytes, PROT_READ | PROT_WRITE, MAP_SHARED,
                      made->fd, 0);
    if (data == MAP_FAILED) return nullptr;
    made->data = static_cast<char*>(data);
    return made;
  }
  void GiveBack(std::unique_ptr<Buffer> buffer) {
    std::lock_guard<std::mutex> lock(mu_);
    idle_.push_back(std::move(buffer));
  }

 private:
  std::mutex mu_;
  std::vector<std::unique_ptr<Buffer>> idle_;
};

Buffers& TheBuffers() {
  static Buffers* const buffers = new Buffers;
  return *buffers;
}

// Returns how often this thread has waited for a page.
int64_t Waits() {
  struct rusage usage;
  if (getrusage(RUSAGE_THREAD, &usage) != 0) return 0;
  return usage.ru_majflt;
}

bool IsCached(const char* address, size_t bytes) {
  unsigned char pages[kBufferBytes / kSmallPage + 2];
  const uintptr_t at = reinterpret_cast<uintptr_t>(address);
  const uintptr_t begin = at / kSmallPage * kSmallPage;
  const size_t size = at + bytes - begin;
  if (mincore(reinterpret_cast<void*>(begin), size, pages) != 0) return false;
  for (size_t p = 0; p * kSmallPage < size; ++p) {
    if ((pages[p] & 1) == 0) return false;
  }
  return true;
}

// The pieces that one system call copies.
struct Batch {
  size_t count = 0;
  size_t which[kPiecesAtOnce];
  struct iovec pieces[kPiecesAtOnce];
};

}  // namespace

CachedReads::CachedReads(int fd)
    : fd_(fd), windows_(new std::atomic<char*>[kWindows]()) {}

CachedReads::~CachedReads() {
  for (int64_t w = 0; w < kWindows; ++w) {
    char* const window = windows_[w].load();
    if (window != nullptr && window != MAP_FAILED) munmap(window, kWindow);
  }
}

// Returns null if the piece cannot be mapped, or crosses two windows.
const char* CachedReads::AddressOf(int64_t offset, size_t bytes) {
  const int64_t number = offset / kWindow;
  const int64_t in_window = offset - number * kWindow;
  if (number >= kWindows || in_window + static_cast<int64_t>(bytes) > kWindow) {
    return nullptr;
  }
  char* window = windows_[number].load(std::memory_order_acquire);
  if (window == nullptr) {
    std::lock_guard<std::mutex> lock(mu_);
    window = windows_[number].load();
    if (window == nullptr) {
      // Also maps beyond the end of the file, since the file may grow.
      window = static_cast<char*>(
          mmap(nullptr, kWindow, PROT_READ, MAP_SHARED, fd_, number * kWindow));
      windows_[number].store(window, std::memory_order_release);
    }
  }
  return window == MAP_FAILED ? nullptr : window + in_window;
}

void CachedReads::Read(
    Span<const int64_t> offsets, size_t bytes, Found* found,
    const std::function<void(size_t i, const char* data)>& use) {
  const size_t size = offsets.size();
  std::fill_n(found, size, Found::kUnknown);
  const size_t at_once = std::min(kPiecesAtOnce, kBufferBytes / bytes);
  if (size == 0 || at_once == 0) return;
  std::unique_ptr<Buffer> buffer = TheBuffers().Take();
  if (buffer == nullptr) return;

  const bool queries = to_query_.load(std::memory_order_relaxed) > 0;
  const int64_t waits = queries ? 0 : Waits();
  int64_t absent = 0;
  Batch batches[2];
  size_t next = 0;
  const auto fill = [&](Batch* batch) {
    batch->count = 0;
    for (; next < size && batch->count < at_once; ++next) {
      const char* const piece = AddressOf(offsets[next], bytes);
      if (piece == nullptr) continue;
      if (queries && !IsCached(piece, bytes)) {
        found[next] = Found::kAbsent;
        ++absent;
        continue;
      }
      PrefetchBytes(piece, bytes);
      batch->pieces[batch->count] = {const_cast<char*>(piece), bytes};
      batch->which[batch->count] = next;
      ++batch->count;
    }
  };
  fill(&batches[0]);
  for (int turn = 0; batches[turn].count > 0; turn ^= 1) {
    fill(&batches[turn ^ 1]);  // its lines are fetched meanwhile
    const Batch& batch = batches[turn];
    ssize_t got;
    do {
      got = pwritev(buffer->fd, batch.pieces, static_cast<int>(batch.count), 0);
    } while (got < 0 && errno == EINTR);
    const size_t whole = got < 0 ? 0 : static_cast<size_t>(got) / bytes;
    for (size_t k = 0; k < whole; ++k) {
      found[batch.which[k]] = Found::kRead;
      use(batch.which[k], buffer->data + k * bytes);
    }
  }
  TheBuffers().GiveBack(std::move(buffer));

  const int64_t count = static_cast<int64_t>(size);
  if (!queries) {
    if ((Waits() - waits) * kQueriesPerWait > count) to_query_.store(kQueries);
    return;
  }
  absent_.fetch_add(absent, std::memory_order_relaxed);
  const int64_t before = to_query_.fetch_sub(count, std::memory_order_relaxed);
  if (before <= 0 || before > count) return;
  if (absent_.exchange(0) * 2 * kQueriesPerWait > kQueries)
    to_query_.store(kQueries);
}

}  // namespace ev
