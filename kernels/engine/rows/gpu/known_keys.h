// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The key table of one embedding table in GPU memory: a hash table from each
// key that has a row to the row's handle. Memory for a key is reserved when its
// row is created (GpuRows::NewKeyedRow); the key is inserted with the next
// batch of new rows. After that, a key that is not in the table has no row.
//
// LAYOUT. A bucket has four slots: 32 bytes of keys, and a handle per slot in a
// separate array. A key is in the first bucket of its probe sequence that had
// room; the start of the sequence depends on a secret (base/keyed_hash.h). Two
// key values mark free slots; these two keys have slots of their own after the
// buckets. A slot without a key has handle kNoRow, so a lookup that meets a key
// during its insertion reads kNoRow. A lookup may therefore run during an
// insertion on another stream, but may miss its keys. A caller to which a
// missing key means "no row" makes the lookup wait for the last insertion
// (RowEvents::last_keys).
//
// GROWTH. When three quarters of the slots are used, the GPU copies all keys to
// a table in which at most three eighths are used; the caller waits for the
// copy. If an erasure leaves at most three thirty-seconds of the slots in use,
// the keys are copied to a smaller table.
//
// At most 3 * 2^29 keys.
//
// MEMORY. None until the first key, then at least 12 KiB. A table that has just
// grown takes 32 bytes per key, a full one 16. Both tables exist during a copy.

#ifndef KERNELS_ENGINE_ROWS_GPU_KNOWN_KEYS_H_
#define KERNELS_ENGINE_ROWS_GPU_KNOWN_KEYS_H_

#include <cstdint>
#include <limits>
#include <mutex>

#include "kernels/engine/base/gpu/device_buffer.h"
#include "kernels/engine/base/gpu/stream.h"
#include "kernels/engine/base/keyed_hash.h"
#include "kernels/engine/base/row_handle.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"

namespace ev {
namespace gpu {

constexpr int kKnownBucket = 4;  // slots
// Key values of free slots. kEmptyKey: the slot never had a key. kErasedKey:
// its key was erased.
constexpr int64_t kEmptyKey = std::numeric_limits<int64_t>::min();
constexpr int64_t kErasedKey = kEmptyKey + 1;

// For kernels (known_keys.cuh).
struct KnownKeysView {
  KeyedHash hash;                // upper bits: first bucket of a key's probes
  int64_t* keys = nullptr;       // [num_buckets * kKnownBucket]
  RowHandle* handles = nullptr;  // and two more, for kEmptyKey and kErasedKey
  uint32_t* counters = nullptr;  // [2]
  uint64_t num_buckets = 0;      // 0: the table is empty
};
enum KnownCounter { kKeysKnown = 0, kSlotsUsed = 1 };

// Thread-safe, except the calls that must run alone. REQUIRES: the GPU is the
// current device, except for Reserve, which sets it.
class KnownKeys {
 public:
  explicit KnownKeys(int device) : device_(device) {}
  ~KnownKeys();
  KnownKeys(const KnownKeys&) = delete;
  KnownKeys& operator=(const KnownKeys&) = delete;

  // view() is valid while the lock is held; kernels that read it must be
  // enqueued within. The other members lock it too: do not call them meanwhile.
  std::unique_lock<std::mutex> Lock() {
    return std::unique_lock<std::mutex>(mu_);
  }
  const KnownKeysView& view() const { return view_; }

  // Reserves a slot for one more key, so that its Put needs no memory. If the
  // table has to grow, waits for all work of the GPU, and other calls wait
  // meanwhile. ResourceExhausted: no memory, or too many keys; nothing has
  // changed.
  Status Reserve();
  // Cancels the reservations of keys that will not be put.
  void Unreserve(int64_t num_keys);
  // Inserts reserved keys [K] with their rows' handles [K], both in GPU memory.
  // Enqueues one kernel.
  Status Put(const int64_t* keys, const RowHandle* handles, int64_t num_keys,
             StreamView stream);

  // --- Must run alone, without kernels of the other calls in flight ---

  // Removes keys, and waits for the GPU. Needs no memory.
  Status Erase(Span<const int64_t> keys);
  // Removes all keys and reservations, and frees the memory.
  void Clear();

  int64_t bytes() const;

 private:
  // REQUIRE mu_.
  Status Grow();
  // Copies all keys to a table with room for num_keys more.
  Status Rebuild(int64_t num_keys, StreamView stream);
  Status ReadCounters(StreamView stream);
  Status EraseSome(Span<const int64_t> keys);
  Status EraseFew(Span<const int64_t> keys);
  void Shrink(StreamView stream);

  const int device_;
  mutable std::mutex mu_;
  DeviceBuffer memory_;
  KnownKeysView view_;
  // Upper bounds of the slots in use and of the keys; exact after ReadCounters
  // until the next Put.
  int64_t used_ = 0, known_ = 0;
  int64_t reserved_ = 0;  // keys that will be put
};

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_ROWS_GPU_KNOWN_KEYS_H_
