// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// EvDefaultRows, EvRestore.

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernels/tf/bridge/checkpoint_reader.h"
#include "kernels/tf/bridge/guarded_kernel.h"
#include "kernels/tf/bridge/register_kernel.h"
#include "kernels/tf/bridge/status.h"
#include "kernels/tf/bridge/tensor_span.h"
#include "kernels/tf/op_kernels/kernel_checks.h"
#include "kernels/tf/op_kernels/stored_filtered.h"
#include "kernels/tf/op_kernels/stored_table.h"
#include "kernels/tf/resources/ev_resource.h"

namespace embedding_variable {
namespace {

using tensorflow::DataType;
using tensorflow::OpKernel;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::Status;
using tensorflow::strings::StrCat;

// Adds the variable to an error of the checkpoint.
Status WithVariable(const std::string& variable, const Status& status) {
  if (status.ok()) return status;
  return Status(status.code(), StrCat("embedding variable '", variable,
                                      "': ", status.error_message()));
}

class DefaultRowsOp : public OpKernel {
 public:
  explicit DefaultRowsOp(OpKernelConstruction* context) : OpKernel(context) {}

  void Compute(OpKernelContext* context) override {
    EvResourcePtr resource;
    OP_REQUIRES_OK(context, GetInitialized(context, 0, &resource));
    const std::vector<float> rows = resource->table()->default_rows();
    const int64_t dim = resource->dim();
    tensorflow::TensorShape shape;
    OP_REQUIRES_OK(
        context, MatrixShape(rows.size() / dim, dim, resource->name(), &shape));
    tensorflow::Tensor* output = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, shape, &output));
    std::copy(rows.begin(), rows.end(), MutableData<float>(output));
  }
};

class RestoreOp : public OpKernel {
 public:
  explicit RestoreOp(OpKernelConstruction* context) : OpKernel(context) {
    OP_REQUIRES_OK(context, context->GetAttr("tensor_name", &tensor_name_));
    OP_REQUIRES_OK(context, GetSlotSpecs(context, 1, &slots_));
    OP_REQUIRES_OK(context, context->GetAttr("part", &options_.part));
    OP_REQUIRES_OK(context, context->GetAttr("num_parts", &options_.num_parts));
    OP_REQUIRES_OK(context, context->GetAttr("placement", &options_.placement));
    OP_REQUIRES_OK(context, context->GetAttr("rank", &options_.rank));
    OP_REQUIRES_OK(context,
                   context->GetAttr("custom_dim", &options_.custom_dim));
    OP_REQUIRES_OK(context,
                   context->GetAttr("reset_version", &options_.reset_version));
  }

  void Compute(OpKernelContext* context) override {
    EvResourcePtr resource;
    OP_REQUIRES_OK(context, GetInitialized(context, 0, &resource));
    const tensorflow::Tensor& prefix = context->input(1);
    OP_REQUIRES(context, prefix.NumElements() == 1,
                BadInput(resource->name(),
                         "the checkpoint's prefix must be one string"));
    const std::string name(prefix.flat<tensorflow::tstring>()(0));
    const Status status = WithVariable(
        resource->name(),
        CatchExceptions([&] { return "checkpoint " + name; },
                        [&] { return Restore(name, resource.get()); }));
    // No op shall take what is in the table now for what was stored.
    if (!status.ok()) resource->table()->Uninitialize();
    OP_REQUIRES_OK(context, status);
  }

 private:
  Status Restore(const std::string& prefix, EvResource* resource) const {
    std::unique_ptr<CheckpointReader> checkpoint;
    TF_RETURN_IF_ERROR(CheckpointReader::Open(prefix, &checkpoint));
    std::vector<std::string> names;
    std::string defaults_of;
    TF_RETURN_IF_ERROR(StoredNames(*checkpoint, &names, &defaults_of));
    // Everything is opened and checked before the table changes.
    std::vector<StoredTable> stored(names.size());
    std::vector<StoredFiltered> filtered(names.size());
    for (size_t i = 0; i < names.size(); ++i) {
      TF_RETURN_IF_ERROR(stored[i].Open(*checkpoint, names[i], slots_[0],
                                        resource->dim(), options_));
      TF_RETURN_IF_ERROR(filtered[i].Open(*checkpoint, names[i]));
    }
    std::vector<float> defaults;
    TF_RETURN_IF_ERROR(
        ReadDefaults(*checkpoint, defaults_of, resource->dim(), &defaults));
    if (defaults.empty()) {
      TF_RETURN_IF_ERROR(ToTf(resource->table()->Clear()));
    } else {
      TF_RETURN_IF_ERROR(ToTf(resource->table()->Initialize(
          defaults, defaults.size() / resource->dim())));
    }
    for (StoredTable& table : stored) {
      TF_RETURN_IF_ERROR(table.Import(resource->table().get()));
    }
    for (StoredFiltered& keys : filtered) {
      TF_RETURN_IF_ERROR(keys.Import(
          /*part=*/0, /*num_parts=*/1,
          [this](int64_t key) { return options_.Wants(key); },
          resource->table().get()));
    }
    return Status::OK();
  }

  // Leaves *rows empty when the checkpoint has none.
  Status ReadDefaults(const CheckpointReader& checkpoint,
                      const std::string& name, int64_t dim,
                      std::vector<float>* rows) const {
    const std::string tensor = name + "-default_rows";
    bool found;
    TF_RETURN_IF_ERROR(checkpoint.Find(tensor, &found));
    if (!found) return Status::OK();
    std::unique_ptr<TensorStream> stream;
    TF_RETURN_IF_ERROR(checkpoint.Open(tensor, &stream));
    const tensorflow::TensorShape& shape = stream->shape();
    // Rows of another length start as the variable's initializer says.
    if (options_.custom_dim && shape.dims() == 2 && shape.dim_size(1) != dim) {
      return Status::OK();
    }
    if (stream->dtype() != tensorflow::DT_FLOAT || shape.dims() != 2 ||
        shape.dim_size(0) < 1 || shape.dim_size(1) != dim) {
      return tensorflow::errors::InvalidArgument(
          "tensor ", tensor, " of checkpoint ", checkpoint.prefix(),
          " must be float [R,", dim, "], got ",
          tensorflow::DataTypeString(stream->dtype()), " ",
          shape.DebugString());
    }
    rows->resize(shape.num_elements());
    return stream->Read(rows->size() * sizeof(float), rows->data());
  }

  // The stored tables that can hold keys of this part, and the one whose
  // default rows it takes.
  Status StoredNames(const CheckpointReader& checkpoint,
                     std::vector<std::string>* names,
                     std::string* defaults_of) const {
    bool found;
    TF_RETURN_IF_ERROR(checkpoint.Find(tensor_name_ + "-keys", &found));
    if (found) {
      names->push_back(tensor_name_);
      *defaults_of = tensor_name_;
      return Status::OK();
    }
    for (int i = 0;; ++i) {
      const std::string name = StrCat(tensor_name_, "/part_", i);
      TF_RETURN_IF_ERROR(checkpoint.Find(name + "-keys", &found));
      if (!found) break;
      names->push_back(name);
    }
    if (names->empty()) {
      return tensorflow::errors::NotFound(
          "checkpoint ", checkpoint.prefix(), " has neither tensor ",
          tensor_name_, "-keys nor ", tensor_name_, "/part_0-keys");
    }
    const int mine = options_.placement.empty() ? options_.part : options_.rank;
    *defaults_of = (*names)[mine % names->size()];
    return Status::OK();
  }

  std::string tensor_name_;
  std::vector<std::vector<ev::SlotSpec>> slots_;
  RestoreOptions options_;
};

const RegisterKernel<DefaultRowsOp> kDefaultRows("EvDefaultRows",
                                                 {"resource", "default_rows"});
const RegisterKernel<RestoreOp> kRestore("EvRestore", {"resource", "prefix"});

}  // namespace
}  // namespace embedding_variable
