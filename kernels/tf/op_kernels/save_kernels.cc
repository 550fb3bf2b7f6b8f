// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// EvSave.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "kernels/engine/checkpoint/save_table.h"
#include "kernels/tf/bridge/checkpoint_tensors.h"
#include "kernels/tf/bridge/checkpoint_writer.h"
#include "kernels/tf/bridge/register_kernel.h"
#include "kernels/tf/op_kernels/kernel_checks.h"
#include "kernels/tf/resources/ev_resource.h"

namespace embedding_variable {
namespace {

using tensorflow::DataTypeVector;
using tensorflow::OpKernel;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::Status;

class SaveOp : public OpKernel {
 public:
  explicit SaveOp(OpKernelConstruction* context) : OpKernel(context) {
    std::vector<std::string> names, slot_names;
    std::vector<tensorflow::int32> slot_counts;
    std::vector<float> slot_inits;
    DataTypeVector key_dtypes;
    std::vector<std::string> row_types;
    bool with_filtered;
    OP_REQUIRES_OK(context, context->GetAttr("tensor_names", &names));
    OP_REQUIRES_OK(context, context->GetAttr("key_dtypes", &key_dtypes));
    OP_REQUIRES_OK(context, context->GetAttr("slot_counts", &slot_counts));
    OP_REQUIRES_OK(context, context->GetAttr("slot_names", &slot_names));
    OP_REQUIRES_OK(context, context->GetAttr("slot_inits", &slot_inits));
    OP_REQUIRES_OK(context, context->GetAttr("with_filtered", &with_filtered));
    OP_REQUIRES_OK(context, context->GetAttr("row_types", &row_types));
    const size_t n = num_inputs() - 1;
    row_types.resize(row_types.empty() ? n : row_types.size(), "float32");
    size_t num_slots = 0;
    for (const int count : slot_counts) num_slots += std::max(0, count);
    OP_REQUIRES(context,
                names.size() == n && key_dtypes.size() == n &&
                    slot_counts.size() == n && row_types.size() == n &&
                    slot_names.size() == num_slots &&
                    slot_inits.size() == num_slots,
                tensorflow::errors::InvalidArgument(
                    n, " tables came with ", names.size(), " names, ",
                    key_dtypes.size(), " types of keys, ", row_types.size(),
                    " of rows and ", slot_counts.size(), " counts of together ",
                    num_slots, " slots, which came with ", slot_names.size(),
                    " names and ", slot_inits.size(), " initial values"));
    size_t slot = 0;
    for (size_t t = 0; t < n; ++t) {
      ev::SaveOptions table;
      table.name = names[t];
      table.int32_keys = key_dtypes[t] == tensorflow::DT_INT32;
      for (int s = 0; s < slot_counts[t]; ++s, ++slot) {
        table.slots.push_back({slot_names[slot], slot_inits[slot]});
      }
      table.with_filtered = with_filtered;
      ev::ParseRowType(row_types[t], &table.row_type);
      tables_.push_back(std::move(table));
    }
  }

  void Compute(OpKernelContext* context) override {
    const tensorflow::Tensor& prefix = context->input(0);
    OP_REQUIRES(context, prefix.NumElements() == 1,
                tensorflow::errors::InvalidArgument(
                    "the prefix: expected one string, got ",
                    prefix.shape().DebugString()));
    std::vector<EvResourcePtr> resources(tables_.size());
    int num_streams = 0;
    for (size_t t = 0; t < tables_.size(); ++t) {
      OP_REQUIRES_OK(context, GetInitialized(context, static_cast<int>(1 + t),
                                             &resources[t]));
      num_streams = std::max(
          num_streams,
          ev::NumSaveStreams(tables_[t], resources[t]->table()->options()));
    }
    CheckpointWriter writer(std::string(prefix.flat<tensorflow::tstring>()(0)),
                            num_streams);
    OP_REQUIRES_OK(context, writer.Open());
    CheckpointTensorWriter tensors(&writer);
    // One table at a time, so that saving needs the additional memory of only
    // one table.
    for (size_t t = 0; t < tables_.size(); ++t) {
      const ev::Status saved =
          ev::SaveTable(tables_[t], resources[t]->table().get(), &tensors);
      OP_REQUIRES_OK(context,
                     OfVariable(resources[t]->name(), tensors.Original(saved)));
    }
    OP_REQUIRES_OK(context, writer.Finish());
  }

 private:
  std::vector<ev::SaveOptions> tables_;
};

const RegisterKernel<SaveOp> kSave("EvSave", {"prefix", "resources"});

}  // namespace
}  // namespace embedding_variable
