// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/tf/bridge/guarded_kernel.h"

#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/tf/bridge/register_kernel.h"
#include "tensorflow/core/framework/device_attributes.pb.h"
#include "tensorflow/core/framework/node_def_builder.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/public/version.h"

namespace embedding_variable {
namespace {

using tensorflow::AsyncOpKernel;
using tensorflow::OpKernel;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::Status;
using tensorflow::Tensor;
using tensorflow::TensorShape;

// An error with a byte that is not UTF-8 and that was not converted by ToTf.
Status RawError() { return tensorflow::errors::NotFound("caf\xE9"); }

using Inputs = tensorflow::gtl::InlinedVector<tensorflow::TensorValue, 4>;

// TensorFlow 1.15 has a pointer in a kernel's parameters, 2.x a span.
inline void SetInputs(const Inputs& inputs, const Inputs** to) {
  *to = &inputs;
}
template <typename Span>
void SetInputs(const Inputs& inputs, Span* to) {
  *to = inputs;
}

// Throws the exception named by 'what'.
void Throw(const std::string& what) {
  if (what == "bad_alloc") throw std::bad_alloc();
  if (what == "length_error") std::vector<char>().resize(~size_t{0});
  if (what == "runtime_error") throw std::runtime_error("a surprise");
}

class ThrowOp : public OpKernel {
 public:
  explicit ThrowOp(OpKernelConstruction* context) : OpKernel(context) {
    std::string in_constructor;
    OP_REQUIRES_OK(context, context->GetAttr("what", &what_));
    OP_REQUIRES_OK(context, context->GetAttr("constructor", &in_constructor));
    OP_REQUIRES(context, in_constructor != "raw_error", RawError());
    Throw(in_constructor);
  }
  void Compute(OpKernelContext* context) override {
    OP_REQUIRES(context, what_ != "raw_error", RawError());
    Throw(what_);
  }

 private:
  std::string what_;
};

class ThrowAsyncOp : public AsyncOpKernel {
 public:
  explicit ThrowAsyncOp(OpKernelConstruction* context)
      : AsyncOpKernel(context) {
    OP_REQUIRES_OK(context, context->GetAttr("what", &what_));
  }
  void ComputeAsync(OpKernelContext* context, DoneCallback done) override {
    OP_REQUIRES_ASYNC(context, what_ != "raw_error", RawError(), done);
    if (what_.compare(0, 6, "later_") == 0) {
      const auto end = [this] {
        Throw(what_.substr(6));
        return Status();
      };
      return EndAsync(*this, context, end, done);
    }
    Throw(what_);
    done();
  }

 private:
  std::string what_;
};

REGISTER_OP("EvTestThrow")
    .Input("resource: resource")
    .Attr("what: string = ''")
    .Attr("constructor: string = ''");
REGISTER_OP("EvTestThrowAsync")
    .Input("resource: resource")
    .Attr("what: string = ''");
REGISTER_OP("EvTestThrowOnEachDevice")
    .Input("resource: resource")
    .Attr("what: string = ''")
    .Attr("constructor: string = ''");
const RegisterKernel<ThrowOp> kThrow("EvTestThrow", {"resource"});
const RegisterOnEachDevice<ThrowOp> kThrowOnEachDevice(
    "EvTestThrowOnEachDevice");
const RegisterKernel<ThrowAsyncOp> kThrowAsync("EvTestThrowAsync",
                                               {"resource"});

class CpuOnly : public tensorflow::DeviceBase {
 public:
  CpuOnly() : DeviceBase(tensorflow::Env::Default()) {
    attributes_.set_name("/cpu:0");
  }
  tensorflow::Allocator* GetAllocator(
      tensorflow::AllocatorAttributes) override {
    return tensorflow::cpu_allocator();
  }
  const tensorflow::DeviceAttributes& attributes() const override {
    return attributes_;
  }

 private:
  tensorflow::DeviceAttributes attributes_;
};

class GuardedKernelTest : public ::testing::Test {
 protected:
  Status Make(const std::string& op, const std::string& what,
              const std::string& constructor) {
    tensorflow::NodeDefBuilder builder("lookup", op);
    builder.Input("v", 0, tensorflow::DT_RESOURCE).Attr("what", what);
    if (!constructor.empty()) builder.Attr("constructor", constructor);
    tensorflow::NodeDef node;
    TF_RETURN_IF_ERROR(builder.Finalize(&node));
    Status status;
    kernel_ = tensorflow::CreateOpKernel(
        tensorflow::DeviceType(tensorflow::DEVICE_CPU), &device_,
        tensorflow::cpu_allocator(), node, TF_GRAPH_DEF_VERSION, &status);
    return status;
  }

  // Returns the error of one run of an op on a variable "user".
  Status Run(const std::string& op, const std::string& what) {
    TF_RETURN_IF_ERROR(Make(op, what, ""));
    tensorflow::ResourceHandle handle;
    handle.set_name("user");
    Tensor input(tensorflow::DT_RESOURCE, TensorShape({}));
    input.scalar<tensorflow::ResourceHandle>()() = handle;
    Inputs inputs;
    inputs.emplace_back(&input);
    OpKernelContext::Params params;
    params.op_kernel = kernel_.get();
    params.device = &device_;
    SetInputs(inputs, &params.inputs);
    OpKernelContext context(&params, 0);
    AsyncOpKernel* const async = kernel_->AsAsync();
    if (async == nullptr) {
      kernel_->Compute(&context);
    } else {
      int done = 0;
      async->ComputeAsync(&context, [&done] { ++done; });
      EXPECT_EQ(1, done);
    }
    return context.status();
  }

  CpuOnly device_;
  std::unique_ptr<OpKernel> kernel_;
};

TEST_F(GuardedKernelTest, WhatAKernelThrowsIsAnErrorOfTheStep) {
  for (const char* op : {"EvTestThrow", "EvTestThrowAsync"}) {
    EXPECT_EQ(Status(), Run(op, "nothing"));
    Status status = Run(op, "bad_alloc");
    EXPECT_EQ(tensorflow::error::RESOURCE_EXHAUSTED, CodeOf(status));
    EXPECT_EQ("op 'lookup' on embedding variable 'user': out of memory",
              MessageOf(status));
    status = Run(op, "length_error");
    EXPECT_EQ(tensorflow::error::RESOURCE_EXHAUSTED, CodeOf(status));
    EXPECT_NE(std::string::npos, MessageOf(status).find("'user'"));
    status = Run(op, "runtime_error");
    EXPECT_EQ(tensorflow::error::INTERNAL, CodeOf(status));
    EXPECT_EQ("op 'lookup' on embedding variable 'user': a surprise",
              MessageOf(status));
  }
}

TEST_F(GuardedKernelTest, WhatTheEndOfAKernelThrowsIsAnErrorOfTheStep) {
  EXPECT_EQ(Status(), Run("EvTestThrowAsync", "later_nothing"));
  const Status status = Run("EvTestThrowAsync", "later_bad_alloc");
  EXPECT_EQ(tensorflow::error::RESOURCE_EXHAUSTED, CodeOf(status));
  EXPECT_EQ("op 'lookup' on embedding variable 'user': out of memory",
            MessageOf(status));
}

TEST_F(GuardedKernelTest, WhatAConstructorThrowsIsAnErrorToo) {
  for (const char* op : {"EvTestThrow", "EvTestThrowOnEachDevice"}) {
    EXPECT_EQ(Status(), Run(op, "nothing"));
    const Status status = Make(op, "nothing", "bad_alloc");
    EXPECT_EQ(tensorflow::error::RESOURCE_EXHAUSTED, CodeOf(status));
    EXPECT_EQ(nullptr, kernel_);
    EXPECT_NE(std::string::npos,
              MessageOf(status).find("op 'lookup': out of memory"))
        << status;
  }
}

TEST_F(GuardedKernelTest, MessagesOfErrorsArePrintable) {
  for (const char* op : {"EvTestThrow", "EvTestThrowAsync"}) {
    const Status status = Run(op, "raw_error");
    EXPECT_EQ(tensorflow::error::NOT_FOUND, CodeOf(status));
    EXPECT_EQ("caf\\xe9", MessageOf(status));
  }
  const Status status = Make("EvTestThrow", "nothing", "raw_error");
  EXPECT_EQ(tensorflow::error::NOT_FOUND, CodeOf(status));
  EXPECT_EQ(nullptr, kernel_);
  EXPECT_NE(std::string::npos, MessageOf(status).find("caf\\xe9")) << status;
}

}  // namespace
}  // namespace embedding_variable
