// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// A checkpoint in memory, for tests of engine/checkpoint without a framework.

#ifndef KERNELS_ENGINE_TESTING_MEMORY_CHECKPOINT_H_
#define KERNELS_ENGINE_TESTING_MEMORY_CHECKPOINT_H_

#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernels/engine/base/named_tensors.h"

namespace ev {
namespace testing {

// Its name in messages is "memory".
class MemoryCheckpoint : public TensorReader, public TensorWriter {
 public:
  struct Tensor {
    ElementType type;
    std::vector<int64_t> shape;
    std::string bytes;
    int stream;
  };

  // All tensors, for inspection and modification.
  std::map<std::string, Tensor>& tensors() { return tensors_; }
  const std::map<std::string, Tensor>& tensors() const { return tensors_; }

  template <typename T>
  void Put(const std::string& name, const std::vector<int64_t>& shape,
           const std::vector<T>& elements) {
    same_as_.erase(name);
    Tensor& tensor = tensors_[name];
    tensor = {TypeOf(T()), shape, "", 0};
    tensor.bytes.assign(reinterpret_cast<const char*>(elements.data()),
                        elements.size() * sizeof(T));
  }
  template <typename T>
  std::vector<T> Get(const std::string& name) const {
    const Tensor& tensor = tensors_.at(name);
    std::vector<T> elements(tensor.bytes.size() / sizeof(T));
    std::memcpy(elements.data(), tensor.bytes.data(), tensor.bytes.size());
    return elements;
  }
  // "float [3,2]".
  std::string Describe(const std::string& name) const {
    return Describe(tensors_.at(name));
  }

  // After that many bytes the disk is full.
  void set_capacity(size_t bytes) { capacity_ = bytes; }
  // Reads of elements of this tensor fail.
  void set_damaged(const std::string& name) { damaged_ = name; }
  // Returns whether elements of the tensor were ever read.
  bool WasRead(const std::string& name) const {
    return bytes_read_.count(name) != 0 && bytes_read_.at(name) > 0;
  }

  const std::string& prefix() const override { return prefix_; }

  Status Find(const std::string& name, bool* found) override {
    *found = tensors_.count(name) != 0;
    return Status::OK();
  }

  Status SameBytes(const std::string& one, const std::string& other,
                   bool* same) override {
    *same = same_as_.count(other) != 0 && same_as_.at(other) == one;
    return Status::OK();
  }

  Status Open(const std::string& name,
              std::unique_ptr<StoredTensor>* tensor) override {
    if (tensors_.count(name) == 0) {
      return NotFound("checkpoint memory has no tensor " + name);
    }
    tensor->reset(new Stream(name, this));
    return Status::OK();
  }

  Status Begin(int stream, const std::string& name, ElementType type,
               const std::vector<int64_t>& shape) override {
    if (tensors_.count(name) != 0) {
      return InvalidArgument("two tensors of the name " + name);
    }
    tensors_[name] = {type, shape, "", stream};
    current_[stream] = name;
    return Status::OK();
  }

  Status Append(int stream, const void* data, size_t num_bytes) override {
    if (num_bytes > capacity_) return ResourceExhausted("the disk is full");
    capacity_ -= num_bytes;
    most_at_once_ = num_bytes > most_at_once_ ? num_bytes : most_at_once_;
    tensors_.at(current_.at(stream))
        .bytes.append(static_cast<const char*>(data), num_bytes);
    return Status::OK();
  }

  Status SameAs(const std::string& name, const std::string& other) override {
    tensors_[name] = tensors_.at(other);
    same_as_[name] = other;
    return Status::OK();
  }

  size_t most_bytes_at_once() const { return most_at_once_; }

 private:
  static ElementType TypeOf(float) { return ElementType::kFloat; }
  static ElementType TypeOf(int32_t) { return ElementType::kInt32; }
  static ElementType TypeOf(int64_t) { return ElementType::kInt64; }
  static ElementType TypeOf(uint16_t) { return ElementType::kFloat16; }
  static ElementType TypeOf(uint8_t) { return ElementType::kUint8; }

  static std::string Describe(const Tensor& tensor) {
    std::string text = tensor.type == ElementType::kFloat     ? "float ["
                       : tensor.type == ElementType::kInt32   ? "int32 ["
                       : tensor.type == ElementType::kInt64   ? "int64 ["
                       : tensor.type == ElementType::kUint8   ? "uint8 ["
                       : tensor.type == ElementType::kFloat16 ? "half ["
                                                              : "string [";
    for (size_t i = 0; i < tensor.shape.size(); ++i) {
      text += (i == 0 ? "" : ",") + std::to_string(tensor.shape[i]);
    }
    return text + "]";
  }

  class Stream : public StoredTensor {
   public:
    Stream(std::string name, MemoryCheckpoint* checkpoint)
        : name_(std::move(name)),
          tensor_(checkpoint->tensors_.at(name_)),
          checkpoint_(checkpoint) {}
    ElementType type() const override { return tensor_.type; }
    const std::vector<int64_t>& shape() const override { return tensor_.shape; }
    std::string Description() const override { return Describe(tensor_); }
    Status Read(size_t num_bytes, void* data) override {
      if (num_bytes > 0 && name_ == checkpoint_->damaged_) {
        return Status(StatusCode::kDataLoss, "tensor " + name_ + " is damaged");
      }
      if (at_ + num_bytes > tensor_.bytes.size()) {
        return Status(StatusCode::kDataLoss, "tensor " + name_ + " ends early");
      }
      if (num_bytes > 0) {
        std::memcpy(data, tensor_.bytes.data() + at_, num_bytes);
      }
      at_ += num_bytes;
      checkpoint_->bytes_read_[name_] += num_bytes;
      return Status::OK();
    }

   private:
    const std::string name_;
    const Tensor& tensor_;
    MemoryCheckpoint* const checkpoint_;
    size_t at_ = 0;
  };

  const std::string prefix_ = "memory";
  std::map<std::string, Tensor> tensors_;
  std::map<std::string, std::string> same_as_;
  std::map<int, std::string> current_;
  std::map<std::string, size_t> bytes_read_;
  std::string damaged_;
  size_t capacity_ = ~size_t{0};
  size_t most_at_once_ = 0;
};

}  // namespace testing
}  // namespace ev

#endif  // KERNELS_ENGINE_TESTING_MEMORY_CHECKPOINT_H_
