// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/tf/bridge/shared_variant.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "tensorflow/core/framework/variant_encode_decode.h"
#include "tensorflow/core/framework/variant_tensor_data.h"

namespace embedding_variable {
namespace {

using tensorflow::VariantDeviceCopyDirection;

struct Shares {
  std::shared_ptr<int> number;

  std::string TypeName() const { return "embedding_variable::Shares"; }
  std::string DebugString() const { return TypeName(); }
  void Encode(tensorflow::VariantTensorData*) const {}
  bool Decode(const tensorflow::VariantTensorData&) { return false; }
};

TEST(SharedVariantTest, CopiesShareTheObject) {
  SharedVariantCopies<Shares> copies;
  SharedVariantCopies<Shares> of_another_library;
  tensorflow::Variant from = Shares{std::make_shared<int>(7)};
  for (VariantDeviceCopyDirection direction :
       {VariantDeviceCopyDirection::HOST_TO_DEVICE,
        VariantDeviceCopyDirection::DEVICE_TO_HOST,
        VariantDeviceCopyDirection::DEVICE_TO_DEVICE}) {
    auto* const copy =
        tensorflow::UnaryVariantOpRegistry::Global()->GetDeviceCopyFn(
            direction, TypeIndexOf<Shares>());
    ASSERT_NE(copy, nullptr);
    tensorflow::Variant to;
    const tensorflow::Status status =
        (*copy)(from, &to, [](const tensorflow::Tensor&, tensorflow::Tensor*) {
          return tensorflow::errors::Internal("no tensor is copied");
        });
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(to.get<Shares>()->number, from.get<Shares>()->number);
  }
}

TEST(SharedVariantTest, ZerosShareNoObject) {
  SharedVariantZeros<Shares> zeros;
  SharedVariantZeros<Shares> of_another_library;
  tensorflow::Variant from = Shares{std::make_shared<int>(7)};
  for (const char* device : {tensorflow::DEVICE_CPU, tensorflow::DEVICE_GPU}) {
    auto* const make =
        tensorflow::UnaryVariantOpRegistry::Global()->GetUnaryOpFn(
            tensorflow::ZEROS_LIKE_VARIANT_UNARY_OP, device,
            TypeIndexOf<Shares>());
    ASSERT_NE(make, nullptr);
    tensorflow::Variant to;
    const tensorflow::Status status = (*make)(nullptr, from, &to);
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(to.get<Shares>()->number, nullptr);
  }
}

}  // namespace
}  // namespace embedding_variable
