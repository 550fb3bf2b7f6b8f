// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// TensorFlow's V2 checkpoints as implementations of the engine's interfaces
// (named_tensors.h).
//
// The engine's status has fewer codes than TensorFlow's. So reader and writer
// store the first error in its TensorFlow form. A caller that gets an error
// from the engine returns Original() of it.

#ifndef KERNELS_TF_BRIDGE_CHECKPOINT_TENSORS_H_
#define KERNELS_TF_BRIDGE_CHECKPOINT_TENSORS_H_

#include <memory>
#include <string>
#include <vector>

#include "kernels/engine/base/named_tensors.h"
#include "kernels/tf/bridge/checkpoint_reader.h"
#include "kernels/tf/bridge/checkpoint_writer.h"
#include "tensorflow/core/lib/core/status.h"

namespace embedding_variable {

// The tensors of an existing checkpoint.
class CheckpointTensorReader : public ev::TensorReader {
 public:
  // Errors: those of CheckpointReader::Open.
  static tensorflow::Status Open(
      const std::string& prefix,
      std::unique_ptr<CheckpointTensorReader>* reader);

  const std::string& prefix() const override { return reader_->prefix(); }
  ev::Status Find(const std::string& name, bool* found) override;
  ev::Status SameBytes(const std::string& one, const std::string& other,
                       bool* same) override;
  // The tensor must not outlive this object.
  ev::Status Open(const std::string& name,
                  std::unique_ptr<ev::StoredTensor>* tensor) override;

  // 'status': as returned by the engine.
  tensorflow::Status Original(const ev::Status& status) const;

 private:
  CheckpointTensorReader() = default;

  std::unique_ptr<CheckpointReader> reader_;
  tensorflow::Status first_error_;
};

// Writes to a checkpoint that the caller opens and finishes.
class CheckpointTensorWriter : public ev::TensorWriter {
 public:
  // 'writer' must outlive this object.
  explicit CheckpointTensorWriter(CheckpointWriter* writer) : writer_(writer) {}

  ev::Status Begin(int stream, const std::string& name, ev::ElementType type,
                   const std::vector<int64_t>& shape) override;
  ev::Status Append(int stream, const void* data, size_t num_bytes) override;
  ev::Status SameAs(const std::string& name, const std::string& other) override;

  // 'status': as returned by the engine.
  tensorflow::Status Original(const ev::Status& status) const;

 private:
  CheckpointWriter* const writer_;
};

}  // namespace embedding_variable

#endif  // KERNELS_TF_BRIDGE_CHECKPOINT_TENSORS_H_
