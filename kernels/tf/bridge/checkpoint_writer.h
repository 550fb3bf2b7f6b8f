// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Writes a TensorFlow V2 checkpoint, tensors in pieces. The format is described
// in checkpoint_reader.h; TensorFlow's own writer takes whole tensors, and its
// header is not part of the installed package.
//
// Files of TensorFlow's file systems can only be appended to. So tensors that
// are written side by side go to data files of their own: a stream is a data
// file, and has one tensor after the other.

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

// <prefix>.index appears when all is there. Until Finish was successful the
// destructor removes what was written.
//
// One thread at a time. The first error is the answer to every later call. It
// names the file; that of a full disk is the file system's.
class CheckpointWriter {
 public:
  // Each stream must get a tensor, an empty one at least: programs that merge
  // checkpoints leave data files alone that no tensor is in.
  CheckpointWriter(const std::string& prefix, int num_streams);
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  // Creates the folder, if there is none, and the data files.
  tensorflow::Status Open();

  // Begins a tensor; the one before in this stream must be complete.
  // InvalidArgument: a name twice. The elements follow, as they lie in memory.
  tensorflow::Status Begin(int stream, const std::string& name,
                           tensorflow::DataType dtype,
                           const tensorflow::TensorShape& shape);
  tensorflow::Status Append(int stream, const void* data, size_t num_bytes);

  // A tensor that has the same elements as one that is complete; it costs an
  // entry of the index.
  tensorflow::Status SameAs(const std::string& name, const std::string& other);

  tensorflow::Status Finish();

  const tensorflow::Status& status() const { return status_; }

 private:
  struct Stream {
    std::string file_name;
    std::unique_ptr<tensorflow::WritableFile> file;
    tensorflow::uint64 offset = 0;  // of the file's end
    // The tensor that is being written, or null.
    tensorflow::BundleEntryProto* current = nullptr;
    tensorflow::uint64 current_end = 0;
    tensorflow::uint32 checksum = 0;
  };

  // Remembers the first error.
  tensorflow::Status Note(const tensorflow::Status& status);
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
