// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// A table stored as two files in one folder:
//   key          int64, little-endian, no header
//   emb_vector   float32, rows x dim, in the order of the keys, no header
// Packed rows (rows/row_format.h) are in emb_vector_float16 or emb_vector_uint8
// instead of emb_vector. The file sizes must match each other and the format.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_FILES_TABLE_DIRECTORY_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_FILES_TABLE_DIRECTORY_H_

#include <cstdint>
#include <memory>
#include <string>

#include "addons/hierarchical_parameter_server/files/mapped_file.h"
#include "addons/hierarchical_parameter_server/files/table_sums.h"
#include "addons/hierarchical_parameter_server/rows/row_format.h"
#include "kernels/engine/base/parallel.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"

namespace hps {

// Width of a key. With 32 bits, the keys -1 and 2^32 - 1 are the same: both are
// the int32 id -1.
enum class KeyBits { k32, k64 };

// Converts a key in a file to the key used in lookups. Returns false if it does
// not fit into 32 bits.
inline bool NormalKey(KeyBits bits, int64_t in_file, int64_t* key) {
  *key = in_file;
  if (bits == KeyBits::k64) return true;
  *key = static_cast<int32_t>(static_cast<uint32_t>(in_file));
  return in_file >= INT32_MIN && in_file <= int64_t{UINT32_MAX};
}

class TableDirectory {
 public:
  // Opens a table; a program may replace its files meanwhile. If the folder has
  // no rows of a packed format, its float32 rows are opened: see format().
  // NotFound: a file is missing. InvalidArgument: a file is empty or not a
  // whole number of elements, the sizes disagree, or the files do not have the
  // folder's sums (table_sums.h); the message has the file, what was expected
  // and what was found.
  static ev::Status Open(const std::string& folder, const RowFormat& format,
                         std::unique_ptr<TableDirectory>* directory);

  // Compares all bytes with the folder's sums, of which Open compares a sample.
  // Does nothing if there are none.
  ev::Status CheckContent(ev::Parallel* parallel) const;
  // *id: a text that other content has not, made of checksums of all bytes.
  ev::Status ContentId(ev::Parallel* parallel, std::string* id) const;

  const std::string& folder() const { return folder_; }
  // The format of the rows in the file.
  const RowFormat& format() const { return format_; }
  int64_t rows() const {
    return keys_->bytes() / static_cast<int64_t>(sizeof(int64_t));
  }
  ev::Span<const int64_t> keys() const {
    return {static_cast<const int64_t*>(keys_->data()),
            static_cast<size_t>(rows())};
  }
  // Stored row i.
  const float* row(int64_t i) const {
    return static_cast<const float*>(vectors_->data()) + i * format_.width();
  }
  const MappedFile& key_file() const { return *keys_; }
  const MappedFile& vector_file() const { return *vectors_; }

 private:
  TableDirectory() = default;

  ev::Status OpenFiles();
  ev::Status OpenVectors();
  ev::Status CheckSizes() const;

  std::string folder_;
  TableSums sums_;
  RowFormat format_;
  std::unique_ptr<MappedFile> keys_, vectors_;
};

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_FILES_TABLE_DIRECTORY_H_
