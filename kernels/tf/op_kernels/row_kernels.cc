// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// EvUnique, EvAdmit, EvReadRows, EvWriteRows, EvReadAndEvict, EvErase.

#include <algorithm>
#include <vector>

#include "kernels/engine/ids/unique.h"
#include "kernels/tf/bridge/pool_parallel.h"
#include "kernels/tf/bridge/register_kernel.h"
#include "kernels/tf/bridge/status.h"
#include "kernels/tf/bridge/tensor_span.h"
#include "kernels/tf/op_kernels/kernel_checks.h"
#include "kernels/tf/resources/ev_resource.h"

namespace embedding_variable {
namespace {

using tensorflow::OpKernel;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::Tensor;
using tensorflow::TensorShape;

class UniqueOp : public OpKernel {
 public:
  using OpKernel::OpKernel;

  void Compute(OpKernelContext* context) override {
    const Tensor& keys = context->input(0);
    OP_REQUIRES(
        context, keys.dims() == 1,
        tensorflow::errors::InvalidArgument(
            "keys: expected a vector, got shape ", keys.shape().DebugString()));
    const int64_t n = keys.dim_size(0);
    Tensor* inverse = nullptr;
    OP_REQUIRES_OK(context,
                   context->allocate_output(1, TensorShape({n}), &inverse));
    Tensor unique;
    OP_REQUIRES_OK(
        context, context->allocate_temp(tensorflow::DT_INT64, TensorShape({n}),
                                        &unique, InCpuMemory()));
    std::vector<int32_t> counts(n);
    int64_t num_unique = 0;
    // One per thread, so that each call reuses the scratch memory of the last.
    thread_local ev::Unique dedup;
    OP_REQUIRES_OK(context, ToTf(dedup.Run(SpanOf<int64_t>(keys),
                                           MutableData<int64_t>(&unique),
                                           MutableData<int32_t>(inverse),
                                           counts.data(), &num_unique)));
    const TensorShape shape({num_unique});
    Tensor* out_unique = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, shape, &out_unique));
    std::copy_n(Data<int64_t>(unique), num_unique,
                MutableData<int64_t>(out_unique));
    Tensor* out_counts = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(2, shape, &out_counts));
    std::copy_n(counts.data(), num_unique, MutableData<int64_t>(out_counts));
  }
};

class AdmitOp : public OpKernel {
 public:
  using OpKernel::OpKernel;

  void Compute(OpKernelContext* context) override {
    EvResourcePtr resource;
    OP_REQUIRES_OK(context, GetInitialized(context, 0, &resource));
    const std::string& name = resource->name();
    const Tensor& keys = context->input(1);
    OP_REQUIRES_OK(context, CheckVector(keys, name, "the keys"));
    const Tensor& counts = context->input(2);
    OP_REQUIRES_OK(context,
                   CheckVectorOf(counts, keys.dim_size(0), name, "the counts"));
    const Tensor& step = context->input(3);
    OP_REQUIRES(context, step.dims() == 0,
                BadInput(name, "the step: expected a scalar, got shape ",
                         step.shape().DebugString()));
    std::vector<int32_t> admitted;
    OP_REQUIRES_OK(context,
                   ToTf(resource->table()->Admit(
                       SpanOf<int64_t>(keys), Data<int64_t>(counts),
                       step.scalar<tensorflow::int64>()(), &admitted)));
    Tensor* output = nullptr;
    OP_REQUIRES_OK(
        context,
        context->allocate_output(
            0, TensorShape({static_cast<int64_t>(admitted.size())}), &output));
    std::copy(admitted.begin(), admitted.end(), MutableData<int32_t>(output));
  }
};

class ReadRowsOp : public OpKernel {
 public:
  explicit ReadRowsOp(OpKernelConstruction* context) : OpKernel(context) {
    OP_REQUIRES_OK(context, GetSlotSpecs(context, 1, &slots_));
  }

  void Compute(OpKernelContext* context) override {
    EvResourcePtr resource;
    OP_REQUIRES_OK(context, GetInitialized(context, 0, &resource));
    const Tensor& keys = context->input(1);
    OP_REQUIRES_OK(context, CheckVector(keys, resource->name(), "the keys"));
    const std::vector<ev::SlotSpec>& slots = slots_[0];
    OP_REQUIRES(context, slots.size() + 1 == num_outputs(),
                BadInput(resource->name(), slots.size(), " slot names for ",
                         num_outputs() - 1, " slots"));
    TensorShape shape;
    OP_REQUIRES_OK(context, MatrixShape(keys.dim_size(0), resource->dim(),
                                        resource->name(), &shape));
    std::vector<float*> outputs(num_outputs());
    for (int i = 0; i < num_outputs(); ++i) {
      if (i > 0) shape.set_dim(1, slots[i - 1].WidthIn(resource->dim()));
      Tensor* output = nullptr;
      OP_REQUIRES_OK(context, context->allocate_output(i, shape, &output));
      outputs[i] = MutableData<float>(output);
    }
    PoolParallel parallel(context);
    OP_REQUIRES_OK(context,
                   ToTf(resource->table()->ReadRows(
                       SpanOf<int64_t>(keys), slots, outputs[0],
                       ev::Span<float* const>(outputs.data() + 1, slots.size()),
                       &parallel)));
  }

 private:
  std::vector<std::vector<ev::SlotSpec>> slots_;
};

class WriteRowsOp : public OpKernel {
 public:
  explicit WriteRowsOp(OpKernelConstruction* context) : OpKernel(context) {
    OP_REQUIRES_OK(context, GetSlotSpecs(context, 1, &slots_));
  }

  void Compute(OpKernelContext* context) override {
    EvResourcePtr resource;
    OP_REQUIRES_OK(context, GetInitialized(context, 0, &resource));
    const std::string& name = resource->name();
    const Tensor& keys = context->input(1);
    OP_REQUIRES_OK(context, CheckVector(keys, name, "the keys"));
    const int64_t n = keys.dim_size(0);
    const Tensor& counts = context->input(2);
    OP_REQUIRES_OK(context, CheckVectorOf(counts, n, name, "the counts"));
    const Tensor& step = context->input(3);
    OP_REQUIRES(context, step.dims() == 0,
                BadInput(name, "the step: expected a scalar, got shape ",
                         step.shape().DebugString()));
    const std::vector<ev::SlotSpec>& slots = slots_[0];
    OP_REQUIRES(context, slots.size() + 5 == num_inputs(),
                BadInput(name, slots.size(), " slot names for ",
                         num_inputs() - 5, " slots"));
    std::vector<const float*> rows(1 + slots.size());
    for (int i = 0; i < rows.size(); ++i) {
      const Tensor& tensor = context->input(4 + i);
      const int64_t width =
          i == 0 ? resource->dim() : slots[i - 1].WidthIn(resource->dim());
      OP_REQUIRES_OK(context, CheckMatrix(tensor, n, width, name,
                                          i == 0 ? "the values"
                                                 : slots[i - 1].name.c_str()));
      rows[i] = Data<float>(tensor);
    }
    PoolParallel parallel(context);
    OP_REQUIRES_OK(
        context,
        ToTf(resource->table()->WriteRows(
            SpanOf<int64_t>(keys), slots, rows[0],
            ev::Span<const float* const>(rows.data() + 1, slots.size()),
            Data<int64_t>(counts), step.scalar<tensorflow::int64>()(),
            &parallel)));
  }

 private:
  std::vector<std::vector<ev::SlotSpec>> slots_;
};

class ReadAndEvictOp : public OpKernel {
 public:
  using OpKernel::OpKernel;

  void Compute(OpKernelContext* context) override {
    EvResourcePtr resource;
    OP_REQUIRES_OK(context, GetInitialized(context, 0, &resource));
    const std::string& name = resource->name();
    const Tensor& keys = context->input(1);
    OP_REQUIRES_OK(context, CheckVector(keys, name, "the keys"));
    const Tensor& step = context->input(2);
    OP_REQUIRES(context, step.dims() == 0,
                BadInput(name, "the step: expected a scalar, got shape ",
                         step.shape().DebugString()));
    TensorShape shape;
    OP_REQUIRES_OK(
        context, MatrixShape(keys.dim_size(0), resource->dim(), name, &shape));
    Tensor* values = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, shape, &values));
    std::vector<int64_t> evicted_keys;
    std::vector<float> evicted_values;
    OP_REQUIRES_OK(
        context,
        ToTf(resource->table()->ReadAndEvict(
            SpanOf<int64_t>(keys), step.scalar<tensorflow::int64>()(),
            MutableData<float>(values), &evicted_keys, &evicted_values)));
    const int64_t num_evicted = evicted_keys.size();
    Tensor* output = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(
                                1, TensorShape({num_evicted}), &output));
    std::copy(evicted_keys.begin(), evicted_keys.end(),
              MutableData<int64_t>(output));
    OP_REQUIRES_OK(context,
                   MatrixShape(num_evicted, resource->dim(), name, &shape));
    OP_REQUIRES_OK(context, context->allocate_output(2, shape, &output));
    std::copy(evicted_values.begin(), evicted_values.end(),
              MutableData<float>(output));
  }
};

class EraseOp : public OpKernel {
 public:
  using OpKernel::OpKernel;

  void Compute(OpKernelContext* context) override {
    EvResourcePtr resource;
    OP_REQUIRES_OK(context, GetInitialized(context, 0, &resource));
    OP_REQUIRES_OK(
        context,
        ToTf(resource->table()->CheckKeys(SpanOf<int64_t>(context->input(1)))));
    Tensor* erased = nullptr;
    OP_REQUIRES_OK(context,
                   context->allocate_output(0, TensorShape({}), &erased));
    int64_t erased_rows = 0;
    OP_REQUIRES_OK(context,
                   ToTf(resource->table()->Erase(
                       SpanOf<int64_t>(context->input(1)), &erased_rows)));
    erased->scalar<tensorflow::int64>()() = erased_rows;
  }
};

const RegisterKernel<UniqueOp> kUnique("EvUnique",
                                       {"keys", "unique", "inverse", "counts"});
const RegisterKernel<AdmitOp> kAdmit("EvAdmit", {"resource", "keys", "counts",
                                                 "step", "admitted"});
const RegisterKernel<ReadRowsOp> kReadRows("EvReadRows", {"resource", "keys",
                                                          "values", "slots"});
const RegisterKernel<WriteRowsOp> kWriteRows("EvWriteRows",
                                             {"resource", "keys", "counts",
                                              "step", "values", "slots"});
const RegisterKernel<ReadAndEvictOp> kReadAndEvict("EvReadAndEvict",
                                                   {"resource", "keys", "step",
                                                    "values", "evicted_keys",
                                                    "evicted_values"});
const RegisterKernel<EraseOp> kErase("EvErase",
                                     {"resource", "keys", "num_erased"});

}  // namespace
}  // namespace embedding_variable
