// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/hugectr/reader/file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

namespace hugectr {
namespace {

ev::Status Unreadable(const std::string& path, int error) {
  return ev::InvalidArgument(path + ": cannot be read: " + strerror(error));
}

}  // namespace

File::~File() { Close(); }

void File::Close() {
  if (descriptor_ >= 0) close(descriptor_);
  descriptor_ = -1;
}

ev::Status File::Open(const std::string& path) {
  Close();
  path_ = path;
  descriptor_ = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor_ < 0) return Unreadable(path, errno);
  struct stat about;
  if (fstat(descriptor_, &about) != 0) return Unreadable(path, errno);
  size_ = about.st_size;
  return ev::Status::OK();
}

ev::Status File::Read(int64_t place, int64_t bytes, void* to,
                      int64_t* got) const {
  *got = 0;
  while (*got < bytes) {
    const ssize_t more = pread(descriptor_, static_cast<char*>(to) + *got,
                               bytes - *got, place + *got);
    if (more < 0 && errno == EINTR) continue;
    if (more < 0) return Unreadable(path_, errno);
    if (more == 0) break;
    *got += more;
  }
  return ev::Status::OK();
}

}  // namespace hugectr
