// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// A read-only memory mapping of a file. Processes that map the same file share
// its pages, and a page is read when it is first touched.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_FILES_MAPPED_FILE_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_FILES_MAPPED_FILE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "kernels/engine/base/status.h"

namespace hps {

class MappedFile {
 public:
  // Maps a file for reading. NotFound, or another error that names the file. An
  // empty file has no data. Truncating a mapped file crashes the process, as
  // with every mapping: write new data to a new file and rename it.
  static ev::Status Open(const std::string& path,
                         std::unique_ptr<MappedFile>* file);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  // Advises the system of random access to single pages; it may ignore this.
  // Without the advice each access reads as much as the disk's read-ahead,
  // megabytes on some machines.
  void WillBeReadAtRandom() const;
  // Advises the system to read this range soon.
  void WillBeReadSoon(int64_t begin, int64_t bytes) const;

  const std::string& path() const { return path_; }
  const void* data() const { return data_; }
  int64_t bytes() const { return bytes_; }
  // The inode and the time of its last change in nanoseconds (ctime), when the
  // file was opened. Both are the same only if the content is the same, unlike
  // the modification time, which programs that copy files set. 0: the file has
  // changed within the last seconds, so that a next change may get the same
  // time.
  uint64_t inode() const { return inode_; }
  int64_t changed_ns() const { return changed_ns_; }

 private:
  MappedFile() = default;

  std::string path_;
  void* data_ = nullptr;
  int64_t bytes_ = 0;
  uint64_t inode_ = 0;
  int64_t changed_ns_ = 0;
};

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_FILES_MAPPED_FILE_H_
