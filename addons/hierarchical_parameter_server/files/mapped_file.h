// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// A file as memory. Processes that map the same file share its pages, and a
// page is read when it is first touched.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_FILES_MAPPED_FILE_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_FILES_MAPPED_FILE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "kernels/engine/base/status.h"

namespace hps {

class MappedFile {
 public:
  // For reading. NotFound, or another error that names the file. An empty file
  // has no data. A file that is cut while it is mapped ends the process, as
  // with every mapping: new data belongs into a new file that takes the name.
  static ev::Status Open(const std::string& path,
                         std::unique_ptr<MappedFile>* file);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  // Advice to the system, which may ignore it. Single pages will be read, here
  // and there: without the advice a touch reads as much as the disk's
  // read-ahead says, megabytes on some machines.
  void WillBeReadAtRandom() const;
  // That part will be read soon.
  void WillBeReadSoon(int64_t begin, int64_t bytes) const;

  const std::string& path() const { return path_; }
  const void* data() const { return data_; }
  int64_t bytes() const { return bytes_; }
  // When it was changed last, in nanoseconds.
  int64_t changed_ns() const { return changed_ns_; }

 private:
  MappedFile() = default;

  std::string path_;
  void* data_ = nullptr;
  int64_t bytes_ = 0;
  int64_t changed_ns_ = 0;
};

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_FILES_MAPPED_FILE_H_
