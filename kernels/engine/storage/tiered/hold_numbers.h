// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Things that calls use, told from things that no call uses, without an atomic
// operation per thing: a call writes its number to each of them by a plain
// store and makes one fence for all; when it ends nothing is undone.
//
//   call                                     a thread that takes a thing away
//     number = Enter()                         mark it as moving   (seq_cst)
//     of each: number to its stamp             Observe()
//     Publish()                                MayBeHeld(its stamp)?
//     of each: is it not marked? (seq_cst)       yes: put it back, unmarked
//       yes: it is held                          no: it is theirs
//     ... use them ...
//     Leave(number)
//
// Either the thread that takes sees the stamp or the call sees the mark: if
// Publish comes before Observe in the one order of all seq_cst operations,
// Observe reads what it or a later one wrote, so the stamp happened before the
// look at it; if it comes after, the mark came before the second look of the
// call. (Operations on one counter instead of fences, which ThreadSanitizer
// does not know.)
//
// STAMPS OF MANY. Calls overwrite each other's stamps, in any order. So numbers
// are not the calls' own: those that are under way have one of two, E and
// E - 1. E grows only when no call of E - 1 is left, or by three when none is
// at all. A call with number a which holds a thing now has E <= a + 1. A call b
// that wrote its stamp later, while a was under way, entered before its own end
// and left after a had entered, so b >= a - 1. Hence a stamp that is below
// E - 2 is of nothing that is held, and every other one may be. And a thread
// that reads such a stamp b in a thing has E >= b + 3, while the call that held
// the thing last had at most b + 1: that call has left, under the lock, before
// E became what it is, so what it did with the thing has happened.
//
// A thing is so taken to be held a little longer than it is; not at all when no
// call is under way. A call that waits for things to be let go must leave
// before, and enter again.

#ifndef KERNELS_ENGINE_STORAGE_TIERED_HOLD_NUMBERS_H_
#define KERNELS_ENGINE_STORAGE_TIERED_HOLD_NUMBERS_H_

#include <atomic>
#include <cstdint>
#include <mutex>

namespace ev {

// Thread-safe. Numbers wrap; a thing whose last use lies 2^32 numbers back is
// taken to be held for a moment.
class HoldNumbers {
 public:
  using Number = uint32_t;
  // A stamp that nothing was written to. No call has it.
  static constexpr Number kNever = 0;

  // Begins a call that holds up to so many things. False, and nothing has
  // begun: with those that may be held already they would be more than most.
  bool TryEnter(int64_t things, int64_t most, Number* number);
  Number Enter();
  void Leave(Number number);

  void Publish() { turns_.fetch_add(1, std::memory_order_seq_cst); }
  void Observe() const { turns_.load(std::memory_order_seq_cst); }
  bool MayBeHeld(Number stamp) const {
    // Below zero when this thread has not heard of E yet.
    return static_cast<int32_t>(newest_.load(std::memory_order_acquire) -
                                stamp) <= 2;
  }

 private:
  void Advance(Number by);

  std::mutex mu_;
  std::atomic<Number> newest_{3};  // E; written under mu_
  int64_t calls_[2] = {0, 0};      // under way, by number
  int64_t things_[4] = {0, 0, 0, 0};
  char apart_[64];  // what every call reads, from what each writes
  std::atomic<uint32_t> turns_{0};
};

}  // namespace ev

#endif  // KERNELS_ENGINE_STORAGE_TIERED_HOLD_NUMBERS_H_
