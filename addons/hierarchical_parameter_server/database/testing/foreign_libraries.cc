// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// What ThreadSanitizer is not to report in programs that open librocksdb or
// librdkafka. The run-time library of ThreadSanitizer asks for this text;
// other builds have an empty file here.

#if defined(__SANITIZE_THREAD__)

// The opened libraries are not compiled with ThreadSanitizer: their copies of
// memory are seen, and the atomic operations that order the copies are not.
// called_from_lib ignores what such a library itself calls, by its name. What
// this project's code does with memory that a library gave out or took is
// looked at all the same.
//   libstdc++: copies the strings of librocksdb.
//   _dl_deallocate_tls: the C library frees the variables of a dead thread, and
//   gives the memory to another thread, under a lock of its own.
extern "C" __attribute__((visibility("default"))) const char*
__tsan_default_suppressions() {
  return "called_from_lib:librocksdb.so\n"
         "called_from_lib:librdkafka.so\n"
         "called_from_lib:libstdc++.so\n"
         "race:_dl_deallocate_tls\n";
}

#endif  // __SANITIZE_THREAD__
