// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Which keys of a table have which rows: the table's index as the device has
// it, so that a batch's keys are found where the batch is. Every key is put
// when its row is made (GpuRows::NewKeyedRow), and a key that is not here has
// no row, for as long as KnowsAll. Without memory for a key that ends, and what
// is not here is looked for in the index in CPU memory, from which keys are
// then put as they are met. A key must never have a wrong row here.
//
// LAYOUT. Slots by fours in a bucket, 32 bytes of keys, and a handle for each
// slot in an array beside them. A key is in the first bucket of its walk that
// had room; where that begins is a secret (base/keyed_hash.h). Free slots are
// marked by two keys, which have slots of their own behind all buckets. A
// handle is kNoRow while its slot has no key: a find that meets a key which is
// just being put reads kNoRow, and does not know the key yet. So finding and
// putting, on any streams, need no order between them.
//
// GROWTH. When three quarters of the slots were used all keys are copied, on
// the device, to slots of which at most three eighths are used: 16 to 32 bytes
// per key, and both arrays for the time of the copy, for which the device is
// waited for. When keys were erased and three thirty-seconds of the slots are
// left or fewer, they are copied to as few.
//
// MEMORY. Nothing until the first key is put, 12 KiB at least from then on.

#ifndef KERNELS_ENGINE_ROWS_GPU_KNOWN_KEYS_H_
#define KERNELS_ENGINE_ROWS_GPU_KNOWN_KEYS_H_

#include <cstdint>
#include <functional>
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
// What a free slot holds: it never had a key, or has none any more.
constexpr int64_t kEmptyKey = std::numeric_limits<int64_t>::min();
constexpr int64_t kErasedKey = kEmptyKey + 1;

// For kernels (known_keys.cuh).
struct KnownKeysView {
  KeyedHash hash;                // whose upper bits say where a walk begins
  int64_t* keys = nullptr;       // [num_buckets * kKnownBucket]
  RowHandle* handles = nullptr;  // two more, of kEmptyKey and kErasedKey
  uint32_t* counters = nullptr;  // [2]
  uint64_t num_buckets = 0;      // 0: no key is known
};
enum KnownCounter { kKeysKnown = 0, kSlotsUsed = 1 };

// Some of a batch's keys, and what they are called from now on. Device memory,
// or pinned memory that the device reads.
struct NamedKeys {
  const int64_t* keys = nullptr;      // of the batch, [U]
  const uint32_t* numbers = nullptr;  // [K], which of them are named
  const RowHandle* names = nullptr;   // [K]
  int64_t num_named = 0;              // K
  int64_t num_rows = 0;               // names that are of rows
  RowHandle* all_names = nullptr;     // [U], of which K are written
};

// Thread-safe but for what says otherwise. The device is to be current.
class KnownKeys {
 public:
  explicit KnownKeys(int device) : device_(device) {}
  ~KnownKeys();
  KnownKeys(const KnownKeys&) = delete;
  KnownKeys& operator=(const KnownKeys&) = delete;

  // Calls launch(view), which only enqueues kernels that read the view.
  Status Launch(const std::function<Status(const KnownKeysView&)>& launch);

  // The same for several at once: view() is right while the lock is held.
  std::unique_lock<std::mutex> Lock() {
    return std::unique_lock<std::mutex>(mu_);
  }
  const KnownKeysView& view() const { return view_; }
  bool KnowsAllLocked() const { return knows_all_; }

  // Whether every key that was to be put since the last Clear is here.
  bool KnowsAll() const;
  // A key is not put.
  void Miss();
  // So many keys will be put: grows now, once, if need be.
  void Expect(int64_t num_keys, StreamView stream);
  // Puts keys [K] with rows handles [K], both in device memory, or in pinned
  // memory that the device reads. Without memory KnowsAll ends. Enqueues one
  // kernel; waits when it has to grow.
  Status Put(const int64_t* keys, const RowHandle* handles, int64_t num_keys,
             StreamView stream);

  // Writes the names; unless KnowsAll, keys with rows are known from then on,
  // as far as there is memory. Enqueues one kernel; waits when it has to grow.
  Status Name(const NamedKeys& named, StreamView stream);

  // --- Alone, with nothing under way that was enqueued by the others ---

  // These are known no more. Whatever goes wrong: then none is, and KnowsAll
  // ends. Waits.
  void Erase(Span<const int64_t> keys);
  // None is known any more, and the memory is given back.
  void Clear();

  int64_t bytes() const;

 private:
  // REQUIRE mu_.
  bool MakeRoom(int64_t num_keys, StreamView stream);
  // All keys go to slots for that many more.
  Status Rebuild(int64_t num_keys, StreamView stream);
  Status ReadCounters(StreamView stream);
  Status EraseThem(Span<const int64_t> keys);
  void Shrink(StreamView stream);

  const int device_;
  mutable std::mutex mu_;
  DeviceBuffer memory_;
  KnownKeysView view_;
  // At least what was used, and of it was known; exact when the counters were
  // read and nothing was put since.
  int64_t used_ = 0, known_ = 0;
  bool knows_all_ = true;
  // Calls that find no memory before it is asked for again.
  int64_t refusals_ = 0;
};

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_ROWS_GPU_KNOWN_KEYS_H_
