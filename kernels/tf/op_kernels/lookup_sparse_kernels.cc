// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// EvLookupSparse, EvLookupSparseGrad, EvLookupSparseWeightGrad,
// EvPoolGivenRows, EvPlanCounts.

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernels/engine/combine/combiner_names.h"
#include "kernels/engine/embedding/lookup/pooled_lookup.h"
#include "kernels/tf/bridge/gpu_tensors.h"
#include "kernels/tf/bridge/pool_parallel.h"
#include "kernels/tf/bridge/register_kernel.h"
#include "kernels/tf/bridge/shared_variant.h"
#include "kernels/tf/bridge/status.h"
#include "kernels/tf/bridge/tensor_span.h"
#include "kernels/tf/bridge/transfer_tensor.h"
#include "kernels/tf/op_kernels/ids_in_cpu_memory.h"
#include "kernels/tf/op_kernels/ids_input.h"
#include "kernels/tf/op_kernels/kernel_checks.h"
#include "kernels/tf/resources/ev_resource.h"
#include "kernels/tf/resources/plan_variant.h"

namespace embedding_variable {
namespace {

using tensorflow::OpKernel;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::Status;
using tensorflow::Tensor;
using tensorflow::TensorShape;

// Allocates an output of that shape. If a device pools the table's samples, the
// output is in transfer memory.
Status AllocateRows(OpKernelContext* context, int output,
                    const TensorShape& shape, const ev::EmbeddingTable& table,
                    ev::MutableFloats* data) {
  Tensor made;
  if (table.pools_on_device()) {
    TF_RETURN_IF_ERROR(AllocateTransferOutput(context, output, shape, &made));
  } else {
    Tensor* tensor = nullptr;
    TF_RETURN_IF_ERROR(context->allocate_output(output, shape, &tensor));
    made = *tensor;
  }
  *data = MutableFloatsOf(made);
  return Status();
}

// kIdsOnGpu: the inputs ids and rows are in the memory of the GPU that runs the
// op.
template <bool kIdsOnGpu>
class LookupSparseOp : public OpKernel {
 public:
  explicit LookupSparseOp(OpKernelConstruction* context)
      : OpKernel(context), on_gpu_(IsOnGpu(*context)) {
    OP_REQUIRES_OK(context, context->GetAttr("num_tables", &num_tables_));
    OP_REQUIRES_OK(context, context->GetAttr("num_weights", &num_weights_));
    OP_REQUIRES_OK(context, context->GetAttr("dims", &dims_));
    OP_REQUIRES_OK(context, context->GetAttr("no_nan", &no_nan_));
    std::vector<std::string> combiners;
    OP_REQUIRES_OK(context, context->GetAttr("combiners", &combiners));
    OP_REQUIRES(context,
                dims_.size() == num_tables_ &&
                    combiners.size() == num_tables_ &&
                    (num_weights_ == 0 || num_weights_ == num_tables_),
                tensorflow::errors::InvalidArgument(
                    "a lookup of ", num_tables_, " tables got ", dims_.size(),
                    " dims, ", combiners.size(), " combiners and ",
                    num_weights_, " weights"));
    combiners_.resize(num_tables_);
    for (int t = 0; t < num_tables_; ++t) {
      OP_REQUIRES_OK(context,
                     ToTf(ev::ParseCombiner(combiners[t], &combiners_[t])));
    }
  }

  void Compute(OpKernelContext* context) override {
    const int n = num_tables_;
    std::vector<std::shared_ptr<ev::EmbeddingTable>> tables(n);
    std::vector<ev::PooledInput> inputs(n);
    std::vector<TensorShape> shapes(n);
    for (int t = 0; t < n; ++t) {
      EvResourcePtr resource;
      OP_REQUIRES_OK(context, GetInitialized(context, t, &resource));
      tables[t] = resource->table();
      OP_REQUIRES_OK(context,
                     MakeInput(context, t, *resource, &inputs[t], &shapes[t]));
    }
    std::vector<ev::MutableFloats> outputs(n);
    GpuOutputs on_gpu(n);
    IdsInCpuMemory cpu_ids;
    for (int t = 0; t < n; ++t) {
      OP_REQUIRES_OK(
          context, on_gpu_ ? on_gpu.Allocate(context, t, shapes[t], *tables[t],
                                             &inputs[t], &outputs[t])
                           : AllocateRows(context, t, shapes[t], *tables[t],
                                          &outputs[t]));
    }
    PoolParallel parallel(context);
    std::shared_ptr<const ev::LookupPlan> plan;
    const bool ids_on_gpu = kIdsOnGpu && on_gpu_;
    bool is_done = false;
    if (ids_on_gpu && on_gpu.copies().empty()) {
      for (ev::PooledInput& in : inputs) in.on_device = true;
      const ev::Status status =
          ev::PooledForward(inputs, tables, outputs, &parallel, &plan);
      is_done = status.code() != ev::StatusCode::kUnimplemented;
      if (is_done) OP_REQUIRES_OK(context, ToTf(status));
    }
    if (!is_done) {
      if (ids_on_gpu) {
        for (int t = 0; t < n; ++t) {
          cpu_ids.Add(context->input(n + t), context->input(2 * n + t),
                      &inputs[t]);
        }
        OP_REQUIRES_OK(context, cpu_ids.CopyAll(context));
      }
      OP_REQUIRES_OK(context, ToTf(ev::PooledForward(inputs, tables, outputs,
                                                     &parallel, &plan)));
    }
    OP_REQUIRES_OK(context, CopyToGpu(context, on_gpu.copies()));
    OP_REQUIRES_OK(context, SetPlanOutput(context, n, std::move(plan)));
  }

 private:
  // Outputs in GPU memory. The device that holds the rows writes them directly.
  // Outputs pooled in CPU memory are copied to the GPU afterwards.
  class GpuOutputs {
   public:
    explicit GpuOutputs(int num_tables) : staged_(num_tables) {}

    Status Allocate(OpKernelContext* context, int t, const TensorShape& shape,
                    const ev::EmbeddingTable& table, ev::PooledInput* in,
                    ev::MutableFloats* data) {
      Tensor* output = nullptr;
      TF_RETURN_IF_ERROR(context->allocate_output(t, shape, &output));
      if (in->weights == nullptr && !ev::Selects(in->combiner) &&
          table.takes_device_tensors()) {
        // After the allocation: earlier work on the stream may still use the
        // memory.
        TF_RETURN_IF_ERROR(GetDeviceStream(context, &stream_));
        in->stream = &stream_;
        *data = MutableFloatsOf(*output);
        return Status();
      }
      Tensor* const staged = &staged_[t];
      if (!MakeTransferTensor(output->dtype(), shape, staged)) {
        TF_RETURN_IF_ERROR(context->allocate_temp(output->dtype(), shape,
                                                  staged, InCpuMemory()));
      }
      *data = MutableFloatsOf(*staged);
      copies_.emplace_back(staged, output);
      return Status();
    }
    const std::vector<std::pair<const Tensor*, Tensor*>>& copies() const {
      return copies_;
    }

   private:
    ev::DeviceStream stream_;
    std::vector<Tensor> staged_;
    std::vector<std::pair<const Tensor*, Tensor*>> copies_;
  };

  Status MakeInput(OpKernelContext* context, int t, const EvResource& resource,
                   ev::PooledInput* in, TensorShape* output_shape) const {
    const std::string& name = resource.name();
    if (resource.dim() != dims_[t]) {
      return BadInput(name, "its rows have length ", resource.dim(),
                      ", the lookup was built for ", dims_[t]);
    }
    in->table = resource.table().get();
    in->combiner = combiners_[t];
    in->no_nan = no_nan_;

    TF_RETURN_IF_ERROR(
        GetIds(context, name, num_tables_ + t, 3 * num_tables_ + t, in));
    TF_RETURN_IF_ERROR(
        MatrixShape(in->batch_size, resource.dim(), name, output_shape));
    TF_RETURN_IF_ERROR(GetSamples(context, name, 2 * num_tables_ + t,
                                  num_weights_ > 0 ? 4 * num_tables_ + t : -1,
                                  in));
    // A combiner that selects ignores weights. They may be present because
    // another table of the op has weights.
    if (ev::Selects(in->combiner)) in->weights = nullptr;
    if (on_gpu_ && !kIdsOnGpu) {
      in->ids_owner =
          std::make_shared<const Tensor>(context->input(num_tables_ + t));
    }
    return Status();
  }

  const bool on_gpu_;
  int num_tables_ = 0;
  int num_weights_ = 0;
  bool no_nan_ = false;
  std::vector<tensorflow::int32> dims_;
  std::vector<ev::Combiner> combiners_;
};

class LookupSparseGradOp : public OpKernel {
 public:
  explicit LookupSparseGradOp(OpKernelConstruction* context)
      : OpKernel(context) {
    int num_grads;
    OP_REQUIRES_OK(context, context->GetAttr("num_grads", &num_grads));
    OP_REQUIRES_OK(context, context->GetAttr("tables", &tables_));
    OP_REQUIRES(
        context, tables_.size() == num_grads,
        tensorflow::errors::InvalidArgument(num_grads, " gradients came with ",
                                            tables_.size(), " tables"));
  }

  void Compute(OpKernelContext* context) override {
    const ev::LookupPlan* plan = nullptr;
    OP_REQUIRES_OK(context, GetPlan(context, 0, &plan));
    std::vector<ev::ConstFloats> grads(plan->num_tables());
    std::vector<float*> unique_grads(plan->num_tables(), nullptr);
    const int num_grads = static_cast<int>(tables_.size());
    for (int k = 0; k < num_grads; ++k) {
      const int t = tables_[k];
      OP_REQUIRES(context, t >= 0 && t < plan->num_tables(),
                  tensorflow::errors::InvalidArgument(
                      "table ", t, " of a lookup of ", plan->num_tables()));
      const ev::TableOptions& options = plan->table(t)->options();
      OP_REQUIRES(context, grads[t] == nullptr,
                  BadInput(options.name, "occurs twice in the gradient"));
      const Tensor& grad = context->input(1 + k);
      OP_REQUIRES_OK(context,
                     CheckMatrix(grad, plan->batch_size(t), options.dim,
                                 options.name, "the gradient of the lookup"));
      grads[t] = FloatsOf(grad);
    }
    PoolParallel parallel(context);
    OP_REQUIRES_OK(context, ToTf(plan->Fetch(tables_, &parallel)));
    for (int k = 0; k < num_grads; ++k) {
      const int t = tables_[k];
      const ev::TableOptions& options = plan->table(t)->options();
      ev::Span<const int64_t> keys;
      OP_REQUIRES_OK(context, ToTf(plan->UniqueKeys(t, &keys)));
      const int64_t num_keys = static_cast<int64_t>(keys.size());
      Tensor* out_keys = nullptr;
      OP_REQUIRES_OK(context, context->allocate_output(
                                  k, TensorShape({num_keys}), &out_keys));
      std::copy(keys.begin(), keys.end(), MutableData<int64_t>(out_keys));
      TensorShape shape;
      OP_REQUIRES_OK(context,
                     MatrixShape(num_keys, options.dim, options.name, &shape));
      ev::MutableFloats sums;
      OP_REQUIRES_OK(context, AllocateRows(context, num_grads + k, shape,
                                           *plan->table(t), &sums));
      unique_grads[t] = sums.floats();
    }
    OP_REQUIRES_OK(context, ToTf(ev::PooledBackward(
                                *plan, ev::Span<const ev::ConstFloats>(grads),
                                unique_grads, &parallel)));
  }

 private:
  std::vector<tensorflow::int32> tables_;
};

class LookupSparseWeightGradOp : public OpKernel {
 public:
  explicit LookupSparseWeightGradOp(OpKernelConstruction* context)
      : OpKernel(context) {
    OP_REQUIRES_OK(context, context->GetAttr("table", &table_));
    int num_rows;
    OP_REQUIRES_OK(context, context->GetAttr("num_rows", &num_rows));
    OP_REQUIRES(context, num_rows <= 1,
                tensorflow::errors::InvalidArgument(
                    "the gradient of one table's weights got rows of ",
                    num_rows, " tables"));
    has_rows_ = num_rows == 1;
  }

  void Compute(OpKernelContext* context) override {
    const ev::LookupPlan* plan = nullptr;
    OP_REQUIRES_OK(context, GetPlan(context, 0, &plan));
    OP_REQUIRES(context, table_ >= 0 && table_ < plan->num_tables(),
                tensorflow::errors::InvalidArgument(
                    "table ", table_, " of a lookup of ", plan->num_tables()));
    const ev::TableOptions& options = plan->table(table_)->options();
    const int64_t batch_size = plan->batch_size(table_);
    const Tensor& grad = context->input(1);
    const Tensor& output = context->input(2);
    OP_REQUIRES_OK(context,
                   CheckMatrix(grad, batch_size, options.dim, options.name,
                               "the gradient of the lookup"));
    OP_REQUIRES_OK(context,
                   CheckMatrix(output, batch_size, options.dim, options.name,
                               "the output of the lookup"));
    const float* rows = nullptr;
    if (has_rows_) {
      ev::Span<const int64_t> keys;
      OP_REQUIRES_OK(context, ToTf(plan->UniqueKeys(table_, &keys)));
      OP_REQUIRES_OK(context,
                     CheckMatrix(context->input(3), keys.size(), options.dim,
                                 options.name, "the given rows"));
      rows = Data<float>(context->input(3));
    }
    Tensor* weight_grad = nullptr;
    const TensorShape shape({plan->num_ids(table_)});
    OP_REQUIRES_OK(context, context->allocate_output(0, shape, &weight_grad));
    PoolParallel parallel(context);
    OP_REQUIRES_OK(context,
                   ToTf(ev::PooledWeightGrad(
                       *plan, table_, Data<float>(grad), Data<float>(output),
                       MutableData<float>(weight_grad), &parallel, rows)));
  }

 private:
  int table_ = 0;
  bool has_rows_ = false;
};

class PoolGivenRowsOp : public OpKernel {
 public:
  explicit PoolGivenRowsOp(OpKernelConstruction* context) : OpKernel(context) {
    OP_REQUIRES_OK(context, context->GetAttr("tables", &tables_));
    int num_rows;
    OP_REQUIRES_OK(context, context->GetAttr("num_rows", &num_rows));
    OP_REQUIRES(context, tables_.size() == num_rows,
                tensorflow::errors::InvalidArgument("rows of ", num_rows,
                                                    " tables came with ",
                                                    tables_.size(), " tables"));
  }

  void Compute(OpKernelContext* context) override {
    const ev::LookupPlan* plan = nullptr;
    OP_REQUIRES_OK(context, GetPlan(context, 0, &plan));
    PoolParallel parallel(context);
    for (int k = 0; k < static_cast<int>(tables_.size()); ++k) {
      const int t = tables_[k];
      OP_REQUIRES(context, t >= 0 && t < plan->num_tables(),
                  tensorflow::errors::InvalidArgument(
                      "table ", t, " of a lookup of ", plan->num_tables()));
      const ev::TableOptions& options = plan->table(t)->options();
      ev::Span<const int64_t> keys;
      OP_REQUIRES_OK(context, ToTf(plan->UniqueKeys(t, &keys)));
      const Tensor& rows = context->input(1 + k);
      OP_REQUIRES_OK(context, CheckMatrix(rows, keys.size(), options.dim,
                                          options.name, "the given rows"));
      TensorShape shape;
      OP_REQUIRES_OK(context, MatrixShape(plan->batch_size(t), options.dim,
                                          options.name, &shape));
      Tensor* output = nullptr;
      OP_REQUIRES_OK(context, context->allocate_output(k, shape, &output));
      OP_REQUIRES_OK(context, ToTf(ev::PoolGivenRows(
                                  *plan, t, Data<float>(rows),
                                  MutableData<float>(output), &parallel)));
    }
  }

 private:
  std::vector<tensorflow::int32> tables_;
};

class PlanCountsOp : public OpKernel {
 public:
  explicit PlanCountsOp(OpKernelConstruction* context) : OpKernel(context) {
    OP_REQUIRES_OK(context, context->GetAttr("table", &table_));
  }

  void Compute(OpKernelContext* context) override {
    const ev::LookupPlan* plan = nullptr;
    OP_REQUIRES_OK(context, GetPlan(context, 0, &plan));
    OP_REQUIRES(context, table_ < plan->num_tables(),
                tensorflow::errors::InvalidArgument(
                    "table ", table_, " of a lookup of ", plan->num_tables()));
    ev::Span<const int64_t> keys;
    ev::Span<const int32_t> counts;
    OP_REQUIRES_OK(context, ToTf(plan->UniqueKeys(table_, &keys, &counts)));
    Tensor* output = nullptr;
    OP_REQUIRES_OK(
        context,
        context->allocate_output(
            0, TensorShape({static_cast<int64_t>(counts.size())}), &output));
    std::copy(counts.begin(), counts.end(), MutableData<int64_t>(output));
  }

 private:
  int table_ = 0;
};

const RegisterKernel<PlanCountsOp> kPlanCounts("EvPlanCounts",
                                               {"plan", "counts"});
const RegisterKernel<LookupSparseOp<false>> kLookupSparse(
    "EvLookupSparse",
    {"resources", "ids", "rows", "batch_sizes", "weights", "plan"});
// Selected by Python's lookup_sparse_ops.py.
const RegisterKernel<LookupSparseOp<true>> kLookupSparseOfIdsOnGpu(
    "EvLookupSparse", {"resources", "batch_sizes", "weights", "plan"},
    "ids_on_gpu");
const RegisterKernel<LookupSparseGradOp> kLookupSparseGrad(
    "EvLookupSparseGrad", {"plan", "grads", "weights", "keys", "unique_grads"});
const RegisterKernel<LookupSparseWeightGradOp> kLookupSparseWeightGrad(
    "EvLookupSparseWeightGrad",
    {"plan", "grad", "output", "rows", "weight_grad"});
const RegisterKernel<PoolGivenRowsOp> kPoolGivenRows("EvPoolGivenRows",
                                                     {"plan", "rows", "weights",
                                                      "outputs"});
const SharedVariantCopies<PlanVariant> kPlanCopies;
const SharedVariantZeros<PlanVariant> kPlanZeros;

}  // namespace
}  // namespace embedding_variable
