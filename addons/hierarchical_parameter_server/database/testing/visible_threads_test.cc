// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Tests what ThreadSanitizer reports of C11 locks. Other builds have nothing to
// report.

#include <threads.h>

#include <thread>

#include "gtest/gtest.h"

namespace hps {
namespace {

// ThreadSanitizer does not see these two, like the atomic operations of a
// library that is not compiled with it.
__attribute__((noinline, no_sanitize_thread)) void Publish(mtx_t** place,
                                                           mtx_t* lock) {
  __atomic_store_n(place, lock, __ATOMIC_RELEASE);
}

__attribute__((noinline, no_sanitize_thread)) mtx_t* Published(mtx_t** place) {
  mtx_t* lock;
  do {
    lock = __atomic_load_n(place, __ATOMIC_ACQUIRE);
  } while (lock == nullptr);
  return lock;
}

TEST(VisibleThreadsTest, ALockHandedOverByAnUnseenAtomicIsNoRace) {
  mtx_t lock;
  mtx_t* place = nullptr;
  int locked = thrd_error;
  std::thread user([&] {
    mtx_t* const mine = Published(&place);
    locked = mtx_lock(mine);
    mtx_unlock(mine);
  });
  EXPECT_EQ(mtx_init(&lock, mtx_plain), thrd_success);
  Publish(&place, &lock);
  user.join();
  EXPECT_EQ(locked, thrd_success);
  mtx_destroy(&lock);
}

}  // namespace
}  // namespace hps
