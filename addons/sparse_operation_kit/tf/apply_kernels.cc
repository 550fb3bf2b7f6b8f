// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Kernel of SokApplyServed.

#include <algorithm>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "addons/sparse_operation_kit/exchange/device_serve.h"
#include "addons/sparse_operation_kit/exchange/serve.h"
#include "addons/sparse_operation_kit/tf/kernel_attrs.h"
#include "addons/sparse_operation_kit/tf/route_variant.h"
#include "addons/sparse_operation_kit/tf/wire_variant.h"
#include "kernels/engine/base/transfer_scratch.h"
#include "kernels/engine/embedding/update/row_update.h"
#include "kernels/tf/bridge/pool_parallel.h"
#include "kernels/tf/bridge/register_kernel.h"
#include "kernels/tf/op_kernels/rule_op.h"
#include "kernels/tf/resources/ev_resource.h"
#include "kernels/tf/resources/plan_variant.h"

namespace sparse_operation_kit {
namespace {

using embedding_variable::BadInput;
using embedding_variable::EvResourcePtr;
using embedding_variable::GetPlan;
using embedding_variable::PoolParallel;
using embedding_variable::ToTf;
using tensorflow::int32;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::errors::InvalidArgument;

class ApplyServedOp : public embedding_variable::RuleOp {
 public:
  explicit ApplyServedOp(OpKernelConstruction* context)
      : RuleOp(context, "num_updates") {
    OP_REQUIRES_OK(context, GetFormat(context, &format_));
    OP_REQUIRES_OK(context, context->GetAttr("tables", &tables_));
    OP_REQUIRES_OK(context, context->GetAttr("divisor", &divisor_));
    for (const int32 t : plan_tables_) {
      const auto found = std::find(tables_.begin(), tables_.end(), t);
      OP_REQUIRES(context, found != tables_.end(),
                  InvalidArgument("there is no gradient for table ", t));
      numbers_.push_back(found - tables_.begin());
    }
    OP_REQUIRES(context, numbers_.size() == num_tables_,
                InvalidArgument(numbers_.size(), " plan tables for ",
                                num_tables_, " tables"));
  }

  void Compute(OpKernelContext* context) override {
    const int n = num_tables_;
    const int plan_input = n + num_hyper_ + 1;
    RouteState* route = nullptr;
    OP_REQUIRES_OK(context, GetRoute(context, plan_input + 4, &route));
    route->EndWait();
    std::vector<float> hyper;
    tensorflow::int64 step = 0;
    OP_REQUIRES_OK(context, ReadScalars(context, n, &hyper, &step));
    const ev::LookupPlan* plan = nullptr;
    OP_REQUIRES_OK(context, GetPlan(context, plan_input, &plan));
    sok::MessageLayout layout;
    OP_REQUIRES_OK(context,
                   ParseMessage(context, plan_input + 1, format_, &layout));
    sok::WireBuffer gradients;
    OP_REQUIRES_OK(context, GetWireInput(context, plan_input + 3, &gradients));
    sok::ExchangeDevice* device = nullptr;
    OP_REQUIRES_OK(context, GetExchangeDevice(&device));

    std::vector<EvResourcePtr> resources(n);
    std::vector<ev::UpdateInput> inputs(n);
    // The device divides gradients before summing, the CPU divides the sums.
    // The bits are equal only if the divisor is a power of two.
    bool on_device = gradients.on_device && (divisor_ & (divisor_ - 1)) == 0;
    for (int k = 0; k < n; ++k) {
      OP_REQUIRES_OK(context, GetTable(context, k, inputs, &resources[k]));
      ev::EmbeddingTable* const table = resources[k]->table().get();
      const int t = plan_tables_[k];
      OP_REQUIRES(context,
                  t >= 0 && t < plan->num_tables() && plan->table(t) == table,
                  BadInput(resources[k]->name(), "is not table ", t,
                           " of the lookup whose gradient this is"));
      inputs[k].table = table;
      inputs[k].plan = plan;
      inputs[k].plan_table = t;
      on_device &= table->takes_device_tensors();
    }
    PoolParallel parallel(context);
    OP_REQUIRES_OK(
        context,
        ToTf(on_device ? ApplyOnDevice(layout, *plan, gradients, device, hyper,
                                       step, &inputs, &parallel)
                       : ApplyOnHost(layout, *plan, gradients, device, hyper,
                                     step, &inputs, &parallel)));
  }

 private:
  // Sums gradients on the device that holds the rows; fetches keys to the host
  // only if the update needs them.
  ev::Status ApplyOnDevice(const sok::MessageLayout& layout,
                           const ev::LookupPlan& plan,
                           const sok::WireBuffer& gradients,
                           sok::ExchangeDevice* device,
                           const std::vector<float>& hyper, int64_t step,
                           std::vector<ev::UpdateInput>* inputs,
                           ev::Parallel* parallel) const {
    sok::ServedGradients served;
    EV_RETURN_IF_ERROR(SpreadGradients(layout, plan, tables_, gradients,
                                       1.0f / static_cast<float>(divisor_),
                                       device, &served));
    const ev::DeviceStream stream = device->stream();
    for (int k = 0; k < num_tables_; ++k) {
      (*inputs)[k].pooled_grads = served.grads[numbers_[k]];
      (*inputs)[k].stream = &stream;
    }
    const ev::Status applied =
        ev::ApplyRule(rule_, hyper, *inputs, slots_, step, parallel);
    // Also after an error: updates of some tables may be in flight.
    std::shared_ptr<sok::StreamEvent> done;
    EV_RETURN_IF_ERROR(device->RecordEvent(stream, &done));
    device->KeepUntil(done, served.memory);
    return applied;
  }

  ev::Status ApplyOnHost(const sok::MessageLayout& layout,
                         const ev::LookupPlan& plan,
                         const sok::WireBuffer& gradients,
                         sok::ExchangeDevice* device,
                         const std::vector<float>& hyper, int64_t step,
                         std::vector<ev::UpdateInput>* inputs,
                         ev::Parallel* parallel) const {
    sok::WireBuffer on_host;
    EV_RETURN_IF_ERROR(gradients.ToHost(device, &on_host));
    std::vector<ev::TransferScratch> memory(tables_.size());
    std::vector<float*> sums(tables_.size());
    std::vector<ev::Span<const int64_t>> keys(tables_.size());
    try {
      for (size_t k = 0; k < tables_.size(); ++k) {
        const int t = tables_[k];
        if (t < 0 || t >= plan.num_tables()) {
          return ev::InvalidArgument("table " + std::to_string(t) +
                                     " of a lookup of " +
                                     std::to_string(plan.num_tables()));
        }
        EV_RETURN_IF_ERROR(plan.UniqueKeys(t, &keys[k]));
        sums[k] = memory[k].ReserveOf<float>(keys[k].size() *
                                             plan.table(t)->options().dim);
      }
    } catch (const std::bad_alloc&) {
      return ev::ResourceExhausted("lookup over ranks: out of memory");
    }
    EV_RETURN_IF_ERROR(sok::ServeGradient(layout, plan, tables_, on_host.data(),
                                          on_host.count, on_host.wire, sums,
                                          parallel, divisor_));
    for (int k = 0; k < num_tables_; ++k) {
      (*inputs)[k].keys = keys[numbers_[k]];
      (*inputs)[k].grads = sums[numbers_[k]];
    }
    return ev::ApplyRule(rule_, hyper, *inputs, slots_, step, parallel);
  }

  sok::MessageFormat format_;
  int divisor_ = 1;
  std::vector<int32> tables_;
  std::vector<size_t> numbers_;  // entries of 'tables' that are updated
};

const embedding_variable::RegisterKernel<ApplyServedOp> kApplyServed(
    "SokApplyServed", {"resources", "hyper", "step", "plan", "message",
                       "splits", "gradients", "route"});

}  // namespace
}  // namespace sparse_operation_kit
