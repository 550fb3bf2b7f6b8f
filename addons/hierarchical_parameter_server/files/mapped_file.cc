// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/hierarchical_parameter_server/files/mapped_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <utility>

namespace hps {
namespace {

// Longer than the resolution of a file system's times.
constexpr int64_t kSettledSeconds = 2;

ev::Status Failed(const std::string& what, const std::string& path) {
  const int error = errno;
  const std::string message =
      "cannot " + what + " '" + path + "': " + std::strerror(error);
  return error == ENOENT ? ev::NotFound(message)
                         : ev::FailedPrecondition(message);
}

}  // namespace

ev::Status MappedFile::Open(const std::string& path,
                            std::unique_ptr<MappedFile>* file) {
  std::unique_ptr<MappedFile> made(new MappedFile);
  made->path_ = path;
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return Failed("open", path);
  struct stat about;
  std::memset(&about, 0, sizeof(about));
  bool known = fstat(descriptor, &about) == 0;
  if (known && !S_ISREG(about.st_mode)) {
    errno = EISDIR;
    known = false;
  }
  if (!known) {
    const ev::Status status = Failed("read", path);
    close(descriptor);
    return status;
  }
  made->bytes_ = about.st_size;
  made->inode_ = about.st_ino;
  if (about.st_ctim.tv_sec + kSettledSeconds < std::time(nullptr)) {
    made->changed_ns_ =
        int64_t{about.st_ctim.tv_sec} * 1000000000 + about.st_ctim.tv_nsec;
  }
  if (made->bytes_ > 0) {
    void* const data = mmap(nullptr, static_cast<size_t>(made->bytes_),
                            PROT_READ, MAP_SHARED, descriptor, 0);
    if (data == MAP_FAILED) {
      const ev::Status status = Failed("map", path);
      close(descriptor);
      return status;
    }
    made->data_ = data;
  }
  close(descriptor);
  *file = std::move(made);
  return ev::Status::OK();
}

void MappedFile::WillBeReadAtRandom() const {
  if (data_ != nullptr) {
    madvise(data_, static_cast<size_t>(bytes_), MADV_RANDOM);
  }
}

void MappedFile::WillBeReadSoon(int64_t begin, int64_t bytes) const {
  const int64_t page = sysconf(_SC_PAGESIZE);
  const int64_t from = std::max<int64_t>(begin, 0) / page * page;
  const int64_t to = std::min(begin + bytes, bytes_);
  if (data_ == nullptr || from >= to) return;
  madvise(static_cast<char*>(data_) + from, static_cast<size_t>(to - from),
          MADV_WILLNEED);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) munmap(data_, static_cast<size_t>(bytes_));
}

}  // namespace hps
