// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Makes librdkafka's threads and locks visible to ThreadSanitizer.
//
// librdkafka uses C11 threads. g++'s ThreadSanitizer does not intercept
// thrd_create: the first intercepted call in such a thread crashes the program.
// The functions in this file replace the C library's, because the program is
// searched before its libraries, and forward to the POSIX functions that
// ThreadSanitizer intercepts. In glibc both have the same types in memory.
//
// In other builds the file is empty.

#if defined(__SANITIZE_THREAD__)

#include <errno.h>
#include <pthread.h>
#include <threads.h>
#include <time.h>

#include <cstdint>

static_assert(sizeof(mtx_t) == sizeof(pthread_mutex_t), "not glibc's mtx_t");
static_assert(sizeof(cnd_t) == sizeof(pthread_cond_t), "not glibc's cnd_t");

namespace {

struct Start {
  thrd_start_t function;
  void* argument;
};

void* Run(void* start) {
  const Start mine = *static_cast<Start*>(start);
  delete static_cast<Start*>(start);
  return reinterpret_cast<void*>(
      static_cast<intptr_t>(mine.function(mine.argument)));
}

int Result(int error) {
  switch (error) {
    case 0:
      return thrd_success;
    case ETIMEDOUT:
      return thrd_timedout;
    case ENOMEM:
      return thrd_nomem;
    case EBUSY:
      return thrd_busy;
  }
  return thrd_error;
}

pthread_mutex_t* Posix(mtx_t* mutex) {
  return reinterpret_cast<pthread_mutex_t*>(mutex);
}

pthread_cond_t* Posix(cnd_t* condition) {
  return reinterpret_cast<pthread_cond_t*>(condition);
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

int thrd_create(thrd_t* thread, thrd_start_t function, void* argument) {
  Start* const start = new Start{function, argument};
  const int error = pthread_create(thread, nullptr, &Run, start);
  if (error != 0) delete start;
  return error == EAGAIN ? thrd_nomem : Result(error);
}

int thrd_join(thrd_t thread, int* result) {
  void* returned = nullptr;
  const int error = pthread_join(thread, &returned);
  if (result != nullptr) {
    *result = static_cast<int>(reinterpret_cast<intptr_t>(returned));
  }
  return Result(error);
}

int mtx_init(mtx_t* mutex, int type) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_settype(&attributes, (type & mtx_recursive) != 0
                                             ? PTHREAD_MUTEX_RECURSIVE
                                             : PTHREAD_MUTEX_NORMAL);
  const int error = pthread_mutex_init(Posix(mutex), &attributes);
  pthread_mutexattr_destroy(&attributes);
  return Result(error);
}

int mtx_lock(mtx_t* mutex) { return Result(pthread_mutex_lock(Posix(mutex))); }

int mtx_unlock(mtx_t* mutex) {
  return Result(pthread_mutex_unlock(Posix(mutex)));
}

void mtx_destroy(mtx_t* mutex) { pthread_mutex_destroy(Posix(mutex)); }

int cnd_init(cnd_t* condition) {
  return Result(pthread_cond_init(Posix(condition), nullptr));
}

int cnd_signal(cnd_t* condition) {
  return Result(pthread_cond_signal(Posix(condition)));
}

int cnd_broadcast(cnd_t* condition) {
  return Result(pthread_cond_broadcast(Posix(condition)));
}

int cnd_wait(cnd_t* condition, mtx_t* mutex) {
  return Result(pthread_cond_wait(Posix(condition), Posix(mutex)));
}

int cnd_timedwait(cnd_t* condition, mtx_t* mutex, const timespec* until) {
  return Result(pthread_cond_timedwait(Posix(condition), Posix(mutex), until));
}

void cnd_destroy(cnd_t* condition) { pthread_cond_destroy(Posix(condition)); }

}  // extern "C"
#pragma GCC visibility pop

#endif  // __SANITIZE_THREAD__
