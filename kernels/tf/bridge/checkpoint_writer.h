// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Writes a TensorFlow V2 checkpoint, tensors in pieces. checkpoint_reader.h
// describes the format. TensorFlow's own writer takes whole tensors, and its
// header is not part of the installed package.
//
// Files of TensorFlow's file systems are append-only. So tensors that are
// written side by side go to separate data files: a stream is a data file, and
// has one tensor after the other.

#ifndef KERNELS_TF_BRIDGE_CHECKPOINT_WRITER_H_
#define KERNELS_TF_BRIDGE_CHECKPOINT_WRITER_H_

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/framework/types.pb.h"
#include "tensorflow/core/lib/core/status.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/protobuf/tensor_bundle.pb.h"

namespace embedding_variable {

// <prefix>.index is created last, by Finish. Unless Finish succeeded, the
// destructor removes everything that was written.
//
// One thread at a time. After an error, every later call returns the first
// error. It names the file; if the disk is full, it has the file system's text.
class CheckpointWriter {
 public:
  // Each stream must get a tensor, at least an empty one: programs that merge
  // checkpoints ignore data files without a tensor.
  CheckpointWriter(const std::string& prefix, int num_streams);
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  // Creates the data files, and the folder if necessary.
  tensorflow::Status Open();

  // Begins a tensor, whose elements follow by Append in their memory layout.
  // The previous tensor in this stream must be complete. InvalidArgument: the
  // name was used already.
  tensorflow::Status Begin(int stream, const std::string& name,
                           tensorflow::DataType dtype,
                           const tensorflow::TensorShape& shape);
  tensorflow::Status Append(int stream, const void* data, size_t num_bytes);

  // Adds a tensor with the same elements as 'other', which is complete. It
  // takes only an entry of the index.
  tensorflow::Status SameAs(const std::string& name, const std::string& other);

  tensorflow::Status Finish();

  const tensorflow::Status& status() const { return status_; }

 private:
  struct Stream {
    std::string file_name;
    std::unique_ptr<tensorflow::WritableFile> file;
    tensorflow::uint64 offset = 0;  // end of the file
    // The tensor being written, or null.
    tensorflow::BundleEntryProto* current = nullptr;
    tensorflow::uint64 current_end = 0;
    tensorflow::uint32 checksum = 0;
  };

  // Stores the first error.
  tensorflow::Status KeepFirst(const tensorflow::Status& status);
  tensorflow::Status EndTensor(Stream* stream);
  tensorflow::Status WriteIndex();

  const std::string prefix_, index_name_;
  tensorflow::Env* const env_;
  tensorflow::Status status_;
  bool opened_ = false, finished_ = false;
  std::vector<Stream> streams_;
  std::map<std::string, tensorflow::BundleEntryProto> entries_;
};

}  // namespace embedding_variable

#endif  // KERNELS_TF_BRIDGE_CHECKPOINT_WRITER_H_
