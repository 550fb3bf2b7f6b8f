/* Copyright 2026 The SparseOperationKit Authors. */
/* SPDX-License-Identifier: Apache-2.0 */
/* Binds functions of libc, libm and libstdc++ to the versions that they have had since
   before manylinux2014. Otherwise the linker records the newest version of the machine
   that builds, such as GLIBC_2.34 for all thread functions. An older system would then
   refuse the library although it has each function. The definitions are hidden, so they
   catch only calls of this library. They jump to the original function, so arguments,
   results and exceptions pass through.

   Built only where these versions are the oldest ones: x86-64 with glibc. */

.macro OLD name, version
  .hidden \name
  .globl \name
  .type \name, @function
  .symver old_\name, \name@\version
\name:
  .cfi_startproc
  jmp *old_\name@GOTPCREL(%rip)
  .cfi_endproc
  .size \name, . - \name
.endm

.macro OLD_LIBC names:vararg
  .irp name, \names
    OLD \name, GLIBC_2.2.5
  .endr
.endm

.text

/* Newer ones handle errors otherwise. */
OLD_LIBC log, log2

/* libdl, librt and libpthread until glibc 2.34. TensorFlow loads all three. */
OLD_LIBC dlclose, dlerror, dlopen, dlsym, dlvsym
OLD dlmopen, GLIBC_2.3.4
OLD_LIBC shm_open, shm_unlink
OLD_LIBC sem_destroy, sem_init, sem_post, sem_timedwait, sem_trywait, sem_wait
OLD_LIBC pthread_condattr_setpshared, pthread_create, pthread_detach
OLD_LIBC pthread_getspecific, pthread_join, pthread_key_create, pthread_key_delete
OLD_LIBC pthread_kill, pthread_mutex_trylock, pthread_mutexattr_destroy
OLD_LIBC pthread_mutexattr_init, pthread_mutexattr_setpshared
OLD_LIBC pthread_mutexattr_settype, pthread_once, pthread_rwlock_destroy
OLD_LIBC pthread_rwlock_init, pthread_rwlock_rdlock, pthread_rwlock_timedrdlock
OLD_LIBC pthread_rwlock_timedwrlock, pthread_rwlock_tryrdlock
OLD_LIBC pthread_rwlock_trywrlock, pthread_rwlock_unlock, pthread_rwlock_wrlock
OLD_LIBC pthread_rwlockattr_destroy, pthread_rwlockattr_init
OLD_LIBC pthread_rwlockattr_setpshared, pthread_setspecific, pthread_spin_destroy
OLD_LIBC pthread_spin_init, pthread_spin_lock, pthread_spin_trylock
OLD_LIBC pthread_spin_unlock

/* std::condition_variable::wait(std::unique_lock<std::mutex>&) */
OLD _ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE, GLIBCXX_3.4.11

.section .note.GNU-stack, "", @progbits
