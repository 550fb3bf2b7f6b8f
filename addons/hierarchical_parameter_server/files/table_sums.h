// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Sizes and checksums of a table's files. `convert` writes them to the file
// `hps_sums` of the table directory (checkpoint_format/replaced_together.py
// describes how it replaces the files); folders of other programs have no such
// file.
//
// hps_sums is JSON. Of {"files": {name: {"bytes": N, "crc32_of_mib": hex}}} the
// hex digits are the CRC-32 of each MiB of the file, eight digits each.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_FILES_TABLE_SUMS_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_FILES_TABLE_SUMS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "addons/hierarchical_parameter_server/files/mapped_file.h"
#include "kernels/engine/base/parallel.h"
#include "kernels/engine/base/status.h"

namespace hps {

// Returns the CRC-32 (that of zlib) of the bytes.
uint32_t Crc32(const void* data, int64_t bytes);

// Computes the CRC-32 of each MiB of a file.
ev::Status Crc32OfMibs(const MappedFile& file, ev::Parallel* parallel,
                       std::vector<uint32_t>* crcs);

class TableSums {
 public:
  // Reads the folder's sums; without a file hps_sums, exist() is false.
  // InvalidArgument: the file cannot be read.
  static ev::Status Read(const std::string& folder, TableSums* sums);

  bool exist() const { return !text_.empty(); }
  bool operator==(const TableSums& other) const { return text_ == other.text_; }

  // Opens <folder>/<name>, or <folder>/<name>.part if that is the file with
  // these sums. Compares the size and kSampled MiB, and if both files exist,
  // all bytes. Without sums nothing is compared. NotFound, or InvalidArgument
  // with the file and what differs.
  static constexpr int64_t kSampled = 16;
  ev::Status Open(const std::string& name,
                  std::unique_ptr<MappedFile>* file) const;
  // Compares all bytes of a file that Open returned.
  ev::Status CheckAll(const std::string& name, const MappedFile& file,
                      ev::Parallel* parallel) const;

 private:
  struct File {
    int64_t bytes = 0;
    std::vector<uint32_t> crc32_of_mib;
  };
  ev::Status Parse(const std::string& folder);
  // Compares `count` evenly spaced MiB; the first and the last are among them.
  ev::Status Check(const std::string& name, const MappedFile& file,
                   int64_t count, ev::Parallel* parallel) const;

  std::string folder_, text_;
  std::map<std::string, File> files_;
};

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_FILES_TABLE_SUMS_H_
