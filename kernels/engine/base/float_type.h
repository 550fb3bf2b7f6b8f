// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Types of the numbers of outputs and gradients, and typed pointers to them.
// Rows, sums and all arithmetic are float32. A result is rounded once, when it
// is stored; a narrow number is widened, which is exact, when it is loaded
// (base/float_math.h).

#ifndef KERNELS_ENGINE_BASE_FLOAT_TYPE_H_
#define KERNELS_ENGINE_BASE_FLOAT_TYPE_H_

#include <cstddef>
#include <cstdint>

#include "kernels/engine/base/host_device.h"

namespace ev {

enum class FloatType : int32_t { kFloat32, kFloat16, kBFloat16 };

// A narrow number by its bits.
struct Float16 {
  uint16_t bits;
};
struct BFloat16 {
  uint16_t bits;
};

EV_HOST_DEVICE constexpr int64_t FloatBytes(FloatType type) {
  return type == FloatType::kFloat32 ? 4 : 2;
}

// A pointer to numbers of one type. Byte: char or const char.
template <typename Byte, typename Float>
class TypedFloats {
 public:
  constexpr TypedFloats() : data_(nullptr), type_(FloatType::kFloat32) {}
  constexpr TypedFloats(std::nullptr_t)  // NOLINT: implicit on purpose
      : TypedFloats() {}
  TypedFloats(Float* floats)  // NOLINT: implicit on purpose
      : data_(reinterpret_cast<Byte*>(floats)), type_(FloatType::kFloat32) {}
  TypedFloats(Byte* data, FloatType type) : data_(data), type_(type) {}

  FloatType type() const { return type_; }
  Byte* data() const { return data_; }
  // REQUIRES: the type is kFloat32.
  Float* floats() const { return reinterpret_cast<Float*>(data_); }
  // The pointer to number i.
  TypedFloats At(int64_t i) const {
    return TypedFloats(data_ + i * FloatBytes(type_), type_);
  }
  bool operator==(std::nullptr_t) const { return data_ == nullptr; }
  bool operator!=(std::nullptr_t) const { return data_ != nullptr; }

 private:
  Byte* data_;
  FloatType type_;
};

using MutableFloats = TypedFloats<char, float>;
using ConstFloats = TypedFloats<const char, const float>;

// Calls visitor(p), where p points to float, Float16 or BFloat16.
template <typename Visitor>
void VisitFloats(MutableFloats floats, const Visitor& visitor) {
  switch (floats.type()) {
    case FloatType::kFloat32:
      return visitor(floats.floats());
    case FloatType::kFloat16:
      return visitor(reinterpret_cast<Float16*>(floats.data()));
    case FloatType::kBFloat16:
      return visitor(reinterpret_cast<BFloat16*>(floats.data()));
  }
}
// The pointer is to const numbers.
template <typename Visitor>
void VisitFloats(ConstFloats floats, const Visitor& visitor) {
  VisitFloats(MutableFloats(const_cast<char*>(floats.data()), floats.type()),
              [&](auto* numbers) {
                const auto* const read = numbers;
                visitor(read);
              });
}

}  // namespace ev

#endif  // KERNELS_ENGINE_BASE_FLOAT_TYPE_H_
