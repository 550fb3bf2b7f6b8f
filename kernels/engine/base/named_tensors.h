// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Tensors by name, read and written in pieces: the engine's interface to a
// checkpoint's files. A framework's bridge implements both sides over its own
// format. Compiles as C++14.

#ifndef KERNELS_ENGINE_BASE_NAMED_TENSORS_H_
#define KERNELS_ENGINE_BASE_NAMED_TENSORS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/engine/base/status.h"

namespace ev {

enum class ElementType { kFloat, kFloat16, kInt32, kInt64, kUint8, kOther };

// One stored tensor, read from its first element to its last. One thread at a
// time.
class StoredTensor {
 public:
  virtual ~StoredTensor() = default;

  virtual ElementType type() const = 0;
  virtual const std::vector<int64_t>& shape() const = 0;
  // Type and shape as shown in messages: "float [3,2]".
  virtual std::string Description() const = 0;

  // Copies the next num_bytes to 'data', elements in their memory layout.
  // Errors name the file.
  virtual Status Read(size_t num_bytes, void* data) = 0;

  int64_t num_elements() const {
    int64_t product = 1;
    for (const int64_t size : shape()) product *= size;
    return product;
  }
};

// The tensors of one checkpoint. One thread at a time; StoredTensors that it
// opened are read independently of each other.
class TensorReader {
 public:
  virtual ~TensorReader() = default;

  // Name of the checkpoint in messages.
  virtual const std::string& prefix() const = 0;
  // Sets *found: whether a tensor of that name exists.
  virtual Status Find(const std::string& name, bool* found) = 0;
  // Sets *same: whether the two names refer to the same bytes of the same file.
  // False if one does not exist. False does not mean that their elements
  // differ.
  virtual Status SameBytes(const std::string& one, const std::string& other,
                           bool* same) = 0;
  // NotFound: no such tensor. Unimplemented: the tensor is stored in slices or
  // holds strings, which no tensor of a table does.
  virtual Status Open(const std::string& name,
                      std::unique_ptr<StoredTensor>* tensor) = 0;
};

// Writes one checkpoint. A stream holds one tensor after the other; tensors of
// different streams are written side by side. One thread at a time. After an
// error, every later call returns the first error.
class TensorWriter {
 public:
  virtual ~TensorWriter() = default;

  // Begins a tensor; the previous one in this stream must be complete.
  // InvalidArgument: the name was used already.
  virtual Status Begin(int stream, const std::string& name, ElementType type,
                       const std::vector<int64_t>& shape) = 0;
  // Appends elements to the stream's tensor, in their memory layout.
  virtual Status Append(int stream, const void* data, size_t num_bytes) = 0;
  // Adds a tensor with the same elements as 'other', which is complete. Stores
  // a name, no elements.
  virtual Status SameAs(const std::string& name, const std::string& other) = 0;
};

}  // namespace ev

#endif  // KERNELS_ENGINE_BASE_NAMED_TENSORS_H_
