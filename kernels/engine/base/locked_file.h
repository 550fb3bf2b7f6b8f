// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef KERNELS_ENGINE_BASE_LOCKED_FILE_H_
#define KERNELS_ENGINE_BASE_LOCKED_FILE_H_

#include <sys/types.h>

#include <string>

namespace ev {

// An open file for locks that belong to the open file, such as those of flock.
// They end with this object or this process: a forked process closes its copy,
// which would keep them. Throws std::bad_alloc.
class LockedFile {
 public:
  LockedFile() {}
  // Opens it as open(2) does, with O_CLOEXEC. On error number() is negative and
  // errno is set.
  LockedFile(const std::string& path, int flags, mode_t mode = 0);
  ~LockedFile();
  LockedFile(LockedFile&& other) : number_(other.number_) {
    other.number_ = -1;
  }
  LockedFile& operator=(LockedFile&& other);

  int number() const { return number_; }

 private:
  int number_ = -1;
};

}  // namespace ev

#endif  // KERNELS_ENGINE_BASE_LOCKED_FILE_H_
