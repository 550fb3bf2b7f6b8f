// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/tf/bridge/checkpoint_reader.h"

#include <cstring>
#include <utility>

#include "kernels/tf/bridge/compat.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/lib/core/errors.h"
#include "tensorflow/core/lib/hash/crc32c.h"
#include "tensorflow/core/lib/io/iterator.h"
#include "tensorflow/core/lib/io/table_options.h"
#include "tensorflow/core/lib/strings/strcat.h"
#include "tensorflow/core/lib/strings/stringprintf.h"

namespace embedding_variable {

using tensorflow::BundleEntryProto;
using tensorflow::Env;
using tensorflow::RandomAccessFile;
using tensorflow::Status;
using tensorflow::StringPiece;
using tensorflow::errors::DataLoss;

namespace {

// Adds the file's name, which errors of TensorFlow's readers lack.
Status OfFile(const std::string& file, const Status& status) {
  if (status.ok() || MessageOf(status).find(file) != std::string::npos) {
    return status;
  }
  return Status(status.code(),
                tensorflow::strings::StrCat(file, ": ", MessageOf(status)));
}

// Checks that the tensor needs no more bytes than the file has, because its
// reader allocates memory for the shape before reading.
Status CheckSize(const std::string& name, const BundleEntryProto& entry,
                 const std::string& file_name) {
  const tensorflow::TensorShape shape(entry.shape());
  const tensorflow::int64 each = tensorflow::DataTypeSize(entry.dtype());
  if (entry.size() % each != 0 || entry.size() / each != shape.num_elements()) {
    return DataLoss("tensor ", name, " of ", file_name, " has ", entry.size(),
                    " bytes, which do not match its shape ",
                    shape.DebugString());
  }
  tensorflow::uint64 file_size;
  TF_RETURN_IF_ERROR(
      OfFile(file_name, Env::Default()->GetFileSize(file_name, &file_size)));
  const tensorflow::uint64 size = entry.size(), offset = entry.offset();
  if (size > file_size || offset > file_size - size) {
    return DataLoss(file_name, " ends before tensor ", name, " does");
  }
  return Status();
}

}  // namespace

TensorStream::TensorStream(const std::string& name,
                           const BundleEntryProto& entry,
                           const std::string& file_name,
                           std::unique_ptr<RandomAccessFile> file)
    : name_(name),
      file_name_(file_name),
      entry_(entry),
      shape_(entry.shape()),
      file_(std::move(file)) {}

Status TensorStream::Read(size_t num_bytes, void* data) {
  if (bytes_read_ + num_bytes > entry_.size()) {
    return DataLoss("tensor ", name_, " of ", file_name_, " has ",
                    entry_.size(), " bytes, fewer than its shape ",
                    shape_.DebugString(), " needs");
  }
  if (num_bytes > 0) {
    StringPiece result;
    char* const scratch = static_cast<char*>(data);
    const Status read =
        file_->Read(entry_.offset() + bytes_read_, num_bytes, &result, scratch);
    // OutOfRange is a file system's error for a file that ends early.
    if (tensorflow::errors::IsOutOfRange(read) ||
        (read.ok() && result.size() != num_bytes)) {
      return DataLoss(file_name_, " ends before tensor ", name_, " does");
    }
    TF_RETURN_IF_ERROR(OfFile(file_name_, read));
    // A file system that maps files returns a pointer to its own memory.
    if (result.data() != scratch) {
      std::memmove(scratch, result.data(), num_bytes);
    }
    checksum_ = tensorflow::crc32c::Extend(checksum_, scratch, num_bytes);
    bytes_read_ += num_bytes;
  }
  if (bytes_read_ == entry_.size() &&
      checksum_ != tensorflow::crc32c::Unmask(entry_.crc32c())) {
    return DataLoss("the checksum of tensor ", name_, " differs: ", file_name_,
                    " is damaged");
  }
  return Status();
}

Status CheckpointReader::Open(const std::string& prefix,
                              std::unique_ptr<CheckpointReader>* reader) {
  std::unique_ptr<CheckpointReader> result(new CheckpointReader);
  result->prefix_ = prefix;
  const std::string index = result->index_name();
  Env* const env = Env::Default();
  tensorflow::uint64 size;
  TF_RETURN_IF_ERROR(OfFile(index, env->GetFileSize(index, &size)));
  TF_RETURN_IF_ERROR(
      OfFile(index, env->NewRandomAccessFile(index, &result->file_)));
  tensorflow::table::Table* table = nullptr;
  TF_RETURN_IF_ERROR(OfFile(index, tensorflow::table::Table::Open(
                                       tensorflow::table::Options(),
                                       result->file_.get(), size, &table)));
  result->index_.reset(table);
  bool found;
  std::string header;
  TF_RETURN_IF_ERROR(result->Lookup("", &found, &header));
  if (!found || !result->header_.ParseFromString(header)) {
    return DataLoss(index, " has no header");
  }
  if (result->header_.endianness() != tensorflow::BundleHeaderProto::LITTLE) {
    return tensorflow::errors::Unimplemented(
        index, " was written by a machine of another byte order");
  }
  *reader = std::move(result);
  return Status();
}

Status CheckpointReader::Lookup(const std::string& key, bool* found,
                                std::string* value) const {
  std::unique_ptr<tensorflow::table::Iterator> it(index_->NewIterator());
  it->Seek(key);
  TF_RETURN_IF_ERROR(OfFile(index_name(), it->status()));
  *found = it->Valid() && it->key() == key;
  if (*found) *value = std::string(it->value());
  return Status();
}

Status CheckpointReader::Entry(const std::string& name, bool* found,
                               BundleEntryProto* entry) const {
  std::string value;
  TF_RETURN_IF_ERROR(Lookup(name, found, &value));
  if (!*found) return Status();
  if (!entry->ParseFromString(value) ||
      !tensorflow::TensorShape::IsValid(entry->shape())) {
    return DataLoss(index_name(), ": the entry of tensor ", name,
                    " cannot be read");
  }
  return Status();
}

Status CheckpointReader::SameBytes(const std::string& one,
                                   const std::string& other, bool* same) const {
  BundleEntryProto a, b;
  bool has_a, has_b;
  TF_RETURN_IF_ERROR(Entry(one, &has_a, &a));
  TF_RETURN_IF_ERROR(Entry(other, &has_b, &b));
  *same = has_a && has_b && a.SerializeAsString() == b.SerializeAsString();
  return Status();
}

Status CheckpointReader::Find(const std::string& name, bool* found) const {
  std::string value;
  return Lookup(name, found, &value);
}

Status CheckpointReader::Open(const std::string& name,
                              std::unique_ptr<TensorStream>* stream) const {
  bool found;
  BundleEntryProto entry;
  TF_RETURN_IF_ERROR(Entry(name, &found, &entry));
  if (!found) {
    return tensorflow::errors::NotFound("checkpoint ", prefix_,
                                        " has no tensor ", name);
  }
  if (entry.slices_size() > 0 || tensorflow::DataTypeSize(entry.dtype()) == 0) {
    return tensorflow::errors::Unimplemented(
        "checkpoint ", prefix_, ": tensor ", name, " is ",
        entry.slices_size() > 0 ? "saved in slices" : "of type ",
        entry.slices_size() > 0 ? ""
                                : tensorflow::DataTypeString(entry.dtype()),
        ", which no tensor of a table is");
  }
  std::unique_ptr<RandomAccessFile> file;
  const std::string file_name =
      tensorflow::strings::Printf("%s.data-%05d-of-%05d", prefix_.c_str(),
                                  entry.shard_id(), header_.num_shards());
  TF_RETURN_IF_ERROR(CheckSize(name, entry, file_name));
  TF_RETURN_IF_ERROR(
      OfFile(file_name, Env::Default()->NewRandomAccessFile(file_name, &file)));
  stream->reset(new TensorStream(name, entry, file_name, std::move(file)));
  return Status();
}

}  // namespace embedding_variable
