// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// A file that is read at given positions.
//
// Not mapped: if a mapped file is truncated, accessing it kills the process; a
// read returns an error.

#ifndef ADDONS_HUGECTR_READER_FILE_H_
#define ADDONS_HUGECTR_READER_FILE_H_

#include <cstdint>
#include <string>

#include "kernels/engine/base/status.h"

namespace hugectr {

class File {
 public:
  File() = default;
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File();

  // Opens a file, and closes the previous one.
  ev::Status Open(const std::string& path);

  // Reads up to `bytes` at `place`; *got is less at the end of the file.
  ev::Status Read(int64_t place, int64_t bytes, void* to, int64_t* got) const;

  const std::string& path() const { return path_; }
  // Size when the file was opened.
  int64_t size() const { return size_; }

 private:
  void Close();

  std::string path_;
  int descriptor_ = -1;
  int64_t size_ = 0;
};

}  // namespace hugectr

#endif  // ADDONS_HUGECTR_READER_FILE_H_
