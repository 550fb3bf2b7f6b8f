// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/tf/bridge/checkpoint_writer.h"

#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/lib/core/errors.h"
#include "tensorflow/core/lib/hash/crc32c.h"
#include "tensorflow/core/lib/io/path.h"
#include "tensorflow/core/lib/io/table_builder.h"
#include "tensorflow/core/lib/io/table_options.h"
#include "tensorflow/core/lib/strings/strcat.h"

namespace embedding_variable {

using tensorflow::BundleEntryProto;
using tensorflow::BundleHeaderProto;
using tensorflow::Env;
using tensorflow::Status;
using tensorflow::StringPiece;
using tensorflow::WritableFile;
using tensorflow::errors::InvalidArgument;
using tensorflow::strings::StrCat;

namespace {

// What TensorFlow's writer puts into the header, and its readers ask for.
constexpr int kBundleVersion = 1;

Status OfFile(const std::string& file, const Status& status) {
  if (status.ok()) return status;
  return Status(status.code(),
                StrCat(file, " cannot be written: ", status.error_message()));
}

}  // namespace

CheckpointWriter::CheckpointWriter(const std::string& prefix)
    : prefix_(prefix),
      data_name_(prefix + ".data-00000-of-00001"),
      index_name_(prefix + ".index"),
      env_(Env::Default()) {}

CheckpointWriter::~CheckpointWriter() {
  if (!opened_ || finished_) return;
  data_.reset();
  env_->DeleteFile(index_name_).IgnoreError();
  env_->DeleteFile(data_name_).IgnoreError();
}

Status CheckpointWriter::Note(const Status& status) {
  if (status_.ok()) status_ = status;
  return status_;
}

Status CheckpointWriter::Open() {
  const std::string folder(tensorflow::io::Dirname(prefix_));
  if (!folder.empty()) {
    const Status made = env_->RecursivelyCreateDir(folder);
    if (!made.ok() && made.code() != tensorflow::error::ALREADY_EXISTS) {
      return Note(OfFile(data_name_, made));
    }
  }
  const Status status = env_->NewWritableFile(data_name_, &data_);
  opened_ = status.ok();
  return Note(OfFile(data_name_, status));
}

Status CheckpointWriter::EndTensor() {
  if (current_ == nullptr) return Status::OK();
  if (offset_ != current_end_) {
    return tensorflow::errors::Internal("a tensor of ", data_name_, " lacks ",
                                        current_end_ - offset_,
                                        " bytes of its ", current_->size());
  }
  current_->set_crc32c(tensorflow::crc32c::Mask(checksum_));
  current_ = nullptr;
  return Status::OK();
}

Status CheckpointWriter::Begin(const std::string& name,
                               tensorflow::DataType dtype,
                               const tensorflow::TensorShape& shape) {
  if (!status_.ok()) return status_;
  TF_RETURN_IF_ERROR(Note(EndTensor()));
  const auto added = entries_.emplace(name, BundleEntryProto());
  if (!added.second) {
    return Note(InvalidArgument("two tensors of the name ", name));
  }
  current_ = &added.first->second;
  current_->set_dtype(dtype);
  shape.AsProto(current_->mutable_shape());
  current_->set_shard_id(0);
  current_->set_offset(offset_);
  current_->set_size(shape.num_elements() * tensorflow::DataTypeSize(dtype));
  current_end_ = offset_ + current_->size();
  checksum_ = 0;
  return Status::OK();
}

Status CheckpointWriter::Append(const void* data, size_t num_bytes) {
  if (!status_.ok()) return status_;
  if (current_ == nullptr || num_bytes > current_end_ - offset_) {
    return Note(tensorflow::errors::Internal(
        "more bytes than the tensor has for ", data_name_));
  }
  const StringPiece bytes(static_cast<const char*>(data), num_bytes);
  TF_RETURN_IF_ERROR(Note(OfFile(data_name_, data_->Append(bytes))));
  checksum_ = tensorflow::crc32c::Extend(checksum_, bytes.data(), bytes.size());
  offset_ += num_bytes;
  return Status::OK();
}

Status CheckpointWriter::SameAs(const std::string& name,
                                const std::string& other) {
  if (!status_.ok()) return status_;
  TF_RETURN_IF_ERROR(Note(EndTensor()));
  const auto found = entries_.find(other);
  if (found == entries_.end()) {
    return Note(InvalidArgument(name, " cannot be the same as ", other,
                                ", which is not there"));
  }
  if (!entries_.emplace(name, found->second).second) {
    return Note(InvalidArgument("two tensors of the name ", name));
  }
  return Status::OK();
}

Status CheckpointWriter::WriteIndex() {
  std::unique_ptr<WritableFile> file;
  TF_RETURN_IF_ERROR(env_->NewWritableFile(index_name_, &file));
  tensorflow::table::Options options;
  options.compression = tensorflow::table::kNoCompression;
  tensorflow::table::TableBuilder builder(options, file.get());
  BundleHeaderProto header;
  header.set_num_shards(1);
  header.set_endianness(BundleHeaderProto::LITTLE);
  header.mutable_version()->set_producer(kBundleVersion);
  // Under the empty name, before all others.
  builder.Add("", header.SerializeAsString());
  for (const auto& entry : entries_) {
    builder.Add(entry.first, entry.second.SerializeAsString());
  }
  TF_RETURN_IF_ERROR(builder.Finish());
  return file->Close();
}

Status CheckpointWriter::Finish() {
  if (!status_.ok()) return status_;
  TF_RETURN_IF_ERROR(Note(EndTensor()));
  const Status closed = data_->Close();
  data_.reset();
  TF_RETURN_IF_ERROR(Note(OfFile(data_name_, closed)));
  TF_RETURN_IF_ERROR(Note(OfFile(index_name_, WriteIndex())));
  finished_ = true;
  return Status::OK();
}

}  // namespace embedding_variable
