// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Detects objects that no call uses, without an atomic operation per object. A
// call writes its number to each object by a plain store and makes one fence
// for all of them. Nothing is undone when the call ends.
//
//   call                                     a thread that takes an object
//     number = Enter()                         mark it as moving   (seq_cst)
//     each object: stamp = number              Observe()
//     Publish()                                MayBeHeld(its stamp)?
//     each object: not marked? (seq_cst)         yes: remove the mark
//       yes: it is held                          no: it is taken
//     ... use the held objects ...
//     Leave(number)
//
// Either the taking thread sees the stamp or the call sees the mark. If Publish
// precedes Observe in the single order of all seq_cst operations, Observe reads
// what Publish or a later one wrote, so the stamp was written before the thread
// reads it. If Publish follows Observe, the mark was set before the call checks
// for it. (These are operations on one counter instead of fences because
// ThreadSanitizer does not support fences.)
//
// WHY STAMPS MAY BE OVERWRITTEN. Calls overwrite each other's stamps, in any
// order. So calls share numbers: all calls in flight have one of two numbers, E
// and E - 1. E grows by one only when no call of E - 1 is left, or by three
// when no call is in flight at all. A call with number a that holds an object
// now implies E <= a + 1. A call b that overwrote its stamp while a was in
// flight entered before its own end and left after a had entered, so b >= a -
// 1. Hence an object whose stamp is below E - 2 is not held, and any other
// object may be held.
//
// A thread that reads such an old stamp b in an object has E >= b + 3, while
// the last call that held the object had at most number b + 1. That call left,
// under the lock, before E reached its value, so its accesses to the object
// happened before.
//
// An object therefore counts as held a little longer than it is, but never
// while no call is in flight. A call that waits for objects to be released must
// Leave first and Enter again.

#ifndef KERNELS_ENGINE_STORAGE_TIERED_HOLD_NUMBERS_H_
#define KERNELS_ENGINE_STORAGE_TIERED_HOLD_NUMBERS_H_

#include <atomic>
#include <cstdint>
#include <mutex>

namespace ev {

// Thread-safe. Numbers wrap around: an object last used 2^32 numbers ago counts
// as held for a moment, until E is kAhead numbers further.
class HoldNumbers {
 public:
  using Number = uint32_t;
  // Stamp of an object that was never held.
  static constexpr Number kNever = 0;

  // newest: the first E.
  explicit HoldNumbers(Number newest = 3) : newest_(newest) {}

  // Starts a call that holds up to 'things' objects. Returns false and starts
  // nothing if these and the objects that may be held already exceed 'most'.
  bool TryEnter(int64_t things, int64_t most, Number* number);
  Number Enter();
  void Leave(Number number);

  void Publish() { turns_.fetch_add(1, std::memory_order_seq_cst); }
  void Observe() const { turns_.load(std::memory_order_seq_cst); }
  bool MayBeHeld(Number stamp) const {
    // The stamp is above E if this thread has not seen the current E yet.
    return newest_.load(std::memory_order_acquire) - stamp + kAhead <=
           kAhead + 2;
  }

 private:
  static constexpr Number kAhead = 1 << 16;
  void Advance(Number by);

  std::mutex mu_;
  std::atomic<Number> newest_;  // E; written under mu_
  int64_t calls_[2] = {0, 0};   // in flight, by number
  int64_t things_[4] = {0, 0, 0, 0};
  char apart_[64];  // separates what every call reads from what each writes
  std::atomic<uint32_t> turns_{0};
};

}  // namespace ev

#endif  // KERNELS_ENGINE_STORAGE_TIERED_HOLD_NUMBERS_H_
