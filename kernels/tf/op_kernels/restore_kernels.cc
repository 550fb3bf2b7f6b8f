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
#include "kernels/tf/bridge/status.h"
#include "kernels/tf/bridge/tensor_span.h"
#include "kernels/tf/op_kernels/kernel_checks.h"
#include "kernels/tf/op_kernels/stored_filtered.h"
#include "kernels/tf/resources/ev_resource.h"

namespace embedding_variable {
namespace {

using tensorflow::DataType;
using tensorflow::OpKernel;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::Status;
using tensorflow::strings::StrCat;

// Rows that are in memory at once while restoring.
constexpr int64_t kPieceBytes = 8 << 20;

// Adds the variable to an error of the checkpoint.
Status WithVariable(const std::string& variable, const Status& status) {
  if (status.ok()) return status;
  return Status(status.code(), StrCat("embedding variable '", variable,
                                      "': ", status.error_message()));
}

// The tensors of one stored table, read side by side.
class StoredTable {
 public:
  // `name` is what its tensors' names start with.
  Status Open(const CheckpointReader& checkpoint, const std::string& name,
              const std::vector<ev::SlotSpec>& slots, int64_t dim) {
    dim_ = dim;
    TF_RETURN_IF_ERROR(checkpoint.Open(name + "-keys", &keys_));
    if (keys_->shape().dims() != 1 ||
        (keys_->dtype() != tensorflow::DT_INT64 &&
         keys_->dtype() != tensorflow::DT_INT32)) {
      return tensorflow::errors::InvalidArgument(
          "tensor ", name, "-keys of checkpoint ", checkpoint.prefix(),
          " must be a vector of int64 or int32, got ",
          tensorflow::DataTypeString(keys_->dtype()), " ",
          keys_->shape().DebugString());
    }
    num_keys_ = keys_->shape().dim_size(0);
    TF_RETURN_IF_ERROR(OpenRows(checkpoint, name + "-values", &values_));
    TF_RETURN_IF_ERROR(OpenMeta(checkpoint, name + "-versions", &versions_));
    TF_RETURN_IF_ERROR(OpenMeta(checkpoint, name + "-freqs", &frequencies_));
    slots_.resize(slots.size());
    for (size_t s = 0; s < slots.size(); ++s) {
      const std::string tensor = StrCat(name, "/", slots[s].name, "-values");
      bool found;
      TF_RETURN_IF_ERROR(checkpoint.Find(tensor, &found));
      if (found) TF_RETURN_IF_ERROR(OpenRows(checkpoint, tensor, &slots_[s]));
    }
    return Status::OK();
  }

  // Puts all rows that belong to the part into the table.
  Status Import(const std::vector<ev::SlotSpec>& all_slots, int part,
                int num_parts, ev::EmbeddingTable* table) {
    std::vector<ev::SlotSpec> slots;
    std::vector<TensorStream*> slot_streams;
    for (size_t s = 0; s < slots_.size(); ++s) {
      if (slots_[s] == nullptr) continue;
      slots.push_back(all_slots[s]);
      slot_streams.push_back(slots_[s].get());
    }
    const int64_t row_bytes = (1 + slots.size()) * dim_ * sizeof(float);
    const int64_t piece = std::max<int64_t>(1, kPieceBytes / row_bytes);
    std::vector<int64_t> keys, versions, frequencies;
    std::vector<int32_t> narrow;
    std::vector<float> values;
    std::vector<std::vector<float>> slot_values(slots.size());
    std::vector<const float*> slot_pointers(slots.size());
    for (int64_t first = 0; first < num_keys_; first += piece) {
      const int64_t n = std::min(piece, num_keys_ - first);
      keys.resize(n);
      if (keys_->dtype() == tensorflow::DT_INT64) {
        TF_RETURN_IF_ERROR(ReadInto(keys_.get(), n, &keys));
      } else {
        TF_RETURN_IF_ERROR(ReadInto(keys_.get(), n, &narrow));
        std::copy(narrow.begin(), narrow.end(), keys.begin());
      }
      TF_RETURN_IF_ERROR(ReadInto(values_.get(), n * dim_, &values));
      if (versions_ != nullptr) {
        TF_RETURN_IF_ERROR(ReadInto(versions_.get(), n, &versions));
      }
      if (frequencies_ != nullptr) {
        TF_RETURN_IF_ERROR(ReadInto(frequencies_.get(), n, &frequencies));
      }
      for (size_t s = 0; s < slots.size(); ++s) {
        TF_RETURN_IF_ERROR(
            ReadInto(slot_streams[s], n * dim_, &slot_values[s]));
        slot_pointers[s] = slot_values[s].data();
      }
      TF_RETURN_IF_ERROR(
          ToTf(table->Import(keys, values.data(), slots, slot_pointers,
                             versions, frequencies, part, num_parts)));
    }
    return Status::OK();
  }

 private:
  template <typename T>
  static Status ReadInto(TensorStream* stream, int64_t count,
                         std::vector<T>* data) {
    data->resize(count);
    return stream->Read(count * sizeof(T), data->data());
  }

  Status OpenRows(const CheckpointReader& checkpoint, const std::string& tensor,
                  std::unique_ptr<TensorStream>* stream) const {
    TF_RETURN_IF_ERROR(checkpoint.Open(tensor, stream));
    const tensorflow::TensorShape& shape = (*stream)->shape();
    if ((*stream)->dtype() == tensorflow::DT_FLOAT && shape.dims() == 2 &&
        shape.dim_size(0) == num_keys_ && shape.dim_size(1) == dim_) {
      return Status::OK();
    }
    return tensorflow::errors::InvalidArgument(
        "tensor ", tensor, " of checkpoint ", checkpoint.prefix(),
        " must be float [", num_keys_, ",", dim_,
        "] (the variable's embedding_dim is ", dim_, "), got ",
        tensorflow::DataTypeString((*stream)->dtype()), " ",
        shape.DebugString());
  }

  // Leaves *stream null when the checkpoint does not record it.
  Status OpenMeta(const CheckpointReader& checkpoint, const std::string& tensor,
                  std::unique_ptr<TensorStream>* stream) const {
    bool found;
    TF_RETURN_IF_ERROR(checkpoint.Find(tensor, &found));
    if (!found) return Status::OK();
    TF_RETURN_IF_ERROR(checkpoint.Open(tensor, stream));
    const tensorflow::TensorShape& shape = (*stream)->shape();
    if ((*stream)->dtype() != tensorflow::DT_INT64 || shape.dims() != 1 ||
        (shape.dim_size(0) != 0 && shape.dim_size(0) != num_keys_)) {
      return tensorflow::errors::InvalidArgument(
          "tensor ", tensor, " of checkpoint ", checkpoint.prefix(),
          " must be int64 [0] or [", num_keys_, "], got ",
          tensorflow::DataTypeString((*stream)->dtype()), " ",
          shape.DebugString());
    }
    if (shape.dim_size(0) == 0) stream->reset();
    return Status::OK();
  }

  int64_t dim_ = 0;
  int64_t num_keys_ = 0;
  std::unique_ptr<TensorStream> keys_, values_, versions_, frequencies_;
  // Null where the checkpoint lacks the slot.
  std::vector<std::unique_ptr<TensorStream>> slots_;
};

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
    OP_REQUIRES_OK(context, context->GetAttr("part", &part_));
    OP_REQUIRES_OK(context, context->GetAttr("num_parts", &num_parts_));
  }

  void Compute(OpKernelContext* context) override {
    EvResourcePtr resource;
    OP_REQUIRES_OK(context, GetInitialized(context, 0, &resource));
    const tensorflow::Tensor& prefix = context->input(1);
    OP_REQUIRES(context, prefix.NumElements() == 1,
                BadInput(resource->name(),
                         "the checkpoint's prefix must be one string"));
    OP_REQUIRES_OK(
        context,
        WithVariable(resource->name(),
                     Restore(std::string(prefix.flat<tensorflow::tstring>()(0)),
                             resource.get())));
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
      TF_RETURN_IF_ERROR(
          stored[i].Open(*checkpoint, names[i], slots_[0], resource->dim()));
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
      TF_RETURN_IF_ERROR(
          table.Import(slots_[0], part_, num_parts_, resource->table().get()));
    }
    for (StoredFiltered& keys : filtered) {
      TF_RETURN_IF_ERROR(keys.Import(
          part_, num_parts_, [](int64_t) { return true; },
          resource->table().get()));
    }
    return Status::OK();
  }

  // Leaves *rows empty when the checkpoint has none.
  static Status ReadDefaults(const CheckpointReader& checkpoint,
                             const std::string& name, int64_t dim,
                             std::vector<float>* rows) {
    const std::string tensor = name + "-default_rows";
    bool found;
    TF_RETURN_IF_ERROR(checkpoint.Find(tensor, &found));
    if (!found) return Status::OK();
    std::unique_ptr<TensorStream> stream;
    TF_RETURN_IF_ERROR(checkpoint.Open(tensor, &stream));
    const tensorflow::TensorShape& shape = stream->shape();
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
    *defaults_of = (*names)[part_ % names->size()];
    // With as many parts as are stored, each finds its keys in its own.
    if (static_cast<int>(names->size()) == num_parts_) {
      *names = {(*names)[part_]};
    }
    return Status::OK();
  }

  std::string tensor_name_;
  std::vector<std::vector<ev::SlotSpec>> slots_;
  int part_ = 0;
  int num_parts_ = 1;
};

REGISTER_KERNEL_BUILDER(Name("EvDefaultRows").Device(tensorflow::DEVICE_CPU),
                        DefaultRowsOp);
REGISTER_KERNEL_BUILDER(Name("EvRestore").Device(tensorflow::DEVICE_CPU),
                        RestoreOp);

}  // namespace
}  // namespace embedding_variable
