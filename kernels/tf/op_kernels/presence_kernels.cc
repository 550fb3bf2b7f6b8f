// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// EvLookupTier, EvPrefetch, EvInsertAbsent.

#include "kernels/engine/embedding/lookup/presence.h"
#include "kernels/tf/bridge/pool_parallel.h"
#include "kernels/tf/bridge/register_kernel.h"
#include "kernels/tf/bridge/status.h"
#include "kernels/tf/bridge/tensor_span.h"
#include "kernels/tf/op_kernels/kernel_checks.h"
#include "kernels/tf/resources/ev_resource.h"

namespace embedding_variable {
namespace {

using tensorflow::OpKernel;
using tensorflow::OpKernelContext;
using tensorflow::Tensor;

class LookupTierOp : public OpKernel {
 public:
  using OpKernel::OpKernel;

  void Compute(OpKernelContext* context) override {
    EvResourcePtr resource;
    OP_REQUIRES_OK(context, GetInitialized(context, 0, &resource));
    const Tensor& ids = context->input(1);
    Tensor* tiers = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, ids.shape(), &tiers));
    OP_REQUIRES_OK(context,
                   ToTf(ev::FindTiers(*resource->table(), SpanOf<int64_t>(ids),
                                      MutableData<int32_t>(tiers))));
  }
};

class PrefetchOp : public OpKernel {
 public:
  using OpKernel::OpKernel;

  void Compute(OpKernelContext* context) override {
    EvResourcePtr resource;
    OP_REQUIRES_OK(context, GetInitialized(context, 0, &resource));
    PoolParallel parallel(context);
    OP_REQUIRES_OK(
        context,
        ToTf(ev::Prefetch(resource->table().get(),
                          SpanOf<int64_t>(context->input(1)), &parallel)));
  }
};

class InsertAbsentOp : public OpKernel {
 public:
  using OpKernel::OpKernel;

  void Compute(OpKernelContext* context) override {
    EvResourcePtr resource;
    OP_REQUIRES_OK(context, GetInitialized(context, 0, &resource));
    const Tensor& keys = context->input(1);
    const Tensor& values = context->input(2);
    OP_REQUIRES_OK(context, CheckVector(keys, resource->name(), "keys"));
    OP_REQUIRES_OK(context,
                   CheckMatrix(values, keys.dim_size(0), resource->dim(),
                               resource->name(), "values"));
    int64_t inserted = 0;
    OP_REQUIRES_OK(context, ToTf(ev::InsertAbsent(
                                resource->table().get(), SpanOf<int64_t>(keys),
                                Data<float>(values), &inserted)));
  }
};

const RegisterKernel<LookupTierOp> kLookupTier("EvLookupTier",
                                               {"resource", "ids", "tiers"});
const RegisterKernel<PrefetchOp> kPrefetch("EvPrefetch", {"resource", "ids"});
const RegisterKernel<InsertAbsentOp> kInsertAbsent("EvInsertAbsent",
                                                   {"resource", "keys",
                                                    "values"});

}  // namespace
}  // namespace embedding_variable
