// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// EvApply, EvApplyPooled.

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "kernels/engine/embedding/update/row_update.h"
#include "kernels/tf/bridge/gpu_tensors.h"
#include "kernels/tf/bridge/pool_parallel.h"
#include "kernels/tf/bridge/register_kernel.h"
#include "kernels/tf/bridge/status.h"
#include "kernels/tf/bridge/tensor_span.h"
#include "kernels/tf/bridge/transfer_tensor.h"
#include "kernels/tf/op_kernels/kernel_checks.h"
#include "kernels/tf/op_kernels/rule_op.h"
#include "kernels/tf/resources/ev_resource.h"
#include "kernels/tf/resources/plan_variant.h"

namespace embedding_variable {
namespace {

using tensorflow::OpKernel;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::Status;
using tensorflow::Tensor;

// Sets in->plan if its table `t` is in->table and has exactly the keys of `in`.
// The Python code has matched them already, but a mistake would silently train
// wrong rows, and the comparison costs a thousandth of the update.
Status SetPlanThatFits(const ev::LookupPlan& plan, int t, ev::UpdateInput* in) {
  if (t < 0 || t >= plan.num_tables() || plan.table(t) != in->table) {
    return Status();
  }
  ev::Span<const int64_t> planned;
  TF_RETURN_IF_ERROR(ToTf(plan.UniqueKeys(t, &planned)));
  if (planned.size() == in->keys.size() &&
      (planned.empty() || std::memcmp(planned.data(), in->keys.data(),
                                      planned.size() * sizeof(int64_t)) == 0)) {
    in->plan = &plan;
    in->plan_table = t;
    // The plan's own copy, which the engine need not compare again.
    in->keys = planned;
  }
  return Status();
}

class ApplyOp : public RuleOp {
 public:
  explicit ApplyOp(OpKernelConstruction* context)
      : RuleOp(context, "num_tables") {
    OP_REQUIRES_OK(context, context->GetAttr("num_plans", &num_plans_));
    OP_REQUIRES_OK(context, context->GetAttr("num_counts", &num_counts_));
    OP_REQUIRES(
        context,
        num_plans_ <= 1 && plan_tables_.size() == num_plans_ * num_tables_,
        tensorflow::errors::InvalidArgument(
            num_plans_, " plans and ", plan_tables_.size(), " plan tables for ",
            num_tables_, " tables"));
    OP_REQUIRES(context, num_counts_ == 0 || num_counts_ == num_tables_,
                tensorflow::errors::InvalidArgument(num_counts_, " counts for ",
                                                    num_tables_, " tables"));
  }

  void Compute(OpKernelContext* context) override {
    const int n = num_tables_;
    std::vector<float> hyper;
    tensorflow::int64 step = 0;
    OP_REQUIRES_OK(context, ReadScalars(context, 3 * n, &hyper, &step));
    const ev::LookupPlan* plan = nullptr;
    if (num_plans_ > 0) {
      OP_REQUIRES_OK(context, GetPlan(context, 3 * n + num_hyper_ + 1, &plan));
    }

    std::vector<EvResourcePtr> resources(n);
    std::vector<ev::UpdateInput> inputs(n);
    for (int k = 0; k < n; ++k) {
      OP_REQUIRES_OK(context, GetTable(context, k, inputs, &resources[k]));
      OP_REQUIRES_OK(context,
                     MakeInput(context, k, *resources[k], plan, &inputs[k]));
    }
    PoolParallel parallel(context);
    OP_REQUIRES_OK(context, ToTf(ev::ApplyRule(rule_, hyper, inputs, slots_,
                                               step, &parallel)));
  }

 private:
  Status MakeInput(OpKernelContext* context, int k, const EvResource& resource,
                   const ev::LookupPlan* plan, ev::UpdateInput* in) const {
    const Tensor& keys = context->input(num_tables_ + k);
    TF_RETURN_IF_ERROR(CheckVector(keys, resource.name(), "the keys"));
    const Tensor& grads = context->input(2 * num_tables_ + k);
    TF_RETURN_IF_ERROR(CheckMatrix(grads, keys.dim_size(0), resource.dim(),
                                   resource.name(), "the gradient"));
    in->table = resource.table().get();
    in->keys = SpanOf<int64_t>(keys);
    if (num_counts_ > 0) {
      const Tensor& counts =
          context->input(3 * num_tables_ + num_hyper_ + 1 + num_plans_ + k);
      TF_RETURN_IF_ERROR(CheckVectorOf(counts, keys.dim_size(0),
                                       resource.name(), "the counts"));
      in->counts = Data<int64_t>(counts);
    }
    in->grads = Data<float>(grads);
    // Other keys than the plan's are deduplicated and looked up again, which is
    // correct for any keys.
    if (plan == nullptr) return Status();
    return SetPlanThatFits(*plan, plan_tables_[k], in);
  }

  int num_plans_ = 0;
  int num_counts_ = 0;
};

class ApplyPooledOp : public RuleOp {
 public:
  explicit ApplyPooledOp(OpKernelConstruction* context)
      : RuleOp(context, "num_tables"), on_gpu_(IsOnGpu(*context)) {
    OP_REQUIRES(
        context, plan_tables_.size() == num_tables_,
        tensorflow::errors::InvalidArgument(
            plan_tables_.size(), " plan tables for ", num_tables_, " tables"));
  }

  void Compute(OpKernelContext* context) override {
    const int n = num_tables_;
    std::vector<float> hyper;
    tensorflow::int64 step = 0;
    OP_REQUIRES_OK(context, ReadScalars(context, 2 * n, &hyper, &step));
    const ev::LookupPlan* plan = nullptr;
    OP_REQUIRES_OK(context, GetPlan(context, 2 * n + num_hyper_ + 1, &plan));
    std::vector<EvResourcePtr> resources(n);
    std::vector<ev::UpdateInput> inputs(n);
    GpuGradients on_gpu(n);
    for (int k = 0; k < n; ++k) {
      OP_REQUIRES_OK(context, GetTable(context, k, inputs, &resources[k]));
      const EvResource& resource = *resources[k];
      const int t = plan_tables_[k];
      OP_REQUIRES(context,
                  t >= 0 && t < plan->num_tables() &&
                      plan->table(t) == resource.table().get(),
                  BadInput(resource.name(), "is not table ", t,
                           " of the lookup whose gradient this is"));
      const Tensor& grads = context->input(n + k);
      OP_REQUIRES_OK(context,
                     CheckMatrix(grads, plan->batch_size(t), resource.dim(),
                                 resource.name(), "the gradient"));
      inputs[k].table = resource.table().get();
      inputs[k].plan = plan;
      inputs[k].plan_table = t;
      inputs[k].pooled_grads = FloatsOf(grads);
      if (on_gpu_) {
        OP_REQUIRES_OK(context, on_gpu.Find(context, k, grads, &inputs[k]));
      }
    }
    OP_REQUIRES_OK(context, CopyFromGpu(context, on_gpu.copies()));
    PoolParallel parallel(context);
    OP_REQUIRES_OK(context, ToTf(ev::ApplyRule(rule_, hyper, inputs, slots_,
                                               step, &parallel)));
  }

 private:
  // Gradients in GPU memory. The device that holds the rows reads them
  // directly. For rows in CPU memory, and for combiners that select, they are
  // first copied to CPU memory.
  class GpuGradients {
   public:
    explicit GpuGradients(int num_tables) : staged_(num_tables) {}

    Status Find(OpKernelContext* context, int k, const Tensor& grads,
                ev::UpdateInput* in) {
      if (in->table->takes_device_tensors() &&
          !in->plan->sums_on_cpu(in->plan_table)) {
        TF_RETURN_IF_ERROR(GetDeviceStream(context, &stream_));
        in->stream = &stream_;
        return Status();
      }
      Tensor* const staged = &staged_[k];
      if (!MakeTransferTensor(grads.dtype(), grads.shape(), staged)) {
        TF_RETURN_IF_ERROR(context->allocate_temp(grads.dtype(), grads.shape(),
                                                  staged, InCpuMemory()));
      }
      in->pooled_grads = FloatsOf(*staged);
      copies_.emplace_back(&grads, staged);
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

  const bool on_gpu_;
};

const RegisterKernel<ApplyOp> kApply("EvApply",
                                     {"resources", "keys", "grads", "hyper",
                                      "step", "plan", "counts"});
const RegisterKernel<ApplyPooledOp> kApplyPooled("EvApplyPooled",
                                                 {"resources", "hyper", "step",
                                                  "plan"});

}  // namespace
}  // namespace embedding_variable
