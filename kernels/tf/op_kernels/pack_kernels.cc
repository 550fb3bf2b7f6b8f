// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// EvPack, EvUnpack.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernels/tf/bridge/register_kernel.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/variant.h"
#include "tensorflow/core/framework/variant_encode_decode.h"
#include "tensorflow/core/framework/variant_tensor_data.h"

namespace embedding_variable {
namespace {

using tensorflow::OpKernel;
using tensorflow::OpKernelContext;
using tensorflow::Tensor;
using tensorflow::errors::InvalidArgument;

// Never leaves the process, so it has no serialized form.
class PackVariant {
 public:
  PackVariant() {}
  explicit PackVariant(std::shared_ptr<const std::vector<Tensor>> tensors)
      : tensors_(std::move(tensors)) {}

  const std::vector<Tensor>* tensors() const { return tensors_.get(); }

  std::string TypeName() const { return "embedding_variable::PackVariant"; }
  std::string DebugString() const {
    return tensorflow::strings::StrCat(
        "a pack of ", tensors_ == nullptr ? 0 : tensors_->size(), " tensors");
  }
  void Encode(tensorflow::VariantTensorData* data) const {
    data->set_type_name(TypeName());
  }
  bool Decode(const tensorflow::VariantTensorData&) { return false; }

 private:
  std::shared_ptr<const std::vector<Tensor>> tensors_;
};

class PackOp : public OpKernel {
 public:
  using OpKernel::OpKernel;

  void Compute(OpKernelContext* context) override {
    const auto tensors = std::make_shared<std::vector<Tensor>>();
    for (int i = 0; i < context->num_inputs(); ++i) {
      tensors->push_back(context->input(i));
    }
    Tensor* packed = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(
                                0, tensorflow::TensorShape({}), &packed));
    packed->scalar<tensorflow::Variant>()() = PackVariant(tensors);
  }
  bool IsExpensive() override { return false; }
};

class UnpackOp : public OpKernel {
 public:
  using OpKernel::OpKernel;

  void Compute(OpKernelContext* context) override {
    const Tensor& packed = context->input(0);
    const PackVariant* const variant =
        packed.dims() == 0
            ? packed.scalar<tensorflow::Variant>()().get<PackVariant>()
            : nullptr;
    OP_REQUIRES(context, variant != nullptr && variant->tensors() != nullptr,
                InvalidArgument("expected an output of EvPack, got ",
                                packed.DebugString()));
    const std::vector<Tensor>& tensors = *variant->tensors();
    OP_REQUIRES(context,
                tensors.size() == static_cast<size_t>(context->num_outputs()),
                InvalidArgument("expected a pack of ", context->num_outputs(),
                                " tensors, got ", variant->DebugString()));
    for (int i = 0; i < context->num_outputs(); ++i) {
      const auto type = context->expected_output_dtype(i);
      OP_REQUIRES(
          context, tensors[i].dtype() == type,
          InvalidArgument("expected tensor ", i, " of a pack as ",
                          tensorflow::DataTypeString(type), ", got ",
                          tensorflow::DataTypeString(tensors[i].dtype())));
      context->set_output(i, tensors[i]);
    }
  }
  bool IsExpensive() override { return false; }
};

const RegisterKernel<PackOp> kPack("EvPack", {"tensors", "packed"});
const RegisterKernel<UnpackOp> kUnpack("EvUnpack", {"packed", "tensors"});

}  // namespace
}  // namespace embedding_variable
