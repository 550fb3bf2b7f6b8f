// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// ThreadSanitizer suppressions for programs that open librocksdb or librdkafka.
// ThreadSanitizer's run-time library reads this text; in other builds the file
// is empty.

#if defined(__SANITIZE_THREAD__)

// The opened libraries are not compiled with ThreadSanitizer: it sees their
// memory copies, but not the atomic operations that order them. called_from_lib
// ignores calls made by the named library. Accesses by this project's code to
// memory of such a library are still checked.
//   libstdc++: copies the strings of librocksdb.
//   mtx_: visible_threads.cc calls these for librdkafka, so their caller is the
//     program and not the library. librdkafka hands locks over by atomic
//     operations.
//   _dl_deallocate_tls: the C library frees the variables of a finished thread
//     and gives the memory to another thread, under a lock of its own.
extern "C" __attribute__((visibility("default"))) const char*
__tsan_default_suppressions() {
  return "called_from_lib:librocksdb.so\n"
         "called_from_lib:librdkafka.so\n"
         "called_from_lib:libstdc++.so\n"
         "race:^mtx_\n"
         "race:_dl_deallocate_tls\n";
}

#endif  // __SANITIZE_THREAD__
