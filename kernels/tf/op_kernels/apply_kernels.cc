// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// EvApply.

#include <cstring>
#include <string>
#include <vector>

#include "kernels/engine/embedding/row_update.h"
#include "kernels/tf/bridge/pool_parallel.h"
#include "kernels/tf/bridge/status.h"
#include "kernels/tf/bridge/tensor_span.h"
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

// True when the plan's table `t` is `table` and found exactly these keys. What
// Python knows of the graph says so already; a wrong row would be trained in
// silence if it erred, and the comparison costs a thousandth of the update.
bool PlanFits(const ev::LookupPlan& plan, int t,
              const ev::EmbeddingTable* table, ev::Span<const int64_t> keys) {
  if (t < 0 || t >= plan.num_tables() || plan.table(t) != table) return false;
  const ev::Span<const int64_t> planned = plan.unique_keys(t);
  return planned.size() == keys.size() &&
         (keys.empty() || std::memcmp(planned.data(), keys.data(),
                                      keys.size() * sizeof(int64_t)) == 0);
}

class ApplyOp : public OpKernel {
 public:
  explicit ApplyOp(OpKernelConstruction* context) : OpKernel(context) {
    OP_REQUIRES_OK(context, context->GetAttr("num_tables", &num_tables_));
    OP_REQUIRES_OK(context, context->GetAttr("num_hyper", &num_hyper_));
    OP_REQUIRES_OK(context, context->GetAttr("num_plans", &num_plans_));
    OP_REQUIRES_OK(context, context->GetAttr("num_counts", &num_counts_));
    OP_REQUIRES_OK(context, context->GetAttr("rule", &rule_));
    OP_REQUIRES_OK(context, context->GetAttr("plan_tables", &plan_tables_));
    OP_REQUIRES(
        context,
        num_plans_ <= 1 && plan_tables_.size() == num_plans_ * num_tables_,
        tensorflow::errors::InvalidArgument(
            num_plans_, " plans and ", plan_tables_.size(), " plan tables for ",
            num_tables_, " tables"));
    OP_REQUIRES(context, num_counts_ == 0 || num_counts_ == num_tables_,
                tensorflow::errors::InvalidArgument(num_counts_, " counts for ",
                                                    num_tables_, " tables"));
    OP_REQUIRES_OK(context, GetSlotSpecs(context, num_tables_, &slots_));
  }

  void Compute(OpKernelContext* context) override {
    const int n = num_tables_;
    std::vector<float> hyper(num_hyper_);
    for (int h = 0; h < num_hyper_; ++h) {
      const Tensor& scalar = context->input(3 * n + h);
      OP_REQUIRES(
          context, scalar.dims() == 0,
          tensorflow::errors::InvalidArgument(rule_, ": hyperparameter ", h,
                                              " must be a scalar, got shape ",
                                              scalar.shape().DebugString()));
      hyper[h] = scalar.scalar<float>()();
    }
    const Tensor& step = context->input(3 * n + num_hyper_);
    OP_REQUIRES(context, step.dims() == 0,
                tensorflow::errors::InvalidArgument(
                    rule_, ": the step must be a scalar, got shape ",
                    step.shape().DebugString()));
    const ev::LookupPlan* plan = nullptr;
    if (num_plans_ > 0) {
      OP_REQUIRES_OK(context, GetPlan(context, 3 * n + num_hyper_ + 1, &plan));
    }

    std::vector<EvResourcePtr> resources(n);
    std::vector<ev::UpdateInput> inputs(n);
    for (int k = 0; k < n; ++k) {
      OP_REQUIRES_OK(context, GetInitialized(context, k, &resources[k]));
      OP_REQUIRES_OK(context,
                     MakeInput(context, k, *resources[k], plan, &inputs[k]));
      for (int j = 0; j < k; ++j) {
        OP_REQUIRES(
            context, inputs[j].table != inputs[k].table,
            BadInput(resources[k]->name(), "is updated twice by one op"));
      }
    }
    PoolParallel parallel(context);
    OP_REQUIRES_OK(
        context,
        ToTf(ev::ApplyRule(rule_, hyper, inputs, slots_,
                           step.scalar<tensorflow::int64>()(), &parallel)));
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
    // Keys that are not the plan's are deduplicated and found anew, which is
    // right for any keys.
    if (plan != nullptr &&
        PlanFits(*plan, plan_tables_[k], in->table, in->keys)) {
      in->plan = plan;
      in->plan_table = plan_tables_[k];
      // The plan's own copy, which the engine need not compare again.
      in->keys = plan->unique_keys(in->plan_table);
    }
    return Status::OK();
  }

  int num_tables_ = 0;
  int num_hyper_ = 0;
  int num_plans_ = 0;
  int num_counts_ = 0;
  std::string rule_;
  std::vector<tensorflow::int32> plan_tables_;
  std::vector<std::vector<ev::SlotSpec>> slots_;
};

REGISTER_KERNEL_BUILDER(Name("EvApply").Device(tensorflow::DEVICE_CPU),
                        ApplyOp);

}  // namespace
}  // namespace embedding_variable
