// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The table of an embedding variable as a TensorFlow resource. It belongs to a
// session's device, like the value of a variable.

#ifndef KERNELS_TF_RESOURCES_EV_RESOURCE_H_
#define KERNELS_TF_RESOURCES_EV_RESOURCE_H_

#include <memory>
#include <string>

#include "kernels/engine/embedding/embedding_table.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/resource_mgr.h"

namespace embedding_variable {

// TensorFlow identifies a resource type by its mangled name; the namespace
// keeps it apart from those of other libraries.
class EvResource : public tensorflow::ResourceBase {
 public:
  explicit EvResource(const ev::TableOptions& options)
      : table_(std::make_shared<ev::EmbeddingTable>(options)) {}

  const std::shared_ptr<ev::EmbeddingTable>& table() const { return table_; }
  const std::string& name() const { return table_->options().name; }
  int64_t dim() const { return table_->options().dim; }

  std::string DebugString() const override;
  tensorflow::int64 MemoryUsed() const override;

  // Returns FailedPrecondition, with the variable's name and the remedy, if not
  // initialized.
  tensorflow::Status CheckInitialized() const;

 private:
  // Shared with the plans of lookups in flight, which may outlive the resource.
  const std::shared_ptr<ev::EmbeddingTable> table_;
};

using EvResourcePtr = tensorflow::core::RefCountPtr<EvResource>;

// Returns the resource of handle input `input`.
tensorflow::Status GetResource(tensorflow::OpKernelContext* context, int input,
                               EvResourcePtr* resource);
// Like GetResource; returns an error if the table is not initialized.
tensorflow::Status GetInitialized(tensorflow::OpKernelContext* context,
                                  int input, EvResourcePtr* resource);

}  // namespace embedding_variable

#endif  // KERNELS_TF_RESOURCES_EV_RESOURCE_H_
