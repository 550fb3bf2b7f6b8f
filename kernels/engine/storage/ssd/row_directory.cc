// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/storage/ssd/row_directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace ev {
namespace {

constexpr char kPrefix[] = "rows-";
constexpr char kSuffix[] = ".evrows";
constexpr int kTries = 100;

// The directories of this process by canonical path. Never destroyed: tables
// may be destroyed while the process exits.
struct Taken {
  std::mutex mu;
  std::map<std::string, std::weak_ptr<RowDirectory>> by_path;
};
Taken& TheTaken() {
  static Taken* const taken = new Taken;
  return *taken;
}

Status Unusable(const std::string& path, const char* what, int error) {
  return FailedPrecondition("storage_path '" + path + "' cannot be used: " +
                            what + ": " + std::strerror(error));
}

Status MakeDirectories(const std::string& path) {
  for (size_t end = 1; end <= path.size(); ++end) {
    if (end != path.size() && path[end] != '/') continue;
    const std::string part = path.substr(0, end);
    if (mkdir(part.c_str(), 0777) == 0 || errno == EEXIST) continue;
    const int error = errno;
    struct stat existing;
    if (stat(part.c_str(), &existing) == 0)
      continue;  // EROFS, although it exists
    return Unusable(path, ("creating '" + part + "'").c_str(), error);
  }
  struct stat made;
  if (stat(path.c_str(), &made) != 0) {
    return Unusable(path, "reading its file status", errno);
  }
  if (!S_ISDIR(made.st_mode)) {
    return Unusable(path, "opening it as a directory", ENOTDIR);
  }
  return Status::OK();
}

std::string ThisProcess() {
  char host[HOST_NAME_MAX + 1] = "";
  gethostname(host, HOST_NAME_MAX);
  return "process " + std::to_string(getpid()) + " on host '" + host + "'";
}

std::string Written(int fd) {
  char text[512];
  const ssize_t got = pread(fd, text, sizeof(text), 0);
  return got > 0 ? std::string(text, got) : std::string("another process");
}

bool IsRowFile(const char* name) {
  const size_t length = std::strlen(name);
  const size_t prefix = sizeof(kPrefix) - 1, suffix = sizeof(kSuffix) - 1;
  return length > prefix + suffix && std::strncmp(name, kPrefix, prefix) == 0 &&
         std::strcmp(name + length - suffix, kSuffix) == 0;
}

Status InUse(const std::string& path, const std::string& holder,
             const std::string& owner) {
  return FailedPrecondition("storage_path '" + path + "' is in use by " +
                            holder + ": '" + owner + "' of " + ThisProcess() +
                            " needs a separate directory");
}

}  // namespace

Status RowDirectory::Open(const std::string& path, const std::string& owner,
                          std::shared_ptr<RowDirectory>* directory) {
  if (path.empty()) return FailedPrecondition("storage_path is empty");
  EV_RETURN_IF_ERROR(MakeDirectories(path));
  char* resolved = realpath(path.c_str(), nullptr);
  if (resolved == nullptr) return Unusable(path, "resolving it", errno);
  const std::string canonical = resolved;
  std::free(resolved);

  Taken& taken = TheTaken();
  std::lock_guard<std::mutex> lock(taken.mu);
  std::weak_ptr<RowDirectory>& known = taken.by_path[canonical];
  if (std::shared_ptr<RowDirectory> same = known.lock()) {
    if (same->owner_ != owner) {
      return InUse(path, "'" + same->owner_ + "' of " + ThisProcess(), owner);
    }
    *directory = std::move(same);
    return Status::OK();
  }
  // Do not follow a link: its target is not this table's and would be
  // truncated.
  LockedFile file(canonical + "/LOCK", O_RDWR | O_CREAT | O_NOFOLLOW, 0600);
  const int fd = file.number();
  if (fd < 0) return Unusable(path, "opening its file LOCK", errno);
  const std::string me = "'" + owner + "' of " + ThisProcess();
  for (int tries = 0; flock(fd, LOCK_EX | LOCK_NB) != 0; ++tries) {
    const int error = errno;
    const std::string holder = Written(fd);
    // Another thread of this process is releasing it right now.
    if (error == EWOULDBLOCK && holder == me && tries < kTries) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      continue;
    }
    if (error == EWOULDBLOCK) return InUse(path, holder, owner);
    return Unusable(path, "locking its file LOCK", error);
  }
  std::shared_ptr<RowDirectory> opened(
      new RowDirectory(canonical, owner, std::move(file)));
  if (ftruncate(fd, 0) != 0 || pwrite(fd, me.data(), me.size(), 0) < 0) {
    return Unusable(path, "writing its file LOCK", errno);
  }
  EV_RETURN_IF_ERROR(opened->DeleteStaleFiles());
  if (opened->stale_files_ > 0) {
    std::fprintf(
        stderr,
        "storage_path '%s': deleted %lld row files of a process that has "
        "ended\n",
        path.c_str(), static_cast<long long>(opened->stale_files_));
  }
  known = opened;
  *directory = std::move(opened);
  return Status::OK();
}

Status RowDirectory::DeleteStaleFiles() {
  DIR* listing = opendir(path_.c_str());
  if (listing == nullptr) return Unusable(path_, "listing it", errno);
  std::vector<std::string> stale;
  while (const dirent* entry = readdir(listing)) {
    if (IsRowFile(entry->d_name)) stale.push_back(path_ + "/" + entry->d_name);
  }
  closedir(listing);
  for (const std::string& file : stale) {
    if (unlink(file.c_str()) != 0 && errno != ENOENT) {
      return Unusable(path_, ("deleting '" + file + "'").c_str(), errno);
    }
  }
  stale_files_ = static_cast<int64_t>(stale.size());
  return Status::OK();
}

std::string RowDirectory::NewFile() const {
  static std::atomic<uint64_t> next{0};
  return path_ + "/" + kPrefix + std::to_string(getpid()) + "-" +
         std::to_string(next.fetch_add(1)) + kSuffix;
}

}  // namespace ev
