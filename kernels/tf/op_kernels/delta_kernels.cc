// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// EvCutChanges, EvExportChanges, EvExportNewer, EvApplyDelta.

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernels/engine/base/modulo.h"
#include "kernels/engine/embedding/table_reader.h"
#include "kernels/tf/bridge/checkpoint_reader.h"
#include "kernels/tf/bridge/register_kernel.h"
#include "kernels/tf/bridge/status.h"
#include "kernels/tf/bridge/tensor_span.h"
#include "kernels/tf/op_kernels/kernel_checks.h"
#include "kernels/tf/op_kernels/stored_delta.h"
#include "kernels/tf/op_kernels/stored_table.h"
#include "kernels/tf/resources/ev_resource.h"

namespace embedding_variable {
namespace {

using tensorflow::OpKernel;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::Status;
using tensorflow::Tensor;
using tensorflow::TensorShape;
using tensorflow::strings::StrCat;

// Buckets of DeepRec's partitioning.
constexpr int64_t kBuckets = 1000;

template <typename T>
Status ToOutput(OpKernelContext* context, int output, const TensorShape& shape,
                const std::vector<T>& values) {
  Tensor* tensor = nullptr;
  TF_RETURN_IF_ERROR(context->allocate_output(output, shape, &tensor));
  std::copy(values.begin(), values.end(), MutableData<T>(tensor));
  return Status::OK();
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

// Outputs 0 to 3, and slots from first_slot on.
Status OutputRows(OpKernelContext* context, const ev::TableSnapshot& rows,
                  const EvResource& resource, int first_slot) {
  TensorShape matrix;
  TF_RETURN_IF_ERROR(
      MatrixShape(rows.keys.size(), resource.dim(), resource.name(), &matrix));
  TF_RETURN_IF_ERROR(ToOutput(context, 0, rows.keys));
  TF_RETURN_IF_ERROR(ToOutput(context, 1, matrix, rows.values));
  TF_RETURN_IF_ERROR(ToOutput(context, 2, rows.versions));
  TF_RETURN_IF_ERROR(ToOutput(context, 3, rows.frequencies));
  for (size_t s = 0; s < rows.slots.size(); ++s) {
    TF_RETURN_IF_ERROR(ToOutput(context, first_slot + static_cast<int>(s),
                                matrix, rows.slots[s]));
  }
  return Status::OK();
}

Status GetScalar(OpKernelContext* context, int input,
                 const EvResource& resource, const char* what, int64_t* value) {
  const Tensor& tensor = context->input(input);
  if (tensor.NumElements() != 1) {
    return BadInput(resource.name(), what, " must be one number, got shape ",
                    tensor.shape().DebugString());
  }
  *value = *Data<int64_t>(tensor);
  return Status::OK();
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
    OP_REQUIRES_OK(context, OutputRows(context, changed, *resource, 12));
    OP_REQUIRES_OK(context, ToOutput(context, 4, changed.partition_offset));
    OP_REQUIRES_OK(context, ToOutput(context, 5, changed.filtered_keys));
    OP_REQUIRES_OK(context, ToOutput(context, 6, changed.filtered_versions));
    OP_REQUIRES_OK(context, ToOutput(context, 7, changed.filtered_frequencies));
    OP_REQUIRES_OK(context, ToOutput(context, 8, delta.erased));
    OP_REQUIRES_OK(context, ScalarOutput(context, 9, delta.replaces ? 1 : 0));
    std::vector<float> defaults;
    if (delta.replaces) defaults = resource->table()->default_rows();
    TensorShape shape;
    OP_REQUIRES_OK(
        context, MatrixShape(defaults.size() / resource->dim(), resource->dim(),
                             resource->name(), &shape));
    OP_REQUIRES_OK(context, ToOutput(context, 10, shape, defaults));
    OP_REQUIRES_OK(context, ScalarOutput(context, 11, delta.cut));
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
    OP_REQUIRES_OK(context, OutputRows(context, rows, *resource, 4));
  }

 private:
  std::vector<std::string> slot_names_;
};

class ApplyDeltaOp : public OpKernel {
  using PartOf = std::function<int64_t(int64_t key)>;

 public:
  explicit ApplyDeltaOp(OpKernelConstruction* context) : OpKernel(context) {
    OP_REQUIRES_OK(context, context->GetAttr("tensor_name", &tensor_name_));
    OP_REQUIRES_OK(context, GetSlotSpecs(context, 1, &slots_));
    OP_REQUIRES_OK(context, context->GetAttr("part", &wanted_.part));
    OP_REQUIRES_OK(context, context->GetAttr("num_parts", &wanted_.num_parts));
    OP_REQUIRES_OK(context, context->GetAttr("placement", &wanted_.placement));
    OP_REQUIRES_OK(context, context->GetAttr("rank", &wanted_.rank));
  }

  void Compute(OpKernelContext* context) override {
    EvResourcePtr resource;
    OP_REQUIRES_OK(context, GetInitialized(context, 0, &resource));
    const Tensor& prefix = context->input(1);
    OP_REQUIRES(context, prefix.NumElements() == 1,
                BadInput(resource->name(),
                         "the checkpoint's prefix must be one string"));
    const Status status = Apply(
        std::string(prefix.flat<tensorflow::tstring>()(0)), resource.get());
    if (!status.ok()) {
      context->SetStatus(
          Status(status.code(), StrCat("embedding variable '", resource->name(),
                                       "': ", status.error_message())));
    }
  }

 private:
  Status Apply(const std::string& prefix, EvResource* resource) const {
    std::unique_ptr<CheckpointReader> checkpoint;
    TF_RETURN_IF_ERROR(CheckpointReader::Open(prefix, &checkpoint));
    std::vector<std::string> names;
    TF_RETURN_IF_ERROR(StoredNames(*checkpoint, &names));
    std::vector<int64_t> placement;
    TF_RETURN_IF_ERROR(
        ReadPlacement(*checkpoint, tensor_name_, names.size(), &placement));
    const PartOf part_of = [&](int64_t key) {
      return placement.empty()
                 ? ev::FloorMod(ev::FloorMod(key, kBuckets), names.size())
                 : placement[ev::FloorMod(key, placement.size())];
    };
    std::vector<StoredDelta> stored(names.size());
    for (int64_t i = 0; i < names.size(); ++i) {
      // With as many parts as are stored, each finds its keys in its own.
      if (placement.empty() && names.size() == wanted_.num_parts &&
          i != wanted_.part) {
        continue;
      }
      TF_RETURN_IF_ERROR(
          stored[i].Read(*checkpoint, names[i], slots_[0], resource->dim()));
      stored[i].Keep([&](int64_t key) {
        // A rank may have rows that no lookup finds there.
        return wanted_.Wants(key) && (placement.empty() || part_of(key) == i);
      });
    }
    TF_RETURN_IF_ERROR(RemoveReplaced(stored, part_of, resource));
    for (const StoredDelta& part : stored) {
      TF_RETURN_IF_ERROR(part.Apply(resource->table().get()));
    }
    return Status::OK();
  }

  // Removes what belongs to those stored parts that are all there is of theirs.
  Status RemoveReplaced(const std::vector<StoredDelta>& stored,
                        const PartOf& part_of, EvResource* resource) const {
    bool any = false, all = true;
    for (const StoredDelta& part : stored) any |= part.replaces();
    if (!any) return Status::OK();
    ev::EmbeddingTable* table = resource->table().get();
    if (stored.size() > 1) {
      std::vector<int64_t> keys;
      TF_RETURN_IF_ERROR(ForEachKey(*table, [&](int64_t key) {
        const bool gone = stored[part_of(key)].replaces();
        if (gone) keys.push_back(key);
        all &= gone;
      }));
      if (!all) {
        table->Erase(keys);
        return Status::OK();
      }
    }
    // Nothing stays, so keys to come can start as where the table was.
    const int mine = wanted_.placement.empty() ? wanted_.part : wanted_.rank;
    const std::vector<float>& defaults =
        stored[mine % stored.size()].default_rows();
    if (defaults.empty()) return ToTf(table->Clear());
    return ToTf(table->Initialize(defaults, defaults.size() / resource->dim()));
  }

  // Those with a row and those that a filter counts.
  static Status ForEachKey(const ev::EmbeddingTable& table,
                           const std::function<void(int64_t)>& visit) {
    std::unique_ptr<ev::TableReader> reader;
    TF_RETURN_IF_ERROR(ToTf(
        ev::TableReader::Open(table, std::vector<std::string>(), &reader)));
    const auto piece = [&](ev::Span<const int64_t> keys) {
      for (const int64_t key : keys) visit(key);
      return ev::Status::OK();
    };
    TF_RETURN_IF_ERROR(ToTf(reader->Keys(piece)));
    if (reader->num_filtered() == 0) return Status::OK();
    return ToTf(reader->FilteredKeys(piece));
  }

  Status StoredNames(const CheckpointReader& checkpoint,
                     std::vector<std::string>* names) const {
    bool found;
    const std::string suffix = "-sparse_incr_keys";
    TF_RETURN_IF_ERROR(checkpoint.Find(tensor_name_ + suffix, &found));
    if (found) {
      names->push_back(tensor_name_);
      return Status::OK();
    }
    for (int i = 0;; ++i) {
      const std::string name = StrCat(tensor_name_, "/part_", i);
      TF_RETURN_IF_ERROR(checkpoint.Find(name + suffix, &found));
      if (!found) break;
      names->push_back(name);
    }
    if (!names->empty()) return Status::OK();
    return tensorflow::errors::NotFound(
        "incremental checkpoint ", checkpoint.prefix(), " has neither tensor ",
        tensor_name_, suffix, " nor ", tensor_name_, "/part_0", suffix);
  }

  std::string tensor_name_;
  std::vector<std::vector<ev::SlotSpec>> slots_;
  RestoreOptions wanted_;
};

const RegisterKernel<CutChangesOp> kCutChanges("EvCutChanges",
                                               {"resource", "cut"});
const RegisterKernel<ExportChangesOp> kExportChanges(
    "EvExportChanges",
    {"resource", "since", "keys", "values", "versions", "frequencies",
     "partition_offset", "filtered_keys", "filtered_versions",
     "filtered_frequencies", "erased_keys", "replaces", "default_rows", "cut",
     "slots"});
const RegisterKernel<ExportNewerOp> kExportNewer("EvExportNewer",
                                                 {"resource", "version", "keys",
                                                  "values", "versions",
                                                  "frequencies", "slots"});
const RegisterKernel<ApplyDeltaOp> kApplyDelta("EvApplyDelta",
                                               {"resource", "prefix"});

}  // namespace
}  // namespace embedding_variable
