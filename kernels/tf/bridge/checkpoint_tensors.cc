// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/tf/bridge/checkpoint_tensors.h"

#include <utility>

#include "kernels/tf/bridge/status.h"
#include "tensorflow/core/framework/types.h"

namespace embedding_variable {
namespace {

using tensorflow::Status;

ev::ElementType ToEngine(tensorflow::DataType dtype) {
  switch (dtype) {
    case tensorflow::DT_FLOAT:
      return ev::ElementType::kFloat;
    case tensorflow::DT_HALF:
      return ev::ElementType::kFloat16;
    case tensorflow::DT_UINT8:
      return ev::ElementType::kUint8;
    case tensorflow::DT_INT32:
      return ev::ElementType::kInt32;
    case tensorflow::DT_INT64:
      return ev::ElementType::kInt64;
    default:
      return ev::ElementType::kOther;
  }
}

tensorflow::DataType ToTf(ev::ElementType type) {
  switch (type) {
    case ev::ElementType::kFloat:
      return tensorflow::DT_FLOAT;
    case ev::ElementType::kFloat16:
      return tensorflow::DT_HALF;
    case ev::ElementType::kUint8:
      return tensorflow::DT_UINT8;
    case ev::ElementType::kInt32:
      return tensorflow::DT_INT32;
    case ev::ElementType::kInt64:
      return tensorflow::DT_INT64;
    case ev::ElementType::kOther:
      break;
  }
  return tensorflow::DT_INVALID;
}

// Stores the first error in *first.
ev::Status KeepFirst(const Status& status, Status* first) {
  if (first->ok()) *first = status;
  return FromTf(status);
}

class StreamedTensor : public ev::StoredTensor {
 public:
  StreamedTensor(std::unique_ptr<TensorStream> stream, Status* first_error)
      : stream_(std::move(stream)), first_error_(first_error) {
    for (int i = 0; i < stream_->shape().dims(); ++i) {
      shape_.push_back(stream_->shape().dim_size(i));
    }
  }

  ev::ElementType type() const override { return ToEngine(stream_->dtype()); }
  const std::vector<int64_t>& shape() const override { return shape_; }
  std::string Description() const override {
    return tensorflow::DataTypeString(stream_->dtype()) + " " +
           stream_->shape().DebugString();
  }
  ev::Status Read(size_t num_bytes, void* data) override {
    return KeepFirst(stream_->Read(num_bytes, data), first_error_);
  }

 private:
  const std::unique_ptr<TensorStream> stream_;
  Status* const first_error_;
  std::vector<int64_t> shape_;
};

}  // namespace

Status CheckpointTensorReader::Open(
    const std::string& prefix,
    std::unique_ptr<CheckpointTensorReader>* reader) {
  std::unique_ptr<CheckpointTensorReader> opened(new CheckpointTensorReader);
  TF_RETURN_IF_ERROR(CheckpointReader::Open(prefix, &opened->reader_));
  *reader = std::move(opened);
  return Status();
}

ev::Status CheckpointTensorReader::Find(const std::string& name, bool* found) {
  return KeepFirst(reader_->Find(name, found), &first_error_);
}

ev::Status CheckpointTensorReader::SameBytes(const std::string& one,
                                             const std::string& other,
                                             bool* same) {
  return KeepFirst(reader_->SameBytes(one, other, same), &first_error_);
}

ev::Status CheckpointTensorReader::Open(
    const std::string& name, std::unique_ptr<ev::StoredTensor>* tensor) {
  std::unique_ptr<TensorStream> stream;
  EV_RETURN_IF_ERROR(KeepFirst(reader_->Open(name, &stream), &first_error_));
  tensor->reset(new StreamedTensor(std::move(stream), &first_error_));
  return ev::Status::OK();
}

Status CheckpointTensorReader::Original(const ev::Status& status) const {
  if (!status.ok() && !first_error_.ok()) return first_error_;
  return embedding_variable::ToTf(status);
}

ev::Status CheckpointTensorWriter::Begin(int stream, const std::string& name,
                                         ev::ElementType type,
                                         const std::vector<int64_t>& shape) {
  tensorflow::TensorShape tf_shape;
  for (const int64_t size : shape) tf_shape.AddDim(size);
  return FromTf(writer_->Begin(stream, name, ToTf(type), tf_shape));
}

ev::Status CheckpointTensorWriter::Append(int stream, const void* data,
                                          size_t num_bytes) {
  return FromTf(writer_->Append(stream, data, num_bytes));
}

ev::Status CheckpointTensorWriter::SameAs(const std::string& name,
                                          const std::string& other) {
  return FromTf(writer_->SameAs(name, other));
}

Status CheckpointTensorWriter::Original(const ev::Status& status) const {
  if (!status.ok() && !writer_->status().ok()) return writer_->status();
  return embedding_variable::ToTf(status);
}

}  // namespace embedding_variable
