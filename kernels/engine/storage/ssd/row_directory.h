// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The directory in which one table of one process keeps its files. The files
// extend memory to an SSD; they are not a durable copy (a checkpoint is). They
// are deleted with the table. Files of a process that died are deleted by the
// next process that uses the directory.

#ifndef KERNELS_ENGINE_STORAGE_SSD_ROW_DIRECTORY_H_
#define KERNELS_ENGINE_STORAGE_SSD_ROW_DIRECTORY_H_

#include <cstdint>
#include <memory>
#include <string>

#include "kernels/engine/base/locked_file.h"
#include "kernels/engine/base/status.h"

namespace ev {

// Thread-safe.
class RowDirectory {
 public:
  // Locks the directory, creating it if necessary, for the table named 'owner'.
  // Tables of the same name in one process (in several sessions) share it.
  // FailedPrecondition: it cannot be created or written, it is not a directory,
  // or another table or process uses it; the message then names both.
  static Status Open(const std::string& path, const std::string& owner,
                     std::shared_ptr<RowDirectory>* directory);
  RowDirectory(const RowDirectory&) = delete;
  RowDirectory& operator=(const RowDirectory&) = delete;

  const std::string& path() const { return path_; }
  // Returns a file name that no other file of this process has.
  std::string NewFile() const;
  // Number of files of a dead process that Open deleted.
  int64_t stale_files() const { return stale_files_; }

 private:
  RowDirectory(std::string path, std::string owner, LockedFile lock)
      : path_(std::move(path)),
        owner_(std::move(owner)),
        lock_(std::move(lock)) {}
  Status DeleteStaleFiles();

  const std::string path_;  // canonical
  const std::string owner_;
  const LockedFile lock_;  // the file LOCK
  int64_t stale_files_ = 0;
};

}  // namespace ev

#endif  // KERNELS_ENGINE_STORAGE_SSD_ROW_DIRECTORY_H_
