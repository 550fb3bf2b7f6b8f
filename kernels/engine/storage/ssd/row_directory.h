// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The directory in which one table of one process keeps its files. The files
// are memory that happens to lie on an SSD, not a durable copy (a checkpoint is
// that): they are deleted when the table goes, and what a process that died has
// left is deleted by the next one that takes the directory.

#ifndef KERNELS_ENGINE_STORAGE_SSD_ROW_DIRECTORY_H_
#define KERNELS_ENGINE_STORAGE_SSD_ROW_DIRECTORY_H_

#include <cstdint>
#include <memory>
#include <string>

#include "kernels/engine/base/status.h"

namespace ev {

// Thread-safe.
class RowDirectory {
 public:
  // Takes the directory, which is made when it is not there, for the table
  // named 'owner'. Tables of one name in one process (of several sessions)
  // share it. FailedPrecondition: it cannot be made or written, it is no
  // directory, or another table or process has it: then both are named.
  static Status Open(const std::string& path, const std::string& owner,
                     std::shared_ptr<RowDirectory>* directory);
  ~RowDirectory();
  RowDirectory(const RowDirectory&) = delete;
  RowDirectory& operator=(const RowDirectory&) = delete;

  const std::string& path() const { return path_; }
  // A name that no other file of this process has.
  std::string NewFile() const;
  // Files of a process that died, which Open deleted.
  int64_t stale_files() const { return stale_files_; }

 private:
  RowDirectory(std::string path, std::string owner, int lock)
      : path_(std::move(path)), owner_(std::move(owner)), lock_(lock) {}
  Status DeleteStaleFiles();

  const std::string path_;  // canonical
  const std::string owner_;
  const int lock_;  // of the file LOCK, for as long as this lives
  int64_t stale_files_ = 0;
};

}  // namespace ev

#endif  // KERNELS_ENGINE_STORAGE_SSD_ROW_DIRECTORY_H_
