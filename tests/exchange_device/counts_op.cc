// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// TestExchangeCounts: an op that returns the stand-in's counters.

#include "kernels/engine/testing/host_device_rows.h"
#include "kernels/engine/testing/host_device_step.h"
#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tests/exchange_device/host_exchange_device.h"

namespace sparse_operation_kit {
namespace {

REGISTER_OP("TestExchangeCounts")
    .Output("counts: int64")
    .SetIsStateful()
    .SetShapeFn([](tensorflow::shape_inference::InferenceContext* c) {
      c->set_output(0, c->Vector(15));
      return tensorflow::Status();
    })
    .Doc(R"doc(
Returns the counters of the stand-in for an exchange device, of this process.

counts: Exchanges out of device memory; pooled routes; spread gradients; live blocks;
  always 0; batches of the device of the rows whose keys were fetched; tables
  deduplicated in routes; calls that summed gradients in device memory, and in CPU
  memory; routes whose outputs, and routes whose gradients, are in device
  memory; tables deduplicated in routes whose ids were in device memory; routes whose
  tables found no memory for deduplication; steps of the device of the rows; exchanges
  that ended before all data had arrived.
)doc");

class CountsOp : public tensorflow::OpKernel {
 public:
  using OpKernel::OpKernel;

  void Compute(tensorflow::OpKernelContext* context) override {
    tensorflow::Tensor* out = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(
                                0, tensorflow::TensorShape({15}), &out));
    const sok::testing::HostExchangeCounts counts =
        sok::testing::GetHostExchangeCounts();
    out->vec<tensorflow::int64>()(0) = counts.sends_from_device;
    out->vec<tensorflow::int64>()(1) = counts.pooled_routes;
    out->vec<tensorflow::int64>()(2) = counts.spread_gradients;
    out->vec<tensorflow::int64>()(3) = counts.live_blocks;
    out->vec<tensorflow::int64>()(4) = 0;
    out->vec<tensorflow::int64>()(5) = ev::testing::HostDeviceFetches();
    out->vec<tensorflow::int64>()(6) = counts.deduplicated;
    out->vec<tensorflow::int64>()(7) = counts.sums_on_device;
    out->vec<tensorflow::int64>()(8) = counts.sums_on_host;
    out->vec<tensorflow::int64>()(9) = counts.pooled_on_device;
    out->vec<tensorflow::int64>()(10) = counts.summed_on_device;
    out->vec<tensorflow::int64>()(11) = counts.ids_on_device;
    out->vec<tensorflow::int64>()(12) = counts.without_room;
    out->vec<tensorflow::int64>()(13) = ev::testing::HostDeviceSteps();
    out->vec<tensorflow::int64>()(14) = counts.started;
  }
};

REGISTER_KERNEL_BUILDER(
    Name("TestExchangeCounts").Device(tensorflow::DEVICE_CPU), CountsOp);

}  // namespace
}  // namespace sparse_operation_kit
