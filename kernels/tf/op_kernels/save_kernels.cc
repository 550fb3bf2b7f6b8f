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
#include "kernels/tf/bridge/register_kernel.h"
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

// Streams of the checkpoint: everything but what follows goes to the first,
// keys last.
constexpr int kMainStream = 0;
// The value, then slots, then versions and frequencies if they are recorded.
int RowStream(size_t column) { return static_cast<int>(1 + column); }

// Puts the tensors of one table into a checkpoint.
class TableSaver {
 public:
  static int NumStreams(const Stored& stored, const ev::TableOptions& options) {
    return RowStream(1 + stored.slots.size()) + options.record_version +
           options.record_frequency;
  }

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
    // What a filter counts keeps updates waiting: first.
    TF_RETURN_IF_ERROR(SaveFiltered());
    TF_RETURN_IF_ERROR(SaveDefaults());
    TF_RETURN_IF_ERROR(
        SaveOffsets("-partition_offset", reader_->partition_begins()));
    TF_RETURN_IF_ERROR(SaveRows(n));
    for (const ev::SlotSpec& spec : stored_.slots) {
      const std::string slot = StrCat(stored_.name, "/", spec.name);
      for (const char* column :
           {"-keys", "-versions", "-freqs", "-partition_offset",
            "-keys_filtered", "-versions_filtered", "-freqs_filtered",
            "-partition_filter_offset"}) {
        TF_RETURN_IF_ERROR(
            writer_->SameAs(slot + column, stored_.name + column));
      }
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
        kMainStream, stored_.name + "-default_rows", tensorflow::DT_FLOAT,
        TensorShape({static_cast<int64_t>(rows.size()) / dim_, dim_})));
    return writer_->Append(kMainStream, rows.data(),
                           rows.size() * sizeof(float));
  }

  Status Begin(int stream, const std::string& name, DataType dtype, int64_t n) {
    return writer_->Begin(stream, stored_.name + name, dtype, TensorShape({n}));
  }

  Status AppendInts(int stream, ev::Span<const int64_t> ints) {
    return writer_->Append(stream, ints.data(), ints.size() * sizeof(int64_t));
  }

  // In the stored type.
  Status AppendKeys(ev::Span<const int64_t> keys) {
    if (stored_.key_dtype == tensorflow::DT_INT64) {
      return AppendInts(kMainStream, keys);
    }
    narrow_.clear();
    for (const int64_t key : keys) {
      narrow_.push_back(static_cast<int32_t>(key));
      if (narrow_.back() != key) {
        return tensorflow::errors::InvalidArgument(
            "keys are stored as int32, and key ", key, " is none");
      }
    }
    return writer_->Append(kMainStream, narrow_.data(),
                           narrow_.size() * sizeof(int32_t));
  }

  // A column of n integers; nothing is asked for when it has none.
  Status SaveInts(const char* name, int64_t n, const Column& column) {
    TF_RETURN_IF_ERROR(Begin(kMainStream, name, tensorflow::DT_INT64, n));
    if (n == 0) return Status::OK();
    return Result(column([this](ev::Span<const int64_t> piece) {
      return Written(AppendInts(kMainStream, piece));
    }));
  }

  Status SaveOffsets(const char* name, const std::vector<int64_t>& begins) {
    const std::vector<int32_t> narrow(begins.begin(), begins.end());
    TF_RETURN_IF_ERROR(
        Begin(kMainStream, name, tensorflow::DT_INT32, narrow.size()));
    return writer_->Append(kMainStream, narrow.data(),
                           narrow.size() * sizeof(int32_t));
  }

  Status SaveFiltered() {
    const int64_t n = stored_.with_filtered ? reader_->num_filtered() : 0;
    TF_RETURN_IF_ERROR(
        Begin(kMainStream, "-keys_filtered", stored_.key_dtype, n));
    if (n > 0) {
      TF_RETURN_IF_ERROR(
          Result(reader_->FilteredKeys([this](ev::Span<const int64_t> piece) {
            return Written(AppendKeys(piece));
          })));
    }
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

  // All columns side by side, since rows are read once. Of what is not recorded
  // there is an empty column.
  Status SaveRows(int64_t n) {
    TF_RETURN_IF_ERROR(BeginMeta("-versions", reader_->has_versions(), n));
    TF_RETURN_IF_ERROR(BeginMeta("-freqs", reader_->has_frequencies(), n));
    TF_RETURN_IF_ERROR(Begin(kMainStream, "-keys", stored_.key_dtype, n));
    for (size_t c = 0; c <= stored_.slots.size(); ++c) {
      const std::string name =
          c == 0 ? stored_.name
                 : StrCat(stored_.name, "/", stored_.slots[c - 1].name);
      TF_RETURN_IF_ERROR(writer_->Begin(RowStream(c), name + "-values",
                                        tensorflow::DT_FLOAT,
                                        TensorShape({n, dim_})));
    }
    return Result(reader_->Rows([this](const ev::RowPiece& piece) {
      return Written(AppendRows(piece));
    }));
  }

  Status AppendRows(const ev::RowPiece& piece) {
    TF_RETURN_IF_ERROR(AppendKeys(piece.keys));
    for (size_t c = 0; c < piece.columns.size(); ++c) {
      const ev::Span<const float> rows = piece.columns[c];
      TF_RETURN_IF_ERROR(writer_->Append(RowStream(c), rows.data(),
                                         rows.size() * sizeof(float)));
    }
    int stream = RowStream(piece.columns.size());
    if (reader_->has_versions()) {
      TF_RETURN_IF_ERROR(AppendInts(stream++, piece.versions));
    }
    if (!reader_->has_frequencies()) return Status::OK();
    return AppendInts(stream, piece.frequencies);
  }

  Status BeginMeta(const char* name, bool is_recorded, int64_t n) {
    if (!is_recorded) {
      return Begin(kMainStream, name, tensorflow::DT_INT64, 0);
    }
    return Begin(RowStream(1 + stored_.slots.size()) + num_meta_++, name,
                 tensorflow::DT_INT64, n);
  }

  const Stored& stored_;
  ev::TableReader* const reader_;
  const int64_t dim_;
  CheckpointWriter* const writer_;
  int num_meta_ = 0;  // columns of it that have begun
  std::vector<int32_t> narrow_;
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
    int num_streams = 0;
    for (size_t t = 0; t < stored_.size(); ++t) {
      num_streams = std::max(
          num_streams,
          TableSaver::NumStreams(stored_[t], resources[t]->table()->options()));
    }
    CheckpointWriter writer(std::string(prefix.flat<tensorflow::tstring>()(0)),
                            num_streams);
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

const RegisterKernel<SaveOp> kSave("EvSave", {"prefix", "resources"});

}  // namespace
}  // namespace embedding_variable
