// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/hierarchical_parameter_server/files/table_directory.h"

#include <utility>

namespace hps {

ev::Status TableDirectory::Open(const std::string& folder, int width,
                                std::unique_ptr<TableDirectory>* directory) {
  std::unique_ptr<TableDirectory> made(new TableDirectory);
  made->folder_ = folder;
  made->width_ = width;
  EV_RETURN_IF_ERROR(MappedFile::Open(folder + "/key", &made->keys_));
  EV_RETURN_IF_ERROR(MappedFile::Open(folder + "/emb_vector", &made->vectors_));
  const int64_t key_bytes = made->keys_->bytes();
  const int64_t row_bytes =
      int64_t{width} * static_cast<int64_t>(sizeof(float));
  if (key_bytes == 0 ||
      key_bytes % static_cast<int64_t>(sizeof(int64_t)) != 0) {
    return ev::InvalidArgument(
        "'" + made->keys_->path() +
        "': want int64 keys, one at least, so a multiple "
        "of 8 bytes; got " +
        std::to_string(key_bytes) + " bytes");
  }
  made->rows_ = key_bytes / static_cast<int64_t>(sizeof(int64_t));
  const int64_t bytes = made->vectors_->bytes();
  if (bytes != made->rows_ * row_bytes) {
    return ev::InvalidArgument(
        "'" + made->vectors_->path() + "': the " + std::to_string(made->rows_) +
        " keys of '" + made->keys_->path() + "' with " + std::to_string(width) +
        " floats each need " + std::to_string(made->rows_ * row_bytes) +
        " bytes, got " + std::to_string(bytes) +
        (bytes % row_bytes == 0
             ? ", which is " + std::to_string(bytes / row_bytes) + " rows"
             : ""));
  }
  *directory = std::move(made);
  return ev::Status::OK();
}

}  // namespace hps
