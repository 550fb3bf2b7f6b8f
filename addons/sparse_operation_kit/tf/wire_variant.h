// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Rows or gradients for an exchange as a DT_VARIANT scalar. TensorFlow passes
// it between ops but cannot read it, since the memory may be that of a device
// that TensorFlow does not manage. It never leaves the process.

#ifndef ADDONS_SPARSE_OPERATION_KIT_TF_WIRE_VARIANT_H_
#define ADDONS_SPARSE_OPERATION_KIT_TF_WIRE_VARIANT_H_

#include <string>
#include <utility>

#include "addons/sparse_operation_kit/exchange/exchange_device.h"
#include "addons/sparse_operation_kit/exchange/wire_buffer.h"
#include "kernels/tf/bridge/status.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/variant.h"
#include "tensorflow/core/framework/variant_encode_decode.h"
#include "tensorflow/core/framework/variant_tensor_data.h"

namespace sparse_operation_kit {

class WireVariant {
 public:
  WireVariant() {}
  explicit WireVariant(sok::WireBuffer buffer) : buffer_(std::move(buffer)) {}

  // Its memory is null in an empty variant.
  const sok::WireBuffer& buffer() const { return buffer_; }

  std::string TypeName() const { return "sparse_operation_kit::WireVariant"; }
  std::string DebugString() const {
    return tensorflow::strings::StrCat(
        buffer_.count, " numbers of an exchange between ranks",
        buffer_.on_device ? ", on a device" : "");
  }
  void Encode(tensorflow::VariantTensorData* data) const {
    data->set_type_name(TypeName());
  }
  bool Decode(const tensorflow::VariantTensorData&) { return false; }

 private:
  sok::WireBuffer buffer_;
};

// Whether an op's Twire is a WireVariant.
inline bool IsWireVariant(tensorflow::DataType type) {
  return type == tensorflow::DT_VARIANT;
}

inline tensorflow::Status SetWireOutput(tensorflow::OpKernelContext* context,
                                        int output, sok::WireBuffer buffer) {
  tensorflow::Tensor* tensor = nullptr;
  TF_RETURN_IF_ERROR(
      context->allocate_output(output, tensorflow::TensorShape({}), &tensor));
  tensor->scalar<tensorflow::Variant>()() = WireVariant(std::move(buffer));
  return tensorflow::Status();
}

inline tensorflow::Status GetWireInput(tensorflow::OpKernelContext* context,
                                       int input, sok::WireBuffer* buffer) {
  const tensorflow::Tensor& tensor = context->input(input);
  const WireVariant* variant =
      tensor.dtype() == tensorflow::DT_VARIANT && tensor.dims() == 0
          ? tensor.scalar<tensorflow::Variant>()().get<WireVariant>()
          : nullptr;
  if (variant == nullptr || variant->buffer().memory == nullptr) {
    return tensorflow::errors::InvalidArgument(
        "input ", input, ": expected rows or gradients of an exchange, got ",
        tensor.DebugString());
  }
  *buffer = variant->buffer();
  return tensorflow::Status();
}

inline tensorflow::Status GetExchangeDevice(sok::ExchangeDevice** device) {
  return embedding_variable::ToTf(sok::ExchangeDevice::Get(device));
}

}  // namespace sparse_operation_kit

#endif  // ADDONS_SPARSE_OPERATION_KIT_TF_WIRE_VARIANT_H_
