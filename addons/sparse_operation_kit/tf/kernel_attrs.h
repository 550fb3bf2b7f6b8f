// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Reads attributes and inputs that several exchange kernels share.

#ifndef ADDONS_SPARSE_OPERATION_KIT_TF_KERNEL_ATTRS_H_
#define ADDONS_SPARSE_OPERATION_KIT_TF_KERNEL_ATTRS_H_

#include <string>
#include <vector>

#include "addons/sparse_operation_kit/exchange/message.h"
#include "addons/sparse_operation_kit/exchange/traits.h"
#include "addons/sparse_operation_kit/exchange/wire_type.h"
#include "kernels/tf/bridge/status.h"
#include "kernels/tf/bridge/tensor_span.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace sparse_operation_kit {

// Reads the attributes wire and Twire. Twire must match the wire type or be a
// variant.
inline tensorflow::Status GetWire(tensorflow::OpKernelConstruction* context,
                                  sok::WireType* wire) {
  std::string name;
  TF_RETURN_IF_ERROR(context->GetAttr("wire", &name));
  tensorflow::DataType type;
  TF_RETURN_IF_ERROR(context->GetAttr("Twire", &type));
  if (name == "float32") {
    *wire = sok::WireType::kFloat32;
  } else if (name == "float16") {
    *wire = sok::WireType::kFloat16;
  } else if (name == "bfloat16") {
    *wire = sok::WireType::kBFloat16;
  } else {
    return tensorflow::errors::InvalidArgument(
        "wire: expected float32, float16 or bfloat16, got '", name, "'");
  }
  const bool wide = *wire == sok::WireType::kFloat32;
  if (type != tensorflow::DT_VARIANT &&
      wide != (type == tensorflow::DT_FLOAT)) {
    return tensorflow::errors::InvalidArgument(
        "rows of wire type ", name, " cannot be tensors of type ",
        tensorflow::DataTypeString(type));
  }
  return tensorflow::Status();
}

inline tensorflow::Status GetFormat(tensorflow::OpKernelConstruction* context,
                                    sok::MessageFormat* format) {
  TF_RETURN_IF_ERROR(context->GetAttr("num_tables", &format->num_tables));
  TF_RETURN_IF_ERROR(
      context->GetAttr("with_occurrences", &format->with_occurrences));
  tensorflow::int64 fingerprint;
  TF_RETURN_IF_ERROR(context->GetAttr("fingerprint", &fingerprint));
  format->fingerprint = fingerprint;
  return tensorflow::Status();
}

// Returns the traits text of the attributes that ranks compare; empty if the op
// has none.
inline tensorflow::Status GetTraits(tensorflow::OpKernelConstruction* context,
                                    std::string* text) {
  int num_tables;
  TF_RETURN_IF_ERROR(context->GetAttr("num_tables", &num_tables));
  const size_t n = num_tables;
  std::vector<std::string> ids_types, key_types, optimizers, combiners;
  TF_RETURN_IF_ERROR(context->GetAttr("ids_types", &ids_types));
  TF_RETURN_IF_ERROR(context->GetAttr("key_types", &key_types));
  TF_RETURN_IF_ERROR(context->GetAttr("optimizers", &optimizers));
  TF_RETURN_IF_ERROR(context->GetAttr("combiners", &combiners));
  if (ids_types.empty()) return tensorflow::Status();
  optimizers.resize(optimizers.empty() ? n : optimizers.size());
  if (ids_types.size() != n || key_types.size() != n ||
      optimizers.size() != n || combiners.size() != n) {
    return tensorflow::errors::InvalidArgument(
        "a lookup of ", n, " tables got ", ids_types.size(), " types of ids, ",
        key_types.size(), " of keys, ", optimizers.size(), " optimizers and ",
        combiners.size(), " combiners");
  }
  std::vector<sok::TableTraits> tables(n);
  for (size_t t = 0; t < n; ++t) {
    tables[t].combiner = combiners[t];
    tables[t].ids = ids_types[t];
    tables[t].keys = key_types[t];
    tables[t].optimizer = optimizers[t];
  }
  *text = sok::WriteTraits(tables);
  return tensorflow::Status();
}

// Parses the message in inputs `message` and `message + 1` (its splits).
inline tensorflow::Status ParseMessage(tensorflow::OpKernelContext* context,
                                       int message,
                                       const sok::MessageFormat& format,
                                       sok::MessageLayout* layout) {
  for (int i = message; i <= message + 1; ++i) {
    if (context->input(i).dims() != 1) {
      return tensorflow::errors::InvalidArgument(
          "lookup over ranks: a message and its splits: expected vectors, got ",
          context->input(i).shape().DebugString());
    }
  }
  return embedding_variable::ToTf(sok::MessageLayout::Parse(
      format, embedding_variable::SpanOf<int64_t>(context->input(message)),
      embedding_variable::SpanOf<int32_t>(context->input(message + 1)),
      layout));
}

// The bytes of rows or gradients in wire type: a vector of float or half.
inline const void* WireData(const tensorflow::Tensor& tensor) {
  return tensor.tensor_data().data();
}
inline void* MutableWireData(tensorflow::Tensor* tensor) {
  return const_cast<char*>(tensor->tensor_data().data());
}

}  // namespace sparse_operation_kit

#endif  // ADDONS_SPARSE_OPERATION_KIT_TF_KERNEL_ATTRS_H_
