// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Kernels of SokServeGivenRows and SokPoolGivenRows, the gradients of
// SokServeGrad and SokPoolGrad.

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "addons/sparse_operation_kit/exchange/pool.h"
#include "addons/sparse_operation_kit/exchange/serve.h"
#include "addons/sparse_operation_kit/tf/kernel_attrs.h"
#include "addons/sparse_operation_kit/tf/route_variant.h"
#include "kernels/tf/bridge/pool_parallel.h"
#include "kernels/tf/bridge/register_kernel.h"
#include "kernels/tf/bridge/transfer_tensor.h"
#include "kernels/tf/op_kernels/kernel_checks.h"
#include "kernels/tf/resources/plan_variant.h"

namespace sparse_operation_kit {
namespace {

using embedding_variable::AllocateTransferOutput;
using embedding_variable::BadInput;
using embedding_variable::CheckMatrix;
using embedding_variable::Data;
using embedding_variable::GetPlan;
using embedding_variable::MatrixShape;
using embedding_variable::MutableData;
using embedding_variable::PoolParallel;
using embedding_variable::ToTf;
using tensorflow::int32;
using tensorflow::OpKernel;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::Tensor;
using tensorflow::TensorShape;
using tensorflow::errors::InvalidArgument;

// Reads the attribute "tables", which must have num_rows entries.
tensorflow::Status GetTables(OpKernelConstruction* context,
                             std::vector<int32>* tables) {
  TF_RETURN_IF_ERROR(context->GetAttr("tables", tables));
  int num_rows;
  TF_RETURN_IF_ERROR(context->GetAttr("num_rows", &num_rows));
  if (tables->size() == num_rows) return tensorflow::Status();
  return InvalidArgument("rows of ", num_rows, " tables came with ",
                         tables->size(), " tables");
}

tensorflow::Status CheckTable(int t, int num_tables) {
  if (t >= 0 && t < num_tables) return tensorflow::Status();
  return InvalidArgument("table ", t, " of a lookup of ", num_tables);
}

class ServeGivenRowsOp : public OpKernel {
 public:
  explicit ServeGivenRowsOp(OpKernelConstruction* context) : OpKernel(context) {
    OP_REQUIRES_OK(context, GetFormat(context, &format_));
    OP_REQUIRES_OK(context, GetWire(context, &wire_));
    OP_REQUIRES_OK(context, GetTables(context, &tables_));
    OP_REQUIRES_OK(context, context->GetAttr("divisor", &divisor_));
    OP_REQUIRES_OK(context, context->GetAttr("call", &call_));
  }

  void Compute(OpKernelContext* context) override {
    const ev::LookupPlan* plan = nullptr;
    OP_REQUIRES_OK(context, GetPlan(context, 0, &plan));
    sok::MessageLayout layout;
    OP_REQUIRES_OK(context, ParseMessage(context, 1, format_, &layout));
    RouteState* route = nullptr;
    OP_REQUIRES_OK(context, GetRoute(context, 3, &route));
    std::vector<const float*> given;
    std::vector<int64_t> dims(plan->num_tables(), 0);
    for (size_t k = 0; k < tables_.size(); ++k) {
      const int t = tables_[k];
      OP_REQUIRES_OK(context, CheckTable(t, plan->num_tables()));
      const ev::TableOptions& options = plan->table(t)->options();
      dims[t] = options.dim;
      ev::Span<const int64_t> keys;
      OP_REQUIRES_OK(context, ToTf(plan->UniqueKeys(t, &keys)));
      const Tensor& rows = context->input(4 + k);
      OP_REQUIRES_OK(context, CheckMatrix(rows, keys.size(), options.dim,
                                          options.name, "the given rows"));
      given.push_back(Data<float>(rows));
    }
    Tensor* splits = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(
                                1, TensorShape({layout.num_ranks()}), &splits));
    int64_t total = 0;
    for (int r = 0; r < layout.num_ranks(); ++r) {
      const int64_t floats = sok::RowFloats(layout, r, tables_, dims);
      OP_REQUIRES(context, floats <= std::numeric_limits<int32>::max(),
                  InvalidArgument(call_,
                                  ": the gradient of its gradient would "
                                  "send ",
                                  floats, " numbers to rank ", r,
                                  ", at most 2^31 - 1 can be sent at once"));
      splits->vec<int32>()(r) = static_cast<int32>(floats);
      total += floats;
    }
    Tensor values;
    OP_REQUIRES_OK(context, AllocateTransferOutput(
                                context, 0, TensorShape({total}), &values));
    PoolParallel parallel(context);
    OP_REQUIRES_OK(
        context, ToTf(sok::ServeGivenRows(layout, *plan, tables_, given, total,
                                          wire_, MutableWireData(&values),
                                          &parallel, divisor_)));
    route->BeginWait(call_ + ", gradients of gradients");
  }

 private:
  sok::MessageFormat format_;
  sok::WireType wire_;
  int divisor_ = 1;
  std::string call_;
  std::vector<int32> tables_;
};

class PoolGivenRowsOp : public OpKernel {
 public:
  explicit PoolGivenRowsOp(OpKernelConstruction* context) : OpKernel(context) {
    OP_REQUIRES_OK(context, GetWire(context, &wire_));
    OP_REQUIRES_OK(context, GetTables(context, &tables_));
    tensorflow::DataType type;
    OP_REQUIRES_OK(context, context->GetAttr("Twire", &type));
    tensorflow::DataTypeVector received;
    OP_REQUIRES_OK(context, context->GetAttr("Received", &received));
    has_received_ = !received.empty();
    OP_REQUIRES(
        context,
        received.size() <= 1 && (!has_received_ || received[0] == type),
        InvalidArgument("expected received rows at most once and of type ",
                        DataTypeString(type), ", got ", received.size()));
  }

  void Compute(OpKernelContext* context) override {
    RouteState* route = nullptr;
    OP_REQUIRES_OK(context, GetRoute(context, 0, &route));
    route->EndWait();
    const sok::RoutePlan& plan = route->plan();
    std::vector<float*> outputs;
    for (size_t k = 0; k < tables_.size(); ++k) {
      const int t = tables_[k];
      OP_REQUIRES_OK(context, CheckTable(t, plan.num_tables()));
      TensorShape shape;
      OP_REQUIRES_OK(context, MatrixShape(plan.batch_size(t), plan.dim(t),
                                          plan.name(t), &shape));
      Tensor* output = nullptr;
      OP_REQUIRES_OK(context, context->allocate_output(k, shape, &output));
      outputs.push_back(MutableData<float>(output));
    }
    PoolParallel parallel(context);
    OP_REQUIRES_OK(
        context,
        ToTf(sok::PoolGivenRows(
            plan, tables_, RowsIn(context, 1), wire_, outputs, &parallel,
            has_received_ ? RowsIn(context, 2) : sok::ReceivedRows())));
  }

 private:
  static sok::ReceivedRows RowsIn(OpKernelContext* context, int input) {
    sok::ReceivedRows rows;
    rows.data = WireData(context->input(input));
    rows.num_floats = context->input(input).NumElements();
    return rows;
  }

  sok::WireType wire_;
  bool has_received_ = false;
  std::vector<int32> tables_;
};

const embedding_variable::RegisterKernel<ServeGivenRowsOp> kServeGivenRows(
    "SokServeGivenRows",
    {"plan", "message", "splits", "route", "rows", "values", "value_splits"});
const embedding_variable::RegisterKernel<PoolGivenRowsOp> kPoolGivenRows(
    "SokPoolGivenRows", {"plan", "values", "received", "weights", "outputs"});

}  // namespace
}  // namespace sparse_operation_kit
