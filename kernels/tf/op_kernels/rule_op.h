// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef KERNELS_TF_OP_KERNELS_RULE_OP_H_
#define KERNELS_TF_OP_KERNELS_RULE_OP_H_

#include <string>
#include <vector>

#include "kernels/engine/embedding/update/row_update.h"
#include "kernels/tf/op_kernels/kernel_checks.h"
#include "kernels/tf/resources/ev_resource.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace embedding_variable {

// Base of update kernels: K tables, a rule with its hyperparameters, and slots.
class RuleOp : public tensorflow::OpKernel {
 public:
  // num_tables: the name of the attribute with K.
  RuleOp(tensorflow::OpKernelConstruction* context, const char* num_tables)
      : OpKernel(context) {
    OP_REQUIRES_OK(context, context->GetAttr(num_tables, &num_tables_));
    OP_REQUIRES_OK(context, context->GetAttr("num_hyper", &num_hyper_));
    OP_REQUIRES_OK(context, context->GetAttr("rule", &rule_));
    OP_REQUIRES_OK(context, context->GetAttr("plan_tables", &plan_tables_));
    OP_REQUIRES_OK(context, GetSlotSpecs(context, num_tables_, &slots_));
  }

 protected:
  // Reads the hyperparameters from input `first` on, and the step after them.
  tensorflow::Status ReadScalars(tensorflow::OpKernelContext* context,
                                 int first, std::vector<float>* hyper,
                                 tensorflow::int64* step) const {
    hyper->resize(num_hyper_);
    for (int h = 0; h < num_hyper_; ++h) {
      const tensorflow::Tensor& scalar = context->input(first + h);
      if (scalar.dims() != 0) {
        return tensorflow::errors::InvalidArgument(
            rule_, ": hyperparameter ", h, ": expected a scalar, got shape ",
            scalar.shape().DebugString());
      }
      (*hyper)[h] = scalar.scalar<float>()();
    }
    const tensorflow::Tensor& given = context->input(first + num_hyper_);
    if (given.dims() != 0) {
      return tensorflow::errors::InvalidArgument(
          rule_, ": the step: expected a scalar, got shape ",
          given.shape().DebugString());
    }
    *step = given.scalar<tensorflow::int64>()();
    return tensorflow::Status();
  }

  // Returns the resource of table k. InvalidArgument if an earlier input
  // updates the same table.
  tensorflow::Status GetTable(tensorflow::OpKernelContext* context, int k,
                              const std::vector<ev::UpdateInput>& inputs,
                              EvResourcePtr* resource) const {
    TF_RETURN_IF_ERROR(GetInitialized(context, k, resource));
    for (int j = 0; j < k; ++j) {
      if (inputs[j].table == (*resource)->table().get()) {
        return BadInput((*resource)->name(), "is updated twice by one op");
      }
    }
    return tensorflow::Status();
  }

  int num_tables_ = 0;
  int num_hyper_ = 0;
  std::string rule_;
  std::vector<tensorflow::int32> plan_tables_;
  std::vector<std::vector<ev::SlotSpec>> slots_;
};

}  // namespace embedding_variable

#endif  // KERNELS_TF_OP_KERNELS_RULE_OP_H_
