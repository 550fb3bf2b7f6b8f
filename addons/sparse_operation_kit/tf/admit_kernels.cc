// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Kernel of SokAdmit.

#include <memory>
#include <vector>

#include "addons/sparse_operation_kit/exchange/admission.h"
#include "addons/sparse_operation_kit/tf/kernel_attrs.h"
#include "kernels/tf/bridge/register_kernel.h"
#include "kernels/tf/op_kernels/kernel_checks.h"
#include "kernels/tf/resources/ev_resource.h"

namespace sparse_operation_kit {
namespace {

using embedding_variable::EvResourcePtr;
using embedding_variable::GetInitialized;
using embedding_variable::ToTf;
using tensorflow::int32;
using tensorflow::int64;
using tensorflow::OpKernel;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::Tensor;
using tensorflow::TensorShape;

class AdmitOp : public OpKernel {
 public:
  explicit AdmitOp(OpKernelConstruction* context) : OpKernel(context) {
    OP_REQUIRES_OK(context, GetFormat(context, &format_));
    OP_REQUIRES_OK(context, context->GetAttr("ratios", &ratios_));
  }

  void Compute(OpKernelContext* context) override {
    const int n = format_.num_tables;
    std::vector<std::shared_ptr<ev::EmbeddingTable>> tables(n);
    for (int t = 0; t < n; ++t) {
      EvResourcePtr resource;
      OP_REQUIRES_OK(context, GetInitialized(context, t, &resource));
      tables[t] = resource->table();
    }
    sok::MessageLayout layout;
    OP_REQUIRES_OK(context, ParseMessage(context, n, format_, &layout));
    const Tensor& seed = context->input(n + 2);
    OP_REQUIRES(context, seed.dims() == 0,
                tensorflow::errors::InvalidArgument(
                    "the seed: expected a scalar, got shape ",
                    seed.shape().DebugString()));
    Tensor* splits = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(
                                1, TensorShape({layout.num_ranks()}), &splits));
    int64_t total = 0;
    for (int r = 0; r < layout.num_ranks(); ++r) {
      int64_t keys = 0;
      for (int t = 0; t < n; ++t) keys += layout.num_keys(r, t);
      // Fits: the keys came in one message, whose length is an int32.
      splits->vec<int32>()(r) = static_cast<int32>(keys);
      total += keys;
    }
    Tensor* flags = nullptr;
    OP_REQUIRES_OK(context,
                   context->allocate_output(0, TensorShape({total}), &flags));
    OP_REQUIRES_OK(
        context,
        ToTf(sok::Admit(layout,
                        embedding_variable::Data<int64_t>(context->input(n)),
                        tables, ratios_, seed.scalar<int64>()(),
                        embedding_variable::MutableData<float>(flags))));
  }

 private:
  sok::MessageFormat format_;
  std::vector<float> ratios_;
};

const embedding_variable::RegisterKernel<AdmitOp> kAdmit(
    "SokAdmit",
    {"resources", "message", "splits", "seed", "flags", "flag_splits"});

}  // namespace
}  // namespace sparse_operation_kit
