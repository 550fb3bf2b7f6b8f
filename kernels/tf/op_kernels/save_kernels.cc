// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// EvSave.

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "kernels/engine/embedding/table_reader.h"
#include "kernels/tf/bridge/checkpoint_writer.h"
#include "kernels/tf/bridge/status.h"
#include "kernels/tf/op_kernels/kernel_checks.h"
#include "kernels/tf/resources/ev_resource.h"

namespace embedding_variable {
namespace {

using tensorflow::DataType;
using tensorflow::DataTypeVector;
using tensorflow::OpKernel;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::Status;
using tensorflow::TensorShape;
using tensorflow::strings::StrCat;

// What is saved of one table.
struct Stored {
  std::string name;  // what its tensors' names start with
  DataType key_dtype;
  std::vector<ev::SlotSpec> slots;
  bool with_filtered;
};

// Puts the tensors of one table into a checkpoint.
class TableSaver {
 public:
  TableSaver(const Stored& stored, ev::TableReader* reader, int64_t dim,
             CheckpointWriter* writer)
      : stored_(stored), reader_(reader), dim_(dim), writer_(writer) {}

  Status Save() {
    const int64_t n = reader_->num_keys();
    // Readers of the format count rows in int32.
    if (n > std::numeric_limits<int32_t>::max()) {
      return tensorflow::errors::InvalidArgument(
          "a checkpoint holds at most 2^31 - 1 rows of a table, got ", n);
    }
    TF_RETURN_IF_ERROR(SaveDefaults());
    TF_RETURN_IF_ERROR(SaveKeys("-keys", n, [this](const VisitInt64& visit) {
      return reader_->Keys(visit);
    }));
    TF_RETURN_IF_ERROR(SaveInts(
        "-versions", reader_->has_versions() ? n : 0,
        [this](const VisitInt64& visit) { return reader_->Versions(visit); }));
    TF_RETURN_IF_ERROR(SaveInts("-freqs", reader_->has_frequencies() ? n : 0,
                                [this](const VisitInt64& visit) {
                                  return reader_->Frequencies(visit);
                                }));
    TF_RETURN_IF_ERROR(
        SaveOffsets("-partition_offset", reader_->partition_begins()));
    TF_RETURN_IF_ERROR(SaveFiltered());
    TF_RETURN_IF_ERROR(SaveRows(stored_.name, 0));
    for (size_t s = 0; s < stored_.slots.size(); ++s) {
      const std::string slot = StrCat(stored_.name, "/", stored_.slots[s].name);
      for (const char* column :
           {"-keys", "-versions", "-freqs", "-partition_offset",
            "-keys_filtered", "-versions_filtered", "-freqs_filtered",
            "-partition_filter_offset"}) {
        TF_RETURN_IF_ERROR(
            writer_->SameAs(slot + column, stored_.name + column));
      }
      TF_RETURN_IF_ERROR(SaveRows(slot, static_cast<int>(1 + s)));
    }
    return Status::OK();
  }

 private:
  using VisitInt64 = ev::TableReader::Visit<int64_t>;
  using Column = std::function<ev::Status(const VisitInt64&)>;

  // What a visitor returns when the writer has failed; the writer knows why.
  static ev::Status Written(const Status& status) {
    if (status.ok()) return ev::Status::OK();
    return ev::Internal(status.error_message());
  }

  Status Result(const ev::Status& status) const {
    TF_RETURN_IF_ERROR(writer_->status());
    return ToTf(status);
  }

  Status SaveDefaults() {
    const std::vector<float>& rows = reader_->default_rows();
    TF_RETURN_IF_ERROR(writer_->Begin(
        stored_.name + "-default_rows", tensorflow::DT_FLOAT,
        TensorShape({static_cast<int64_t>(rows.size()) / dim_, dim_})));
    return writer_->Append(rows.data(), rows.size() * sizeof(float));
  }

  // A column of n integers; nothing is asked for when it has none.
  Status SaveInts(const char* name, int64_t n, const Column& column) {
    TF_RETURN_IF_ERROR(writer_->Begin(stored_.name + name, tensorflow::DT_INT64,
                                      TensorShape({n})));
    if (n == 0) return Status::OK();
    return Result(column([this](ev::Span<const int64_t> piece) {
      return Written(
          writer_->Append(piece.data(), piece.size() * sizeof(int64_t)));
    }));
  }

  Status SaveKeys(const char* name, int64_t n, const Column& column) {
    if (stored_.key_dtype == tensorflow::DT_INT64) {
      return SaveInts(name, n, column);
    }
    TF_RETURN_IF_ERROR(writer_->Begin(stored_.name + name, tensorflow::DT_INT32,
                                      TensorShape({n})));
    std::vector<int32_t> narrow;
    return Result(column([&](ev::Span<const int64_t> piece) {
      narrow.assign(piece.begin(), piece.end());
      return Written(
          writer_->Append(narrow.data(), narrow.size() * sizeof(int32_t)));
    }));
  }

  Status SaveOffsets(const char* name, const std::vector<int64_t>& begins) {
    const std::vector<int32_t> narrow(begins.begin(), begins.end());
    TF_RETURN_IF_ERROR(
        writer_->Begin(stored_.name + name, tensorflow::DT_INT32,
                       TensorShape({static_cast<int64_t>(narrow.size())})));
    return writer_->Append(narrow.data(), narrow.size() * sizeof(int32_t));
  }

  Status SaveFiltered() {
    const int64_t n = stored_.with_filtered ? reader_->num_filtered() : 0;
    TF_RETURN_IF_ERROR(
        SaveKeys("-keys_filtered", n, [&](const VisitInt64& visit) {
          return n == 0 ? ev::Status::OK() : reader_->FilteredKeys(visit);
        }));
    TF_RETURN_IF_ERROR(SaveInts("-versions_filtered",
                                reader_->has_versions() ? n : 0,
                                [this](const VisitInt64& visit) {
                                  return reader_->FilteredVersions(visit);
                                }));
    TF_RETURN_IF_ERROR(
        SaveInts("-freqs_filtered", n, [this](const VisitInt64& visit) {
          return reader_->FilteredFrequencies(visit);
        }));
    return SaveOffsets("-partition_filter_offset",
                       n > 0 ? reader_->filtered_partition_begins()
                             : std::vector<int64_t>(ev::kKeyPartitions + 1));
  }

  Status SaveRows(const std::string& name, int column) {
    TF_RETURN_IF_ERROR(
        writer_->Begin(name + "-values", tensorflow::DT_FLOAT,
                       TensorShape({reader_->num_keys(), dim_})));
    return Result(reader_->Rows(column, [this](ev::Span<const float> rows) {
      return Written(writer_->Append(rows.data(), rows.size() * sizeof(float)));
    }));
  }

  const Stored& stored_;
  ev::TableReader* const reader_;
  const int64_t dim_;
  CheckpointWriter* const writer_;
};

class SaveOp : public OpKernel {
 public:
  explicit SaveOp(OpKernelConstruction* context) : OpKernel(context) {
    std::vector<std::string> names, slot_names;
    std::vector<tensorflow::int32> slot_counts;
    std::vector<float> slot_inits;
    DataTypeVector key_dtypes;
    bool with_filtered;
    OP_REQUIRES_OK(context, context->GetAttr("tensor_names", &names));
    OP_REQUIRES_OK(context, context->GetAttr("key_dtypes", &key_dtypes));
    OP_REQUIRES_OK(context, context->GetAttr("slot_counts", &slot_counts));
    OP_REQUIRES_OK(context, context->GetAttr("slot_names", &slot_names));
    OP_REQUIRES_OK(context, context->GetAttr("slot_inits", &slot_inits));
    OP_REQUIRES_OK(context, context->GetAttr("with_filtered", &with_filtered));
    const size_t n = num_inputs() - 1;
    size_t num_slots = 0;
    for (const int count : slot_counts) num_slots += std::max(0, count);
    OP_REQUIRES(context,
                names.size() == n && key_dtypes.size() == n &&
                    slot_counts.size() == n && slot_names.size() == num_slots &&
                    slot_inits.size() == num_slots,
                tensorflow::errors::InvalidArgument(
                    n, " tables came with ", names.size(), " names, ",
                    key_dtypes.size(), " types of keys and ",
                    slot_counts.size(), " counts of together ", num_slots,
                    " slots, which came with ", slot_names.size(),
                    " names and ", slot_inits.size(), " initial values"));
    size_t slot = 0;
    for (size_t t = 0; t < n; ++t) {
      Stored stored{names[t], key_dtypes[t], {}, with_filtered};
      for (int s = 0; s < slot_counts[t]; ++s, ++slot) {
        stored.slots.push_back({slot_names[slot], slot_inits[slot]});
      }
      stored_.push_back(std::move(stored));
    }
  }

  void Compute(OpKernelContext* context) override {
    const tensorflow::Tensor& prefix = context->input(0);
    OP_REQUIRES(context, prefix.NumElements() == 1,
                tensorflow::errors::InvalidArgument(
                    "the prefix must be one string, got ",
                    prefix.shape().DebugString()));
    std::vector<EvResourcePtr> resources(stored_.size());
    for (size_t t = 0; t < stored_.size(); ++t) {
      OP_REQUIRES_OK(context, GetInitialized(context, static_cast<int>(1 + t),
                                             &resources[t]));
    }
    CheckpointWriter writer(std::string(prefix.flat<tensorflow::tstring>()(0)));
    OP_REQUIRES_OK(context, writer.Open());
    // One after the other: what one needs besides its table is enough.
    for (size_t t = 0; t < stored_.size(); ++t) {
      OP_REQUIRES_OK(context,
                     InVariable(resources[t]->name(),
                                Save(stored_[t], resources[t].get(), &writer)));
    }
    OP_REQUIRES_OK(context, writer.Finish());
  }

 private:
  static Status InVariable(const std::string& name, const Status& status) {
    if (status.ok()) return status;
    return Status(status.code(), StrCat("embedding variable '", name,
                                        "': ", status.error_message()));
  }

  static Status Save(const Stored& stored, EvResource* resource,
                     CheckpointWriter* writer) {
    std::unique_ptr<ev::TableReader> reader;
    TF_RETURN_IF_ERROR(ToTf(
        ev::TableReader::Open(resource->table().get(), stored.slots, &reader)));
    return TableSaver(stored, reader.get(), resource->dim(), writer).Save();
  }

  std::vector<Stored> stored_;
};

REGISTER_KERNEL_BUILDER(Name("EvSave").Device(tensorflow::DEVICE_CPU), SaveOp);

}  // namespace
}  // namespace embedding_variable
