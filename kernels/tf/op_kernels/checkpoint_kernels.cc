// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// EvExport, EvImport, EvImportFiltered.

#include <algorithm>
#include <string>
#include <vector>

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

// Moves the vector into output `output` and frees its memory at once. Otherwise
// the copies of a large table would exist side by side.
template <typename T>
Status MoveToOutput(OpKernelContext* context, int output,
                    const TensorShape& shape, std::vector<T>* values) {
  Tensor* tensor = nullptr;
  TF_RETURN_IF_ERROR(context->allocate_output(output, shape, &tensor));
  std::copy(values->begin(), values->end(), MutableData<T>(tensor));
  std::vector<T>().swap(*values);
  return Status();
}

template <typename T>
Status MoveToOutput(OpKernelContext* context, int output,
                    std::vector<T>* values) {
  return MoveToOutput(context, output,
                      TensorShape({static_cast<int64_t>(values->size())}),
                      values);
}

class ExportOp : public OpKernel {
 public:
  explicit ExportOp(OpKernelConstruction* context) : OpKernel(context) {
    OP_REQUIRES_OK(context, context->GetAttr("slot_names", &slot_names_));
    int num_slots;
    OP_REQUIRES_OK(context, context->GetAttr("num_slots", &num_slots));
    OP_REQUIRES(
        context, slot_names_.size() == num_slots,
        tensorflow::errors::InvalidArgument(
            slot_names_.size(), " slot names for ", num_slots, " slots"));
  }

  void Compute(OpKernelContext* context) override {
    EvResourcePtr resource;
    OP_REQUIRES_OK(context, GetInitialized(context, 0, &resource));
    ev::TableSnapshot snapshot;
    OP_REQUIRES_OK(context,
                   ToTf(resource->table()->Export(slot_names_, &snapshot)));
    TensorShape rows;
    OP_REQUIRES_OK(context, MatrixShape(snapshot.keys.size(), resource->dim(),
                                        resource->name(), &rows));
    OP_REQUIRES_OK(context, MoveToOutput(context, 0, &snapshot.keys));
    OP_REQUIRES_OK(context, MoveToOutput(context, 1, rows, &snapshot.values));
    OP_REQUIRES_OK(context, MoveToOutput(context, 2, &snapshot.versions));
    OP_REQUIRES_OK(context, MoveToOutput(context, 3, &snapshot.frequencies));
    OP_REQUIRES_OK(context,
                   MoveToOutput(context, 4, &snapshot.partition_offset));
    OP_REQUIRES_OK(context, MoveToOutput(context, 5, &snapshot.filtered_keys));
    OP_REQUIRES_OK(context,
                   MoveToOutput(context, 6, &snapshot.filtered_versions));
    OP_REQUIRES_OK(context,
                   MoveToOutput(context, 7, &snapshot.filtered_frequencies));
    OP_REQUIRES_OK(
        context, MoveToOutput(context, 8, &snapshot.filtered_partition_offset));
    for (int s = 0; s < slot_names_.size(); ++s) {
      rows.set_dim(1, ev::SlotWidth(slot_names_[s], resource->dim()));
      OP_REQUIRES_OK(context, MoveToOutput(context, kFirstSlot + s, rows,
                                           &snapshot.slots[s]));
    }
    const int first = kFirstSlot + static_cast<int>(slot_names_.size());
    for (int i = first; i < num_outputs(); ++i) {
      OP_REQUIRES_OK(
          context, OutputTableTensor(context, i, snapshot.tensors, i - first));
    }
  }

 private:
  static constexpr int kFirstSlot = 9;

  std::vector<std::string> slot_names_;
};

// Checks versions or frequencies of n keys: [n], or [0].
Status CheckMeta(const Tensor& tensor, int64_t n, const std::string& name,
                 const char* what) {
  if (tensor.dims() == 1 && tensor.dim_size(0) == 0) return Status();
  return CheckVectorOf(tensor, n, name, what);
}

class ImportOp : public OpKernel {
 public:
  explicit ImportOp(OpKernelConstruction* context) : OpKernel(context) {
    OP_REQUIRES_OK(context, GetSlotSpecs(context, 1, &slots_));
    OP_REQUIRES_OK(context, context->GetAttr("part", &part_));
    OP_REQUIRES_OK(context, context->GetAttr("num_parts", &num_parts_));
    OP_REQUIRES_OK(context, context->GetAttr("clear", &clear_));
  }

  void Compute(OpKernelContext* context) override {
    EvResourcePtr resource;
    OP_REQUIRES_OK(context, GetInitialized(context, 0, &resource));
    const std::string& name = resource->name();
    const std::vector<ev::SlotSpec>& slots = slots_[0];
    OP_REQUIRES(context, slots.size() + 5 == num_inputs(),
                BadInput(name, slots.size(), " slot names for ",
                         num_inputs() - 5, " slots"));
    const Tensor& keys = context->input(1);
    OP_REQUIRES_OK(context, CheckVector(keys, name, "the keys"));
    const int64_t n = keys.dim_size(0);
    const Tensor& versions = context->input(3);
    OP_REQUIRES_OK(context, CheckMeta(versions, n, name, "the versions"));
    const Tensor& frequencies = context->input(4);
    OP_REQUIRES_OK(context, CheckMeta(frequencies, n, name, "the frequencies"));
    const Tensor& values = context->input(2);
    OP_REQUIRES_OK(context, CheckMatrix(values, n, resource->dim(), name,
                                        "the values to import"));
    std::vector<const float*> slot_values(slots.size());
    for (int s = 0; s < slots.size(); ++s) {
      const Tensor& tensor = context->input(5 + s);
      OP_REQUIRES_OK(context,
                     CheckMatrix(tensor, n, slots[s].WidthIn(resource->dim()),
                                 name, slots[s].name.c_str()));
      slot_values[s] = Data<float>(tensor);
    }
    if (clear_) OP_REQUIRES_OK(context, ToTf(resource->table()->Clear()));
    OP_REQUIRES_OK(context,
                   ToTf(resource->table()->Import(
                       SpanOf<int64_t>(keys), Data<float>(values), slots,
                       slot_values, SpanOf<int64_t>(versions),
                       SpanOf<int64_t>(frequencies), part_, num_parts_)));
  }

 private:
  std::vector<std::vector<ev::SlotSpec>> slots_;
  int part_ = 0;
  int num_parts_ = 1;
  bool clear_ = false;
};

class ImportFilteredOp : public OpKernel {
 public:
  explicit ImportFilteredOp(OpKernelConstruction* context) : OpKernel(context) {
    OP_REQUIRES_OK(context, context->GetAttr("part", &part_));
    OP_REQUIRES_OK(context, context->GetAttr("num_parts", &num_parts_));
  }

  void Compute(OpKernelContext* context) override {
    EvResourcePtr resource;
    OP_REQUIRES_OK(context, GetInitialized(context, 0, &resource));
    const std::string& name = resource->name();
    const Tensor& keys = context->input(1);
    OP_REQUIRES_OK(context, CheckVector(keys, name, "the keys"));
    const Tensor& versions = context->input(2);
    OP_REQUIRES_OK(context,
                   CheckMeta(versions, keys.dim_size(0), name, "the versions"));
    const Tensor& frequencies = context->input(3);
    OP_REQUIRES_OK(context, CheckMeta(frequencies, keys.dim_size(0), name,
                                      "the frequencies"));
    OP_REQUIRES_OK(context,
                   ToTf(resource->table()->ImportFiltered(
                       SpanOf<int64_t>(keys), SpanOf<int64_t>(versions),
                       SpanOf<int64_t>(frequencies), part_, num_parts_)));
  }

 private:
  int part_ = 0;
  int num_parts_ = 1;
};

const RegisterKernel<ImportFilteredOp> kImportFiltered(
    "EvImportFiltered", {"resource", "keys", "versions", "frequencies"});
const RegisterKernel<ExportOp> kExport(
    "EvExport",
    {"resource", "keys", "values", "versions", "frequencies",
     "partition_offset", "filtered_keys", "filtered_versions",
     "filtered_frequencies", "filtered_partition_offset", "slots", "tensors"});
const RegisterKernel<ImportOp> kImport("EvImport",
                                       {"resource", "keys", "values",
                                        "versions", "frequencies", "slots"});

}  // namespace
}  // namespace embedding_variable
