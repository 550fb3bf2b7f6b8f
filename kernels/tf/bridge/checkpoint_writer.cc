// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/tf/bridge/checkpoint_writer.h"

#include "kernels/tf/bridge/compat.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/lib/core/errors.h"
#include "tensorflow/core/lib/hash/crc32c.h"
#include "tensorflow/core/lib/io/path.h"
#include "tensorflow/core/lib/io/table_builder.h"
#include "tensorflow/core/lib/io/table_options.h"
#include "tensorflow/core/lib/strings/strcat.h"
#include "tensorflow/core/lib/strings/stringprintf.h"

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

// The version that TensorFlow's writer puts into the header and its readers
// check.
constexpr int kBundleVersion = 1;

Status OfFile(const std::string& file, const Status& status) {
  if (status.ok()) return status;
  return Status(status.code(),
                StrCat(file, " cannot be written: ", MessageOf(status)));
}

}  // namespace

CheckpointWriter::CheckpointWriter(const std::string& prefix, int num_streams)
    : prefix_(prefix),
      index_name_(prefix + ".index"),
      env_(Env::Default()),
      streams_(num_streams) {
  for (int i = 0; i < num_streams; ++i) {
    streams_[i].file_name = tensorflow::strings::Printf(
        "%s.data-%05d-of-%05d", prefix.c_str(), i, num_streams);
  }
}

CheckpointWriter::~CheckpointWriter() {
  if (!opened_ || finished_) return;
  env_->DeleteFile(index_name_).IgnoreError();
  for (Stream& stream : streams_) {
    stream.file.reset();
    env_->DeleteFile(stream.file_name).IgnoreError();
  }
}

Status CheckpointWriter::KeepFirst(const Status& status) {
  if (status_.ok()) status_ = status;
  return status_;
}

Status CheckpointWriter::Open() {
  const std::string folder(tensorflow::io::Dirname(prefix_));
  if (!folder.empty()) {
    const Status made = env_->RecursivelyCreateDir(folder);
    if (!made.ok() && CodeOf(made) != tensorflow::error::ALREADY_EXISTS) {
      return KeepFirst(OfFile(streams_[0].file_name, made));
    }
  }
  for (Stream& stream : streams_) {
    const Status status = env_->NewWritableFile(stream.file_name, &stream.file);
    opened_ |= status.ok();
    TF_RETURN_IF_ERROR(KeepFirst(OfFile(stream.file_name, status)));
  }
  return Status();
}

Status CheckpointWriter::EndTensor(Stream* stream) {
  if (stream->current == nullptr) return Status();
  if (stream->offset != stream->current_end) {
    return tensorflow::errors::Internal(
        "a tensor of ", stream->file_name, " lacks ",
        stream->current_end - stream->offset, " bytes of its ",
        stream->current->size());
  }
  stream->current->set_crc32c(tensorflow::crc32c::Mask(stream->checksum));
  stream->current = nullptr;
  return Status();
}

Status CheckpointWriter::Begin(int number, const std::string& name,
                               tensorflow::DataType dtype,
                               const tensorflow::TensorShape& shape) {
  if (!status_.ok()) return status_;
  Stream* const stream = &streams_[number];
  TF_RETURN_IF_ERROR(KeepFirst(EndTensor(stream)));
  const auto added = entries_.emplace(name, BundleEntryProto());
  if (!added.second) {
    return KeepFirst(InvalidArgument("two tensors of the name ", name));
  }
  stream->current = &added.first->second;
  stream->current->set_dtype(dtype);
  shape.AsProto(stream->current->mutable_shape());
  stream->current->set_shard_id(number);
  stream->current->set_offset(stream->offset);
  stream->current->set_size(shape.num_elements() *
                            tensorflow::DataTypeSize(dtype));
  stream->current_end = stream->offset + stream->current->size();
  stream->checksum = 0;
  return Status();
}

Status CheckpointWriter::Append(int number, const void* data,
                                size_t num_bytes) {
  if (!status_.ok()) return status_;
  Stream* const stream = &streams_[number];
  if (stream->current == nullptr ||
      num_bytes > stream->current_end - stream->offset) {
    return KeepFirst(tensorflow::errors::Internal(
        "more bytes than the tensor has were appended to ", stream->file_name));
  }
  const StringPiece bytes(static_cast<const char*>(data), num_bytes);
  TF_RETURN_IF_ERROR(
      KeepFirst(OfFile(stream->file_name, stream->file->Append(bytes))));
  stream->checksum =
      tensorflow::crc32c::Extend(stream->checksum, bytes.data(), bytes.size());
  stream->offset += num_bytes;
  return Status();
}

Status CheckpointWriter::SameAs(const std::string& name,
                                const std::string& other) {
  if (!status_.ok()) return status_;
  const auto found = entries_.find(other);
  if (found == entries_.end()) {
    return KeepFirst(InvalidArgument(name, " cannot be the same as ", other,
                                     ", which does not exist"));
  }
  Stream* const stream = &streams_[found->second.shard_id()];
  if (stream->current == &found->second) {
    TF_RETURN_IF_ERROR(KeepFirst(EndTensor(stream)));
  }
  if (!entries_.emplace(name, found->second).second) {
    return KeepFirst(InvalidArgument("two tensors of the name ", name));
  }
  return Status();
}

Status CheckpointWriter::WriteIndex() {
  std::unique_ptr<WritableFile> file;
  TF_RETURN_IF_ERROR(env_->NewWritableFile(index_name_, &file));
  tensorflow::table::Options options;
  options.compression = tensorflow::table::kNoCompression;
  tensorflow::table::TableBuilder builder(options, file.get());
  BundleHeaderProto header;
  header.set_num_shards(static_cast<int>(streams_.size()));
  header.set_endianness(BundleHeaderProto::LITTLE);
  header.mutable_version()->set_producer(kBundleVersion);
  // The header has the empty name, which sorts before all others.
  builder.Add("", header.SerializeAsString());
  for (const auto& entry : entries_) {
    builder.Add(entry.first, entry.second.SerializeAsString());
  }
  TF_RETURN_IF_ERROR(builder.Finish());
  return file->Close();
}

Status CheckpointWriter::Finish() {
  if (!status_.ok()) return status_;
  for (Stream& stream : streams_) {
    TF_RETURN_IF_ERROR(KeepFirst(EndTensor(&stream)));
  }
  for (Stream& stream : streams_) {
    const Status closed = stream.file->Close();
    stream.file.reset();
    TF_RETURN_IF_ERROR(KeepFirst(OfFile(stream.file_name, closed)));
  }
  TF_RETURN_IF_ERROR(KeepFirst(OfFile(index_name_, WriteIndex())));
  finished_ = true;
  return Status();
}

}  // namespace embedding_variable
