// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/base/locked_file.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

namespace ev {
namespace {

// The locked files of this process.
class OpenFiles {
 public:
  // Never destroyed: threads may end while the process does.
  static OpenFiles& Global() {
    static OpenFiles* const files = new OpenFiles;
    return *files;
  }
  int Open(const std::string& path, int flags, mode_t mode) {
    std::lock_guard<std::mutex> lock(mu_);
    numbers_.reserve(numbers_.size() + 1);
    const int number = open(path.c_str(), flags | O_CLOEXEC, mode);
    if (number >= 0) numbers_.push_back(number);
    return number;
  }
  void Close(int number) {
    std::lock_guard<std::mutex> lock(mu_);
    const auto at = std::find(numbers_.begin(), numbers_.end(), number);
    if (at == numbers_.end()) return;  // in a forked process
    close(number);
    numbers_.erase(at);
  }

 private:
  OpenFiles() {
    pthread_atfork([] { Global().mu_.lock(); }, [] { Global().mu_.unlock(); },
                   [] { Global().CloseInChild(); });
  }
  void CloseInChild() {
    for (const int number : numbers_) close(number);
    numbers_.clear();
    mu_.unlock();
  }

  std::mutex mu_;
  std::vector<int> numbers_;
};

}  // namespace

LockedFile::LockedFile(const std::string& path, int flags, mode_t mode)
    : number_(OpenFiles::Global().Open(path, flags, mode)) {}

LockedFile::~LockedFile() {
  if (number_ >= 0) OpenFiles::Global().Close(number_);
}

LockedFile& LockedFile::operator=(LockedFile&& other) {
  std::swap(number_, other.number_);
  return *this;
}

}  // namespace ev
