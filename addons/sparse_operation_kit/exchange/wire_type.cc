// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/sparse_operation_kit/exchange/wire_type.h"

#include <cstring>

#include "kernels/engine/base/float_math.h"

namespace sok {

using ev::FromBFloat16;
using ev::FromFloat16;
using ev::ToBFloat16;
using ev::ToFloat16;

void ToWire(const float* __restrict__ from, int64_t count, WireType type,
            void* __restrict__ to) {
  uint16_t* out = static_cast<uint16_t*>(to);
  switch (type) {
    case WireType::kFloat32:
      if (count > 0) std::memcpy(to, from, count * sizeof(float));
      break;
    case WireType::kFloat16:
      for (int64_t i = 0; i < count; ++i) out[i] = ToFloat16(from[i]);
      break;
    case WireType::kBFloat16:
      for (int64_t i = 0; i < count; ++i) out[i] = ToBFloat16(from[i]);
      break;
  }
}

void FromWire(const void* __restrict__ from, int64_t count, WireType type,
              float* __restrict__ to) {
  const uint16_t* in = static_cast<const uint16_t*>(from);
  switch (type) {
    case WireType::kFloat32:
      if (count > 0) std::memcpy(to, from, count * sizeof(float));
      break;
    case WireType::kFloat16:
      for (int64_t i = 0; i < count; ++i) to[i] = FromFloat16(in[i]);
      break;
    case WireType::kBFloat16:
      for (int64_t i = 0; i < count; ++i) to[i] = FromBFloat16(in[i]);
      break;
  }
}

}  // namespace sok
