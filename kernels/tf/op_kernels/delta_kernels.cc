// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// EvCutChanges, EvPackRows, EvExportChanges, EvExportNewer, EvApplyDelta.

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "kernels/engine/base/row_format.h"
#include "kernels/engine/checkpoint/apply_delta.h"
#include "kernels/tf/bridge/checkpoint_tensors.h"
#include "kernels/tf/bridge/register_kernel.h"
#include "kernels/tf/bridge/status.h"
#include "kernels/tf/bridge/tensor_span.h"
#include "kernels/tf/op_kernels/kernel_checks.h"
#include "kernels/tf/resources/ev_resource.h"

namespace embedding_variable {
namespace {

using tensorflow::OpKernel;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::Status;
using tensorflow::Tensor;
using tensorflow::TensorShape;

template <typename T>
Status ToOutput(OpKernelContext* context, int output, const TensorShape& shape,
                const std::vector<T>& values) {
  Tensor* tensor = nullptr;
  TF_RETURN_IF_ERROR(context->allocate_output(output, shape, &tensor));
  std::copy(values.begin(), values.end(), MutableData<T>(tensor));
  return Status();
}

template <typename T>
Status ToOutput(OpKernelContext* context, int output,
                const std::vector<T>& values) {
  return ToOutput(context, output,
                  TensorShape({static_cast<int64_t>(values.size())}), values);
}

Status ScalarOutput(OpKernelContext* context, int output, int64_t value) {
  return ToOutput(context, output, TensorShape({}),
                  std::vector<int64_t>{value});
}

// Sets outputs 0 to 3, and slots from first_slot on.
Status OutputRows(OpKernelContext* context, const ev::TableSnapshot& rows,
                  const EvResource& resource, int first_slot,
                  const std::vector<std::string>& slot_names) {
  TensorShape matrix;
  TF_RETURN_IF_ERROR(
      MatrixShape(rows.keys.size(), resource.dim(), resource.name(), &matrix));
  TF_RETURN_IF_ERROR(ToOutput(context, 0, rows.keys));
  TF_RETURN_IF_ERROR(ToOutput(context, 1, matrix, rows.values));
  TF_RETURN_IF_ERROR(ToOutput(context, 2, rows.versions));
  TF_RETURN_IF_ERROR(ToOutput(context, 3, rows.frequencies));
  for (size_t s = 0; s < rows.slots.size(); ++s) {
    matrix.set_dim(1, ev::SlotWidth(slot_names[s], resource.dim()));
    TF_RETURN_IF_ERROR(ToOutput(context, first_slot + static_cast<int>(s),
                                matrix, rows.slots[s]));
  }
  return Status();
}

Status GetScalar(OpKernelContext* context, int input,
                 const EvResource& resource, const char* what, int64_t* value) {
  const Tensor& tensor = context->input(input);
  if (tensor.NumElements() != 1) {
    return BadInput(resource.name(), what, ": expected one number, got shape ",
                    tensor.shape().DebugString());
  }
  *value = *Data<int64_t>(tensor);
  return Status();
}

class CutChangesOp : public OpKernel {
 public:
  explicit CutChangesOp(OpKernelConstruction* context) : OpKernel(context) {}

  void Compute(OpKernelContext* context) override {
    EvResourcePtr resource;
    OP_REQUIRES_OK(context, GetInitialized(context, 0, &resource));
    int64_t cut = 0;
    OP_REQUIRES_OK(context, ToTf(resource->table()->CutChanges(&cut)));
    OP_REQUIRES_OK(context, ScalarOutput(context, 0, cut));
  }
};

class PackRowsOp : public OpKernel {
 public:
  explicit PackRowsOp(OpKernelConstruction* context) : OpKernel(context) {
    tensorflow::DataType type;
    OP_REQUIRES_OK(context, context->GetAttr("Tout", &type));
    if (type == tensorflow::DT_HALF) row_type_ = ev::RowType::kFloat16;
    if (type == tensorflow::DT_UINT8) row_type_ = ev::RowType::kUint8;
  }

  void Compute(OpKernelContext* context) override {
    const Tensor& keys = context->input(0);
    const Tensor& rows = context->input(1);
    OP_REQUIRES(
        context,
        keys.dims() == 1 && rows.dims() == 2 && rows.dim_size(1) > 0 &&
            rows.dim_size(0) == keys.dim_size(0),
        tensorflow::errors::InvalidArgument(
            "expected keys [N] and rows [N, D], D >= 1, got ",
            keys.shape().DebugString(), " and ", rows.shape().DebugString()));
    const ev::RowFormat format(static_cast<int>(rows.dim_size(1)), row_type_);
    TensorShape shape = rows.shape();
    if (row_type_ == ev::RowType::kUint8) {
      shape.set_dim(1, ev::FileRowBytes(format));
    }
    Tensor* packed = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, shape, &packed));
    const ev::Span<const int64_t> of(Data<int64_t>(keys), keys.NumElements());
    OP_REQUIRES_OK(context,
                   ToTf(ev::PackFileRows(
                       format, of, Data<float>(rows),
                       const_cast<char*>(packed->tensor_data().data()))));
  }

 private:
  ev::RowType row_type_ = ev::RowType::kFloat32;
};

class ExportChangesOp : public OpKernel {
 public:
  explicit ExportChangesOp(OpKernelConstruction* context) : OpKernel(context) {
    OP_REQUIRES_OK(context, context->GetAttr("slot_names", &slot_names_));
  }

  void Compute(OpKernelContext* context) override {
    EvResourcePtr resource;
    OP_REQUIRES_OK(context, GetInitialized(context, 0, &resource));
    int64_t since = 0;
    OP_REQUIRES_OK(context,
                   GetScalar(context, 1, *resource, "the cut", &since));
    ev::TableDelta delta;
    OP_REQUIRES_OK(context, ToTf(resource->table()->ExportChanges(
                                since, slot_names_, &delta)));
    const ev::TableSnapshot& changed = delta.changed;
    OP_REQUIRES_OK(context,
                   OutputRows(context, changed, *resource, 12, slot_names_));
    OP_REQUIRES_OK(context, ToOutput(context, 4, changed.partition_offset));
    OP_REQUIRES_OK(context, ToOutput(context, 5, changed.filtered_keys));
    OP_REQUIRES_OK(context, ToOutput(context, 6, changed.filtered_versions));
    OP_REQUIRES_OK(context, ToOutput(context, 7, changed.filtered_frequencies));
    OP_REQUIRES_OK(context, ToOutput(context, 8, delta.erased));
    OP_REQUIRES_OK(context, ScalarOutput(context, 9, delta.replaces ? 1 : 0));
    // The default rows; the other tensors are the last outputs.
    OP_REQUIRES_OK(context, OutputTableTensor(context, 10, changed.tensors, 0));
    OP_REQUIRES_OK(context, ScalarOutput(context, 11, delta.cut));
    const int last = 12 + static_cast<int>(slot_names_.size());
    for (int i = last; i < num_outputs(); ++i) {
      OP_REQUIRES_OK(context, OutputTableTensor(context, i, changed.tensors,
                                                1 + i - last));
    }
  }

 private:
  std::vector<std::string> slot_names_;
};

class ExportNewerOp : public OpKernel {
 public:
  explicit ExportNewerOp(OpKernelConstruction* context) : OpKernel(context) {
    OP_REQUIRES_OK(context, context->GetAttr("slot_names", &slot_names_));
  }

  void Compute(OpKernelContext* context) override {
    EvResourcePtr resource;
    OP_REQUIRES_OK(context, GetInitialized(context, 0, &resource));
    int64_t version = 0;
    OP_REQUIRES_OK(context,
                   GetScalar(context, 1, *resource, "the version", &version));
    ev::TableSnapshot rows;
    OP_REQUIRES_OK(context, ToTf(resource->table()->ExportNewer(
                                version, slot_names_, &rows)));
    OP_REQUIRES_OK(context,
                   OutputRows(context, rows, *resource, 4, slot_names_));
  }

 private:
  std::vector<std::string> slot_names_;
};

class ApplyDeltaOp : public OpKernel {
 public:
  explicit ApplyDeltaOp(OpKernelConstruction* context) : OpKernel(context) {
    OP_REQUIRES_OK(context, context->GetAttr("tensor_name", &tensor_name_));
    OP_REQUIRES_OK(context, GetSlotSpecs(context, 1, &slots_));
    OP_REQUIRES_OK(context, GetKeyFilter(context, &wanted_));
  }

  void Compute(OpKernelContext* context) override {
    EvResourcePtr resource;
    OP_REQUIRES_OK(context, GetInitialized(context, 0, &resource));
    const Tensor& prefix = context->input(1);
    OP_REQUIRES(context, prefix.NumElements() == 1,
                BadInput(resource->name(),
                         "the checkpoint's prefix: expected one string"));
    OP_REQUIRES_OK(
        context,
        OfVariable(resource->name(),
                   Apply(std::string(prefix.flat<tensorflow::tstring>()(0)),
                         resource->table().get())));
  }

 private:
  Status Apply(const std::string& prefix, ev::EmbeddingTable* table) const {
    std::unique_ptr<CheckpointTensorReader> checkpoint;
    TF_RETURN_IF_ERROR(CheckpointTensorReader::Open(prefix, &checkpoint));
    return checkpoint->Original(ev::ApplyDelta(checkpoint.get(), tensor_name_,
                                               slots_[0], wanted_, table));
  }

  std::string tensor_name_;
  std::vector<std::vector<ev::SlotSpec>> slots_;
  ev::KeyFilter wanted_;
};

const RegisterKernel<CutChangesOp> kCutChanges("EvCutChanges",
                                               {"resource", "cut"});
const RegisterKernel<PackRowsOp> kPackRows("EvPackRows",
                                           {"keys", "rows", "packed"});
const RegisterKernel<ExportChangesOp> kExportChanges(
    "EvExportChanges",
    {"resource", "since", "keys", "values", "versions", "frequencies",
     "partition_offset", "filtered_keys", "filtered_versions",
     "filtered_frequencies", "erased_keys", "replaces", "default_rows", "cut",
     "slots", "tensors"});
const RegisterKernel<ExportNewerOp> kExportNewer("EvExportNewer",
                                                 {"resource", "version", "keys",
                                                  "values", "versions",
                                                  "frequencies", "slots"});
const RegisterKernel<ApplyDeltaOp> kApplyDelta("EvApplyDelta",
                                               {"resource", "prefix"});

}  // namespace
}  // namespace embedding_variable
