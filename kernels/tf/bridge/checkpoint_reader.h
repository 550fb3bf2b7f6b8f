// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Reads tensors of a TensorFlow V2 checkpoint in pieces.
//
// TensorFlow's own reader returns whole tensors, and its header is not part of
// the installed package. The format is small. <prefix>.index is a sorted table
// from a tensor's name to a BundleEntryProto (type, shape, file, offset, size,
// checksum); the empty name has a BundleHeaderProto.
// <prefix>.data-00000-of-00001 and so on hold the elements in their memory
// layout.

#ifndef KERNELS_TF_BRIDGE_CHECKPOINT_READER_H_
#define KERNELS_TF_BRIDGE_CHECKPOINT_READER_H_

#include <memory>
#include <string>

#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/lib/core/status.h"
#include "tensorflow/core/lib/io/table.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/protobuf/tensor_bundle.pb.h"

namespace embedding_variable {

// One tensor, read from its first element to its last. The checksum is compared
// after the last element.
class TensorStream {
 public:
  TensorStream(const std::string& name,
               const tensorflow::BundleEntryProto& entry,
               const std::string& file_name,
               std::unique_ptr<tensorflow::RandomAccessFile> file);

  tensorflow::DataType dtype() const { return entry_.dtype(); }
  const tensorflow::TensorShape& shape() const { return shape_; }

  // Reads the next num_bytes. DataLoss, naming the file: it ends early, or the
  // checksum differs.
  tensorflow::Status Read(size_t num_bytes, void* data);

 private:
  const std::string name_;
  const std::string file_name_;
  const tensorflow::BundleEntryProto entry_;
  const tensorflow::TensorShape shape_;
  const std::unique_ptr<tensorflow::RandomAccessFile> file_;
  tensorflow::uint64 bytes_read_ = 0;
  tensorflow::uint32 checksum_ = 0;
};

class CheckpointReader {
 public:
  // NotFound: no such checkpoint. DataLoss: it cannot be parsed. Errors of all
  // functions name the file.
  static tensorflow::Status Open(const std::string& prefix,
                                 std::unique_ptr<CheckpointReader>* reader);

  const std::string& prefix() const { return prefix_; }

  // Sets *found: whether a tensor of that name exists.
  tensorflow::Status Find(const std::string& name, bool* found) const;

  // Sets *same: whether the two names refer to the same bytes of the same file;
  // false if one does not exist.
  tensorflow::Status SameBytes(const std::string& one, const std::string& other,
                               bool* same) const;

  // NotFound: no such tensor. Unimplemented: the tensor is stored in slices, or
  // its elements vary in size.
  tensorflow::Status Open(const std::string& name,
                          std::unique_ptr<TensorStream>* stream) const;

 private:
  CheckpointReader() = default;

  std::string index_name() const { return prefix_ + ".index"; }
  tensorflow::Status Entry(const std::string& name, bool* found,
                           tensorflow::BundleEntryProto* entry) const;
  // Returns the value stored under a key of the index.
  tensorflow::Status Lookup(const std::string& key, bool* found,
                            std::string* value) const;

  std::string prefix_;
  tensorflow::BundleHeaderProto header_;
  std::unique_ptr<tensorflow::RandomAccessFile> file_;
  std::unique_ptr<tensorflow::table::Table> index_;
};

}  // namespace embedding_variable

#endif  // KERNELS_TF_BRIDGE_CHECKPOINT_READER_H_
