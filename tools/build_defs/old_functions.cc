// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Implements functions that newer compilers and headers call with functions
// that manylinux2014 has; see old_names.S. They are hidden, so only this
// library calls them.

// manylinux2014 has std::string of this form alone in its interfaces.
#define _GLIBCXX_USE_CXX11_ABI 0

#include <dlfcn.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <stdexcept>
#include <string>

#define HIDDEN __attribute__((visibility("hidden")))

// Renamed, because the system headers declare the same functions without hiding
// them.
extern "C" {
int old_stat(const char* path, struct stat* about) asm("stat") HIDDEN;
int old_lstat(const char* path, struct stat* about) asm("lstat") HIDDEN;
int old_fstat(int file, struct stat* about) asm("fstat") HIDDEN;
int old_fstatat(int folder, const char* path, struct stat* about,
                int flags) asm("fstatat") HIDDEN;
ssize_t old_preadv2(int file, const struct iovec* parts, int count,
                    off_t offset, int flags) asm("preadv2") HIDDEN;
extern char old_single_threaded asm("__libc_single_threaded") HIDDEN;
int __xstat(int version, const char* path, struct stat* about);
int __lxstat(int version, const char* path, struct stat* about);
int __fxstat(int version, int file, struct stat* about);
int __fxstatat(int version, int folder, const char* path, struct stat* about,
               int flags);
}

extern "C" {
int old_cond_clockwait(
    pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
    const timespec* until) asm("pthread_cond_clockwait") HIDDEN;
float old_powf(float x, float y);
float newest_powf(float x, float y) asm("powf") HIDDEN;
}
asm(".symver old_powf, powf@GLIBC_2.2.5");

namespace std {
[[noreturn]] void __throw_bad_alloc();
}  // namespace std

namespace {

// The layout of struct stat on x86-64.
constexpr int kStatVersion = 1;

void* Aligned(size_t bytes, size_t alignment) {
  void* memory = nullptr;
  if (alignment < sizeof(void*)) alignment = sizeof(void*);
  if (posix_memalign(&memory, alignment, bytes) != 0) std::__throw_bad_alloc();
  return memory;
}

using Powf = float (*)(float x, float y);

// glibc 2.27 has a powf with the same results that is a third faster. FTRL
// calls powf once per float.
const Powf fast_powf = [] {
  void* found = dlvsym(RTLD_DEFAULT, "powf", "GLIBC_2.27");
  return found != nullptr ? reinterpret_cast<Powf>(found) : &old_powf;
}();

// In glibc 2.30 and newer.
using CondClockWait = int (*)(pthread_cond_t*, pthread_mutex_t*, clockid_t,
                              const timespec*);
const CondClockWait cond_clock_wait = reinterpret_cast<CondClockWait>(
    dlsym(RTLD_DEFAULT, "pthread_cond_clockwait"));

constexpr int64_t kNanoseconds = 1000000000;

int64_t NanosecondsOf(const timespec& time) {
  return time.tv_sec * kNanoseconds + time.tv_nsec;
}

}  // namespace

// Called by std::condition_variable::wait_for. An older system can only wait by
// the real-time clock, so a wait ends late if that clock is set back.
int old_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex,
                       clockid_t clock, const timespec* until) {
  if (cond_clock_wait != nullptr) {
    return cond_clock_wait(condition, mutex, clock, until);
  }
  timespec now, day;
  clock_gettime(clock, &now);
  clock_gettime(CLOCK_REALTIME, &day);
  const int64_t end =
      NanosecondsOf(day) + NanosecondsOf(*until) - NanosecondsOf(now);
  timespec until_day;
  until_day.tv_sec = end / kNanoseconds;
  until_day.tv_nsec = end % kNanoseconds;
  return pthread_cond_timedwait(condition, mutex, &until_day);
}

float newest_powf(float x, float y) { return fast_powf(x, y); }

int old_stat(const char* path, struct stat* about) {
  return __xstat(kStatVersion, path, about);
}

int old_lstat(const char* path, struct stat* about) {
  return __lxstat(kStatVersion, path, about);
}

int old_fstatat(int folder, const char* path, struct stat* about, int flags) {
  return __fxstatat(kStatVersion, folder, path, about, flags);
}

int old_fstat(int file, struct stat* about) {
  return __fxstat(kStatVersion, file, about);
}

ssize_t old_preadv2(int file, const struct iovec* parts, int count,
                    off_t offset, int flags) {
  // The kernel takes the offset in two halves; the first holds all of it.
  return syscall(SYS_preadv2, file, parts, count, offset, 0, flags);
}

// Headers of libstdc++ skip atomics if it is set. A process with a session has
// threads.
char old_single_threaded = 0;

// std::bad_array_new_length is newer; its base class std::bad_alloc is thrown
// instead.
[[noreturn]] HIDDEN void ThrowBadArrayNewLength() asm(
    "_ZSt28__throw_bad_array_new_lengthv");
void ThrowBadArrayNewLength() { std::__throw_bad_alloc(); }

// Operator new and delete for aligned types, and sized delete.
HIDDEN void* AlignedNew(size_t bytes,
                        size_t alignment) asm("_ZnwmSt11align_val_t");
HIDDEN void* AlignedNewArray(size_t bytes,
                             size_t alignment) asm("_ZnamSt11align_val_t");
HIDDEN void AlignedDelete(void* memory, size_t) asm("_ZdlPvSt11align_val_t");
HIDDEN void AlignedDeleteArray(void* memory,
                               size_t) asm("_ZdaPvSt11align_val_t");
HIDDEN void AlignedSizedDelete(void* memory, size_t,
                               size_t) asm("_ZdlPvmSt11align_val_t");
HIDDEN void AlignedSizedDeleteArray(void* memory, size_t,
                                    size_t) asm("_ZdaPvmSt11align_val_t");
HIDDEN void SizedDelete(void* memory, size_t) asm("_ZdlPvm");
HIDDEN void SizedDeleteArray(void* memory, size_t) asm("_ZdaPvm");

void* AlignedNew(size_t bytes, size_t alignment) {
  return Aligned(bytes, alignment);
}
void* AlignedNewArray(size_t bytes, size_t alignment) {
  return Aligned(bytes, alignment);
}
void AlignedDelete(void* memory, size_t) { std::free(memory); }
void AlignedDeleteArray(void* memory, size_t) { std::free(memory); }
void AlignedSizedDelete(void* memory, size_t, size_t) { std::free(memory); }
void AlignedSizedDeleteArray(void* memory, size_t, size_t) {
  std::free(memory);
}
void SizedDelete(void* memory, size_t) { ::operator delete(memory); }
void SizedDeleteArray(void* memory, size_t) { ::operator delete[](memory); }

// Constructors of std::runtime_error from a char*, which CUDA's headers call.
// The constructor from a string is older. The second one begins an object of a
// derived class, which then sets its own vtable.
HIDDEN void RuntimeError(void* error,
                         const char* what) asm("_ZNSt13runtime_errorC1EPKc");
HIDDEN void BaseRuntimeError(void* error, const char* what) asm(
    "_ZNSt13runtime_errorC2EPKc");

void RuntimeError(void* error, const char* what) {
  new (error) std::runtime_error(std::string(what));
}
void BaseRuntimeError(void* error, const char* what) {
  RuntimeError(error, what);
}

// Since CXXABI_1.3.13 std::exception_ptr counts its owners with functions of
// their own. Older versions count them in the copy constructor and the
// destructor.
extern "C" {
void OldCopyException(void* copy, const void* exception);
void OldDestroyException(void* exception);
}
asm(".symver OldCopyException, "
    "_ZNSt15__exception_ptr13exception_ptrC1ERKS0_@CXXABI_1.3.3");
asm(".symver OldDestroyException, "
    "_ZNSt15__exception_ptr13exception_ptrD1Ev@CXXABI_1.3.3");

HIDDEN void AddOwner(void** exception) asm(
    "_ZNSt15__exception_ptr13exception_ptr9_M_addrefEv");
HIDDEN void RemoveOwner(void** exception) asm(
    "_ZNSt15__exception_ptr13exception_ptr10_M_releaseEv");

void AddOwner(void** exception) {
  void* never_destroyed = nullptr;
  OldCopyException(&never_destroyed, exception);
}
void RemoveOwner(void** exception) {
  void* owned = *exception;
  *exception = nullptr;
  OldDestroyException(&owned);
}
